// From a selected path to a plan; see PlanBuilder.h.
#include "plan/PlanBuilder.h"

#include "kernel/Append.h"
#include "kernel/Error.h"
#include "kernel/Format.h"
#include "kernel/VisibleWork.h"
#include "passes/configure/CopyReason.h"
#include "passes/configure/Packing.h"
#include "passes/select/StepText.h"
#include "plan/Buffers.h"
#include "plan/InputRanges.h"
#include "plan/KernelPositions.h"
#include "plan/PlanConfiguration.h"
#include "plan/PlanFigures.h"
#include "plan/PlanMemory.h"
#include "plan/TensorLayout.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace weft {
namespace {

/// `name`, or `name_2`, `name_3`, ... whichever is new; remembers it.
std::string unique(const std::string &name, std::set<std::string> &taken) {
  std::string candidate = name;
  for (int suffix = 2; !taken.insert(candidate).second; ++suffix)
    candidate = fmt::format("{}_{}", name, suffix);
  return candidate;
}

/// Per kernel, the tensors that its first output may be written over.
std::vector<std::vector<int>> overwritableTensors(const PlannedKernels &planned) {
  std::vector<std::vector<int>> tensors(planned.kernels.size());
  for (size_t kernel = 0; kernel < tensors.size(); ++kernel)
    for (const size_t input :
         overwritableInputs(planned.kernels[kernel].kernel, planned.kernels[kernel].configuration))
      tensors[kernel].push_back(planned.plan.kernels[kernel].inputs[input]);
  return tensors;
}

class PlanBuilder {
public:
  PlanBuilder(const select::Problem &problem, const select::SelectionResult &path,
              const Device &device, bool free)
      : problem(problem), path(path), device(device), free(free) {}

  PlanDraft build() {
    addArguments();
    for (const select::Step &step : path.steps)
      if (isPacking(step)) rememberPacking(step);
      else addStep(step);
    nameResults();
    addOffsets();
    result.plan.variant = problem.name;
    result.plan.rewrites = problem.rewrites;
    return {.planned = std::move(result), .viewOf = std::move(viewOf)};
  }

private:
  Layout callersLayout(const select::Tensor &tensor) const {
    return tensor.pinned.value_or(rowMajor(tensor.axes.size()));
  }

  /// Arguments in their order, each in the layout in which it is first read when it may be chosen,
  /// else the caller's. Parameters come with their first reader.
  void addArguments() {
    std::map<int, Layout> firstRead;
    for (const select::Step &step : path.steps) {
      const std::vector<int> inputs = inputsOf(step);
      for (size_t index = 0; index < inputs.size(); ++index)
        firstRead.try_emplace(inputs[index], step.configuration.inputs[index]);
    }
    for (size_t tensor = 0; tensor < problem.tensors.size(); ++tensor) {
      const select::Tensor &argument = problem.tensors[tensor];
      if (!argument.isArgument || argument.isParameter) continue;
      const auto read = firstRead.find(int(tensor));
      const bool chosen = mayChoose(argument) && read != firstRead.end();
      addTensor(int(tensor), chosen ? read->second : callersLayout(argument), TensorRole::argument);
    }
  }

  /// Moving parameters costs nothing: whoever loads them writes them where the first kernel reads
  /// them.
  bool isPacking(const select::Step &step) const {
    const std::vector<int> inputs = inputsOf(step);
    return step.configuration.knobs.isView() &&
           (step.candidate < 0 ||
            isPackedAtLoad(problem.candidates[size_t(step.candidate)].kernel)) &&
           std::all_of(inputs.begin(), inputs.end(), [&](int tensor) {
             const select::Tensor &input = problem.tensors[size_t(tensor)];
             return (input.isArgument && input.isParameter) ||
                    packedBy.contains(packedAlike(tensor));
           });
  }

  /// What several layers pack of the same parameters is there once.
  void rememberPacking(const select::Step &step) {
    if (step.candidate < 0) return;
    const select::Candidate &packing = problem.candidates[size_t(step.candidate)];
    std::vector<int> inputs = packing.inputs;
    for (int &input : inputs) input = packedAlike(input);
    const auto [first, isNew] =
        firstPacked.try_emplace({canonicalText(packing.kernel), inputs}, packing.outputs.front());
    if (isNew) packedBy[packing.outputs.front()] = &packing;
    else sameAs[packing.outputs.front()] = first->second;
  }
  int packedAlike(int tensor) const {
    const auto same = sameAs.find(tensor);
    return same == sameAs.end() ? tensor : same->second;
  }

