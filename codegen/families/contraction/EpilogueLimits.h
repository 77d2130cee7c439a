// What the epilogue of a tensor-core kernel may read and store, whatever its family, and the
// registers that it needs: a lane holds fragments of all these tensors at the same time, in fp32.
#pragma once

#include "kernel/ContractionRegion.h"

#include <string>

namespace weft {

/// Whether MMAs read and stores write elements of 16 bits.
inline bool isHalf(DType type) { return type == DType::f16 || type == DType::bf16; }

/// Why no epilogue supports these element types. It supports f32, f16 and bf16, and i32 that masks
/// compare with coordinates; A, B and operands of the prologue may have other types.
std::string epilogueTypesRejection(const Kernel &kernel, const ContractionRegion &region);
/// Why no epilogue supports so many tensors of several axes: it reads and stores at most three
/// each.
std::string epilogueTensorsRejection(const Kernel &kernel, const ContractionRegion &region);

/// Registers of a thread that an epilogue needs for the eight elements of a fragment
/// (codegen/device/fragment.cuh), by what it reads, draws and stores: an estimate, such that
/// tiles that leave as many do not spill (tests/nvrtc). 0 if plain.
int epilogueRegisters(const Kernel &kernel, const ContractionRegion &region);

/// Whether nothing of the epilogue but its rotary embedding reads the value: where sequences start.
bool isOfRotaryAlone(const Kernel &kernel, const ContractionRegion &region, ValueId value);

}  // namespace weft
