// Loop family: kernels without contraction, in any layout of every operand.
//
// The iteration space is the axes of the outputs and the reduced axes. Its mappings, which code
// generation follows:
//   map          no reduction; one thread takes `vectorWidth` neighbours along vectorAxis,
//                neighbouring threads lie along laneAxis, the other axes follow in the order of the
//                first output's layout;
//   row          vectorAxis = laneAxis = a reduced axis; a part of a warp, a warp or a block shares
//                one row;
//   sequential   each thread walks the reduced axes; neighbouring threads lie along another axis,
//                which is also the vector axis;
//   columns      the same, but many threads share the walk: gradients of biases, gamma and beta,
//                whose kept axis is the fast one. Joined in a warp (short columns), in a block, in
//                a cluster of blocks where the device has them (sm_90), or in as many blocks of the
//                grid as fill the device once or a few times, since few columns leave most
//                multiprocessors idle otherwise. For sums and maxima alone (reduce, the gradients
//                of gamma and beta): rows of norms and softmax are read more than once.
// A kernel that appends to a cache (kernel/Append.h) walks the tokens: they are its outputs here.
// An operand that cannot be accessed in vectors is accessed element by element, so layouts and
// knobs are independent.
#include "codegen/families/loop/LoopFamily.h"
#include "codegen/families/loop/ColumnScratch.h"
#include "codegen/families/loop/LoopKnobs.h"
#include "codegen/targets/Targets.h"
#include "kernel/Append.h"
#include "kernel/Attributes.h"
#include "kernel/ReduceKind.h"
#include "passes/configure/Family.h"

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>