  /// A tensor computed of parameters: each of them is a view into it, so that loading the chunks
  /// makes the whole.
  int addPacked(int tensor, const Layout &layout) {
    const int whole = addTensor(tensor, layout, TensorRole::temporary);
    addParts(tensor, layout, whole);
    return whole;
  }

  void addParts(int tensor, const Layout &layout, int whole) {
    const select::Candidate &packing = *packedBy.at(tensor);
    const std::vector<Layout> places = packedOperands(packing.kernel, layout);
    for (size_t index = 0; index < places.size(); ++index) {
      const int input = packedAlike(packing.inputs[index]);
      if (packedBy.contains(input)) addParts(input, places[index], whole);
      else
        viewOf[size_t(addTensor(input, places[index],
                                roleOfArgument(problem.tensors[size_t(input)])))] = whole;
    }
  }

  bool mayChoose(const select::Tensor &tensor) const { return tensor.isParameter || free; }
  TensorRole roleOfArgument(const select::Tensor &tensor) const {
    return tensor.isParameter ? TensorRole::parameter : TensorRole::argument;
  }

  std::vector<int> inputsOf(const select::Step &step) const {
    return step.candidate < 0 ? std::vector<int>{step.tensor}
                              : problem.candidates[size_t(step.candidate)].inputs;
  }
  std::vector<int> outputsOf(const select::Step &step) const {
    return step.candidate < 0 ? std::vector<int>{step.tensor}
                              : problem.candidates[size_t(step.candidate)].outputs;
  }

  int addTensor(int tensor, const Layout &layout, TensorRole role) {
    const select::Tensor &source = problem.tensors[size_t(tensor)];
    PlanTensor entry{.name = source.name,
                     .logical = source.name,
                     .dtype = source.dtype,
                     .axes = {},
                     .extents = source.extents(),
                     .order = layout.order,
                     .strides = {},
                     .role = role,
                     .buffer = -1,
                     .offset = layout.offset,
                     .bytes = source.bytes(),
                     .layer = source.layer};
    // Parameters are loaded; only what a caller brings is there to be started from.
    if (role == TensorRole::argument) {
      entry.initial = source.initial;
      entry.masterOf = source.masterOf;
      entry.training = source.training;
    }
    for (const Axis &axis : source.axes) entry.axes.push_back(axis.name);
    entry.strides = stridesOf(layout, entry.extents);
    if (taken.contains(entry.name)) entry.name += "__" + joinAxes(axesInOrder(entry));
    entry.name = unique(entry.name, taken);
    if (role == TensorRole::parameter &&
        entry.strides != stridesOf(callersLayout(source), entry.extents))
      result.plan.notes.push_back({.kind = NoteKind::packing,
                                   .text = fmt::format("parameter {} is packed at load as {}",
                                                       entry.name, printLayout(entry))});
    result.plan.tensors.push_back(std::move(entry));
    viewOf.push_back(-1);
    versions[tensor].push_back(int(result.plan.tensors.size()) - 1);
    return versions[tensor].back();
  }

  static std::vector<std::string> axesInOrder(const PlanTensor &tensor) {
    std::vector<std::string> names;
    for (const int dimension : tensor.order) names.push_back(tensor.axes[size_t(dimension)]);
    return names;
  }

  /// Whether every element lies where these strides say. Along an axis of one element no stride is
  /// ever taken.
  static bool isSamePlace(const PlanTensor &tensor, const std::vector<int64_t> &strides) {
    for (size_t dimension = 0; dimension < strides.size(); ++dimension)
      if (tensor.extents[dimension] > 1 && tensor.strides[dimension] != strides[dimension])
        return false;
    return true;
  }

  /// The plan tensor that holds `tensor` in `layout`.
  int find(int tensor, const Layout &layout) {
    tensor = packedAlike(tensor);
    const std::vector<int64_t> strides =
        stridesOf(layout, problem.tensors[size_t(tensor)].extents());
    // A view's offset belongs to the place, not to the reader: readers ask for strides.
    for (const int version : versions[tensor])
      if (isSamePlace(result.plan.tensors[size_t(version)], strides)) return version;
    const select::Tensor &source = problem.tensors[size_t(tensor)];
    if (source.isArgument && mayChoose(source))
      return addTensor(tensor, layout, roleOfArgument(source));
    if (packedBy.contains(tensor)) return addPacked(tensor, layout);
    throw Error::checkFailed(
        "the selected plan reads '{}' with strides [{}], which nothing produced", source.name,
        fmt::join(strides, ", "));
  }

