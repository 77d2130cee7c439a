// A contraction on tensor cores from sm_80 on as a kernel program.
//
//    cp.async ──> ring of k-tiles ──> ldmatrix ──> mma.sync ──> epilogue ──> store
//
// `gemm-sm80` (sm_80 and later; `device/sm80_gemm.cuh`) takes the same products with
// mma.sync and copies of threads; its limits are `codegen/families/gemm_sm80/Sm80Tile.h`. On sm_90a
// it is offered where the other family cannot use its TMA. It is emulated on the CPU down to its
// instructions (`tests/emulate/host/weft/sm80.cuh`): copies land as late as the device allows.
// Until rows of a profile say more, its price is above the library's, with what an epilogue reads
// and stores besides hidden behind nothing. Its epilogues are those of sm_90a without sums, a local
// softmax at the end included: the same statements for a fragment, whose operands threads load and
// whose further results they store (fragment.cuh), while the first result leaves through shared
// memory as that of a plain product does (of tf32 from registers). The compiler, left alone, would
// draw masks and compute addresses for all blocks of a warp's sums ahead and spill; so places of a
// block hang on a result of the fourth before it, for large epilogues of the one before
// (`sm80_epilogue.cuh`, which plain kernels do not include), and the loads of so many blocks are in
// flight at a time. Tiles must leave the registers (`sm80RegistersRejection`).
#pragma once

#include "codegen/Program.h"
#include "codegen/families/gemm_sm80/Sm80GemmKnobs.h"

namespace weft::codegen {

Program lowerSm80Gemm(const Kernel &kernel, const Configuration &configuration,
                      const Sm80GemmKnobs &knobs);

}  // namespace weft::codegen
