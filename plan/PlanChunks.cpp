// A chain of kernels, chunk by chunk; see PlanChunks.h.
#include "plan/PlanChunks.h"

#include "kernel/Attributes.h"
#include "kernel/ChunkOrigins.h"
#include "kernel/Error.h"
#include "plan/PlanConfiguration.h"
#include "plan/TensorLayout.h"

#include <algorithm>
#include <map>
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

[[noreturn]] void reject(const std::string &reason) { throw Error::unsupported("{}", reason); }

class ChainFinder {
public:
  explicit ChainFinder(const PlanDraft &draft)
      : planned(draft.planned), plan(draft.planned.plan), viewOf(draft.viewOf) {}

  /// The largest temporary that a kernel computes; what is computed of it and is more than half as
  /// large; their kernels.
  void find() {
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

  std::vector<int> chain, inner;  ///< as ChunkChain has them

private:
  const PlanTensor &tensor(int index) const { return plan.tensors[size_t(index)]; }
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

  const PlannedKernels &planned;
  const Plan &plan;
  const std::vector<int> &viewOf;
};

class Cutter {
public:
  Cutter(const PlanDraft &whole, const ChunkChain &chain, int dimension)
      : chain(chain), cut{.draft = whole, .dimension = dimension} {}

  ChunkCut run() {
    try {
      addChunks();
    } catch (const Error &error) {
      cut.rejection = error.what();
    }
    return std::move(cut);
  }

private:
  const PlanTensor &tensor(int index) const {
    return cut.draft.planned.plan.tensors[size_t(index)];
  }
  const PlanKernel &entryOf(int index) const {
    return cut.draft.planned.plan.kernels[size_t(index)];
  }
  const Kernel &kernelOf(int index) const {
    return cut.draft.planned.kernels[size_t(index)].kernel;
  }
  bool isInner(int index) const {
    return std::ranges::find(chain.inner, index) != chain.inner.end();
  }

