// The tiles of the contraction skeleton from sm_80 on (codegen/device/ampere_contraction.cuh): which knobs it takes, and what they
// need. The product it computes is that of HopperProduct.h: C contiguous along n, A and B along k or along their outer axis, and
// `isByEngine` where rows start at multiples of 16 bytes, which asynchronous copies of a thread ask for, too.
#pragma once

#include "kernel/HopperProduct.h"

#include <string>

namespace weft {

/// Why no kernel has such knobs, whatever it computes; empty if they are legal.
std::string ampereKnobsRefusal(const AmpereContractionKnobs &knobs, int64_t sharedMemoryPerBlock);
/// Dynamic shared memory: stages of slices, or the tile of C that takes their place.
int64_t ampereSharedBytes(const AmpereContractionKnobs &knobs);
int ampereThreads(const AmpereContractionKnobs &knobs);
/// Tiles of C over all members of the batch, one a block.
int64_t ampereTiles(const HopperProduct &product, const AmpereContractionKnobs &knobs);

}  // namespace weft
