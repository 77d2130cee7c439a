// A chain of kernels, chunk by chunk; see PlanChunks.h.
#include "plan/PlanChunks.h"

#include "kernel/Attributes.h"
#include "kernel/ChunkOrigins.h"
#include "kernel/Error.h"
#include "passes/configure/Families.h"
#include "plan/PlanBuilder.h"
#include "plan/PlanConfiguration.h"
#include "plan/TensorLayout.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>

namespace weft {
namespace {

constexpr int64_t pointerAlignment = 16;  // bytes; what every kernel is promised of its operands

AxisId axisNamed(const Kernel &kernel, const std::string &name) {
  const auto found = std::ranges::find(kernel.axes, name, &Axis::name);
  if (found == kernel.axes.end())
    throw Error::badInput("kernel '{}' has no axis {}", kernel.name, name);
  return int(found - kernel.axes.begin());
}

/// The position of an axis among a value's; -1 if the value has none.
int dimensionOf(const Kernel &kernel, ValueId value, AxisId axis) {
  const std::vector<AxisId> &axes = kernel.values[size_t(value)].axes;
  const auto found = std::ranges::find(axes, axis);
  return found == axes.end() ? -1 : int(found - axes.begin());
}

/// Of an op without an expression: masks compare coordinates of queries and keys, slopes follow
/// from the number of the head, and so do block masks with a table for each; rotations turn pairs.
bool comparesAlong(const BodyOp &op, const Kernel &kernel, AxisId axis) {
  if (!op.expression.empty()) return false;
  if (op.kind == OpKind::rotary) return true;
  const std::vector<AxisId> &axes = kernel.values[size_t(op.results.front())].axes;
  const auto isAxis = [&](int64_t dimension) { return axes[size_t(dimension)] == axis; };
  for (const auto name : {attribute::query, attribute::key})
    if (const int64_t *dimension = findAttribute(op, name); dimension && isAxis(*dimension))
      return true;
  const std::vector<int64_t> *heads =
      findAttribute(op, hasAttribute(op, attribute::pattern) ? attribute::along : attribute::heads);
  return heads && std::ranges::any_of(*heads, isAxis);
}

bool isFusedAttention(const Kernel &kernel) {
  return std::ranges::count(kernel.body, OperatorClass::contraction, &BodyOp::operatorClass) > 1 ||
         std::ranges::count(kernel.body, OpKind::onlineSoftmaxContract, &BodyOp::kind) > 0;
}

/// Whether pages are gathered for each index of the axis as for any other: heads, and elements.
bool gathersEachAlike(const BodyOp &op, const Kernel &kernel, AxisId axis) {
  return op.kind == OpKind::gatherPages && dimensionOf(kernel, op.operands.front(), axis) >= 0 &&
         dimensionOf(kernel, op.results.front(), axis) >= 0;
}

/// Dropout counts the rows of the outer axes: a chunk starts at a multiple of what lies within one
/// index, if all before is one index.
void shiftDropout(BodyOp &op, const Kernel &whole, AxisId axis, int64_t start) {
  const std::vector<AxisId> &axes = whole.values[size_t(op.operands.front())].axes;
  const int dimension = dimensionOf(whole, op.operands.front(), axis);
  if (dimension < 0) return;
  bool isOuter = size_t(dimension) + 2 < axes.size();
  for (int before = 0; before < dimension; ++before)
    isOuter &= whole.axes[size_t(axes[size_t(before)])].extent == 1;
  if (!isOuter)
    throw Error::badInput(
        "kernel '{}' draws dropout masks along axis {}, which is not the outermost", whole.name,
        whole.axes[size_t(axis)].name);
  int64_t rows = start;
  for (size_t within = size_t(dimension) + 1; within + 2 < axes.size(); ++within)
    rows *= whole.axes[size_t(axes[within])].extent;
  setAttribute(op, attribute::outer, rows);  // also where it is zero: chunks share one text
}

class ChunkBuilder {
public:
  ChunkBuilder(PlannedKernels &planned, std::vector<int> &viewOf, const Chunking &chunks)
      : planned(planned), plan(planned.plan), viewOf(viewOf), chunks(chunks) {}

