// Memory of a column mapping: what weft::ColumnScratch (codegen/families/loop/device/columns.cuh)
// and weft::GridScratch (codegen/families/loop/device/grid.cuh) take of shared memory, and
// weft::GridPartials of the device's. Enumeration keeps to the limits by it.
#pragma once

#include "codegen/families/loop/LoopKnobs.h"
#include "kernel/Configuration.h"

#include <algorithm>
#include <cstdint>

namespace weft {

constexpr int64_t staticSharedLimit =
    48 * 1024;  ///< bytes that a block may declare on every target

/// Bytes of shared memory for `results` sums or maxima.
inline int64_t columnScratchBytes(const LoopKnobs &knobs, int64_t results) {
  if (knobs.reduction == ReductionMapping::warpColumns) return 0;
  const int64_t columns = knobs.threads / knobs.threadsPerRow,
                parts = knobs.threads / std::max<int64_t>(32, columns);
  const int64_t ofBlock = 4 * columns * knobs.vectorWidth * (parts + 2 * results);
  return knobs.reduction == ReductionMapping::gridColumns ? ofBlock + 16 * knobs.threads + 16
                                                          : ofBlock;
}

/// Bytes of partial results that blocks of the grid write for the last-arriving one;
/// `columnVectors`: columns of the kernel in vectors.
inline int64_t gridPartialBytes(const LoopKnobs &knobs, int64_t columnVectors, int64_t results) {
  const int64_t columns = knobs.threads / knobs.threadsPerRow,
                groups = (columnVectors + columns - 1) / columns;
  return 4 * groups * knobs.blocksPerRow * columns * knobs.vectorWidth * results;
}

}  // namespace weft
