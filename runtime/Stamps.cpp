#include "runtime/Stamps.h"

#include "kernel/Error.h"
#include "kernel/LaunchCheck.h"
#include "runtime/BuildKey.h"
#include "runtime/Files.h"
#include "runtime/Sha256.h"

#include <fmt/format.h>

#include <sstream>
#include <system_error>

namespace weft::embedded {
extern const std::map<std::string, std::string_view> verifiedFiles;
}

namespace weft::runtime {
namespace {

constexpr std::string_view header = "# weft verified 1";

bool isHash(const std::string &text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

/// Whole or not at all.
void writeReplacing(const std::filesystem::path &file, const std::string &text) {
  std::filesystem::path next = file;
  next += ".next";
  writeFile(next, text);
  std::filesystem::rename(next, file);
}

}  // namespace

Stamps parseStamps(std::string_view text, const std::string &where) {
  std::istringstream lines{std::string(text)};
  std::string line;
  Stamps stamps;
  for (int number = 1; std::getline(lines, line); ++number) {
    if (number == 1 && line != header)
      throw Error::badInput("{}:1: not a file of verified kernels: it begins with '{}' instead of '{}'", where, line.substr(0, 40), header);
    if (line.empty() || line.starts_with('#')) continue;
    std::istringstream words(line);
    Stamp stamp;
    words >> stamp.textHash >> stamp.kernel >> stamp.tool >> std::ws;
    std::getline(words, stamp.gpu);
    if (!isHash(stamp.textHash) || stamp.gpu.empty())
      throw Error::badInput("{}:{}: a row is a hash of 64 hexadecimal digits, kernel, tool version and GPU", where, number);
    stamps[stamp.textHash] = stamp;
  }
  return stamps;
}

std::string printStamps(const Stamps &stamps) {
  std::string text = fmt::format("{}\n# textHash kernel tool GPU\n", header);
  for (const auto &[hash, stamp] : stamps) text += fmt::format("{} {} {} {}\n", hash, stamp.kernel, stamp.tool, stamp.gpu);
  return text;
}

const Stamps &shippedStamps() {
  static const Stamps stamps = parseStamps(embedded::verifiedFiles.at("verified.txt"), "profiles/verified.txt");
  return stamps;
}

std::filesystem::path machineStampsFile() {
  const auto folder = knownCacheFolder();
  return folder ? *folder / "verified.txt" : "";
}

Stamps readStamps(const std::filesystem::path &file) {
  std::error_code none;
  if (!std::filesystem::exists(file, none)) return {};
  return parseStamps(readFile(file), file.string());
}

void addStamps(const Stamps &stamps, const std::filesystem::path &file) {
  if (file.empty()) throw Error::badInput("verified kernels cannot be remembered: {}", noCacheFolder);
  try {
    const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
    std::filesystem::create_directories(folder);
    const FolderLock lock(folder);
    Stamps all = readStamps(file);
    for (const auto &[hash, stamp] : stamps) all[hash] = stamp;
    writeReplacing(file, printStamps(all));
  } catch (const std::system_error &error) {
    throw Error::badInput("the store of verified kernels cannot be written: {}", error.what());
  }
}

std::string textHashOf(const BuildRequest &request, const BuildOptions &options) {
  const NvrtcLocation any;
  BuildRequest running = request;
  running.text = withoutLaunchChecks(request.text);  // they make no code
  std::map<std::string, std::string> parts = keyParts(workerRequest(running, options, any), running, any);
  parts.erase("nvrtc");
  return keyOf(parts);
}

std::string textHashOf(const PlanKernel &product) { return sha256("library product " + product.key); }

void stamp(PlanKernel &kernel, const std::string &textHash, const Stamps &stamps) {
  if (kernel.textHash != textHash || kernel.edited) kernel.verifiedOn.clear();
  kernel.textHash = textHash;
  const auto found = stamps.find(textHash);
  if (kernel.edited) return;
  if (kernel.verifiedOn.empty() && found != stamps.end()) kernel.verifiedOn = found->second.gpu;
}

}  // namespace weft::runtime