  void run() {
    findChain();
    std::string reasons;
    const std::vector<int> order = tensor(inner.front()).order;  // slowest first
    for (const int dimension : order) {
      if (tensor(inner.front()).extents[size_t(dimension)] == 1) continue;
      if (chunks.isPipelined && size_t(dimension) + 2 >= order.size()) continue;  // of one matrix
      const PlannedKernels before = planned;
      const std::vector<int> viewsBefore = viewOf;
      try {
        cutAlong(dimension);
        return;
      } catch (const Error &error) {
        planned = before;
        viewOf = viewsBefore;
        reasons += fmt::format("; along {}: {}", tensor(inner.front()).axes[size_t(dimension)],
                               error.what());
      }
    }
    if (reasons.empty() && chunks.isPipelined)
      reasons = "; it has no outer axis of more than one index";
    reject(fmt::format("'{}' is not cut{}", tensor(inner.front()).name, reasons));
  }

private:
  [[noreturn]] static void reject(const std::string &reason) {
    throw Error::unsupported("{}", reason);
  }
  PlanTensor &tensor(int index) { return plan.tensors[size_t(index)]; }
  const Kernel &kernelOf(int index) const { return planned.kernels[size_t(index)].kernel; }
  bool isViewed(int index) const {
    return viewOf[size_t(index)] >= 0 || std::ranges::find(viewOf, index) != viewOf.end();
  }

  std::vector<int> readersOf(int index) const {
    std::vector<int> readers;
    for (size_t kernel = 0; kernel < plan.kernels.size(); ++kernel)
      if (std::ranges::find(plan.kernels[kernel].inputs, index) !=
          plan.kernels[kernel].inputs.end())
        readers.push_back(int(kernel));
    return readers;
  }
  int writerOf(int index) const {
    for (size_t kernel = 0; kernel < plan.kernels.size(); ++kernel)
      if (std::ranges::find(plan.kernels[kernel].outputs, index) !=
          plan.kernels[kernel].outputs.end())
        return int(kernel);
    return -1;
  }

  /// What the pieces are called.
  const char *word() const { return chunks.isPipelined ? "slices" : "chunks"; }

  bool isInner(int index) const { return std::ranges::find(inner, index) != inner.end(); }
  bool isInChain(int kernel) const { return std::ranges::find(chain, kernel) != chain.end(); }

  /// The one kernel that reads a tensor, in the entry point that it is computed in.
  int readerOf(int index) {
    const std::vector<int> readers = readersOf(index);
    if (readers.size() != 1)
      reject(fmt::format("'{}' has {} readers", tensor(index).name, readers.size()));
    if (planned.kernels[size_t(readers.front())].entryPoint !=
        planned.kernels[size_t(chain.front())].entryPoint)
      reject(fmt::format("'{}' is saved for another entry point", tensor(index).name));
    return readers.front();
  }

  /// The largest temporary that a kernel computes; what is computed of it and is more than half as
  /// large; their kernels.
  void findChain() {
    int largest = -1;
    for (size_t index = 0; index < plan.tensors.size(); ++index)
      if (tensor(int(index)).role == TensorRole::temporary && !isViewed(int(index)) &&
          writerOf(int(index)) >= 0 &&
          (largest < 0 || tensor(int(index)).bytes > tensor(largest).bytes))
        largest = int(index);
    if (largest < 0) reject("the plan has no separate temporaries");
    chain = {writerOf(largest)};
    for (int current = largest;;) {
      inner.push_back(current);
      chain.push_back(readerOf(current));
      const int next = plan.kernels[size_t(chain.back())].outputs.front();
      if (tensor(next).role != TensorRole::temporary || isViewed(next) ||
          2 * tensor(next).bytes <= tensor(largest).bytes)
        break;
      current = next;
    }
    addBetween();
  }

