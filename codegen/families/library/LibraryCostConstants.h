// Constants of the analytic costs of cuBLASLt, each with the run that it was fitted to; what
// several families share stands in passes/configure/AnalyticConstants.h.
// "cuBLASLt runs" are GEMMs of f16 on an H200 (CUDA 13.0), all candidates of a shape interleaved.
#pragma once

#include <cstdint>

namespace weft::analytic {

/// The heuristic's first candidate against the best of its list: 0.87 to 1.00, mean 0.95, of 23
/// shapes x 4 orientations (cuBLASLt runs: 586 of 639 TFLOP/s at 4096x3072x1024, 641 of 649 at
/// 4096x1024x4096).
/// Priced lower, since what it is a share of was fitted to short runs: 569 TFLOP/s at
/// 12288x3072x1024, 626 at 8192x8192x8192.
constexpr double libraryFirstCandidateShare = 0.89;
/// Share of the peak where rows are no multiple of 16 bytes: 94 TFLOP/s at 4096x4095x1000; reached
/// by tiles of 64 x 64, which fits 300x1000x520 at 33 TFLOP/s (cuBLASLt runs).
constexpr double libraryUnalignedShare = 94.0 / 690, libraryUnalignedIntensity = 32;
constexpr int64_t libraryAlignment = 16;  ///< bytes: what TMA and 16-byte copies need
/// Fitted to the 5,700 measurements of profiles/h200 (docs/experiments/estimates.md): the share of
/// the lesser of memory and compute time that is exposed where k is one step; seconds of a kernel's
/// start beside a launch, of a wave besides its MMAs, of a split of k besides its partial sums; the
/// factor of a bias, and what each operand of the result's shape adds to it.
constexpr double libraryExposedShare = 0.7, libraryStartSeconds = 0.58e-6,
                 libraryWaveSeconds = 0.15e-6, librarySplitSeconds = 1.1e-6,
                 libraryEpilogueFactor = 1.07, libraryEpilogueOperandShare = 0.11;
constexpr double libraryDepthUnit = 16;  ///< k of one tensor-core instruction
/// m n / (m + n) of the smallest tile that reaches the peak, in proportion below, and the peak of
/// short kernels against the sustained one (fitted likewise).
constexpr double libraryTensorIntensity = 45, libraryMostEfficiency = 1.14;
/// The shortest k of a split-K partial that pays (estimate): 8x4096x4096 runs at the memory's
/// speed, 10.3 us; 300x1000x520 does not profit (cuBLASLt runs).
constexpr int64_t libraryShortestSplit = 512;
/// fp32 GEMMs without tensor cores, against the peak of the FMA units (estimate).
constexpr double libraryFmaShare = 0.75, libraryFmaIntensity = 16;
/// Of several batch elements the first candidate splits no long k and has no tile below 128 x 64,
/// and where all tiles are one wave it reaches the peak (f32, H200, us: m = k = 1024, n = 64, batch
/// 1 10.2, 2 37.3, 4 38.6; m = k = 2048 23.1, 72.7; 33 and 66 are the FMAs of a tile). Of k = 64
/// the prices without that rule are within 2% of what the fastest candidate takes.
constexpr double libraryFmaBatchedTile = 128 * 64;
constexpr int64_t libraryFmaBatchedDepth = 1024;

}  // namespace weft::analytic

namespace weft::margins {

/// The heuristic's first candidate is not the one that was measured, 0.06; with an epilogue 0.10
/// (passes/configure/Margins.h).
constexpr double library = 0.01, libraryEpilogue = 0.05;

}  // namespace weft::margins