namespace weft {
namespace {

constexpr int widths[] = {1, 2, 4, 8, 16};
constexpr int mapThreads[] = {64, 128, 256, 512};
constexpr int warpThreads[] = {64, 128, 256};
constexpr int blockThreads[] = {64, 128, 256, 512};
constexpr int sequentialThreads[] = {64, 128, 256};
constexpr int columnThreads[] = {256, 512};
constexpr int columnsOfBlock[] = {4, 8, 16, 32};  ///< vectors side by side: 64 to 512 bytes
constexpr int lanesOfColumn[] = {4, 8};
constexpr int blocksOfColumn[] = {2, 4, 8};  ///< clusters of more blocks are not portable
constexpr int gridColumnsOfBlock[] = {8, 16, 32};
constexpr int gridBlocksPerMultiprocessor[] = {1, 2, 4, 6, 12};
constexpr int warpShares[] = {8, 16, 32};  ///< lanes that share a row
constexpr int warpSize = 32;
constexpr int64_t shortRow = 256;  ///< elements; only shorter rows are given to a part of a warp
constexpr size_t maximumPermutedRank =
    5;  ///< 120 layouts; tensors of transformer layers have at most 5 dimensions

/// The iteration space of a loop kernel.
struct LoopSpace {
  std::vector<AxisId>
      independent;              ///< axes of extent above 1 that outputs run over and no op reduces
  std::vector<AxisId> reduced;  ///< axes that every reduction of the body reduces
  std::string reason;           ///< why the family does not take the kernel; empty if it does
};

/// Axes that stand for another one: sub-vectors of a local softmax are walked along the axis they
/// divide.
std::set<AxisId> derivedAxes(const Kernel &kernel) {
  std::set<AxisId> derived;
  for (const BodyOp &op : kernel.body) {
    if (op.kind != OpKind::localSoftmax) continue;
    const std::vector<AxisId> &divided = kernel.values[op.operands[0]].axes;
    for (ValueId result : op.results)
      for (AxisId axis : kernel.values[result].axes)
        if (std::find(divided.begin(), divided.end(), axis) == divided.end()) derived.insert(axis);
  }
  return derived;
}

/// Why code generation has no loops for an op in this kernel; empty if it has.
std::string loopRejection(const Kernel &kernel, const BodyOp &op) {
  if (op.operatorClass == OperatorClass::contraction)
    return "'" + std::string(nameOf(op.kind)) + "' is a contraction";
  if (op.kind == OpKind::constant && !hasAttribute(op, attribute::value))
    return "'constant' is a table of different values";
  if (op.kind == OpKind::append) return appendRejection(kernel);
  if (op.kind != OpKind::scatterAdd) return "";
  if (kernel.body.size() > 1) return "'scatter_add' is a separate kernel";
  return kernel.values[op.results[0]].axes.size() < 2
             ? "'scatter_add' into a table whose rows have no axis"
             : "";
}

LoopSpace iterationSpace(const Kernel &kernel) {
  LoopSpace space;
  for (const BodyOp &op : kernel.body) {
    space.reason = loopRejection(kernel, op);
    if (!space.reason.empty()) return space;
    if (op.reducedAxes.empty()) continue;
    std::vector<AxisId> reduced = op.reducedAxes;
    std::sort(reduced.begin(), reduced.end());
    if (!space.reduced.empty() && space.reduced != reduced) {
      space.reason =
          "'" + std::string(nameOf(op.kind)) +
          "' reduces other axes than the op before it; one kernel reduces one set of axes";
      return space;
    }
    space.reduced = reduced;
  }
  const std::set<AxisId> derived = derivedAxes(kernel);
  std::set<AxisId> independent;
  for (ValueId output : kernel.outputs)
    for (AxisId axis : walkedAxes(kernel, output))
      if (kernel.axes[axis].extent > 1 && !derived.contains(axis)) independent.insert(axis);
  for (AxisId axis : space.reduced) independent.erase(axis);
  space.independent.assign(independent.begin(), independent.end());
  for (ValueId output : kernel.outputs) {
    const std::vector<AxisId> &axes = walkedAxes(kernel, output);
    for (AxisId axis : space.independent)
      if (std::find(axes.begin(), axes.end(), axis) == axes.end())
        space.reason = "output '" + kernel.values[output].name + "' lacks the axis '" +
                       kernel.axes[axis].name + "' of another output; one kernel has one space";
  }
  return space;
}

bool dropsOut(const Kernel &kernel) {
  return std::any_of(kernel.body.begin(), kernel.body.end(),
                     [](const BodyOp &op) { return op.kind == OpKind::dropout; });
}

/// Widths of at most 16 bytes for every operand that runs along the axis, and at most its extent.
/// Sixteen elements, in two accesses, where dropout is: columns 8 apart share words of draws; of
/// 8-bit floats too, but not where a thread adds them up, since the sums of two results would not
/// fit its registers. `alsoAlong`: only operands that run along these too count.
std::vector<int> widthsAlong(const Kernel &kernel, AxisId axis,
                             const std::vector<AxisId> &alsoAlong = {}) {
  int64_t largest = 1;
  for (ValueId value : operandValues(kernel)) {
    const std::vector<AxisId> &axes = kernel.values[value].axes;
    const auto has = [&](int wanted) {
      return std::find(axes.begin(), axes.end(), wanted) != axes.end();
    };
    if (has(axis) && std::all_of(alsoAlong.begin(), alsoAlong.end(), has))
      largest = std::max(largest, sizeOf(kernel.values[value].dtype));
  }
  std::vector<int> result;
  const bool isNarrowSum = largest == 1 && accumulatorsOf(kernel) > 0;
  for (int width : widths) {
    if (isNarrowSum && width == 16) continue;
    if (width * largest <= (width == 16 && dropsOut(kernel) ? 2 : 1) * maximumAccessBytes &&
        width <= kernel.axes[axis].extent)
      result.push_back(width);
  }
  return result;
}

/// Whether places in a cache follow from the coordinate along the axis by a load, so that elements
/// along it are no vector there: tokens that are appended, and their sequences.
bool scattersAppended(const Kernel &kernel, AxisId axis) {
  const BodyOp *const append = appendOf(kernel);
  if (!append) return false;
  const std::vector<AxisId> &sequences = kernel.values[append->operands[appendStarts]].axes;
  return axis == walkedAxes(kernel, append->results.front())[appendAxis(*append)] ||
         std::ranges::find(sequences, axis) != sequences.end();
}

std::vector<Knobs> mapKnobs(const Kernel &kernel, const LoopSpace &space) {
  std::vector<Knobs> knobs;
  for (int threads : mapThreads) {
    if (space.independent.empty()) knobs.push_back(LoopKnobs{.threads = threads});
    for (AxisId vectorAxis : space.independent)
      for (int width : widthsAlong(kernel, vectorAxis))
        for (AxisId laneAxis : space.independent) {
          if (width > 1 && scattersAppended(kernel, vectorAxis)) continue;
          if (width == 1 && laneAxis != vectorAxis)
            continue;  // the same as vectors of 1 along laneAxis
          knobs.push_back(LoopKnobs{.vectorAxis = vectorAxis,
                                    .vectorWidth = width,
                                    .laneAxis = laneAxis,
                                    .threads = threads});
        }
  }
  return knobs;
}

/// A warp, a part of one, or a block for each row; neighbouring lanes lie along the reduced axis.
/// No thread takes more than `mostElements`.
void addRowKnobs(const Kernel &kernel, AxisId axis, int64_t rowElements, int64_t mostElements,
                 std::vector<Knobs> &knobs) {
  for (int width : widthsAlong(kernel, axis)) {
    // Where half of the threads of a row would have no work, half as many do the same.
    const auto wasteful = [&](int threadsPerRow) {
      return static_cast<int64_t>(threadsPerRow) / 2 * width >= rowElements;
    };
    LoopKnobs row{.vectorAxis = axis, .vectorWidth = width, .laneAxis = axis};
    row.reduction = ReductionMapping::warp;
    for (int lanes : warpShares) {
      if (lanes > warpShares[0] && wasteful(lanes)) continue;
      if (lanes < warpSize && rowElements > shortRow) continue;
      row.threadsPerRow = lanes;
      if (rowElements / lanes > mostElements) continue;
      for (int threads : warpThreads) {
        row.threads = threads;
        knobs.push_back(row);
      }
    }
    row.reduction = ReductionMapping::block;
    for (int threads : blockThreads) {
      if (wasteful(threads) || rowElements / threads > mostElements) continue;
      row.threads = row.threadsPerRow = threads;
      for (BlockCombine combine :
           {BlockCombine::shuffle, BlockCombine::tree, BlockCombine::linear}) {
        row.combine = combine;
        knobs.push_back(row);
      }
      row.combine = BlockCombine::shuffle;
    }
  }
}

/// Whether the reductions are sums and maxima whose operands are read once.
bool reducesColumns(const Kernel &kernel) {
  return std::all_of(kernel.body.begin(), kernel.body.end(), [](const BodyOp &op) {
    return op.reducedAxes.empty() || isPlainReduction(op);
  });
}

/// Whether nothing that runs over reduced axes waits for a sum, and only sums are there: what
/// blocks of a grid can share.
bool sumsLeave(const Kernel &kernel) {
  std::set<ValueId> sums;
  for (const BodyOp &op : kernel.body) {
    const bool uses =
        std::ranges::any_of(op.operands, [&](ValueId operand) { return sums.contains(operand); });
    if (op.reducedAxes.empty() && !uses) continue;
    if (uses && !op.reducedAxes.empty()) return false;
    if (!uses && reduceKind(op).value_or(ReduceKind::sum) != ReduceKind::sum) return false;
    const std::vector<AxisId> reduced = kernel.reducedAxes();
    for (ValueId result : op.results)
      if (std::ranges::find_first_of(kernel.values[result].axes, reduced) !=
          kernel.values[result].axes.end())
        return false;
    sums.insert(op.results.begin(), op.results.end());
  }
  return true;
}

/// At most `most` blocks of `threads` a column; a few less if then every thread takes as many
/// points.
int64_t blocksThatDivide(int64_t points, int64_t threads, int64_t most) {
  for (int64_t blocks = most; blocks * 10 >= most * 9; --blocks)
    if (points % (blocks * threads) == 0) return blocks;
  return most;
}

/// Columns that blocks of the grid share: as many as keep the device busy, whose last wave is full.
void addGridKnobs(const Kernel &kernel, const Device &device, int64_t points, LoopKnobs row,
                  std::vector<Knobs> &knobs) {
  const int64_t results = accumulatorsOf(kernel);
  int64_t vectors = 1;  // columns, in vectors
  for (ValueId output : kernel.outputs) {
    int64_t own = 1;
    const std::vector<AxisId> reduced = kernel.reducedAxes();
    for (AxisId axis : kernel.values[output].axes)
      if (std::ranges::find(reduced, axis) == reduced.end())
        own *= axis == row.vectorAxis
                   ? (kernel.axes[axis].extent + row.vectorWidth - 1) / row.vectorWidth
                   : kernel.axes[axis].extent;
    vectors = std::max(vectors, own);
  }
  row.reduction = ReductionMapping::gridColumns;
  for (int threads : columnThreads)
    for (int columns : gridColumnsOfBlock) {
      row.threads = threads;
      row.threadsPerRow = threads / columns;
      int before = 1;
      for (int perMultiprocessor : gridBlocksPerMultiprocessor) {
        const int64_t groups = (vectors + columns - 1) / columns;
        const int64_t most =
            std::min<int64_t>({int64_t(device.multiprocessors) * perMultiprocessor / groups,
                               points / row.threadsPerRow, 65535});
        if (most < 2) continue;
        row.blocksPerRow = static_cast<int>(blocksThatDivide(points, row.threadsPerRow, most));
        if (row.blocksPerRow <= before) continue;
        before = row.blocksPerRow;
        if (columnScratchBytes(row, results) <= staticSharedLimit &&
            gridPartialBytes(row, vectors, results) <= gridPartialsLimit)
          knobs.push_back(row);
      }
    }
}

/// Threads of a column that are at most as many as its points; `row` has the vector axis and its
/// width.
void addColumnKnobs(const Kernel &kernel, const Device &device, int64_t points, LoopKnobs row,
                    std::vector<Knobs> &knobs) {
  const int64_t results = accumulatorsOf(kernel);
  const auto add = [&] {
    if (int64_t(row.threadsPerRow) * row.blocksPerRow <= points &&
        columnScratchBytes(row, results) <= staticSharedLimit)
      knobs.push_back(row);
  };
  for (int threads : columnThreads) {
    row.threads = threads;
    row.reduction = ReductionMapping::warpColumns;
    for (int lanes : lanesOfColumn) {
      row.threadsPerRow = lanes;
      add();
    }
    for (int columns : columnsOfBlock) {
      row.threadsPerRow = threads / columns;
      row.reduction = ReductionMapping::blockColumns;
      add();
      if (!codegen::hasClusters(device.architecture)) continue;
      row.reduction = ReductionMapping::clusterColumns;
      for (int blocks : blocksOfColumn) {
        row.blocksPerRow = blocks;
        add();
      }
      row.blocksPerRow = 1;
    }
  }
}

std::vector<Knobs> reductionKnobs(const Kernel &kernel, const Device &device,
                                  const LoopSpace &space) {
  std::vector<Knobs> knobs;
  int64_t rowElements = 1;
  for (AxisId axis : space.reduced) rowElements *= rowExtent(kernel, axis);
  // Long sums over several axes are for columns: as rows, with a dropout mask behind them, they
  // spill.
  constexpr int64_t unbounded = std::numeric_limits<int64_t>::max(), shareOfSeveralAxes = 32;
  const int64_t mostElements =
      space.reduced.size() > 1 && reducesColumns(kernel) ? shareOfSeveralAxes : unbounded;
  for (AxisId axis : space.reduced)
    if (kernel.axes[axis].extent > 1 || space.reduced.size() == 1)
      addRowKnobs(kernel, axis, rowElements, mostElements, knobs);
  for (int threads : sequentialThreads) {
    LoopKnobs sequential{.reduction = ReductionMapping::sequential, .threads = threads};
    if (space.independent.empty()) knobs.push_back(sequential);
    for (AxisId axis : space.independent)
      for (int width : widthsAlong(kernel, axis)) {
        sequential.vectorAxis = sequential.laneAxis = axis;
        sequential.vectorWidth = width;
        knobs.push_back(sequential);
      }
  }
  if (!reducesColumns(kernel)) return knobs;
  for (AxisId axis : space.independent)  // what is moved once a column may take several accesses
    for (int width : widthsAlong(kernel, axis, space.reduced)) {
      const LoopKnobs column{.vectorAxis = axis, .vectorWidth = width, .laneAxis = axis};
      addColumnKnobs(kernel, device, rowElements, column, knobs);
      if (sumsLeave(kernel)) addGridKnobs(kernel, device, rowElements, column, knobs);
    }
  return knobs;
}

/// A warp owns rows of the table and takes 32 vectors of a row side by side (scatter.cuh), vectors
/// that divide their axis.
std::vector<Knobs> scatterKnobs(const Kernel &kernel, const LoopSpace &space) {
  std::vector<Knobs> knobs;
  const AxisId tableAxis = kernel.values[kernel.outputs[0]].axes[0];
  for (AxisId axis : space.independent)
    for (int width : widthsAlong(kernel, axis))
      if (axis != tableAxis && kernel.axes[axis].extent % width == 0)
        knobs.push_back(LoopKnobs{.vectorAxis = axis,
                                  .vectorWidth = width,
                                  .laneAxis = axis,
                                  .reduction = ReductionMapping::warp,
                                  .threads = 256,
                                  .threadsPerRow = warpSize});
  return knobs;
}

/// Ties go to the knobs that come first: wide vectors, neighbouring threads along the vectors, a
/// warp rather than a block a row, shuffles before shared memory, and the block sizes in the order
/// in which copies ran fastest on an H200 (128, 256, 512 threads; 64 was not tried).
auto preference(const LoopKnobs &knobs) {
  constexpr int order[] = {128, 256, 64, 512};
  return std::tuple(
      -knobs.vectorWidth, knobs.laneAxis != knobs.vectorAxis,
      knobs.reduction == ReductionMapping::block, knobs.combine,
      std::find(std::begin(order), std::end(order), knobs.threads) - std::begin(order));
}

/// A cache lies as its caller has it.
bool isCache(const Kernel &kernel, ValueId value) {
  const BodyOp *const append = appendOf(kernel);
  return append && (append->operands[appendedCache] == value || append->results.front() == value);
}

std::vector<Layout> layoutsOf(const Kernel &kernel, ValueId value) {
  const std::vector<int64_t> extents = extentsOf(kernel, value);
  if (isCache(kernel, value)) return {normalized(rowMajor(extents.size()), extents)};
  if (extents.size() > maximumPermutedRank) return {normalized(rowMajor(extents.size()), extents)};
  return distinctAndPaddedLayouts(kernel, value);
}

}  // namespace

int64_t rowExtent(const Kernel &kernel, AxisId axis) {
  for (const BodyOp &op : kernel.body)
    if (op.kind == OpKind::localSoftmax)
      return std::min(kernel.axes[axis].extent, attributeOf(op, attribute::tile));
  return kernel.axes[axis].extent;
}

bool isPlainReduction(const BodyOp &op) {
  return op.kind == OpKind::reduce || op.kind == OpKind::layerNormDw ||
         op.kind == OpKind::rmsNormDw;
}

int64_t accumulatorsOf(const Kernel &kernel) {
  int64_t count = 0;
  for (const BodyOp &op : kernel.body)
    if (isPlainReduction(op)) count += static_cast<int64_t>(op.results.size());
  return count;
}

Expected<ConfigurationSpace, Reason> loopSpace(const Kernel &kernel, const Device &device) {
  const LoopSpace iteration = iterationSpace(kernel);
  if (!iteration.reason.empty()) return rejected(iteration.reason);
  ConfigurationSpace space{.family = &loopFamily};
  for (ValueId value : operandValues(kernel)) space.choices.push_back(layoutsOf(kernel, value));
  const bool isScatter = kernel.body[0].kind == OpKind::scatterAdd;
  if (isScatter) space.knobs = scatterKnobs(kernel, iteration);
  else
    space.knobs = iteration.reduced.empty() ? mapKnobs(kernel, iteration)
                                            : reductionKnobs(kernel, device, iteration);
  std::stable_sort(space.knobs.begin(), space.knobs.end(), [](const Knobs &a, const Knobs &b) {
    return preference(a.get<LoopKnobs>()) < preference(b.get<LoopKnobs>());
  });
  return space;
}

}  // namespace weft
