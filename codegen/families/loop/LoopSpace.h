// The loop nest of a loop kernel: which thread stands at which coordinates.
//
// A kernel has outer axes and reduced axes (none for maps). A *row* is one point of the outer axes
// (a vector of points if the vector axis is an outer one); `threadsPerRow` threads share it and
// walk its reduced elements in `steps`:
//   map                no reduced axes, one thread a row, one step
//   sequential         one thread walks the whole row; neighbouring threads lie along the lane axis
//   warp, block        neighbouring threads take neighbouring vectors of the row
//   columns            neighbouring threads take neighbouring rows, which are then called columns;
//                      threads further apart share them: lanes of a warp, threads of a block, or
//                      also blocks of a cluster or grid (LoopColumns.cpp)
// Everything about position is an Index: a C expression with what is known of its value.
#pragma once

#include "codegen/Names.h"
#include "codegen/Program.h"
#include "codegen/families/loop/LoopKnobs.h"

#include <map>

namespace weft::codegen {

/// A coordinate along one axis.
struct Index {
  Code text{};  ///< its value for element 0 of the vector; for element e too if irregular
  int64_t perElement = 0;  ///< what each further element adds
  bool irregular = false;  ///< text names the element, in no linear way
  bool step = false;       ///< changes with the step
  int64_t multipleOf = 1;  ///< known divisor of the value at element 0; 0: the value is zero
  int outer = -1;          ///< position in LoopSpace::outer, if it is exactly that coordinate
  int node = -1;           ///< the graph node whose value it is (gather); text is then empty

  bool varies() const { return perElement != 0 || irregular; }
  auto operator<=>(const Index &) const = default;
};

/// Identifiers of the loop nest; an axis of the same name pushes them aside.
struct Words {
  Code row, lane, step, element, width, threads, threadsPerRow, rowsPerBlock, steps, rows,
      rowElements;
  Code shares;  ///< how many share a row: threadsPerRow, of all blocks that take part
  Code columnsPerWarp, blocksPerColumn, inside;  ///< columns only
  Code batch, batches, group,
      slot;  ///< gridColumns only: steps whose loads are in flight together
};

class LoopSpace {
public:
  /// `strides` orders the axes: element strides of a tensor that has most of them (kernel axis ->
  /// stride).
  LoopSpace(const Kernel &kernel, const LoopKnobs &knobs, const std::vector<AxisId> &outerAxes,
            const std::vector<AxisId> &reducedAxes, const std::map<AxisId, int64_t> &strides,
            Names &names);

  Index coordinate(AxisId axis) const;
  /// The flat index over outer[first .. last], in vectors if that includes the vector axis;
  /// declares it on first use.
  Code range(size_t first, size_t last);
  /// Points of outer[position] in vectors.
  int64_t countOf(size_t position) const;
  /// The value of an index at element e.
  Code atElement(const Index &index) const;

  std::vector<ConstantLine> constants() const;
  Block prologue();  ///< lane, row, and the guard against rows beyond the last
  const Block &coordinates() const { return outerDeclarations; }
  Block stepCoordinates() const;  ///< inside the step loop
  Code stepGuard() const;         ///< empty: every step of every thread is inside the row
  /// Steps over the first `number` points of the slowest reduced axis, of the thread that has most;
  /// none and all where the number is outside.
  Code stepsOf(const Code &number) const;
  /// Whether every thread of a row takes equally many steps, all inside the row.
  bool sharesAreEqual() const { return reduced.empty() || rowVectors % shares == 0; }
  Code storeGuard() const;  ///< the thread that stores results of a row; empty: every thread
  Launch launch() const;
  /// Checks of the launch, in terms of the text's constants; `launchBounds` empty: the number of
  /// threads does not depend on these.
  Block launchChecks(const Code &launchBounds) const;

  bool vectorIsReduced() const { return vectorReduced; }
  bool hasVector() const { return width > 1; }
  bool isPartial() const {
    return width > 1 && extent(knobs.vectorAxis) % width != 0;
  }  ///< a last vector is cut
  int64_t extent(AxisId axis) const { return kernel.axes[axis].extent; }
  const Code &axisName(AxisId axis) const { return axisNames[axis]; }
  /// Rows per block divide the rows: no thread stands beyond the last row.
  bool isExact() const { return rows % rowsPerBlock == 0; }
  /// Whether threads of one row may leave while those of others in their block go on: no reduction
  /// waits for them.
  bool mayLeave() const {
    return !isColumns() && (threadsPerRow == 1 || threadsPerRow == 32 || rowsPerBlock == 1);
  }
  /// Whether all lanes of a warp take the same steps at once.
  bool warpsShareSteps() const {
    if (!isColumns()) return threadsPerRow == 1;
    return knobs.reduction != ReductionMapping::warpColumns && rowsPerBlock % 32 == 0;
  }
  bool isColumns() const { return isColumnMapping(knobs.reduction); }
  bool isCluster() const { return knobs.reduction == ReductionMapping::clusterColumns; }
  bool isGrid() const { return knobs.reduction == ReductionMapping::gridColumns; }
  /// Groups of columns, each processed by `blocksPerRow` blocks.
  int64_t columnGroups() const { return (rows + rowsPerBlock - 1) / rowsPerBlock; }
  /// Steps in flight together where a row does not fit into registers.
  int unroll() const { return isColumns() ? 8 : 4; }
  /// Whether several threads share a row.
  bool isShared() const { return shares > 1; }
  /// The flat index over the reduced axes; declared where there are several.
  const Code &flatStep() const { return flatStepName; }
  /// Whether lanes 2n and 2n + 1 of a warp hold neighbouring vectors along the lane axis.
  bool pairsLanes() const;

  const Kernel &kernel;
  LoopKnobs knobs;
  Words words;
  std::vector<AxisId> outer, reduced;  ///< slowest first
  int width = 1;
  int64_t rows = 1, rowVectors = 1, steps = 1;
  int threadsPerRow = 1, rowsPerBlock = 1;
  int64_t shares = 1;     ///< threads that share a row, in all blocks
  bool wideRows = false;  ///< row needs 64 bits

private:
  void claimWords();
  void claimColumnWords();
  void addColumnConstants(std::vector<ConstantLine> &lines) const;
  Block columnPrologue() const;
  ConstantValue vectorsAlong(AxisId axis) const;
  Code countText(AxisId axis) const { return vectorsAlong(axis).code(); }
  int64_t count(AxisId axis) const;

  std::vector<Code> axisNames, coordinateNames;
  Code flatStepName;
  bool vectorReduced = false;
  std::map<std::pair<size_t, size_t>, Code> ranges;
  Block outerDeclarations;
  Names &names;
};

}  // namespace weft::codegen
