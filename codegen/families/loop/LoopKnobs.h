// The knobs of the loop family, and the family: element-wise, normalization and reduction kernels
// in any layout. Its fields stand in LoopKnobs.cpp, its configurations in LoopFamily.cpp.
#pragma once

#include "kernel/BlockCombine.h"
#include "kernel/Family.h"

namespace weft {

/// How a reduction is spread over the machine (section 4 of "Data Movement Is All You Need").
///   sequential    one thread walks the reduced axes
///   warp, block   neighbouring threads lie along a reduced axis and share one row
///   ...Columns    neighbouring threads lie along a kept axis, and threads further apart share each
///                 column: lanes of one warp, threads of one block, the blocks of one cluster
///                 (sm_90 and later), or any blocks of the grid, whose partial results the last one
///                 adds
enum class ReductionMapping : uint8_t {
  none,
  sequential,
  warp,
  block,
  warpColumns,
  blockColumns,
  clusterColumns,
  gridColumns
};
/// "none", "warp", "cluster-columns".
std::string_view nameOf(ReductionMapping mapping);
inline constexpr ReductionMapping reductionMappings[] = {
    ReductionMapping::none,           ReductionMapping::sequential,  ReductionMapping::warp,
    ReductionMapping::block,          ReductionMapping::warpColumns, ReductionMapping::blockColumns,
    ReductionMapping::clusterColumns, ReductionMapping::gridColumns};

/// Loop family: element-wise, normalization, reduction kernels in any layout.
struct LoopKnobs {
  AxisId vectorAxis = -1;  ///< kernel axis along which one thread takes `vectorWidth` neighbours;
                           ///< -1: scalar kernel (rank 0)
  int vectorWidth =
      1;  ///< elements a thread takes along vectorAxis: 1, 2, 4, 8 (at most 16 bytes an access)
  AxisId laneAxis = -1;  ///< kernel axis along which neighbouring threads lie (equal to vectorAxis,
                         ///< or another axis)
  ReductionMapping reduction = ReductionMapping::none;  ///< for the reduced axis
  int threads = 128;                                    ///< threads a block
  int threadsPerRow = 1;  ///< threads of a block that share one row or column; 1 where none do
  BlockCombine combine = BlockCombine::shuffle;  ///< for block reductions; shuffle for every other
  int blocksPerRow = 1;  ///< blocks that share one column when the reduction is clusterColumns or
                         ///< gridColumns, else 1
  static const Family &family();
  auto operator<=>(const LoopKnobs &) const = default;
};

bool isRowMapping(ReductionMapping mapping);  ///< warp, block
bool isColumnMapping(
    ReductionMapping mapping);  ///< warpColumns, blockColumns, clusterColumns, gridColumns

extern const Family loopFamily;
inline const Family &LoopKnobs::family() { return loopFamily; }

}  // namespace weft
