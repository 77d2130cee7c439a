// weft-fuzz: mutated inputs, each given to commands of weft inside this process, which are held to
// what they promise on any input: no crash, at most 20 s and 2 GB, an exit code of 0 to 4, an error
// with a place and a reason, folders whole or untouched.
//
//   weft-fuzz --corpus tests/fuzz/corpus --findings FOLDER [--kind KIND]... [--seconds N] [--inputs
//       N] [--jobs N]
//     --regressions     first every kept input of the corpus, with every command
//     --count COMMIT    go on from the seeds of counts.json in the corpus, and add what was run
//                       under this commit and the hash of this program; else from --from
//     --replay FILE     one kept input (`input` of a finding), with every command
//     --seed N          one mutated input
//
// Mutations are functions of kind, seed and corpus; nothing guides them by coverage. Exit codes: 0,
// 1 with findings, 2 usage.
#include "runtime/build/Build.h"
#include "runtime/system/Files.h"
#include "tests/fuzz/Counts.h"
#include "tests/fuzz/Findings.h"
#include "tests/fuzz/Kinds.h"
#include "tests/fuzz/Workers.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <chrono>
#include <limits>
#include <stdexcept>

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

using namespace weft::fuzz;
namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

namespace {

/// Memory where the machine shows it as a folder: writing and comparing files would take most of
/// the time elsewhere.
fs::path scratchFolder() {
  const char *named = std::getenv("TMPDIR");
  const fs::path memory = "/dev/shm";
  return !named && access(memory.c_str(), W_OK) == 0 ? memory : fs::temp_directory_path();
}

struct Request {
  fs::path corpus, findings, scratch = scratchFolder();
  std::vector<std::string> kinds;
  std::string version, replay;
  double seconds = 60;
  uint64_t inputs = std::numeric_limits<uint64_t>::max(), from = 0;
  std::optional<uint64_t> seed;
  int jobs = 1;
  bool regressions = false;
  WorkLimits limits;
};

/// A folder that goes with the process.
class Scratch {
public:
  explicit Scratch(const fs::path &where) {
    std::string pattern = (where / "weft-fuzz-XXXXXX").string();
    if (!mkdtemp(pattern.data()))
      throw std::runtime_error("no scratch folder in " + where.string());
    path = pattern;
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  fs::path path;
};

/// Without what commands print to standard output meanwhile.
template <typename Make>
auto quietly(const Make &make) {
  const int terminal = dup(STDOUT_FILENO), nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
  dup2(nothing, STDOUT_FILENO);
  auto made = make();
  std::fflush(stdout);
  dup2(terminal, STDOUT_FILENO);
  close(terminal);
  close(nothing);
  return made;
}

Work mutated(const Kind &kind, uint64_t seed) {
  Random random(kind.name(), seed);
  Files files = kind.input(random);
  return {.files = std::move(files), .random = random};
}

/// How much of what ran got past every check, and what it took.
std::string table(const std::map<std::string, Commands> &commands) {
  std::string text;
  for (const auto &[verb, count] : commands)
    text += fmt::format("  {:<24} {:>7} run, {:>3.0f}% succeeded, {:.1f} ms each\n", verb,
                        count.run, 100 * double(count.succeeded) / double(count.run),
                        1e3 * count.seconds / double(count.run));
  return text;
}

/// Kept inputs of the corpus; their numbers are places in the list.
Tally tryRegressions(const Kind &kind, const Request &request, const fs::path &scratch) {
  std::vector<fs::path> paths;
  const fs::path folder = request.corpus / "regressions" / kind.name();
  if (fs::is_directory(folder))
    for (const fs::directory_entry &entry : fs::directory_iterator(folder))
      paths.push_back(entry.path());
  std::ranges::sort(paths);
  const auto work = [&](uint64_t number) {
    return Work{.files = kind.regression(weft::runtime::readFile(paths[number])),
                .random = Random(0),
                .everything = true};
  };
  const Tally tally = tryInputs(kind, work, 0, paths.size(), request.jobs, Clock::time_point::max(),
                                request.limits, scratch, request.findings);
  fmt::print("{}: {} kept inputs, {} broke a promise\n", kind.name(), tally.inputs, tally.findings);
  return tally;
}

void add(Tally &sum, const Tally &part) {
  sum.inputs += part.inputs;
  sum.findings += part.findings;
  sum.newFindings += part.newFindings;
  sum.next = part.next;
  for (const auto &[verb, commands] : part.commands) {
    sum.commands[verb].run += commands.run;
    sum.commands[verb].succeeded += commands.succeeded;
    sum.commands[verb].seconds += commands.seconds;
  }
}

/// In slices, each of which is counted when it ends: a run that is killed loses one.
Tally tryMutated(const Kind &kind, const Request &request, CountsFile *counts,
                 const fs::path &scratch, double seconds) {
  constexpr auto slice = std::chrono::seconds(30);
  const uint64_t first = counts ? counts->of(kind.name()).nextSeed : request.from;
  const uint64_t end = request.inputs > std::numeric_limits<uint64_t>::max() - first
                           ? request.inputs
                           : first + request.inputs;
  const auto begin = Clock::now();
  const auto deadline =
      begin + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  Tally tally;
  tally.next = first;
  while (tally.next < end && Clock::now() < deadline) {
    const Tally part = tryInputs(
        kind, [&](uint64_t seed) { return mutated(kind, seed); }, tally.next, end, request.jobs,
        std::min(deadline, Clock::now() + slice), request.limits, scratch, request.findings);
    if (counts) counts->add(kind.name(), request.version, part);
    add(tally, part);
  }
  const double taken = std::chrono::duration<double>(Clock::now() - begin).count();
  fmt::print(
      "{}: seeds {} to {}: {} inputs, {:.1f} inputs/s, {} broke a promise, {} in a new way{}\n",
      kind.name(), first, tally.next, tally.inputs, double(tally.inputs) / taken, tally.findings,
      tally.newFindings, counts ? fmt::format("; {} in all", counts->of(kind.name()).total()) : "");
  fmt::print("{}", table(tally.commands));
  std::fflush(stdout);
  return tally;
}

uint64_t tryKind(const Kind &kind, const Request &request, CountsFile *counts,
                 const fs::path &scratch, double seconds) {
  if (!request.replay.empty() || request.seed) {
    const auto work = [&](uint64_t) {
      if (request.seed) return mutated(kind, *request.seed);
      return Work{.files = kind.regression(weft::runtime::readFile(request.replay)),
                  .random = Random(0),
                  .everything = true};
    };
    return tryInputs(kind, work, 0, 1, 1, Clock::time_point::max(), request.limits, scratch,
                     request.findings)
        .findings;
  }
  const uint64_t kept = request.regressions ? tryRegressions(kind, request, scratch).findings : 0;
  return kept + tryMutated(kind, request, counts, scratch, seconds).findings;
}

int run(Request request) {
  request.corpus = fs::absolute(request.corpus);
  request.findings = fs::absolute(request.findings);
  if (!request.replay.empty()) request.replay = fs::absolute(request.replay);
  if (!dlopen(WEFT_FAKE_CUDA, RTLD_NOW | RTLD_GLOBAL))
    throw std::runtime_error(dlerror());  // found by name from now on
  setenv("WEFT_NVRTC", "none", 1);
  setenv("WEFT_WORKERS", "1", 1);
  const Scratch scratch(request.scratch);
  setenv("WEFT_CACHE_DIR", (scratch.path / "cache").c_str(), 1);
  setenv("HOME", scratch.path.c_str(), 1);
  const std::vector<std::unique_ptr<Kind>> kinds =
      quietly([&] { return makeKinds(request.kinds, request.corpus, scratch.path); });
  std::optional<CountsFile> counts;
  if (!request.version.empty()) {
    request.version = versionOf(request.version);
    counts.emplace(request.corpus);
  }
  uint64_t findings = 0;
  for (const auto &kind : kinds)
    findings += tryKind(*kind, request, counts ? &*counts : nullptr, scratch.path,
                        request.seconds / double(kinds.size()));
  if (findings > 0)
    fmt::print("{} inputs broke a promise: {}/*/finding.txt\n", findings,
               request.findings.string());
  return findings > 0 ? 1 : 0;
}

}  // namespace

int main(int argumentCount, char **arguments) {
  if (const auto exitCode = weft::runtime::serveAsBuildWorker(argumentCount, arguments))
    return *exitCode;
  CLI::App app("weft-fuzz: mutated inputs for the commands of weft");
  Request request;
  app.add_option("--corpus", request.corpus)->required();
  app.add_option("--findings", request.findings)->required();
  app.add_option("--scratch", request.scratch, "folder for inputs and outputs, best in memory")
      ->capture_default_str();
  app.add_option("--kind", request.kinds, "mlir, config, plan, profile, safetensors; default: all");
  app.add_option("--seconds", request.seconds, "of all kinds together")->capture_default_str();
  app.add_option("--inputs", request.inputs, "of each kind, at most");
  app.add_option("--from", request.from, "first seed");
  app.add_option("--jobs", request.jobs)->capture_default_str()->check(CLI::Range(1, 256));
  app.add_option("--count", request.version)->type_name("COMMIT");
  app.add_flag("--regressions", request.regressions);
  app.add_option("--replay", request.replay)->type_name("FILE");
  app.add_option("--seed", request.seed);
  app.add_option("--memory", request.limits.memoryBytes, "bytes of a worker; 0: any")
      ->capture_default_str();
  CLI11_PARSE(app, argumentCount, arguments);
  try {
    return run(std::move(request));
  } catch (const std::exception &error) {
    fmt::print(stderr, "weft-fuzz: {}\n", error.what());
    return 2;
  }
}