  /// A reader's order may differ from the tensor's along axes of one element. The kernel is emitted
  /// for the tensor's, which is what an artifact keeps.
  static void takeOrder(const PlanTensor &tensor, Layout &read) {
    if (!read.strides.empty() || read.order == tensor.order) return;
    Layout same = read;
    same.order = tensor.order;
    if (isSamePlace(tensor, stridesOf(same, tensor.extents))) read = std::move(same);
  }

  void addStep(const select::Step &step) {
    const std::vector<int> inputs = inputsOf(step), outputs = outputsOf(step);
    ChosenKernel chosen = chosenKernel(step);
    PlanKernel entry;
    for (size_t index = 0; index < inputs.size(); ++index) {
      entry.inputs.push_back(find(inputs[index], step.configuration.inputs[index]));
      takeOrder(result.plan.tensors[size_t(entry.inputs.back())],
                chosen.configuration.inputs[index]);
      entry.inputLayouts.push_back(namedLayout(result.plan.tensors[size_t(entry.inputs.back())]));
    }
    for (size_t index = 0; index < outputs.size(); ++index) {
      entry.outputs.push_back(
          addTensor(outputs[index], step.configuration.outputs[index], TensorRole::temporary));
      entry.outputLayouts.push_back(namedLayout(result.plan.tensors[size_t(entry.outputs.back())]));
    }
    if (step.configuration.knobs.isView()) aliasViews(entry, step.configuration);
    if (const BodyOp *const append = appendOf(chosen.kernel))
      keepInCache(chosen.kernel, *append, entry);
    const PlanTensor &first = result.plan.tensors[size_t(entry.outputs.front())];
    entry.name = unique(
        fmt::format("{}__{}", chosen.kernel.name, fmt::join(axesInOrder(first), "_")), kernelNames);
    entry.label = chosen.kernel.name;
    entry.layer = select::layerOf(problem, step);
    chosen.candidateName = std::exchange(chosen.kernel.name, entry.name);
    describeKernel(step, chosen, entry);
    result.plan.kernels.push_back(std::move(entry));
    result.kernels.push_back(std::move(chosen));
  }

  ChosenKernel chosenKernel(const select::Step &step) const {
    ChosenKernel chosen{.kernel = {},
                        .configuration = step.configuration,
                        .cost = step.cost,
                        .proposal = {},
                        .graphOps = {},
                        .entryPoint = problem.entryPoints[size_t(step.entry)],
                        .step = int(&step - path.steps.data())};
    if (step.configuration.knobs.isView()) chosen.cost.bytesNecessary = 0;  // nothing runs
    if (step.candidate < 0) {
      chosen.kernel = select::transposeKernel(problem.tensors[size_t(step.tensor)]);
      return chosen;
    }
    const select::Candidate &candidate = problem.candidates[size_t(step.candidate)];
    chosen.kernel = candidate.kernel;
    if (chosen.kernel.name.empty()) chosen.kernel.name = candidate.name;
    chosen.proposal = candidate.proposal;
    chosen.graphOps = candidate.ops;
    chosen.cost.flop *= computedShare(chosen.kernel, step.configuration.knobs.family());
    return chosen;
  }

  void describeKernel(const select::Step &step, const ChosenKernel &chosen,
                      PlanKernel &entry) const {
    entry.family = step.configuration.knobs.family();
    entry.familyVersion = step.configuration.knobs.family().version;
    entry.ops = planOps(chosen.kernel);
    describeConfigured(entry, chosen, device);
    entry.runnerUp = step.runnerUp;
    entry.runnerUpLoss = step.runnerUpLoss;
  }

  /// A view moves nothing: slices lie in their operand's buffer, the operands of a concatenation in
  /// the result's.
  void aliasViews(const PlanKernel &entry, const Configuration &configuration) {
    if (entry.inputs.size() == 1)
      for (const int output : entry.outputs) viewOf[size_t(output)] = entry.inputs.front();
    else
      for (size_t index = 0; index < entry.inputs.size(); ++index) {
        viewOf[size_t(entry.inputs[index])] = entry.outputs.front();
        result.plan.tensors[size_t(entry.inputs[index])].offset =
            configuration.inputs[index].offset;
      }
  }

