// The tiles of gemm-sm80 (device/sm80_gemm.cuh): which knobs are legal, and what they need. The
// GEMM it computes is that of GemmProblem.h: C contiguous along n, A and B along k or along their
// outer axis, and `usesTma` where rows start at multiples of 16 bytes, which asynchronous copies of
// a thread need, too. Operands of f32 that are read as tf32 have elements of 4 bytes
// (sm80_tf32.cuh): the functions have a parameter.
#pragma once

#include "codegen/families/contraction/GemmProblem.h"
#include "codegen/families/gemm_sm80/Sm80GemmKnobs.h"
#include "kernel/ContractionRegion.h"

#include <string>

namespace weft {

/// Why no kernel of operands of so many bytes has such knobs, whatever it computes; empty if they
/// are legal.
std::string sm80KnobsRejection(const Sm80GemmKnobs &knobs, int64_t sharedMemoryPerBlock,
                               int64_t elementBytes = 2);
/// Dynamic shared memory: stages of k-tiles, or the tile of C that replaces them for the store (not
/// in tf32).
int64_t sm80SharedBytes(const Sm80GemmKnobs &knobs, int64_t elementBytes = 2);
int sm80Threads(const Sm80GemmKnobs &knobs);
/// Tiles of C over all batch elements, one a block.
int64_t sm80Tiles(const GemmProblem &gemm, const Sm80GemmKnobs &knobs);

/// Why the family does not support the epilogue, whatever the tile: a reduction, or a local softmax
/// in tf32. Empty if it does.
std::string warpEpilogueRejection(const Kernel &kernel, const ContractionRegion &region);
/// Why warps of a tile do not hold whole sub-vectors of a local softmax; empty if they do, or if
/// there is none.
std::string sm80SoftmaxRejection(const Sm80GemmKnobs &knobs, const ContractionRegion &region);
/// What the epilogue takes of a thread: ptxas puts what is gathered for several fragments in front
/// of all of them here.
int sm80EpilogueRegisters(const Kernel &kernel, const ContractionRegion &region);
/// Why a tile leaves too few registers for an epilogue that needs `epilogueRegisters`; empty if it
/// leaves enough.
std::string sm80RegistersRejection(const Sm80GemmKnobs &knobs, int epilogueRegisters);

}  // namespace weft
