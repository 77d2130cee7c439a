// Constants of the analytic costs of what families of contractions share, each with the run that it
// was fitted to; what several families share stands in passes/configure/AnalyticConstants.h.
#pragma once

#include <cstdint>

namespace weft::analytic {

/// Instead of the first before sm_90, where no WGMMA keeps shared memory busy: what the loops have
/// that NVRTC builds of gemm-sm80 for sm_80 (unpack 1, pack 1/2, load, store and address 1/2;
/// docs/experiments/estimates.md, "Prologues of mma.sync before sm_90").
constexpr double mmaSyncTransformInstructions = 2;
/// The factor where accumulators are scaled instead of an operand (H200: 7% over the plain GEMM).
constexpr double scaledFactor = 1.07;

}  // namespace weft::analytic
