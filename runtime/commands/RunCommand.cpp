// weft run: checks an artifact, runs it, and says what came out; see RunCommand.h.
#include "runtime/commands/RunCommand.h"
#include "plan/PlanLiveness.h"

#include "kernel/Error.h"
#include "kernel/Format.h"
#include "kernel/PlainText.h"
#include "kernel/TextTable.h"
#include "runtime/commands/ConcurrentFlag.h"
#include "runtime/commands/TrainCommand.h"
#include "runtime/cuda/Driver.h"
#include "runtime/execute/Arguments.h"
#include "runtime/execute/Executor.h"
#include "runtime/execute/Lengths.h"
#include "runtime/execute/Pages.h"
#include "runtime/execute/RandomInputs.h"
#include "runtime/execute/Safetensors.h"
#include "runtime/system/Environment.h"
#include "runtime/system/JsonText.h"
#include "runtime/system/Streams.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

namespace weft::runtime {

namespace {

std::string launchOf(const PlanKernel &kernel) {
  if (kernel.library) return "library";
  return isView(kernel)
             ? "view"
             : fmt::format("{} x {}", fmt::join(kernel.grid, "."), fmt::join(kernel.block, "."));
}

/// Behind a time that does not hold for what runs, or that nobody can tell.
std::string markOf(const PlanKernel &kernel) {
  const TimeSource source = timeSourceOf(kernel);
  const bool isMarked = source == TimeSource::edited || source == TimeSource::unknown;
  return isMarked ? fmt::format(" {}", nameOf(source)) : "";
}

void printTable(const Plan &plan) {
  using enum TextTable::Align;
  printOut("{} ({}), {} kernels for {}\n", printableLine(plan.model), nameOf(plan.dtype),
           plan.kernels.size(), plan.target);
  TextTable table({{"kernel", left},
                   {"#", right},
                   {"family", left},
                   {"grid x block", right},
                   {"time us", right},
                   {"regs", right},
                   {"spills", right},
                   {"after", left}});
  for (size_t i = 0; i < plan.kernels.size(); ++i) {
    const PlanKernel &kernel = plan.kernels[i];
    table.addRow({kernel.name, std::to_string(i), std::string(kernel.family.name()),
                  launchOf(kernel), fmt::format("{:.2f}{}", 1e6 * kernel.seconds, markOf(kernel)),
                  std::to_string(kernel.registers), std::to_string(kernel.spillBytes),
                  fmt::format("{}", fmt::join(kernel.after, ","))});
  }
  printOut("{}", table.print(outputColumns(STDOUT_FILENO)));
  for (const auto &[kind, kernels] : plan.entryPoints)
    printOut("entry point {}: {} kernels\n", nameOf(kind), kernels.size());
}

nlohmann::json listing(const Artifact &artifact) {
  const Plan &plan = artifact.plan;
  const DriverReport driver = inspectDriver();
  nlohmann::json kernels = nlohmann::json::array();
  for (const PlanKernel &kernel : plan.kernels)
    kernels.push_back({{"name", kernel.name},
                       {"family", kernel.family.name()},
                       {"grid", kernel.grid},
                       {"block", kernel.block},
                       {"seconds", kernel.seconds},
                       {"edited", kernel.edited},
                       {"after", kernel.after},
                       {"built", !kernel.cubin.empty() || kernel.source.empty()}});
  return {{"model", plan.model},
          {"target", plan.target},
          {"kernels", kernels},
          {"checked", true},
          {"driver", driver.version},
          {"driverProblem", driver.problem},
          {"entryPoints", toJson(plan).at("entryPoints")},
          {"edits", editLines(artifact)}};
}

/// An edit fails no check: the person who made it may run it. What the checks say then is less.
int check(const Artifact &artifact, bool json) {
  if (json) {
    printOut("{}", resultText(listing(artifact)));
    return 0;
  }
  printTable(artifact.plan);
  const std::vector<std::string> edits = editLines(artifact);
  for (const std::string &line : edits) printOut("! edit: {}\n", line);
  if (edits.empty()) {
    printOut("checked: files, hashes, parameters and order agree with the plan\n");
    return 0;
  }
  if (!artifact.manifest)
    printOut("not checked: whether kernels, prices and plan.json are what weft wrote (no {})\n",
             manifestFile);
  printOut(
      "checked: names of cubins, their parameters, and the order of kernels agree with the plan; "
      "{}\n",
      artifact.manifest ? "what was edited is not weft's" : "what else stands there is not known");
  if (std::ranges::any_of(artifact.plan.kernels, &PlanKernel::edited))
    printOut(
        "what runs is the cubins: of an edited kernel, the text that the last weft emit built\n");
  return 0;
}

/// NaN and infinity are no JSON numbers.
nlohmann::json finiteOrNull(double value) {
  return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json();
}

/// What a tensor held after the run: text, or a member of the JSON report.
class TensorReport {
public:
  explicit TensorReport(bool json) : asJson(json) {}