  /// Adds the kernels between two of the chain to it: they read another output of an earlier
  /// kernel, and a later kernel reads their result, as with the statistics of a decomposed softmax.
  void addBetween() {
    const int last = chain.back();
    for (size_t n = 0; n < chain.size(); ++n) {
      if (chain[n] == last) continue;
      for (const int output : plan.kernels[size_t(chain[n])].outputs) {
        if (isInner(output)) continue;
        const std::string &name = tensor(output).name;
        if (tensor(output).role != TensorRole::temporary || isViewed(output))
          reject(fmt::format("'{}' is needed as a whole", name));
        const int reader = readerOf(output);
        if (reader > last)
          reject(fmt::format("'{}' is read behind '{}'", name, plan.kernels[size_t(last)].name));
        inner.push_back(output);
        if (!isInChain(reader)) chain.push_back(reader);
      }
    }
    std::ranges::sort(chain);
  }

  /// The axis of every kernel of the chain that a dimension of the first inner tensor is.
  std::vector<AxisId> axesOf(int dimension) const {
    std::map<int, int> dimensions = {{inner.front(), dimension}};  // of inner tensors
    std::vector<AxisId> axes;
    for (const int index : chain) {
      const Kernel &kernel = kernelOf(index);
      const PlanKernel &entry = plan.kernels[size_t(index)];
      std::optional<AxisId> axis;
      const auto forEach = [&](const std::vector<int> &tensors, const std::vector<ValueId> &values,
                               const auto &visit) {
        for (size_t n = 0; n < tensors.size(); ++n)
          if (isInner(tensors[n])) visit(tensors[n], values[n]);
      };
      const auto find = [&](int tensor, ValueId value) {
        if (const auto known = dimensions.find(tensor); known != dimensions.end() && !axis)
          axis = kernel.values[size_t(value)].axes[size_t(known->second)];
      };
      const auto place = [&](int tensor, ValueId value) {
        const int at = dimensionOf(kernel, value, *axis);
        if (at < 0)
          reject(fmt::format("kernel '{}' reduces over {}", kernel.name,
                             kernel.axes[size_t(*axis)].name));
        if (dimensions.emplace(tensor, at).first->second != at)
          reject(fmt::format("kernel '{}' has it along two axes", kernel.name));
      };
      forEach(entry.inputs, kernel.inputs, find);
      forEach(entry.outputs, kernel.outputs, find);
      if (!axis) reject(fmt::format("kernel '{}' has it along no axis", kernel.name));
      forEach(entry.inputs, kernel.inputs, place);
      forEach(entry.outputs, kernel.outputs, place);
      for (const int output : kernel.outputs)
        if (dimensionOf(kernel, output, *axis) < 0)
          reject(fmt::format("kernel '{}' reduces over {}", kernel.name,
                             kernel.axes[size_t(*axis)].name));
      axes.push_back(*axis);
    }
    return axes;
  }

  using ChunksOfTensors =
      std::map<std::pair<int, int>, int>;  ///< of one chunk, by tensor and dimension

  void cutAlong(int dimension) {  // of the first inner tensor
    const int64_t extent = tensor(inner.front()).extents[size_t(dimension)];
    if (extent % chunks.count != 0)
      reject(fmt::format("{} indices are not divisible into {} {}", extent, chunks.count, word()));
    const std::vector<AxisId> axes = axesOf(dimension);
    PlannedKernels cut;
    for (int64_t start = 0; start < extent; start += extent / chunks.count) {
      ChunksOfTensors chunksOf;
      for (size_t n = 0; n < chain.size(); ++n)
        addChunk(cut, chain[n], axes[n], start, extent / chunks.count, chunksOf);
    }
    std::vector<std::string> names;
    for (const int kernel : chain) names.push_back(plan.kernels[size_t(kernel)].name);
    plan.notes.push_back(
        {.kind = NoteKind::chunks,
         .text = fmt::format(
             "'{}' is computed in {} {} along {}, {}; in {} run {}", tensor(inner.front()).name,
             chunks.count, word(), tensor(inner.front()).axes[size_t(dimension)],
             chunks.isPipelined ? "at once and with separate memory" : "one at a time", word(),
             fmt::join(names, ", "))});
    splice(std::move(cut));
  }

