// What the epilogue of a tensor-core kernel may read and store, whatever its family: lanes hold
// fragments of all of it at a time, in fp32.
#pragma once

#include "kernel/ContractionRegion.h"

#include <string>

namespace weft {

/// Whether products read and stores leave 16 bits.
inline bool isHalf(DType type) { return type == DType::f16 || type == DType::bf16; }

/// Why the family takes no epilogue on these element types: f32, f16 and bf16 are taken, but for A
/// and B and for what a prologue reads.
std::string epilogueTypesRejection(const Kernel &kernel, const ContractionRegion &region);
/// Why it takes none of so many tensors of several axes: three are read and three stored at most.
std::string epilogueTensorsRejection(const Kernel &kernel, const ContractionRegion &region);

}  // namespace weft
