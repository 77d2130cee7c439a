// weft profile: measure a model's kernels, or those of what an artifact was compiled from, on GPUs
// into a store; export, import and merge move measurements between stores and texts.
#include "kernel/Error.h"
#include "passes/decide/ChunkChoice.h"
#include "passes/decide/ChunkSpace.h"
#include "passes/decide/PathPlan.h"
#include "runtime/artifact/Artifact.h"
#include "runtime/cuda/Driver.h"
#include "runtime/measure/ProfileStore.h"
#include "runtime/system/Streams.h"
#include "tools/driver/Compilation.h"
#include "tools/driver/Console.h"
#include "tools/driver/Emission.h"
#include "tools/driver/ProfileReport.h"
#include "tools/driver/ProfileRun.h"
#include "tools/driver/ReportShape.h"
#include "tools/driver/Request.h"
#include "tools/driver/commands/Commands.h"

#include "codegen/Emit.h"

#include <CLI/CLI.hpp>

#include <charconv>
#include <chrono>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <memory>

#include <unistd.h>

namespace weft::driver {
namespace {

struct ProfileFlags {
  ModelFlags model;
  ChoiceFlags choices;
  TargetFlags target;
  std::string store, gpus = "1";
  double budgetSeconds = 0;
  int timeoutSeconds = 60;
  bool dryRun = false, chunksOnly = false, again = false;
  decision::ProfileSpaceOptions space;
  nlohmann::json report;  ///< of the artifact that stands in the model's place; null: none does
};

struct MoveFlags {
  std::vector<std::string> files;
  std::string store, output;
  int perLayouts = 0;
};

std::atomic<bool> interrupted = false;

/// While it lives, an interrupt sets `interrupted` instead of ending the process. A second one ends
/// it.
class InterruptGuard {
public:
  InterruptGuard() {
    interrupted = false;
    before = std::signal(SIGINT, [](int) {
      interrupted = true;
      std::signal(SIGINT, SIG_DFL);
    });
  }
  ~InterruptGuard() { std::signal(SIGINT, before); }

private:
  void (*before)(int);
};

int gpuCount(const std::string &text) {
  const runtime::DriverReport driver = runtime::inspectDriver();
  if (driver.gpus.empty()) throw Error::unsupported("nothing to measure on: {}", driver.problem);
  const int there = int(driver.gpus.size());
  if (text == "all") return there;
  int count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size() || count < 1)
    throw Error::badInput("--gpus {}: expected all, or a number of at least 1", text);
  if (count > there) throw Error::badInput("--gpus {}: this host has {}", text, there);
  return count;
}

/// A line that overwrites itself on a terminal, a line now and then in a pipe.
class ProfileConsole {
public:
  void show(const ProfileProgress &progress) {
    const double perItem = progress.done > 0 ? progress.seconds / double(progress.done) : 0;
    const std::string text = fmt::format(
        "{} of {} measured, {:.0f} s, {} left; {} measurements, {} slow, {} failed; {}",
        formatCount(int64_t(progress.done)), formatCount(int64_t(progress.total)), progress.seconds,
        progress.done > 0
            ? fmt::format("{:.0f} s", perItem * double(progress.total - progress.done))
            : std::string("unknown time"),
        progress.measured, progress.slow, progress.failed, progress.last);
    line.show(text);
    constexpr double quietSeconds = 10;
    if (isatty(STDERR_FILENO) || progress.seconds < nextLine) return;
    nextLine = progress.seconds + quietSeconds;
    runtime::say(fmt::format("weft: {}\n", text));
    std::fflush(stderr);
  }
  void clear() { line.clear(); }

private:
  Progress line;
  double nextLine = 0;
};

/// Starts measuring processes and rejects GPUs that the profile is not for.
std::unique_ptr<runtime::Measurer> startMeasurer(int gpu, const Device &device,
                                                 const std::string &architecture,
                                                 int timeoutSeconds,
                                                 const std::atomic<bool> &cancelled) {
  std::unique_ptr<runtime::Measurer> measurer =
      runtime::startMeasureProcess({.gpu = gpu,
                                    .timeoutSeconds = double(timeoutSeconds),
                                    .executable = {},
                                    .cancelled = &cancelled});
  const std::string &own = measurer->greeting().architecture;
  if (!architecture.starts_with(own))
    throw Error::unsupported("GPU {} ({}) is {}; a profile of {} needs {}", gpu,
                             measurer->greeting().gpu, own, device.name, architecture);
  if (!device.title.starts_with(measurer->greeting().gpu))
    printNote(fmt::format("GPU {} is '{}'; its times are kept as those of {} ({})", gpu,
                          measurer->greeting().gpu, device.name, device.title));
  return measurer;
}

/// A build function of one run. Past the kernel cache: most of the thousands of kernels are never
/// asked for again.
auto buildFunction() {
  return [session = std::shared_ptr<runtime::BuildSession>()](
             const std::vector<runtime::BuildRequest> &requests,
             const std::atomic<bool> &cancelled) mutable {
    if (!session) {
      runtime::BuildOptions options;
      options.cancelled = &cancelled;
      options.useCache = false;
      options.headers = codegen::deviceHeaders();
      session = std::make_shared<runtime::BuildSession>(std::move(options));
    }
    return session->build(requests);
  };
}

std::string endLine(const ProfileOutcome &outcome, const std::string &store) {
  const ProfileProgress &progress = outcome.progress;
  std::string text = fmt::format(
      "{} measurements measured, {} slow, {} failed in {:.1f} s; {} were there already; store {}\n",
      formatCount(int64_t(progress.measured)), progress.slow, progress.failed, progress.seconds,
      outcome.skipped, store);
  if (outcome.end != ProfileEnd::finished)
    text += fmt::format("{}: {} of {} left; the same command goes on\n",
                        outcome.end == ProfileEnd::budget ? "the budget is spent" : "interrupted",
                        progress.total - progress.done, progress.total);
  if (outcome.measurementsOfGpu.size() > 1)
    for (size_t gpu = 0; gpu < outcome.measurementsOfGpu.size(); ++gpu)
      text += fmt::format("GPU {}: {} measurements\n", gpu,
                          formatCount(int64_t(outcome.measurementsOfGpu[gpu])));
  for (const std::string &gpu : outcome.lostGpus) text += "lost " + gpu + "\n";
  return text;
}

/// As CLI11 asks a check: what is wrong, or nothing.
std::string isPositive(const std::string &text) {
  double seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  const bool isNumber = error == std::errc() && end == text.data() + text.size();
  return isNumber && seconds > 0 && std::isfinite(seconds)
             ? ""
             : fmt::format("'{}' is no number of seconds above 0", text);
}

/// The artifact's request in place of the flags of model, choices and target.
ProfileFlags ofArtifact(ProfileFlags flags) {
  flags.report = runtime::readArtifact(flags.model.model, runtime::Cubins::left).report;
  const std::string profile = flags.target.profile;
  if (flags.report.contains("request"))
    flags.report["request"]["target"]["strict"] = false;  // what is not measured is to be
  const ReopenedRequest request = reopen(flags.report, noProfile);
  flags.choices = request.compilation->choiceFlags();
  flags.target = request.compilation->target();
  flags.target.profile = profile;
  return flags;
}

struct Opened {
  std::unique_ptr<Compilation> compilation;
  Phase first = Phase::import;
};

/// What is profiled, with the prices of `profile`.
Opened open(const ProfileFlags &flags, const std::string &profile) {
  if (!flags.report.is_null()) {
    ReopenedRequest request = reopen(flags.report, profile);
    return {.compilation = std::move(request.compilation), .first = request.first};
  }
  TargetFlags target = flags.target;
  target.profile = profile;
  target.strict = false;
  target.checkTarget();
  Opened opened{.compilation = std::make_unique<Compilation>(flags.model, flags.choices, target)};
  opened.compilation->import(Phase::import);
  return opened;
}

/// What selection may ask for.
ProfileSpace wholeSpace(const ProfileFlags &flags) {
  const auto [opened, first] = open(flags, noProfile);
  const Compilation &compilation = *opened;
  const std::vector<select::Problem> problems = compilation.problems(compilation.propose(first));
  select::Options selection;
  selection.free = flags.choices.free;
  selection.searchBytes = flags.choices.memoryOfSearch().bytesOfSearch(problems.size());
  return decision::profileSpace(problems, selection, compilation.costModel(), flags.space);
}

/// What the plan that the prices of `profile` choose needs to run in chunks (ChunkChoice.h), and to
/// compute in the stacks of its concatenations: kernels in layouts that selection does not ask for.
ProfileSpace spaceOfChunks(const ProfileFlags &flags, const std::string &profile) {
  const auto [opened, first] = open(flags, profile);
  const Compilation &compilation = *opened;
  const decision::Decision decision = compilation.decide(compilation.propose(first));
  constexpr int mostChunks = 16;  // smaller ones are chosen for want of memory alone
  const std::vector<PlannedKernels> plans = decision::plansInChunks(
      compilation.planContext(), decision, flags.choices.chunks, mostChunks);
  const std::string architecture = flags.target.architecture();
  return decision::chunkSpace(
      plans, *analyticCostModel(compilation.costModel().device()), flags.space,
      [&](const ChosenKernel &chosen) { return isOfOlderText(chosen, architecture); });
}

struct MeasuredSpace {
  ProfileSpace space;
  ProfileOutcome outcome;
};

/// Measures the space into the store, and says what it is.
MeasuredSpace measureInto(runtime::ProfileStore &store, ProfileSpace space,
                          const ProfileFlags &flags, double budgetSeconds) {
  runtime::say(driver::describe(space, false));
  const Device &device = flags.target.device();
  const std::string architecture = flags.target.architecture();
  ProfileConsole console;
  const InterruptGuard guard;
  ProfileRunOptions options{
      .architecture = architecture,
      .gpus = gpuCount(flags.gpus),
      .budgetSeconds = budgetSeconds,
      .again = flags.again,
      .interrupted = &interrupted,
      .startMeasurer =
          [&](int gpu, const std::atomic<bool> &cancelled) {
            return startMeasurer(gpu, device, architecture, flags.timeoutSeconds, cancelled);
          },
      .build = buildFunction(),
      .progress = [&](const ProfileProgress &progress) { console.show(progress); }};
  ProfileOutcome outcome = runProfile(space, store, options);
  console.clear();
  return {.space = std::move(space), .outcome = std::move(outcome)};
}

/// Returns the exit code.
int report(const MeasuredSpace &measured, const runtime::ProfileStore &store,
           const std::string &path, bool json) {
  const ProfileReport report = reportOf(measured.space, store.read());
  if (json) printResult(toJson(measured.outcome, report, path));
  else printResult(endLine(measured.outcome, path) + print(report));
  constexpr int interruptedCode = 130;
  return measured.outcome.end == ProfileEnd::interrupted ? interruptedCode : 0;
}

/// First what whole kernels need; then, of the plan that these measurements choose, what its chunks
/// need.
int measure(const ProfileFlags &flags, bool json) {
  const auto begin = std::chrono::steady_clock::now();
  const std::string device = flags.target.device().name,
                    path = flags.store.empty() ? device + ".profile.db" : flags.store;
  ProfileSpace space =
      flags.chunksOnly ? spaceOfChunks(flags, flags.target.profile) : wholeSpace(flags);
  if (flags.dryRun) {
    // A store that the run itself would reject is rejected now.
    if (std::error_code none; std::filesystem::exists(path, none))
      runtime::ProfileStore(path, runtime::ProfileStore::Mode::read, device).read();
    if (json) printResult(driver::toJson(space));
    else printResult(driver::describe(space, true));
    return 0;
  }
  runtime::ProfileStore store(path, runtime::ProfileStore::Mode::create, device);
  const MeasuredSpace whole = measureInto(store, std::move(space), flags, flags.budgetSeconds);
  const double left =
      flags.budgetSeconds -
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const bool isOver =
      whole.outcome.end != ProfileEnd::finished || (flags.budgetSeconds > 0 && left <= 0);
  if (flags.chunksOnly || isOver) return report(whole, store, path, json);
  const int code = json ? 0 : report(whole, store, path, json);
  const MeasuredSpace chunks =
      measureInto(store, spaceOfChunks(flags, path), flags, std::max(left, 0.0));
  return std::max(code, report(json ? whole : chunks, store, path, json));
}

/// All files as one profile.
Profile readAll(const std::vector<std::string> &files) {
  Profile all = runtime::readProfile(files.front());
  for (size_t i = 1; i < files.size(); ++i) mergeProfile(all, runtime::readProfile(files[i]));
  return all;
}

int exportText(const MoveFlags &flags, bool json) {
  if (json)
    throw Error::badInput(
        "profile export writes measurements as text, and --json has no form of them: leave out "
        "--json; "
        "nearest is 'weft explain DIR --distributions --json'");
  Profile profile = readAll(flags.files);
  if (flags.perLayouts > 0) profile = thinned(profile, flags.perLayouts);
  writeFile(flags.output.empty() ? "-" : flags.output, printProfile(profile));
  return 0;
}

int intoStore(const MoveFlags &flags, bool json) {
  const Profile profile = readAll(flags.files);
  runtime::ProfileStore store(flags.store, runtime::ProfileStore::Mode::create, profile.device);
  const size_t changed = store.merge(profile);
  if (json)
    printResult(nlohmann::json{{"store", flags.store},
                               {"measurements", profile.measurementCount()},
                               {"changed", changed}});
  else
    printResult(fmt::format("{} measurements read, {} new or replaced in {}\n",
                            formatCount(int64_t(profile.measurementCount())),
                            formatCount(int64_t(changed)), flags.store));
  return 0;
}

/// An artifact says itself what it was compiled from: another model, choice or target beside it
/// would be another problem.
void rejectBesideArtifact(const CLI::App &command, const std::string &folder) {
  for (const CLI::Option *option : command.get_options())
    for (const char *group : {"Model", "Choices", "Target"})
      if (option->count() > 0 && option->get_group() == group && !option->get_positional() &&
          option->get_name() != "--profile")
        throw Error::badInput(
            "{}: '{}' is an artifact, whose kernels are profiled as it was compiled; with the flag "
            "name a model",
            option->get_name(), folder);
}

/// export, import, merge: true if one of them was asked for.
struct Moves {
  std::shared_ptr<MoveFlags> flags = std::make_shared<MoveFlags>();
  CLI::App *exporting = nullptr, *importing = nullptr, *merging = nullptr;

