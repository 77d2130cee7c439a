// Constants of the analytic costs of what families of contractions share, each with the run that it
// was fitted to; what several families share stands in passes/configure/AnalyticConstants.h.
#pragma once

#include <cstdint>

namespace weft::analytic {

/// One step of k in a block, in elements, which does not overlap with the stores of its result:
/// fits 512x512x64 x 128 in 27.7 us (memory 19.6, tensor 6.8) and 512x64x512 x 128 in 23.2 us with
/// the same bytes and flop (runs of cuBLASLt, whose GEMMs are of f16 on an H200, CUDA 13.0).
constexpr double libraryDepthStep = 64;
/// Prologue fusion: what an element costs besides its arithmetic, as instructions, rewritten in
/// shared memory or computed by threads that copy (H200: 0.14 to 0.2 and 0.26 to 0.28 ns an element
/// and multiprocessor; accesses to shared memory next to WGMMA take 60 cycles a warp). The factor
/// is of products that wait for rewritten k-tiles (fitted to 2,400 measurements of profiles/h200);
/// the instructions of a flop fit GELU and scaling alike.
constexpr double transformInstructions = 20, copyingInstructions = 34,
                 prologueInstructionsPerFlop = 4, prologueFactor = 1.05;
/// Instead of the first before sm_90, where no WGMMA keeps shared memory busy: what the loops have
/// that NVRTC builds of gemm-sm80 for sm_80 (unpack 1, pack 1/2, load, store and address 1/2;
/// docs/experiments/estimates.md, "Prologues of mma.sync before sm_90").
constexpr double mmaSyncTransformInstructions = 2;
/// The factor where accumulators are scaled instead of an operand (H200: 7% over the plain GEMM).
constexpr double scaledFactor = 1.07;

}  // namespace weft::analytic
