// The loop of training steps; see TrainCommand.h. Parameters and averages alternate between the
// memory of a plan's arguments and that of its results: what one step writes the next one reads,
// nothing is copied, and a step that fails has not lost what it read.
#include "runtime/commands/TrainCommand.h"

#include "kernel/Error.h"
#include "kernel/Format.h"
#include "kernel/PlainText.h"
#include "runtime/commands/ConcurrentFlag.h"
#include "runtime/cuda/Driver.h"
#include "runtime/execute/Executor.h"
#include "runtime/execute/RandomInputs.h"
#include "runtime/system/Files.h"
#include "runtime/system/JsonText.h"
#include "runtime/system/Streams.h"
#include "runtime/train/LossScale.h"
#include "runtime/train/TextBatches.h"
#include "runtime/train/TrainingState.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>

namespace weft::runtime {

namespace {

constexpr int interruptedExitCode = 130;
constexpr double
    beta1 = 0.9,
    beta2 = 0.999;  ///< as the graph's averages have them (passes/Rewrites.h, AdamWOptions)

std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free);

/// While it lives, interrupts are remembered instead of ending the process.
class InterruptGuard {
public:
  InterruptGuard()
      : onInterrupt(std::signal(SIGINT, remember)), onTermination(std::signal(SIGTERM, remember)) {
    interrupted = false;
  }
  ~InterruptGuard() {
    std::signal(SIGINT, onInterrupt);
    std::signal(SIGTERM, onTermination);
  }
  InterruptGuard(const InterruptGuard &) = delete;
  InterruptGuard &operator=(const InterruptGuard &) = delete;

private:
  static void remember(int) { interrupted = true; }
  void (*onInterrupt)(int), (*onTermination)(int);
};

/// Of plans that do not check their gradients. Gradients of f16 lose bits below 2^-14; a thousandth
/// of that is where they matter little.
constexpr double fixedLossScaleOfF16 = 1024;
/// A dynamic scale is then 2^-16 of what it was: the gradients overflow by themselves.
constexpr int mostSkippedInARow = 32;

/// Whether parameters are roundings of masters, so that gradients may come scaled.
bool unscalesGradients(const Plan &plan) {
  return trainingTensor(plan, TrainingRole::inverseLossScale) >= 0;
}

LossScaleChoice chosenLossScale(const TrainRequest &request, const Plan &plan) {
  const bool isChecked = trainingTensor(plan, TrainingRole::gradientCheck) >= 0;
  if (request.lossScale.empty()) {
    if (plan.dtype != DType::f16 || !unscalesGradients(plan)) return {};
    if (isChecked) return {.isDynamic = true, .value = firstDynamicLossScale};
    return {false, fixedLossScaleOfF16};
  }
  const LossScaleChoice choice = parseLossScale(request.lossScale);
  if (!unscalesGradients(plan))
    throw Error::badInput(
        "--loss-scale {}: the plan of {} updates parameters of f32 by gradients as they are; a "
        "scale is of plans compiled with --dtype f16 or bf16",
        request.lossScale, plan.model);
  if (choice.isDynamic && !isChecked)
    throw Error::badInput(
        "--loss-scale dynamic: the plan of {} has no result with \"training\": \"{}\", which says "
        "whether gradients overflowed; compile again (plans of this weft have it), or name a fixed "
        "scale",
        plan.model, nameOf(TrainingRole::gradientCheck));
  return choice;
}

/// A run that goes on takes the dynamic scale that the one before has found.
LossScale lossScaleOf(const TrainRequest &request, const Plan &plan, const TrainingState &state) {
  LossScaleChoice choice = chosenLossScale(request, plan);
  const bool goesOn = choice.isDynamic && state.lossScale > 0;
  if (goesOn) choice.value = state.lossScale;
  return {choice, request.growthInterval, goesOn ? state.takenAtScale : 0};
}

int tensorOf(const Plan &plan, TrainingRole role) {
  const int found = trainingTensor(plan, role);
  if (found >= 0) return found;
  const char *kind = isOfResult(role) ? "result" : "argument";
  throw Error::badInput(
      "the plan of {} has no {} with \"training\": \"{}\", which training asks for; mark the "
      "graph's {} weft.training = \"{}\" and compile again (models of this weft have it)",
      plan.model, kind, nameOf(role), kind, nameOf(role));
}

TextBatches batchesOf(const TrainRequest &request, const Plan &plan, uint64_t seed) {
  const PlanTensor &tokens = plan.tensors[size_t(tensorOf(plan, TrainingRole::tokens))];
  if (tokens.extents.size() != 2 || tokens.dtype != DType::i32)
    throw Error::badInput("'{}' of {} is not [sequence, position] of i32", tokens.logical,
                          plan.model);
  for (const auto &[role, dtype] :
       {std::pair(TrainingRole::labels, DType::i32), {TrainingRole::weights, DType::f32}})
    if (const PlanTensor &other = plan.tensors[size_t(tensorOf(plan, role))];
        other.extents != tokens.extents || other.dtype != dtype)
      throw Error::badInput("'{}' of {} is not of {} over the axes of '{}'", other.logical,
                            plan.model, nameOf(dtype), tokens.logical);
  std::string text;
  try {
    text = request.data.empty() ? shippedText() : readFile(request.data);
  } catch (const std::system_error &error) {
    throw Error::badInput("--data {}: {}", request.data, error.what());
  }
  return {std::move(text),     request.data.empty() ? "the shipped text" : request.data,
          tokens.extents[0],   tokens.extents[1],
          tokens.range[1] + 1, seed};
}

/// carriedTensors(). Throws Error(badInput) where a step reads an argument that neither is among
/// them nor is given by training, which gives what has a role: it would be whatever lies there.
std::vector<CarriedTensor> allCarried(const Plan &plan) {
  std::vector<CarriedTensor> carried = carriedTensors(plan);
  for (size_t index = 0; index < plan.tensors.size(); ++index) {
    const PlanTensor &tensor = plan.tensors[index];
    if (tensor.role == TensorRole::argument && tensor.training == TrainingRole::none &&
        std::ranges::count(carried, int(index), &CarriedTensor::argument) == 0)
      throw Error::badInput(
          "the plan of {} reads '{}', which weft run --steps has no values of; {}", plan.model,
          tensor.logical,
          tensor.dtype == DType::i32 || tensor.dtype == DType::i1
              ? "compile it without its mask, batches of text are full"
              : "only weft_launch() of the C API can give it");
  }
  return carried;
}

/// The state that --state names if it is there, else the initial one.
TrainingState startOf(const TrainRequest &request, const Plan &plan) {
  if (request.state.empty() || !std::filesystem::exists(request.state))
    return initialState(plan, request.seed);
  TrainingState state = readState(plan, request.state);
  if (state.seed != request.seed)
    throw Error::badInput(
        "{}: was trained with seed {}; go on with --seed {}, or name another file", request.state,
        state.seed, state.seed);
  return state;
}

class TrainingRun {
public:
  TrainingRun(const TrainRequest &request, Artifact artifact)
      : request(request),
        state(startOf(request, artifact.plan)),
        batches(batchesOf(request, artifact.plan, state.seed)),
        carried(allCarried(artifact.plan)),
        loss(tensorOf(artifact.plan, TrainingRole::loss)),
        gradientCheck(trainingTensor(artifact.plan, TrainingRole::gradientCheck)),
        lossScale(lossScaleOf(request, artifact.plan, state)),
        context(request.gpu),
        executor(
            std::move(artifact), context,
            {.seed = state.seed,
             .folder = request.folder,
             .firstLaunchLimit = std::chrono::milliseconds(int64_t(1e3 * request.limitSeconds))}) {
    if (!request.state.empty() && std::filesystem::exists(request.state)) savedStep = state.step;
  }