  void addChunk(PlannedKernels &cut, int index, AxisId axis, int64_t start, int64_t size,
                ChunksOfTensors &chunksOf) {
    const ChosenKernel &whole = planned.kernels[size_t(index)];
    const std::string axisName = whole.kernel.axes[size_t(axis)].name;
    ChosenKernel chosen = whole;
    chosen.kernel = onChunk(whole.kernel, axisName, start, size);
    PlanKernel entry = plan.kernels[size_t(index)];
    entry.chunk = PlanChunk{.region = index,
                            .axis = axisName,
                            .start = start,
                            .size = size,
                            .whole = entry.name,
                            .isSlice = chunks.isPipelined};
    entry.name = chosen.kernel.name = entry.name + chunkSuffix(axisName, start);
    const auto place = [&](std::vector<int> &tensors, const std::vector<ValueId> &values,
                           std::vector<Layout> &layouts) {
      for (size_t n = 0; n < tensors.size(); ++n) {
        if (const int at = dimensionOf(whole.kernel, values[n], axis); at >= 0)
          tensors[n] = chunkOf(tensors[n], at, start, size, chunksOf);
        layouts[n] = layoutOf(tensor(tensors[n]));
        layouts[n].offset = 0;
      }
    };
    place(entry.inputs, whole.kernel.inputs, chosen.configuration.inputs);
    place(entry.outputs, whole.kernel.outputs, chosen.configuration.outputs);
    for (size_t n = 0; n < entry.outputs.size(); ++n)
      if (entry.outputs[n] == plan.kernels[size_t(index)].outputs[n])
        reject(fmt::format("every chunk would write '{}'", tensor(entry.outputs[n]).name));
    refreshLayouts(plan.tensors, entry);  // a chunk of padded rows may be a view
    configureOnce(chosen, whole);
    describe(entry, chosen);
    if (chunks.isPipelined) entry.chunk->deviceShare = deviceShare(whole.cost, chosen.cost);
    cut.plan.kernels.push_back(std::move(entry));
    cut.kernels.push_back(std::move(chosen));
  }

  /// Chunks of one size that differ in their names alone are configured as the first of them. A
  /// modelled price is scaled by measured over modelled time of the whole kernel.
  void configureOnce(ChosenKernel &chunk, const ChosenKernel &whole) {
    Kernel unnamed = chunk.kernel;
    unnamed.name.clear();
    ChunkConfigurations &all = chunks.known ? *chunks.known : own;
    const ChunkConfigurations::Known *known =
        all.find(whole.candidateName, unnamed, chunk.configuration);
    if (!known) {
      const Configuration asked = chunk.configuration;
      const bool isItsMeasurement = configure(chunk);
      known = &all.add({.candidate = whole.candidateName,
                        .kernel = std::move(unnamed),
                        .asked = asked,
                        .chosen = chunk.configuration,
                        .cost = chunk.cost,
                        .isItsMeasurement = isItsMeasurement});
    }
    chunk.configuration = known->chosen;
    chunk.cost = known->cost;
    if (known->isItsMeasurement || chunk.cost.measured || !whole.cost.measured) return;
    const double modelled = analytic->cost(whole.kernel, whole.configuration).seconds;
    if (modelled > 0) chunk.cost.seconds *= whole.cost.seconds / modelled;
  }

  /// The chunk's fastest measurement in these layouts: true. If it is unmeasured, the knobs of the
  /// whole kernel, or the model's best if a chunk does not accept those.
  bool configure(ChosenKernel &chunk) const {
    const Device &device = chunks.prices->device();
    for (const PricedConfiguration &row :
         chunks.prices->measuredAs(chunk.kernel, chunk.configuration)) {
      if (!isLegal(chunk.kernel, row.configuration, device)) continue;
      chunk.configuration = row.configuration;
      chunk.cost = row.cost;
      return true;
    }
    if (!isLegal(chunk.kernel, chunk.configuration, device)) takeBestModelled(chunk);
    chunk.cost = chunks.prices->cost(chunk.kernel, chunk.configuration);
    return false;
  }

