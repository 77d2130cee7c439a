// Sums of what an epilogue computes in the skeleton kernel of sm_90a
// (codegen/device/hopper_sums.cuh): every tile leaves partial sums in device memory of the kernel's
// module, and the last tile of a strip adds them in their order.
#pragma once

#include "kernel/ContractionRegion.h"
#include "kernel/HopperProduct.h"

namespace weft {

/// Whether a sum has one element a row of the skeleton's C, and not one a column.
bool isOfRows(const EpilogueSum &sum, const HopperProduct &product);
/// Bytes of partial sums that the tiles of one launch leave; 0 without sums.
int64_t hopperPartialBytes(const ContractionRegion &region, const HopperProduct &product,
                           const HopperContractionKnobs &knobs);
/// Why tiles with such knobs do not sum: splits, number of sums, device memory. Empty if they do,
/// or if there are no sums.
std::string hopperSumsRefusal(const ContractionRegion &region, const HopperProduct &product,
                              const HopperContractionKnobs &knobs);

}  // namespace weft