  int run() {
    for (const std::string &warning : executor.warnings())
      say(fmt::format("weft: warning: {}\n", warning));
    const InterruptGuard guard;
    executor.poison();
    upload();
    announce();
    if (!request.state.empty() && savedStep < 0)
      save();  // a place that cannot be written to is told before the first step
    for (int64_t taken = 0; taken < request.steps && !interrupted; ++taken) {
      takeStep();
      if (request.saveEvery > 0 && state.step % request.saveEvery == 0) save();
    }
    save();
    if (request.json) printOut("{}", resultText(report()));
    else if (interrupted) printOut("interrupted after step {}\n", state.step);
    return interrupted ? interruptedExitCode : 0;
  }

private:
  const Plan &plan() const { return executor.plan(); }

  /// The tensor whose memory holds the current value: the argument, or the result, after an odd
  /// number of steps.
  int current(const CarriedTensor &tensor) const {
    return isSwapped ? tensor.result : tensor.argument;
  }

  void upload() {
    for (const CarriedTensor &tensor : carried)
      executor.write(tensor.argument,
                     state.tensors.at(plan().tensors[size_t(tensor.argument)].logical));
  }

  /// Forward, backward and update, whatever a plan calls them: the entry point of all kernels.
  const EntryPoint &step() const {
    return *std::ranges::max_element(executor.entryPoints(), {},
                                     [](const EntryPoint &entry) { return entry.kernels.size(); });
  }

