// What gathers say of indices that their table has no row for, as kernels say it of lengths
// (argument_status.cuh).
#pragma once

#include "weft/argument_status.cuh"

namespace weft {

/// The row of a table that element `place` of the indices leads to. An index outside [0, extent) is
/// reported, and leads to the nearest row, so that nothing outside the table is read.
__device__ __forceinline__ int checkedIndex(int index, int extent, int place,
                                            ArgumentStatus *status) {
  if (!isIndex(index, extent)) reportElement(status, place, index);
  return clampedIndex(index, extent);
}

}  // namespace weft