  void add(const PlanTensor &tensor, const ElementSummary &summary) {
    if (asJson)
      tensors[tensor.name] = {{"shape", tensor.extents},
                              {"dtype", nameOf(tensor.dtype)},
                              {"minimum", finiteOrNull(summary.minimum)},
                              {"maximum", finiteOrNull(summary.maximum)},
                              {"mean", finiteOrNull(summary.mean)},
                              {"notNumbers", summary.notNumbers},
                              {"infinities", summary.infinities}};
    else
      printOut("{} {} [{}]: min {:.6g} max {:.6g} mean {:.6g}, {} NaN, {} infinite\n", tensor.name,
               nameOf(tensor.dtype), fmt::join(tensor.extents, ", "), summary.minimum,
               summary.maximum, summary.mean, summary.notNumbers, summary.infinities);
  }

  nlohmann::json tensors = nlohmann::json::object();

private:
  bool asJson;
};

/// What the file has of lengths and indices, before a GPU is looked for.
void checkInputs(const Plan &plan, const std::string &path, bool areLengthsAsked) {
  const SafetensorsFile file(path);
  for (size_t tensor = 0; tensor < plan.tensors.size(); ++tensor) {
    const PlanTensor &one = plan.tensors[tensor];
    if (one.role != TensorRole::argument || !file.entries().contains(one.logical) ||
        !isChecked(plan, int(tensor)) || (one.countsTokens && areLengthsAsked))
      continue;
    file.requireTensor(one);
    checkInteger(plan, int(tensor), file.read(one.logical), path);
  }
}

class ArtifactRun {
public:
  ArtifactRun(const RunRequest &request, Artifact artifact)
      : request(request),
        context(request.gpu),
        executor(
            std::move(artifact), context,
            {.seed = request.seed,
             .step = request.step,
             .advanceStep = true,
             .folder = request.folder,
             .firstLaunchLimit = std::chrono::milliseconds(int64_t(1e3 * request.limitSeconds))}),
        report(request.json) {}

  int run() {
    for (const std::string &warning : executor.warnings())
      say(fmt::format("weft: warning: {}\n", warning));
    if (request.kernel.empty()) runEntry();
    else runKernel();
    if (request.json)
      printOut("{}", resultText({{"model", executor.plan().model},
                                 {"gpu", context.gpu().name},
                                 {"deviceBytes", executor.deviceBytes()},
                                 {"launches", request.repeat},
                                 {"outputs", report.tensors}}));
    return 0;
  }

private:
  void runEntry() {
    const EntryPoint &entry = executor.entryPoint(request.entry);
    std::vector<const EntryPoint *> calls = executor.entryPointsBefore(entry);
    calls.push_back(&entry);
    executor.poison();
    if (request.inputs.empty())
      for (const EntryPoint *call : calls) setRandomInputs(executor, *call, request.seed);
    else readInputs(calls);
    if (request.weights)
      for (const std::string &name : executor.parameters())
        executor.setParameter(name, request.weights(executor.parameter(name)));
    if (!request.lengths.empty())
      for (const EntryPoint *call : calls)
        setLengths(executor, *call, request.lengths, request.seed);
    for (const EntryPoint *call : calls) {
      if (request.inputs.empty()) handOutPages(executor, call->inputs, request.seed);
      else checkPages(executor, call->inputs, request.inputs);
    }
    announce(describeCalls(calls));
    for (int launch = 0; launch < request.repeat; ++launch)
      for (const EntryPoint *call : calls) executor.launch(*call, stream.handle());
    stream.synchronize();
    for (const EntryPoint *call : calls) checkArguments(*call);
    for (const int output : entry.outputs) add(output);
    for (const int kernel : entry.kernels)
      if (const int cache = cacheOf(executor.plan(), executor.plan().kernels[size_t(kernel)]);
          cache >= 0)
        add(cache);
    if (!request.outputs.empty()) writeSafetensors(request.outputs, results);
  }

  /// As they are on the GPU now: what kernels read, whatever was written there. All that
  /// Executor::checkReported tells of is among it.
  void checkArguments(const EntryPoint &call) const {
    for (const int input : call.inputs)
      if (executor.plan().tensors[size_t(input)].role == TensorRole::argument &&
          isChecked(executor.plan(), input))
        checkInteger(executor.plan(), input, executor.read(input), "after the run");
  }

  static std::string describeCalls(const std::vector<const EntryPoint *> &calls) {
    std::string text = "entry point " + calls.back()->name;
    for (size_t before = 0; before + 1 < calls.size(); ++before)
      text += (before ? ", " : " after ") + calls[before]->name;
    return text;
  }