  /// What an append makes of a cache lies in the memory of the argument, from then on.
  void keepInCache(const Kernel &kernel, const BodyOp &append, const PlanKernel &entry) {
    const auto place = std::ranges::find(kernel.inputs, append.operands[appendedCache]);
    const int cache = entry.inputs.at(size_t(place - kernel.inputs.begin())),
              kept = entry.outputs.front();
    const PlanTensor &argument = result.plan.tensors[size_t(cache)];
    if (argument.role != TensorRole::argument)
      throw Error::unsupported("'{}' is appended to, but is no argument of the graph",
                               argument.name);
    if (!isSamePlace(argument, result.plan.tensors[size_t(kept)].strides))
      throw Error::unsupported("the cache '{}' lies as {}; an append takes it row-major alone",
                               argument.name, printLayout(argument));
    viewOf[size_t(kept)] = cache;
  }

  /// Steps count offsets from the tensor that they view, plans from the start of the buffer.
  void addOffsets() {
    std::vector<int64_t> offsets;
    for (size_t index = 0; index < viewOf.size(); ++index) {
      offsets.push_back(0);
      for (int tensor = int(index); tensor >= 0; tensor = viewOf[size_t(tensor)])
        offsets.back() += result.plan.tensors[size_t(tensor)].offset;
    }
    for (size_t index = 0; index < offsets.size(); ++index)
      result.plan.tensors[index].offset = offsets[index];
  }

  /// The last version of every result is what the caller gets.
  void nameResults() {
    for (size_t tensor = 0; tensor < problem.tensors.size(); ++tensor)
      if (problem.tensors[tensor].isResult && !versions[int(tensor)].empty()) {
        PlanTensor &last = result.plan.tensors[size_t(versions[int(tensor)].back())];
        if (last.role != TensorRole::temporary) continue;
        last.role = TensorRole::result;
        last.nextOf = problem.tensors[tensor].nextOf;
        last.training = problem.tensors[tensor].training;
      }
  }

  const select::Problem &problem;
  const select::SelectionResult &path;
  const Device &device;
  const bool free;
  PlannedKernels result;
  std::vector<int> viewOf;  // plan tensor -> the plan tensor whose buffer it lies in, or -1
  std::map<int, const select::Candidate *>
      packedBy;               // computed parameter -> the movement that makes it
  std::map<int, int> sameAs;  // computed parameter -> the first that is packed alike
  std::map<std::pair<std::string, std::vector<int>>, int> firstPacked;  // by movement and inputs
  std::map<int, std::vector<int>> versions;  // problem tensor -> plan tensors, one a layout
  std::set<std::string> taken, kernelNames;
};

}  // namespace

PlanDraft draftPlan(const select::Problem &problem, const select::SelectionResult &path,
                    const Device &device, bool free) {
  return PlanBuilder(problem, path, device, free).build();
}

void describeConfigured(PlanKernel &entry, const ChosenKernel &chosen, const Device &device) {
  const Cost &cost = chosen.cost;
  entry.configuration = describe(chosen.kernel, chosen.configuration.knobs);
  entry.knobs = planKnobs(chosen.configuration.knobs, chosen.kernel);
  entry.workspaceBytes = workspaceBytesOf(chosen.kernel, chosen.configuration);
  entry.seconds = cost.seconds;
  entry.measured = cost.measured;
  entry.margin = cost.margin;
  entry.bytesMoved = cost.bytesMoved;
  entry.bytesNecessary = cost.bytesNecessary;
  entry.flop = cost.flop;
  entry.mue = cost.seconds > 0 ? memoryUsageEfficiency(cost, device) : 0;
  entry.bound = boundOf(cost, chosen.kernel, device);
}

PlannedKernels finishPlan(PlanDraft draft, const select::Problem &problem, bool concurrent) {
  PlannedKernels &planned = draft.planned;
  for (size_t kernel = 0; kernel < planned.kernels.size(); ++kernel)
    planned.plan.entryPoints[planned.kernels[kernel].entryPoint].push_back(int(kernel));
  planned.plan.concurrent = concurrent;
  assignBuffers(planned.plan, draft.viewOf, overwritableTensors(planned));
  orderKernels(planned.plan);
  planned.plan.predictedSeconds = sumOfKernels(planned.plan);
  noteCopies(planned);
  setInputRanges(planned.plan, problem);
  return std::move(planned);
}

