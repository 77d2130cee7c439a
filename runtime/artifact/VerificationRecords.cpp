// Records as text, in files, and what is believed of them; see VerificationRecords.h.
#include "runtime/artifact/VerificationRecords.h"

#include "kernel/Error.h"
#include "kernel/LaunchCheck.h"
#include "runtime/build/BuildKey.h"
#include "runtime/system/Files.h"
#include "runtime/system/Sha256.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <sstream>
#include <system_error>

namespace weft::embedded {
extern const std::map<std::string, std::string_view> verifiedFiles;
}

namespace weft::runtime {
namespace {

constexpr std::string_view magic = "# weft verified ";
constexpr int newestFormat = 3;
constexpr std::array verdicts = {Verdict::agrees, Verdict::fails, Verdict::planFails,
                                 Verdict::stale};

template <typename Number>
std::optional<Number> numberOf(const std::string &text) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

bool isHash(const std::string &text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

int formatOf(const std::string &line, const std::string &where) {
  const std::optional<int> format =
      line.starts_with(magic) ? numberOf<int>(line.substr(magic.size())) : std::nullopt;
  if (!format || *format < 1)
    throw Error::badInput(
        "{}:1: not a store of verification records: it begins with '{}' instead of '{}{}'", where,
        line.substr(0, 40), magic, newestFormat);
  if (*format > newestFormat)
    throw Error::badInput(
        "{}:1: verification records of format {}, written by a newer weft; this one reads formats "
        "1 to {}",
        where, *format, newestFormat);
  return *format;
}

/// "HASH KERNEL TOOL GPU".
std::optional<VerificationRecord> recordOfFormat1(std::istringstream words) {
  VerificationRecord record{.hash = {}, .gpu = {}, .verifier = 1, .kernel = {}};
  std::string tool;
  words >> record.hash >> record.kernel >> tool >> std::ws;
  std::getline(words, record.gpu);
  if (!isHash(record.hash) || record.gpu.empty()) return std::nullopt;
  return record;
}

/// "HASH VERDICT VERIFIER POINTS KERNEL GPU", of formats 2 and 3.
std::optional<VerificationRecord> recordOfFormat2(std::istringstream words) {
  VerificationRecord record;
  std::string verdict, verifier, points;
  words >> record.hash >> verdict >> verifier >> points >> record.kernel >> std::ws;
  std::getline(words, record.gpu);
  const auto known = std::ranges::find(verdicts, verdict, [](Verdict one) { return nameOf(one); });
  const std::optional<int> version = numberOf<int>(verifier);
  const std::optional<int64_t> count = numberOf<int64_t>(points);
  if (!isHash(record.hash) || record.gpu.empty() || known == verdicts.end() || !version ||
      *version < 1 || !count)
    return std::nullopt;
  if (*count == 0 && *known == Verdict::agrees && *version > 1)
    return std::nullopt;  // agreed in nothing
  record.verdict = *known;
  record.verifier = *version;
  record.points = *count;
  return record;
}

/// Whole or not at all.
void writeReplacing(const std::filesystem::path &file, const std::string &text) {
  std::filesystem::path next = file;
  next += ".next";
  writeFile(next, text);
  std::filesystem::rename(next, file);
}

void add(VerificationRecords &records, const VerificationRecord &found, bool isWhole) {
  const auto [at, isNew] = records.emplace(std::pair(found.hash, found.gpu), found);
  if (isNew) return;
  VerificationRecord &old = at->second;
  const bool bothAgree = old.verdict == Verdict::agrees && found.verdict == Verdict::agrees;
  if (bothAgree && std::pair(old.verifier, old.points) >= std::pair(found.verifier, found.points))
    return;
  if (old.verdict == Verdict::planFails && found.verdict == Verdict::agrees && !isWhole) return;
  if (old.verdict == Verdict::fails && found.verdict == Verdict::planFails)
    return;  // the kernel's own failure says more
  old = found;
}

Verification::State stateOf(const VerificationRecord &record) {
  if (record.verdict == Verdict::fails) return Verification::State::fails;
  if (record.verdict == Verdict::planFails) return Verification::State::planFails;
  if (record.verdict == Verdict::stale) return Verification::State::never;
  return record.verifier >= verifierVersion ? Verification::State::agrees
                                            : Verification::State::older;
}

/// The greater, the more it outweighs what else is known.
int weightOf(Verification::State state) {
  using enum Verification::State;
  switch (state) {
    case never: return 0;
    case unknown: return 0;
    case older: return 1;
    case agrees: return 2;
    case planFails: return 3;
    case fails: return 4;
  }
  return 0;
}

}  // namespace

std::string_view nameOf(Verdict verdict) {
  switch (verdict) {
    case Verdict::agrees: return "agrees";
    case Verdict::fails: return "fails";
    case Verdict::planFails: return "plan-fails";
    case Verdict::stale: return "stale";
  }
  return "";
}

std::string_view nameOf(Verification::State state) {
  using enum Verification::State;
  switch (state) {
    case never: return "never";
    case older: return "older-verifier";
    case agrees: return "agrees";
    case fails: return "fails";
    case planFails: return "plan-fails";
    case unknown: return "unknown";
  }
  return "";
}

std::string describe(const Verification &verification) {
  using enum Verification::State;
  const VerificationRecord &record = verification.record;
  switch (verification.state) {
    case never: return "never on a GPU (weft verify)";
    case older:
      return fmt::format("by an older verifier, {}, on {}: verifier {} finds more (weft verify)",
                         record.verifier, record.gpu, verifierVersion);
    case agrees: return fmt::format("on {}, at {} points", record.gpu, record.points);
    case fails: return fmt::format("FAILED on {} when it was last checked there", record.gpu);
    case planFails: return fmt::format("in doubt: a whole plan with it FAILED on {}", record.gpu);
    case unknown: return "not known: no manifest.json, so nobody can tell what was built";
  }
  return "";
}

VerificationRecords parseRecords(std::string_view text, const std::string &where) {
  std::istringstream lines{std::string(text)};
  std::string line;
  VerificationRecords records;
  int format = 0;
  for (int number = 1; std::getline(lines, line); ++number) {
    if (number == 1) format = formatOf(line, where);
    if (line.starts_with(magic) && number > 1)
      throw Error::badInput("{}:{}: a second head, '{}': one store holds records of one format",
                            where, number, line);
    if (line.empty() || line.starts_with('#')) continue;
    std::istringstream words(line);
    const auto record =
        format == 1 ? recordOfFormat1(std::move(words)) : recordOfFormat2(std::move(words));
    if (!record)
      throw Error::badInput(
          "{}:{}: a row of format {} is a hash of 64 hexadecimal digits, {} and GPU", where, number,
          format,
          format == 1 ? "kernel, tool version"
                      : "verdict (agrees, fails, plan-fails, stale), verifier, points, kernel");
    records[{record->hash, record->gpu}] = *record;
  }
  if (format == 0)
    throw Error::badInput("{}: an empty file is no store of verification records", where);
  return records;
}

std::string printRecords(const VerificationRecords &records) {
  std::string text =
      fmt::format("{}{}\n# hash verdict verifier points kernel GPU\n", magic, newestFormat);
  for (const auto &[key, record] : records)
    text += fmt::format("{} {} {} {} {} {}\n", record.hash, nameOf(record.verdict), record.verifier,
                        record.points, record.kernel, record.gpu);
  return text;
}

const VerificationRecords &shippedRecords() {
  static const VerificationRecords records =
      parseRecords(embedded::verifiedFiles.at("verified.txt"), "profiles/verified.txt");
  return records;
}

std::filesystem::path machineRecordsFile() {
  const auto folder = knownCacheFolder();
  return folder ? *folder / "verified.txt" : "";
}

VerificationRecords readRecords(const std::filesystem::path &file) {
  std::error_code none;
  if (!std::filesystem::exists(file, none)) return {};
  return parseRecords(readFile(file), file.string());
}

VerificationRecords merged(VerificationRecords old, const VerificationRun &run) {
  // Several kernels of a plan may have one text, as chunks of one kernel do: all must agree.
  VerificationRecords found;
  for (const VerificationRecord &record : run.records) {
    const auto [at, isNew] = found.emplace(std::pair(record.hash, record.gpu), record);
    if (!isNew && weightOf(stateOf(record)) > weightOf(stateOf(at->second))) at->second = record;
    if (!isNew && record.verdict == at->second.verdict)
      at->second.points = std::max(at->second.points, record.points);
  }
  for (const auto &[key, record] : found) add(old, record, run.isWhole);
  return old;
}

void addRecords(const VerificationRun &run, const std::filesystem::path &file, RecordStore store) {
  if (file.empty()) throw Error::badInput("verification records cannot be kept: {}", noCacheFolder);
  try {
    const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
    std::filesystem::create_directories(folder);
    const FolderLock lock(folder);
    VerificationRecords all = merged(readRecords(file), run);
    if (store == RecordStore::shipped)
      std::erase_if(all, [](const auto &entry) { return entry.second.verdict != Verdict::agrees; });
    writeReplacing(file, printRecords(all));
  } catch (const std::system_error &error) {
    throw Error::badInput("the store of verification records cannot be written: {}", error.what());
  }
}

BelievedRecords::BelievedRecords(const VerificationRecords &shipped,
                                 const VerificationRecords &machine)
    : records(machine) {
  for (const auto &[key, record] : shipped) {
    const auto [at, isNew] = records.emplace(key, record);
    if (!isNew && weightOf(stateOf(record)) > weightOf(stateOf(at->second))) at->second = record;
  }
}

Verification BelievedRecords::of(const std::string &hash) const {
  Verification best;
  for (auto at = records.lower_bound({hash, ""}); at != records.end() && at->first.first == hash;
       ++at)
    if (const Verification::State state = stateOf(at->second);
        weightOf(state) > weightOf(best.state))
      best = {.state = state, .record = at->second};
  return best;
}

Verification BelievedRecords::of(const PlanKernel &kernel) const {
  if (kernel.isUntold) return {.state = Verification::State::unknown};
  if (kernel.edited) return {};
  const Verification ofLaunch = of(recordHashOf(kernel));
  if (ofLaunch.state != Verification::State::never) return ofLaunch;
  const Verification ofText = of(kernel.textHash);
  // A text that failed with one launch is not to be trusted with another.
  const bool stands = ofText.state != Verification::State::never && !ofText.agrees();
  return stands ? ofText : Verification{};
}

std::string textHashOf(const BuildRequest &request, const BuildOptions &options) {
  const NvrtcLocation any;
  BuildRequest running = request;
  running.text = withoutLaunchChecks(request.text);  // they make no code
  std::map<std::string, std::string> parts =
      keyFields(workerRequest(running, options, any), running, any);
  parts.erase("nvrtc");
  return keyOf(parts);
}

std::string textHashOf(const PlanKernel &gemm) { return sha256("library GEMM " + gemm.key); }

std::string recordHashOf(const PlanKernel &kernel) {
  if (kernel.textHash.empty()) return "";
  std::string launch =
      fmt::format("{} grid {} block {} shared {}", kernel.textHash, fmt::join(kernel.grid, " "),
                  fmt::join(kernel.block, " "), kernel.sharedBytes);
  if (kernel.workspaceBytes > 0) launch += fmt::format(" workspace {}", kernel.workspaceBytes);
  return sha256(launch);
}

}  // namespace weft::runtime