  void readInputs(const std::vector<const EntryPoint *> &calls) {
    const SafetensorsFile file(request.inputs);
    std::set<int> arguments;
    for (const EntryPoint *call : calls)
      for (const int input : call->inputs)
        if (executor.plan().tensors[size_t(input)].role == TensorRole::argument)
          arguments.insert(input);
    std::vector<const PlanTensor *> expected;
    for (const std::string &name : executor.parameters())
      if (!request.weights) expected.push_back(&executor.parameter(name));
    for (const int input : arguments) expected.push_back(&executor.plan().tensors[size_t(input)]);
    file.requireExactly(expected);
    for (const std::string &name : executor.parameters())
      if (!request.weights) executor.setParameter(name, file.read(name));
    for (const int input : arguments) {
      const PlanTensor &tensor = executor.plan().tensors[size_t(input)];
      executor.write(input, file.read(tensor.logical));
    }
  }

  /// Operands are random by their own names, whatever made them: enough to see it run, and the same
  /// every time.
  void runKernel() {
    const int index = executor.kernelIndex(request.kernel);
    const PlanKernel &kernel = executor.plan().kernels[size_t(index)];
    executor.poison();
    for (const int input : kernel.inputs) setRandom(input);
    announce(fmt::format("kernel {}", kernel.name));
    for (int launch = 0; launch < request.repeat; ++launch)
      executor.launchKernel(index, stream.handle());
    stream.synchronize();
    for (const int output : kernel.outputs) add(output);
  }

  void setRandom(int tensor) {
    executor.write(tensor, randomElements(executor.plan().tensors[size_t(tensor)], request.seed));
  }
  void add(int tensor) {
    const PlanTensor &one = executor.plan().tensors[size_t(tensor)];
    std::vector<std::byte> elements = executor.read(tensor);
    report.add(one, summarize(one, elements));
    results.push_back({.name = one.logical,
                       .dtype = one.dtype,
                       .shape = one.extents,
                       .elements = std::move(elements)});
  }
  void announce(const std::string &what) const {
    if (request.json) return;
    const std::string inputs = request.inputs.empty()
                                   ? fmt::format("random with seed {}", request.seed)
                                   : "of " + request.inputs;
    const std::string weights = request.weights ? ", weights of " + request.weightsFrom : "";
    printOut("{} ({}), {} on {}: {} launch{}, inputs {}{}, {} on the GPU\n",
             printableLine(executor.plan().model), nameOf(executor.plan().dtype), what,
             context.gpu().name, request.repeat, request.repeat == 1 ? "" : "es", inputs, weights,
             formatBytes(executor.deviceBytes()));
  }

  const RunRequest &request;
  const cuda::Context context;
  Executor executor;
  const cuda::Stream stream;
  TensorReport report;
  std::vector<TensorToWrite> results;
};

}  // namespace

namespace {

int train(const RunRequest &request) {
  if (*request.steps < 0 || request.saveEvery < 0)
    throw Error::badInput("--steps {} --save-every {}: at least 0", *request.steps,
                          request.saveEvery);
  if (request.growthInterval < 1)
    throw Error::badInput("--growth-interval {}: at least 1", request.growthInterval);
  if (!(request.inputs + request.outputs + request.kernel + request.lengths).empty())
    throw Error::badInput(
        "--steps trains on batches of a text: it takes no --inputs, --outputs, --kernel or "
        "--lengths");
  return trainArtifact({.folder = request.folder,
                        .steps = *request.steps,
                        .data = request.data,
                        .state = request.state,
                        .saveEvery = request.saveEvery,
                        .learningRate = request.learningRate,
                        .weightDecay = request.weightDecay,
                        .lossScale = request.lossScale,
                        .growthInterval = request.growthInterval,
                        .seed = request.seed,
                        .gpu = request.gpu,
                        .concurrent = request.concurrent,
                        .limitSeconds = request.limitSeconds,
                        .json = request.json});
}

}  // namespace

int runArtifact(const RunRequest &request) {
  if (request.steps) return train(request);
  if (!(request.data + request.state).empty())
    throw Error::badInput("--data and --state belong to training; add --steps N");
  if (!request.kernel.empty() && !(request.inputs + request.outputs).empty())
    throw Error::badInput(
        "--kernel runs on random operands: it takes neither --inputs nor --outputs");
  if (!request.kernel.empty() && !request.lengths.empty())
    throw Error::badInput("--kernel runs on random operands: it takes no --lengths");
  if (request.repeat < 1) throw Error::badInput("--repeat {}: at least one launch", request.repeat);
  Artifact artifact = readArtifact(request.folder);
  setConcurrent(artifact.plan, request.concurrent);
  verifyDerived(artifact.plan, request.folder + "/plan.json");
  checkAskedLengths(artifact.plan, request.lengths);
  if (!request.inputs.empty()) checkInputs(artifact.plan, request.inputs, !request.lengths.empty());
  if (request.check) return check(artifact, request.json);
  return ArtifactRun(request, std::move(artifact)).run();
}

}  // namespace weft::runtime
