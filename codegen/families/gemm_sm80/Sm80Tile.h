// The tiles of the contraction skeleton from sm_80 on (device/sm80_gemm.cuh):
// which knobs it takes, and what they need. The GEMM it computes is that of GemmProblem.h: C
// contiguous along n, A and B along k or along their outer axis, and `usesTma` where rows start
// at multiples of 16 bytes, which asynchronous copies of a thread ask for, too. Operands of f32
// that are read as tf32 have elements of 4 bytes (sm80_tf32.cuh), which the functions are told.
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
/// Dynamic shared memory: stages of kTiles, or the tile of C that takes their place, which one of
/// tf32 does not.
int64_t sm80SharedBytes(const Sm80GemmKnobs &knobs, int64_t elementBytes = 2);
int sm80Threads(const Sm80GemmKnobs &knobs);
/// Tiles of C over all batch elements, one a block.
int64_t sm80Tiles(const GemmProblem &gemm, const Sm80GemmKnobs &knobs);

/// Why warps do not finish what follows the GEMM, whatever the tile: they add up nothing that an
/// epilogue computes, and end with no local softmax of tf32. Empty if they do.
std::string warpEpilogueRejection(const Kernel &kernel, const ContractionRegion &region);
/// Why warps of a tile do not hold whole sub-vectors of a local softmax; empty if they do, or if
/// there is none.
std::string sm80SoftmaxRejection(const Sm80GemmKnobs &knobs, const ContractionRegion &region);
/// Why a tile leaves no registers for an epilogue that needs so many (epilogueRegisters); empty if
/// it does.
std::string sm80RegistersRejection(const Sm80GemmKnobs &knobs, int epilogueRegisters);

}  // namespace weft
