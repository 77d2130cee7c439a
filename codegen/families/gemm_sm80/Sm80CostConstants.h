// Constants of the analytic costs of gemm-sm80, and of what it shares with the attention families
// of mma.sync; what several kinds of families share stands in passes/configure/AnalyticConstants.h.
#pragma once

namespace weft::analytic {

/// gemm-sm80 (estimates, no run yet): share of the peak of mma.sync, and of the peak of WGMMA on
/// sm_90a; by m n / (m + n) of a tile: 128 x 128 (64) all of it, 64 x 64 (32) 0.75.
constexpr double sm80Share = 0.85, sm80ShareOfWgmma = 0.55;
constexpr double sm80LeastEfficiency = 0.5, sm80EfficiencyPerIntensity = 0.5 / 64;
/// Rows that are not aligned go through registers, and nothing hides the load of a block's first
/// k-tiles.
constexpr double sm80GuardedShare = 0.2, sm80StartSeconds = 0.5e-6;
/// Factor over the library's first candidate, at least, until there are measurements.
constexpr double sm80Unmeasured = 1.05;
/// The share of a multiprocessor's arithmetic that the MMA warps have which rewrite an operand
/// (an estimate).
constexpr double sm80TransformShare = 0.6;

}  // namespace weft::analytic