  void declare(CLI::App &command) {
    exporting =
        command.add_subcommand("export", "measurements of stores or texts as one sorted text");
    exporting->add_option("files", flags->files, "stores or texts")->required()->type_name("FILE");
    exporting->add_option("-o,--output", flags->output, "file to write; default: standard output")
        ->type_name("FILE");
    exporting
        ->add_option("--per-layouts", flags->perLayouts,
                     "only the fastest N of every kernel and layouts, and nothing that failed")
        ->check(CLI::Range(1, 1000))
        ->type_name("N");
    importing = command.add_subcommand("import", "measurements of texts into a store");
    merging = command.add_subcommand("merge", "measurements of other stores or texts into a store");
    for (CLI::App *move : {importing, merging}) {
      move->add_option("store", flags->store, "store to write; made if there is none")
          ->required()
          ->type_name("STORE");
      move->add_option("files", flags->files, "what to read")->required()->type_name("FILE");
    }
    for (CLI::App *move : {exporting, importing, merging})
      move->fallthrough();  // --json and --wide are the command's
  }
};

}  // namespace

Action addProfile(CLI::App &command) {
  auto flags = std::make_shared<ProfileFlags>();
  flags->model.declare(command);
  command.get_option("model")->required(false)->description(
      "preset name, config.json, .mlir, or an artifact: what it was compiled from");
  flags->choices.declare(command);
  flags->target.declare(command, false);
  const OptionGroup group(command, "Measuring");
  command
      .add_option("--store", flags->store,
                  "SQLite file that keeps the measurements; default: DEVICE.profile.db")
      ->type_name("FILE");
  command.add_option("--gpus", flags->gpus, "GPUs of this host to measure on: a number or all")
      ->capture_default_str()
      ->type_name("N");
  command
      .add_option("--budget", flags->budgetSeconds,
                  "stop after SECONDS; the most promising configurations come first")
      ->check(isPositive)
      ->type_name("SECONDS");
  command
      .add_option("--timeout", flags->timeoutSeconds,
                  "seconds after which a kernel that does not end is given up")
      ->capture_default_str()
      ->check(CLI::Range(1, 3600))
      ->type_name("SECONDS");
  command
      .add_option("--layout-factor", flags->space.layoutFactor,
                  "measure layouts within this factor of a kernel's best modelled time")
      ->capture_default_str()
      ->check(CLI::Range(1.0, 1e6))
      ->type_name("X");
  command
      .add_option("--only", flags->space.names,
                  "measure only kernels whose name contains one of these")
      ->delimiter(',')
      ->type_name("TEXT,..");
  command
      .add_option("--family", flags->space.families,
                  "measure only configurations of these kernel families, e.g. attention-sm90")
      ->delimiter(',')
      ->type_name("NAME,..");
  command
      .add_option("--layouts", flags->space.mostLayouts, "layout combinations of a kernel, at most")
      ->capture_default_str()
      ->type_name("N");
  command
      .add_option("--knob-factor", flags->space.knobFactor,
                  "measure knobs within this factor of their layouts' best modelled time")
      ->capture_default_str()
      ->check(CLI::Range(1.0, 1e6))
      ->type_name("X");
  command
      .add_option("--knobs", flags->space.mostKnobs, "knobs for each layout combination, at most")
      ->capture_default_str()
      ->type_name("N");
  command.add_flag(
      "--again", flags->again,
      "measure also what is within 20% of a kernel's best by a measurement of an older text");
  command.add_flag(
      "--chunks-only", flags->chunksOnly,
      "measure only what no other measurement serves, of the plan that --profile chooses: "
      "chunks, strided views, and what was measured of an older text");
  command.add_flag("--dry-run", flags->dryRun,
                   "say what would be measured, and what the model prunes");
  command.require_subcommand(0, 1);
  Moves moves;
  moves.declare(command);
  return [flags, moves, &command](bool json) {
    if (moves.exporting->parsed()) return exportText(*moves.flags, json);
    if (moves.importing->parsed() || moves.merging->parsed()) return intoStore(*moves.flags, json);
    if (flags->model.model.empty())
      throw Error::badInput(
          "profile needs a MODEL, or one of export, import, merge (weft profile --help lists what "
          "there is)");
    const std::string &model = flags->model.model;
    if (!std::filesystem::exists(std::filesystem::path(model) / "plan.json"))
      return measure(*flags, json);
    rejectBesideArtifact(command, model);
    return readingReport(model + "/report.json", [&] { return measure(ofArtifact(*flags), json); });
  };
}

}  // namespace weft::driver