void noteCopies(PlannedKernels &planned) {
  std::erase_if(planned.plan.notes,
                [](const PlanNote &note) { return note.kind == NoteKind::copy; });
  const auto whyCopied = familyWith(&Family::isView).whyCopied;
  for (const ChosenKernel &chosen : planned.kernels)
    if (const std::optional<CopyReason> reason = whyCopied(chosen.kernel, chosen.configuration))
      planned.plan.notes.push_back(
          {.kind = NoteKind::copy,
           .text = fmt::format("{} is a copy: {}", chosen.kernel.name, reason->text()),
           .code = std::string(reason->code.code)});
}

Expected<void> checkOverwriting(const PlannedKernels &planned, const std::string &where) {
  const std::vector<std::vector<int>> allowed = overwritableTensors(planned);
  const PlanMemory memory(planned.plan);
  for (size_t index = 0; index < planned.plan.kernels.size(); ++index) {
    const PlanKernel &kernel = planned.plan.kernels[index];
    if (kernel.family.isView()) continue;
    for (const int output : kernel.outputs)
      for (const int input : kernel.inputs) {
        const PlanTensor &from = planned.plan.tensors[size_t(input)],
                         &to = planned.plan.tensors[size_t(output)];
        const bool mayShare =
            output == kernel.outputs.front() && std::ranges::count(allowed[index], input) > 0;
        const MemoryRange read = memory.rangeOf(from), written = memory.rangeOf(to);
        const bool isInPlace = mayShare && read.begin == written.begin;
        const bool isBeside = from.buffer == to.buffer && read.begin != written.begin &&
                              (hasStridedView(from) || hasStridedView(to));
        if (read.overlaps(written) && !isInPlace && !isBeside)
          return Unexpected(Error::badInput(
              "{}: kernel '{}' writes '{}' over its input '{}' (buffer {}); with these layouts and "
              "this configuration it needs separate memory",
              where, kernel.name, to.name, from.name, from.buffer));
      }
  }
  return {};
}

const PlanTensor *elementsArgument(const Plan &plan) {
  std::vector<const PlanTensor *> arguments;
  std::set<std::string> roundings;
  std::map<DType, int> count;
  for (const PlanTensor &tensor : plan.tensors) {
    const bool isGiven =
        tensor.role == TensorRole::argument || tensor.role == TensorRole::parameter;
    if (!isGiven || tensor.dtype == DType::i32 || tensor.dtype == DType::i1) continue;
    arguments.push_back(&tensor);
    if (!tensor.masterOf.empty()) roundings.insert(tensor.masterOf);
    ++count[tensor.dtype];
  }
  const auto hasMaster = [&](const PlanTensor *tensor) {
    return roundings.contains(tensor->logical);
  };
  const auto isUsual = [&](const PlanTensor *tensor) {
    return std::ranges::all_of(
        count, [&](const auto &other) { return other.second <= count.at(tensor->dtype); });
  };
  auto found = std::ranges::find_if(arguments, hasMaster);
  if (found == arguments.end()) found = std::ranges::find_if(arguments, isUsual);
  return found == arguments.end() ? nullptr : *found;
}

bool hasStridedView(const PlanTensor &tensor) {
  return spanBytes(tensor) != logicalBytes(tensor) && !layoutOf(tensor).isPadded();
}

NamedLayout namedLayout(const PlanTensor &tensor) {
  return namedLayout(layoutOf(tensor), tensor.axes, tensor.extents);
}

std::string printLayout(const PlanTensor &tensor) { return shortText(namedLayout(tensor)); }

void refreshLayouts(const std::vector<PlanTensor> &tensors, PlanKernel &kernel) {
  const auto named = [&](const std::vector<int> &indices) {
    std::vector<NamedLayout> layouts;
    for (const int index : indices) layouts.push_back(namedLayout(tensors.at(size_t(index))));
    return layouts;
  };
  kernel.inputLayouts = named(kernel.inputs);
  kernel.outputLayouts = named(kernel.outputs);
}

}  // namespace weft