  /// All slices at once keep the device as busy as the whole kernel does: of the time of a slice
  /// alone, a share as large as the slice's part of the whole's work.
  double deviceShare(const Cost &whole, const Cost &slice) const {
    const double work =
        std::max(0.0, whole.seconds - chunks.prices->device().launchSeconds) / chunks.count;
    return slice.seconds > 0 ? std::clamp(work / slice.seconds, 0.0, 1.0) : 0;
  }

  void takeBestModelled(ChosenKernel &chunk) const {
    LayoutConstraints constraints;
    constraints.inputs.assign(chunk.configuration.inputs.begin(), chunk.configuration.inputs.end());
    constraints.outputs.assign(chunk.configuration.outputs.begin(),
                               chunk.configuration.outputs.end());
    std::optional<std::pair<double, Configuration>> best;
    forEachConfiguration(chunk.kernel, chunks.prices->device(), constraints,
                         [&](const Configuration &candidate) {
                           const double seconds = analytic->cost(chunk.kernel, candidate).seconds;
                           if (!best || seconds < best->first) best.emplace(seconds, candidate);
                           return true;
                         });
    if (!best)
      reject(fmt::format("kernel '{}' has no configuration on a chunk", chunk.kernel.name));
    chunk.configuration = std::move(best->second);
  }

  void describe(PlanKernel &entry, const ChosenKernel &chosen) const {
    entry.configuration = weft::describe(chosen.kernel, chosen.configuration.knobs);
    entry.knobs = planKnobs(chosen.configuration.knobs, chosen.kernel);
    entry.workspaceBytes = workspaceBytesOf(chosen.kernel, chosen.configuration);
    entry.seconds = chosen.cost.seconds;
    entry.measured = chosen.cost.measured;
    entry.margin = chosen.cost.margin;
    entry.bytesMoved = chosen.cost.bytesMoved;
    entry.bytesNecessary = chosen.cost.bytesNecessary;
    entry.flop = chosen.cost.flop;
    entry.mue =
        chosen.cost.seconds > 0 ? memoryUsageEfficiency(chosen.cost, chunks.prices->device()) : 0;
    entry.bound = boundOf(chosen.cost, chosen.kernel, chunks.prices->device());
    entry.runnerUp.clear();
    entry.runnerUpLoss = 0;
  }

  /// A chunk of a tensor: contiguous separate memory for an inner tensor, else a view.
  int chunkOf(int index, int dimension, int64_t start, int64_t size, ChunksOfTensors &chunksOf) {
    if (const auto found = chunksOf.find({index, dimension}); found != chunksOf.end())
      return found->second;
    const bool isOwn = isInner(index);
    PlanTensor chunk = tensor(index);
    chunk.chunkOf = chunk.name;
    chunk.name += chunkSuffix(chunk.axes[size_t(dimension)], start);
    chunk.role = TensorRole::temporary;
    chunk.masterOf.clear();  // of the whole alone
    chunk.nextOf.clear();
    chunk.training = TrainingRole::none;
    chunk.extents[size_t(dimension)] = size;
    chunk.bytes = chunk.bytes / tensor(index).extents[size_t(dimension)] * size;
    if (isOwn) {
      const Layout whole = layoutOf(tensor(index));
      if (!whole.strides.empty()) reject(fmt::format("'{}' is a strided view", tensor(index).name));
      const Layout dense{.order = chunk.order};
      const auto rows = padded(dense, chunk.extents, sizeOf(chunk.dtype));
      chunk.strides = stridesOf(whole.isPadded() ? rows.value_or(dense) : dense, chunk.extents);
    } else {
      chunk.offset += start * chunk.strides[size_t(dimension)];
      if (start * chunk.strides[size_t(dimension)] * elementBytes(chunk) % pointerAlignment != 0)
        reject(fmt::format("chunks of '{}' do not start at multiples of {} bytes",
                           tensor(index).name, pointerAlignment));
    }
    plan.tensors.push_back(std::move(chunk));
    viewOf.push_back(isOwn ? -1 : index);
    return chunksOf[{index, dimension}] = int(plan.tensors.size()) - 1;
  }

