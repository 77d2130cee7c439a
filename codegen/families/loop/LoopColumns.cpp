// Columns of a loop kernel: sums over slow axes, where neighbouring threads lie along the fast axis
// that is kept.
//
//   warpColumns      32 / n lanes side by side, n lanes a column, reduced by shuffles
//   blockColumns     threads / n side by side, n threads a column, reduced in shared memory
//   clusterColumns   the same in every block of a cluster, reduced through the shared memory of all
//                    its blocks
//   gridColumns      the same in any number of blocks, reduced through device memory by the
//                    last-arriving one, which alone stores; loads of several steps are issued
//                    before the first is used
//
// A thread's share is every n-th point of the reduced axes, so that threads of a column stand at
// neighbouring points. Threads beyond the last column stay for the reduction; they neither load nor
// store anything of a step.
#include "codegen/families/loop/LoopKnobs.h"
#include "codegen/families/loop/LoopSpace.h"

namespace weft::codegen {

void LoopSpace::claimColumnWords() {
  words = {.row = names.reserve("column"),
           .lane = names.reserve("part"),
           .step = names.reserve("v"),
           .element = names.reserve("e"),
           .width = names.reserve("width"),
           .threads = names.reserve("threads"),
           .threadsPerRow = names.reserve("threadsPerColumn"),
           .rowsPerBlock = names.reserve("columnsPerBlock"),
           .steps = names.reserve("steps"),
           .rows = names.reserve("columns"),
           .rowElements = names.reserve("points")};
  words.columnsPerWarp = names.reserve("columnsPerWarp");
  words.blocksPerColumn = names.reserve("blocksPerColumn");
  words.inside = names.reserve("inside");
  words.shares = knobs.blocksPerRow > 1 ? names.reserve("parts") : words.threadsPerRow;
  if (!isGrid()) return;
  words.batch = names.reserve("stepsInFlight");
  words.batches = names.reserve("batches");
  words.group = names.reserve("batch");
  words.slot = names.reserve("n");
}

void LoopSpace::addColumnConstants(std::vector<ConstantLine> &lines) const {
  lines.push_back({"int", {{words.columnsPerWarp, 32 / threadsPerRow}}, "neighbouring lanes"});
  lines.push_back(
      {"int", {{words.threadsPerRow, threadsPerRow}, {words.rowsPerBlock, rowsPerBlock}}, ""});
  if (knobs.blocksPerRow == 1) return;
  lines.push_back(
      {"int", {{words.blocksPerColumn, knobs.blocksPerRow}}, isCluster() ? "a cluster" : ""});
  lines.push_back({"int",
                   {{words.shares, ConstantValue::name(words.threadsPerRow) *
                                       ConstantValue::name(words.blocksPerColumn)}},
                   isCluster() ? "threads of a cluster that share a column"
                               : "threads of the grid that share a column"});
}

Block LoopSpace::columnPrologue() const {
  const bool inWarp = knobs.reduction == ReductionMapping::warpColumns,
             severalBlocks = knobs.blocksPerRow > 1;
  Code part = code("threadIdx.x / {}", words.rowsPerBlock);
  if (inWarp) part = code("threadIdx.x % 32 / {}", words.columnsPerWarp);
  if (severalBlocks)
    part = code("blockIdx.x % {} * {} + {}", words.blocksPerColumn, words.threadsPerRow, part);
  Code block = severalBlocks ? code("blockIdx.x / {}", words.blocksPerColumn) : "blockIdx.x";
  if (wideRows) block = code("weft::Offset({})", block);
  Code column = code("threadIdx.x % {}", words.rowsPerBlock);
  if (inWarp) column = code("threadIdx.x / 32 * {0} + threadIdx.x % {0}", words.columnsPerWarp);
  column = code("{} * {} + {}", block, words.rowsPerBlock, column);

  std::vector<std::string> axes;
  for (AxisId axis : outer) axes.push_back(axisNames[axis]);
  std::string note = fmt::format("({}){}", fmt::join(axes, ", "),
                                 outer.size() > 1 ? fmt::format(", {} slowest", axes[0]) : "");
  if (width > 1) note += fmt::format(", {} of {} at once", width, axisNames[knobs.vectorAxis]);
  const Code type = wideRows ? "weft::Offset" : "int";
  Block result = {declareConstant("int", words.lane, part)};
  if (!isExact()) {
    const Code beyond = Code::name(words.row.str() + "_or_beyond");
    result.push_back(declareConstant(type, beyond, column));
    result.push_back(declareConstant("bool", words.inside, code("{} < {}", beyond, words.rows)));
    column = code("{} ? {} : 0", words.inside, beyond);
  }
  result.push_back(declareConstant(type, words.row, column, note));
  return result;
}

Code LoopSpace::storeGuard() const {
  if (!isShared()) return isColumns() && !isExact() ? words.inside : "";
  const Code first = isGrid() ? code("threadIdx.x < {}", words.rowsPerBlock) : words.lane + " == 0";
  return isColumns() && !isExact() ? code("{} && {}", words.inside, first) : first;
}

bool LoopSpace::pairsLanes() const {
  if (outer.empty() || outer.back() != knobs.vectorAxis || countOf(outer.size() - 1) % 2 != 0 ||
      !isExact() || knobs.threads % 32 != 0)
    return false;
  if (!isColumns()) return threadsPerRow == 1;
  const int sideBySide =
      knobs.reduction == ReductionMapping::warpColumns ? 32 / threadsPerRow : rowsPerBlock;
  return sideBySide % 2 == 0 && stepGuard().empty();
}

}  // namespace weft::codegen