  void takeStep() {
    writeInputs();
    executor.launch(step(), pointersOf(step()), stream.handle());
    stream.synchronize();
    const float value = scalar(loss);
    if (!std::isfinite(value))
      fail(fmt::format("step {}: the loss is {}", state.step,
                       std::isnan(value) ? "NaN" : "infinite"));
    const double scaleBefore = lossScale.value();
    const bool isTaken =
        gradientCheck < 0 || !lossScale.isDynamic() || std::isfinite(scalar(gradientCheck));
    isTaken ? take() : skip();
    losses.push_back(value);
    if (!request.json) {
      printOut("step {} loss {:.9g}{}\n", state.step, value,
               isTaken ? "" : ", not taken: gradients overflow");
      if (lossScale.value() != scaleBefore)
        printOut("loss scale {:g}, was {:g}\n", lossScale.value(), scaleBefore);
    }
    ++state.step;
  }

  /// What the step wrote is what the next one reads.
  void take() {
    isSwapped = !isSwapped;
    skippedInARow = 0;
    lossScale.countTaken();
  }

  /// The next step reads what this one read, and writes over its results.
  void skip() {
    if (++skippedInARow == mostSkippedInARow)
      fail(fmt::format(
          "steps {} to {}: gradients overflow at any scale of the loss, at last at {:g}",
          state.step + 1 - mostSkippedInARow, state.step, lossScale.value()));
    ++state.skipped;
    skippedSteps.push_back(state.step);
    lossScale.countOverflow();
  }

  void writeInputs() {
    const TokenBatch batch = batches.at(state.step);
    write(TrainingRole::tokens, std::as_bytes(std::span(batch.tokens)));
    write(TrainingRole::labels, std::as_bytes(std::span(batch.labels)));
    write(TrainingRole::weights, std::as_bytes(std::span(batch.weights)));
    const double taken = double(state.step - state.skipped + 1);
    const double corrected = std::sqrt(1 - std::pow(beta2, taken));
    writeScalar(TrainingRole::lossGradient, lossScale.value());
    if (unscalesGradients(plan()))
      writeScalar(TrainingRole::inverseLossScale, 1 / lossScale.value());
    writeScalar(TrainingRole::keptShare, 1 - request.learningRate * request.weightDecay);
    writeScalar(TrainingRole::stepSize,
                request.learningRate * corrected / (1 - std::pow(beta1, taken)));
    writeScalar(TrainingRole::epsilon, request.epsilon * corrected);
    executor.setDropoutKey(state.seed, uint64_t(state.step));
  }

  void write(TrainingRole role, std::span<const std::byte> bytes) {
    executor.write(tensorOf(plan(), role), bytes);
  }
  void writeScalar(TrainingRole role, double value) {
    const float rounded = float(value);
    write(role, std::as_bytes(std::span(&rounded, 1)));
  }
  float scalar(int tensor) const {
    const std::vector<std::byte> bytes = executor.read(tensor);
    float value = 0;
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }

  /// Own memory, with arguments and results of what is carried exchanged after an odd number of
  /// steps.
  std::vector<cuda::DevicePointer> pointersOf(const EntryPoint &entry) const {
    std::map<int, int> placeOf;
    if (isSwapped)
      for (const CarriedTensor &tensor : carried) {
        placeOf[tensor.argument] = tensor.result;
        placeOf[tensor.result] = tensor.argument;
      }
    std::vector<cuda::DevicePointer> pointers;
    for (const std::vector<int> *tensors : {&entry.inputs, &entry.outputs})
      for (const int tensor : *tensors) {
        const auto place = placeOf.find(tensor);
        pointers.push_back(executor.ownBindings().addressOf(
            plan().tensors[size_t(place == placeOf.end() ? tensor : place->second)]));
      }
    return pointers;
  }