  /// The chunks stand where the last kernel of the chain stood.
  void splice(PlannedKernels cut) {
    PlannedKernels whole = std::move(planned);
    planned.plan = whole.plan;
    planned.plan.kernels.clear();
    planned.kernels.clear();
    const auto take = [&](PlannedKernels &from, size_t index) {
      planned.plan.kernels.push_back(std::move(from.plan.kernels[index]));
      planned.kernels.push_back(std::move(from.kernels[index]));
    };
    for (size_t index = 0; index < whole.kernels.size(); ++index) {
      if (!isInChain(int(index))) take(whole, index);
      if (int(index) != chain.back()) continue;
      for (size_t chunk = 0; chunk < cut.kernels.size(); ++chunk) take(cut, chunk);
    }
    removeInner();
  }

  /// The inner tensors are there in chunks only.
  void removeInner() {
    std::vector<int> newIndex;
    int kept = 0;
    for (size_t index = 0; index < plan.tensors.size(); ++index)
      newIndex.push_back(isInner(int(index)) ? -1 : kept++);
    for (size_t index = plan.tensors.size(); index-- > 0;)
      if (newIndex[index] < 0) {
        plan.tensors.erase(plan.tensors.begin() + long(index));
        viewOf.erase(viewOf.begin() + long(index));
      }
    for (int &view : viewOf)
      if (view >= 0) view = newIndex[size_t(view)];
    for (PlanKernel &kernel : plan.kernels)
      for (std::vector<int> *tensors : {&kernel.inputs, &kernel.outputs})
        for (int &tensor : *tensors) tensor = newIndex[size_t(tensor)];
  }

  PlannedKernels &planned;
  Plan &plan;
  std::vector<int> &viewOf;
  const Chunking &chunks;
  const std::unique_ptr<CostModel> analytic = analyticCostModel(chunks.prices->device());
  ChunkConfigurations own;
  std::vector<int> chain;  ///< kernels, in the plan's order
  std::vector<int>
      inner;  ///< tensors between them, each read by one of them alone; the first is the largest
};

}  // namespace

const ChunkConfigurations::Known *ChunkConfigurations::find(const std::string &candidate,
                                                            const Kernel &kernel,
                                                            const Configuration &asked) const {
  const auto found = std::ranges::find_if(all, [&](const Known &one) {
    return one.asked == asked && one.candidate == candidate && one.kernel == kernel;
  });
  return found == all.end() ? nullptr : &*found;
}

Kernel onChunk(const Kernel &kernel, const std::string &axisName, int64_t start, int64_t size) {
  Kernel chunk = kernel;
  const AxisId axis = axisNamed(kernel, axisName);
  int64_t &extent = chunk.axes[size_t(axis)].extent;
  if (start < 0 || size < 1 || start + size > extent)
    throw Error::badInput("kernel '{}': {} indices of axis {} from {} on, of {}", kernel.name, size,
                          axisName, start, extent);
  extent = size;
  // What a fused attention makes of a mask is about whole queries and keys: which tiles it skips.
  const bool isFused = isFusedAttention(kernel);
  for (BodyOp &op : chunk.body) {
    const bool isReduced = std::ranges::find(op.reducedAxes, axis) != op.reducedAxes.end();
    const bool isMoved = op.operatorClass == OperatorClass::movement &&
                         op.kind != OpKind::identity && !gathersEachAlike(op, kernel, axis);
    const bool isCounted = comparesAlong(op, kernel, axis) || countsAlong(kernel, op, axis);
    if (isReduced || isMoved || (isCounted && (isFused || !countFrom(kernel, op, axis, start))))
      throw Error::badInput("kernel '{}': {} does not run on chunks of axis {}", kernel.name,
                            nameOf(op.kind), axisName);
    op.flop *= double(size) / double(kernel.axes[size_t(axis)].extent);
    if (dropoutOf(op)) shiftDropout(op, kernel, axis, start);
  }
  return chunk;
}

void runInChunks(PlannedKernels &planned, std::vector<int> &viewOf, const Chunking &chunks) {
  try {
    ChunkBuilder(planned, viewOf, chunks).run();
  } catch (const Error &error) {
    throw Error::unsupported("no plan in {} {}: {}", chunks.count,
                             chunks.isPipelined ? "slices" : "chunks", error.what());
  }
}

}  // namespace weft
