// Constants of the analytic cost of gemm-sm80; what it shares with the attention families of
// mma.sync stands in codegen/families/contraction/MmaSyncCostConstants.h.
#pragma once

namespace weft::analytic {

/// Share of what a large tile reaches (mmaSyncShare), by m n / (m + n) of a tile: 128 x 128 (64)
/// all of it, 64 x 64 (32) 0.75 (an estimate).
constexpr double sm80LeastEfficiency = 0.5, sm80EfficiencyPerIntensity = 0.5 / 64;
/// Rows that are not aligned go through registers.
constexpr double sm80GuardedShare = 0.2;
/// The share of a multiprocessor's arithmetic that the MMA warps have which rewrite an operand
/// (an estimate).
constexpr double sm80TransformShare = 0.6;

}  // namespace weft::analytic
