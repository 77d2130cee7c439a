// `gemm-sm80`: a contraction on tensor cores from sm_80 on as a kernel program.
//
//    cp.async ──> pipeline stages ──> ldmatrix ──> mma.sync ──> epilogue ──> store
//
// The kernel template (`device/sm80_gemm.cuh`) computes the GEMMs of `gemm-sm90` by mma.sync and
// copies of threads; `codegen/families/gemm_sm80/Sm80Tile.h` has its limits. On sm_90a it is
// offered where `gemm-sm90` cannot use TMA. The CPU emulates it down to its instructions
// (`tests/emulate/host/weft/sm80.cuh`); copies arrive as late as the device allows. Until a profile
// has measurements, its price is above the library's, and the model hides nothing of what an
// epilogue reads and stores.
//
// **Epilogues** are those of sm_90a without reductions; a local softmax at the end is included.
// They have the same statements for a fragment. Threads load the operands and store the further
// results (fragment.cuh); the first result is stored through shared memory as in a plain GEMM (from
// registers for tf32).
//
// Invariant: the compiler must not compute draws, masks and addresses for all blocks of a warp's
// accumulators ahead, or it would spill. So the coordinates of a block depend on a result of the
// fourth block before it, for large epilogues of the one before it (`sm80_epilogue.cuh`, which
// plain kernels do not include), and the loads of as many blocks are in flight at a time. Tiles
// must leave the registers for that (`sm80RegistersRejection`).
#pragma once

#include "codegen/Program.h"
#include "codegen/families/gemm_sm80/Sm80GemmKnobs.h"

namespace weft::codegen {

Program lowerSm80Gemm(const Kernel &kernel, const Configuration &configuration,
                      const Sm80GemmKnobs &knobs);

}  // namespace weft::codegen