  /// Runs the step again kernel by kernel, on the values from before it, and names the first result
  /// that has a NaN, or behind the loss an infinity, which a gradient is where it overflows.
  [[noreturn]] void fail(const std::string &where) {
    download();
    if (const std::string broken = brokenTensor(); !broken.empty())
      throw Error::checkFailed("{}; '{}' holds a NaN before the step{}; {}", where, broken,
                               writtenBy(), keptText());
    save();
    upload();
    isSwapped = false;
    bool isBehindLoss = false;
    for (const int kernel : step().kernels) {
      executor.launchKernel(kernel, stream.handle());
      stream.synchronize();
      for (const int output : plan().kernels[size_t(kernel)].outputs) {
        const ElementSummary summary =
            summarize(plan().tensors[size_t(output)], executor.read(output));
        const bool overflows = isBehindLoss && summary.infinities > 0;
        if (summary.notNumbers > 0 || overflows)
          throw Error::checkFailed(
              "{}; the first tensor with {} is '{}' ({} elements), written by kernel {}; {}", where,
              summary.notNumbers > 0 ? "NaN" : "infinities", plan().tensors[size_t(output)].name,
              summary.notNumbers > 0 ? summary.notNumbers : summary.infinities,
              plan().kernels[size_t(kernel)].name, keptText());
        isBehindLoss |= output == loss;
      }
    }
    throw Error::checkFailed("{}; no tensor of the step holds a NaN; {}", where, keptText());
  }
  std::string keptText() const {
    if (request.state.empty()) return "no --state was asked for";
    return savedStep < 0
               ? fmt::format("{} was not written", request.state)
               : fmt::format("{} holds the state after {} steps", request.state, savedStep);
  }
  std::string writtenBy() const {
    if (losses.empty()) return "";
    return fmt::format(
        ", written by the update of step {}, whose loss was {:.9g}{}", state.step - 1,
        losses.back(),
        lossScale.value() > 1 && gradientCheck < 0
            ? fmt::format("; where a gradient overflowed, a --loss-scale below {:g} helps",
                          lossScale.value())
            : "");
  }

  /// The first tensor of the state with an element that is not finite; empty if there is none.
  std::string brokenTensor() const {
    for (const CarriedTensor &tensor : carried) {
      const PlanTensor &described = plan().tensors[size_t(tensor.argument)];
      const ElementSummary summary = summarize(described, state.tensors.at(described.logical));
      if (summary.notNumbers + summary.infinities > 0) return described.logical;
    }
    return "";
  }

  void download() {
    for (const CarriedTensor &tensor : carried)
      state.tensors[plan().tensors[size_t(tensor.argument)].logical] =
          executor.read(current(tensor));
  }
  /// Never over a good state with one that training cannot go on from.
  void save() {
    if (request.state.empty()) return;
    download();
    if (const std::string broken = brokenTensor(); !broken.empty())
      throw Error::checkFailed("after step {}: '{}' holds a NaN{}; {}", state.step - 1, broken,
                               writtenBy(), keptText());
    state.lossScale = lossScale.value();
    state.takenAtScale = lossScale.taken();
    writeState(plan(), state, request.state);
    savedStep = state.step;
  }

  void announce() const {
    if (request.json) return;
    printOut("{} ({}) on {}: {} steps from step {}, seed {}, rate {}{}, {} on the GPU\n",
             printableLine(plan().model), nameOf(plan().dtype), context.gpu().name, request.steps,
             state.step, state.seed, request.learningRate,
             unscalesGradients(plan()) ? fmt::format(", loss scale {:g}{}", lossScale.value(),
                                                     lossScale.isDynamic() ? " (dynamic)" : "")
                                       : "",
             formatBytes(executor.deviceBytes()));
  }
  nlohmann::json report() const {
    return {{"model", plan().model},
            {"gpu", context.gpu().name},
            {"seed", state.seed},
            {"step", state.step},
            {"learningRate", request.learningRate},
            {"weightDecay", request.weightDecay},
            {"lossScale", lossScale.value()},
            {"losses", losses},
            {"skipped", skippedSteps},
            {"interrupted", interrupted.load()}};
  }

  const TrainRequest &request;
  TrainingState state;
  const TextBatches batches;
  const std::vector<CarriedTensor> carried;
  const int loss, gradientCheck;
  LossScale lossScale;
  const cuda::Context context;
  Executor executor;
  const cuda::Stream stream;
  bool isSwapped = false;
  int64_t savedStep = -1;  ///< steps behind what the file of the state holds; -1: there is none
  std::vector<float> losses;
  std::vector<int64_t> skippedSteps;  ///< of this run
  int skippedInARow = 0;
};

}  // namespace

int trainArtifact(const TrainRequest &request) {
  if (!(request.learningRate >= 0 && std::isfinite(request.learningRate)))
    throw Error::badInput("--learning-rate {}: a finite number, at least 0", request.learningRate);
  if (!(request.weightDecay >= 0 && std::isfinite(request.weightDecay)))
    throw Error::badInput("--weight-decay {}: a finite number, at least 0", request.weightDecay);
  if (!request.lossScale.empty()) (void)parseLossScale(request.lossScale);
  Artifact artifact = readArtifact(request.folder);
  setConcurrent(artifact.plan, request.concurrent);
  verifyDerived(artifact.plan, request.folder + "/plan.json");
  if (request.steps > 0) return TrainingRun(request, std::move(artifact)).run();
  if (request.state.empty())
    throw Error::badInput(
        "--steps 0 writes the state that training starts from; name its file with --state");
  writeState(artifact.plan, startOf(request, artifact.plan), request.state);
  return 0;
}

}  // namespace weft::runtime