  /// The axis of every kernel of the chain that a dimension of the first inner tensor is.
  std::vector<AxisId> axesOf() const {
    std::map<int, int> dimensions = {{chain.inner.front(), cut.dimension}};  // of inner tensors
    std::vector<AxisId> axes;
    for (const int index : chain.kernels) {
      const Kernel &kernel = kernelOf(index);
      const PlanKernel &entry = entryOf(index);
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

  void addChunks() {
    const int64_t extent = tensor(chain.inner.front()).extents[size_t(cut.dimension)];
    if (extent % chain.count != 0)
      reject(fmt::format("{} indices are not divisible into {} {}", extent, chain.count,
                         chain.word()));
    const std::vector<AxisId> axes = axesOf();
    for (int64_t start = 0; start < extent; start += extent / chain.count) {
      ChunksOfTensors chunksOf;
      for (size_t n = 0; n < chain.kernels.size(); ++n)
        addChunk(chain.kernels[n], axes[n], start, extent / chain.count, chunksOf);
    }
  }

  void addChunk(int index, AxisId axis, int64_t start, int64_t size, ChunksOfTensors &chunksOf) {
    const ChosenKernel &whole = cut.draft.planned.kernels[size_t(index)];
    const std::string axisName = whole.kernel.axes[size_t(axis)].name;
    ChosenKernel chosen = whole;
    chosen.kernel = onChunk(whole.kernel, axisName, start, size);
    PlanKernel entry = entryOf(index);
    entry.chunk = PlanChunk{.region = index,
                            .axis = axisName,
                            .start = start,
                            .size = size,
                            .whole = entry.name,
                            .isSlice = chain.isPipelined};
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
      if (entry.outputs[n] == entryOf(index).outputs[n])
        reject(fmt::format("every chunk would write '{}'", tensor(entry.outputs[n]).name));
    refreshLayouts(cut.draft.planned.plan.tensors, entry);  // a chunk of padded rows may be a view
    cut.entries.push_back(std::move(entry));
    cut.kernels.push_back(std::move(chosen));
    cut.wholes.push_back(index);
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
    std::vector<PlanTensor> &tensors = cut.draft.planned.plan.tensors;
    tensors.push_back(std::move(chunk));
    cut.draft.viewOf.push_back(isOwn ? -1 : index);
    return chunksOf[{index, dimension}] = int(tensors.size()) - 1;
  }

  const ChunkChain &chain;
  ChunkCut cut;
};

/// All slices at once keep the device as busy as the whole kernel does: of the time of a slice
/// alone, a share as large as the slice's part of the whole's work.
double deviceShare(const Cost &whole, const Cost &slice, int count, const Device &device) {
  const double work = std::max(0.0, whole.seconds - device.launchSeconds) / count;
  return slice.seconds > 0 ? std::clamp(work / slice.seconds, 0.0, 1.0) : 0;
}

PlanNote noteOf(const PlanDraft &draft, int dimension, const ChunkChain &chain) {
  const Plan &plan = draft.planned.plan;
  const PlanTensor &largest = plan.tensors[size_t(chain.inner.front())];
  std::vector<std::string> names;
  for (const int kernel : chain.kernels) names.push_back(plan.kernels[size_t(kernel)].name);
  return {
      .kind = NoteKind::chunks,
      .text = fmt::format("'{}' is computed in {} {} along {}, {}; in {} run {}", largest.name,
                          chain.count, chain.word(), largest.axes[size_t(dimension)],
                          chain.isPipelined ? "at once and with separate memory" : "one at a time",
                          chain.word(), fmt::join(names, ", "))};
}

/// Tensors that are there in chunks only.
void remove(const std::vector<int> &inner, PlanDraft &draft) {
  const auto isInner = [&](int index) { return std::ranges::find(inner, index) != inner.end(); };
  Plan &plan = draft.planned.plan;
  std::vector<int> newIndex;
  int kept = 0;
  for (size_t index = 0; index < plan.tensors.size(); ++index)
    newIndex.push_back(isInner(int(index)) ? -1 : kept++);
  for (size_t index = plan.tensors.size(); index-- > 0;)
    if (newIndex[index] < 0) {
      plan.tensors.erase(plan.tensors.begin() + long(index));
      draft.viewOf.erase(draft.viewOf.begin() + long(index));
    }
  for (int &view : draft.viewOf)
    if (view >= 0) view = newIndex[size_t(view)];
  for (PlanKernel &kernel : plan.kernels)
    for (std::vector<int> *tensors : {&kernel.inputs, &kernel.outputs})
      for (int &tensor : *tensors) tensor = newIndex[size_t(tensor)];
}

}  // namespace

ChunkChain chunkChain(const PlanDraft &draft, int count, bool isPipelined) {
  ChainFinder finder(draft);
  finder.find();
  return {.count = count,
          .isPipelined = isPipelined,
          .kernels = std::move(finder.chain),
          .inner = std::move(finder.inner)};
}

std::vector<int> dimensionsToCut(const PlanDraft &draft, const ChunkChain &chain) {
  const PlanTensor &largest = draft.planned.plan.tensors[size_t(chain.inner.front())];
  std::vector<int> dimensions = largest.order;
  std::erase_if(dimensions, [&](int dimension) {
    const bool isOfOneMatrix = size_t(dimension) + 2 >= largest.order.size();
    return largest.extents[size_t(dimension)] == 1 || (chain.isPipelined && isOfOneMatrix);
  });
  return dimensions;
}

ChunkCut cutAlong(const PlanDraft &draft, const ChunkChain &chain, int dimension) {
  return Cutter(draft, chain, dimension).run();
}

PlanDraft inChunks(ChunkCut cut, const ChunkChain &chain, const Device &device) {
  PlanDraft draft = std::move(cut.draft);
  for (size_t chunk = 0; chunk < cut.kernels.size(); ++chunk) {
    PlanKernel &entry = cut.entries[chunk];
    const ChosenKernel &chosen = cut.kernels[chunk];
    describeConfigured(entry, chosen, device);
    entry.runnerUp.clear();
    entry.runnerUpLoss = 0;
    const Cost &whole = draft.planned.kernels[size_t(cut.wholes[chunk])].cost;
    if (chain.isPipelined)
      entry.chunk->deviceShare = deviceShare(whole, chosen.cost, chain.count, device);
  }
  draft.planned.plan.notes.push_back(noteOf(draft, cut.dimension, chain));
  // The chunks stand where the last kernel of the chain stood.
  std::vector<PlanKernel> entries = std::exchange(draft.planned.plan.kernels, {});
  std::vector<ChosenKernel> kernels = std::exchange(draft.planned.kernels, {});
  const auto take = [&](PlanKernel &entry, ChosenKernel &kernel) {
    draft.planned.plan.kernels.push_back(std::move(entry));
    draft.planned.kernels.push_back(std::move(kernel));
  };
  for (size_t index = 0; index < kernels.size(); ++index) {
    if (std::ranges::find(chain.kernels, int(index)) == chain.kernels.end())
      take(entries[index], kernels[index]);
    if (int(index) != chain.kernels.back()) continue;
    for (size_t chunk = 0; chunk < cut.kernels.size(); ++chunk)
      take(cut.entries[chunk], cut.kernels[chunk]);
  }
  remove(chain.inner, draft);
  return draft;
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

}  // namespace weft
