// Shared memory of a column mapping: what weft::ColumnScratch (codegen/device/columns.cuh) takes. Enumeration keeps to the
// limit by it.
#pragma once

#include "kernel/Configuration.h"

#include <algorithm>
#include <cstdint>

namespace weft {

constexpr int64_t staticSharedLimit = 48 * 1024;  ///< bytes that a block may declare on every target

/// Bytes for `results` accumulators.
inline int64_t columnScratchBytes(const LoopKnobs &knobs, int64_t results) {
  if (knobs.reduction == ReductionMapping::warpColumns) return 0;
  const int64_t columns = knobs.threads / knobs.threadsPerRow, parts = knobs.threads / std::max<int64_t>(32, columns);
  return 4 * columns * knobs.vectorWidth * (parts + 2 * results);
}

}  // namespace weft
