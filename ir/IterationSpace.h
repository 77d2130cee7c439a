// Iteration spaces: which axes an op runs over, and which ops may therefore share one kernel. Small
// sets, no MLIR.
//
// An op touches its tensors over a set of axes. Each axis is either
//
//   independent   every point along it is computed without the others: it may be spread over
//                 anything (grid, block, warp, vector lanes, a loop), in any order;
//   reduced       the points along it are combined into one: whoever owns a row must see all of it.
//                 It is walked sequentially by one thread, or shared by the lanes of a warp or the
//                 threads of a block, which then combine their partial results.
//
// A softmax over k of a tensor [h, b, j, k] has independent {h, b, j} and reduced {k}; the map x ->
// relu(x) on the same tensor has independent {h, b, j, k} and reduced {}. The *domain* of an op is
// the union of both.
//
// Two ops can share a kernel when one assignment of axes to hardware serves both, so that values
// pass between them in registers. "Data Movement Is All You Need", section 4, gives the two
// conditions:
//
//   equal          the same independent and the same reduced axes: the loops are the same;
//   one reduction  the domains are equal (or one lacks exactly the axes that the other reduces) and
//                  the ops differ in one reduction: a map inside, before or after a reduction runs
//                  in the loop of that reduction, and its outer loop is the independent part of the
//                  reducing op.
//
// When the domains differ otherwise but share their outer independent axes, the outer loops can be
// shared and the inner ones follow one another: partial fusion. When nothing is shared, or both
// reduce different axes, the ops stay apart, and the verdict names the first axis that blocks.
//
// Everything here is about sets of axis numbers. Whoever calls has already decided which dimensions
// are the same axis; `Place` says where an op's axes come from.
#pragma once
#ifndef WEFT_IR_ITERATION_SPACE_H  // beside a precompiled header of a compiler cache
#define WEFT_IR_ITERATION_SPACE_H

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

/// One dimension of one tensor of an op. Tensors are numbered operands first, then results.
struct Place {
  int tensor = 0;
  int dimension = 0;
  auto operator<=>(const Place &) const = default;
};

/// How an axis is implemented. Reduced axes are never on the grid.
enum class AxisMapping : uint8_t { unmapped, grid, block, warp, sequential };
std::string_view nameOf(AxisMapping mapping);

/// An axis of one op: its label, extent, and every dimension that runs along it.
struct SpaceAxis {
  std::string name;
  int64_t extent = 0;
  std::vector<Place> places;  ///< never empty
  AxisMapping mapping = AxisMapping::unmapped;
  bool operator==(const SpaceAxis &) const = default;
};

/// What an op answers about itself: its own axes, before they are identified with those of other
/// ops.
struct IterationSpace {
  std::vector<SpaceAxis> independent, reduced;
  bool operator==(const IterationSpace &) const = default;
};

/// "b=8 j=512 | i=1024 (reduced)".
std::string print(const IterationSpace &space);

/// The same, after the caller numbered the axes of several ops alike.
struct AxisSets {
  std::set<int> independent, reduced;
  std::set<int> domain() const;
  bool operator==(const AxisSets &) const = default;
};

enum class Fusability : uint8_t { equal, oneReduction, partial, none };
std::string_view nameOf(Fusability fusability);

struct FusionVerdict {
  Fusability fusability = Fusability::none;
  std::string reason;             ///< kebab-case, stable: "reduction-axis-mismatch"
  std::vector<int> blockingAxes;  ///< that keep the ops apart (none, partial), ascending
  bool operator==(const FusionVerdict &) const = default;
};

/// May a and b share one kernel? Symmetric in its arguments.
FusionVerdict canFuse(const AxisSets &a, const AxisSets &b);

/// The sets of a kernel that holds both: an axis that either reduces is reduced.
AxisSets unite(const AxisSets &a, const AxisSets &b);

}  // namespace weft

#endif  // WEFT_IR_ITERATION_SPACE_H
