// Constants of the analytic costs of gemm-sm90, each with the run that it was fitted to; what
// several families share stands in passes/configure/AnalyticConstants.h.
#pragma once

#include <cstdint>

namespace weft::analytic {

/// gemm-sm90: fitted to the 11,000 measurements of profiles/h200 (docs/experiments/estimates.md).
/// Share of the sustained peak that a tile reaches by m n / (m + n): 64 x 64 (32) 0.79, 64 x 128
/// (43) 1.0, and a short kernel more than the power allows for long.
constexpr double sm90LeastEfficiency = 0.16, sm90EfficiencyPerIntensity = 0.0196,
                 sm90WideEfficiency = 0.70, sm90WideEfficiencyPerIntensity = 0.0060,
                 sm90MostEfficiency = 1.13;
/// What each wave behind the first adds to tiles with a side of 64, by the root of k: H100 runs of
/// tiles of 64 x 128 in five waves, 1344 x 3840 with k of 1344 and 5376, 1472 x 3456 with 3968,
/// take 1.3, 1.6 and 1.5 times what larger tiles' times predict. The cause is not known. Waves
/// count up to the five that were measured: recomposed attention of B=8 L=8192, 62 waves of 128 x
/// 64, was priced 22.3 ms where each wave counted, and took 12.7 ms on an H200 when that ended.
constexpr double narrowTileWaveShare = 0.06, narrowTileSide = 64, narrowTileDepth = 1344,
                 narrowTileFurtherWaves = 4;
/// Bytes a second that L2 gives to all multiprocessors. Blocks that follow one another along m
/// share their k-tiles of B, which L2 then reads once (H200, n = 768, k = 3072: tiles of 128 x 64
/// 12.5 us for m = 800 and 17.3 for 1183, of 64 x 128 10.4 and 10.5; n = 1024, k = 4096, m = 700:
/// 18.2 and 12.3).
constexpr double sm90L2Bandwidth = 6.9e12;
/// Seconds of a multiprocessor for an element of an epilogue: storing it, a flop of its arithmetic,
/// the first operand of C's shape (through shared memory), each further one (by threads), a further
/// result (docs/experiments/epilogues.md: 4.6 us of 4096 x 4096), its part in a reduction, a local
/// softmax.
constexpr double epilogueSeconds = 3e-12, epilogueFlopSeconds = 11e-12,
                 epilogueOperandSeconds = 56e-12, epilogueFurtherOperandSeconds = 140e-12,
                 epilogueResultSeconds = 50e-12, epilogueReductionElementSeconds = 46e-12,
                 epilogueSoftmaxSeconds = 56e-12;
/// An element that a rotary embedding turns in registers (an estimate: for two of them a sine, a
/// cosine and about 16 further instructions, and a frequency for several rows).
constexpr double epilogueRotarySeconds = 60e-12;
/// One that each element loads by itself, as what follows the first of the result; by coordinates
/// that are divisions (12 x 320 x 2880 x 80 with the statistic of a row, H100: 103 us with
/// divisions of 64 bits; with those of 32, an estimate).
constexpr double epilogueScatteredSeconds = 140e-12, epilogueDivisionSeconds = 260e-12;
/// A maximum or a sum of a sub-vector that is stored apart from those of the rows beside it (H100:
/// scores of 16 heads x 4096 x 4096 with heads innermost, sub-vectors of 64, 563 us; 231 expected).
constexpr double scatteredStatisticSeconds = 5.2e-9;
/// The same for dropout: one mix of words for eight elements, two, one for each.
constexpr double drawSeconds = 36e-12, exchangedDrawSeconds = 91e-12, singleDrawSeconds = 440e-12;
/// An element that threads store: where rows of C start anywhere (1200 x 21091 x 4800, 467 us), and
/// of the last columns where their number is no multiple of 8 (35 x 2222 x 101 x 64, 25 us).
constexpr double threadStoreSeconds = 600e-12, clippedStoreSeconds = 1000e-12;
/// The share of an epilogue that the WGMMA of the other consumer does not hide with ping-pong
/// tiles.
constexpr double pingPongShare = 0.76;
/// Barriers, maps and the first k-tiles of a block.
constexpr double sm90StartSeconds = 0.3e-6;
/// Share of the lesser of memory and tensor time that is exposed where k is one k-tile: fits 24.0
/// us of 512x512x64 x 128.
constexpr double sm90ExposedShare = 0.5;
/// Threads load rows that are not aligned to 16 bytes: 28 us of 1000x777x555 with tiles of 128 x
/// 64, 4.9 us with padded rows.
constexpr double sm90GuardedShare = 0.1;
/// Flop of f16 MMAs in the time of a byte of k-tiles: 64 bytes a cycle arrive at a multiprocessor;
/// half as many of rows that start at odd multiples of 16 bytes: 4096 x 4088 x 1000 takes 99.9 us
/// with such rows on both sides (128 x 128), 72.8 with them in A, 50.3 with none; 40 of rows that
/// start at multiples of 32 and not of 128 (6080 x 8640 x 2160 with tiles of 64 x 192, 532 us). The
/// clock is that at which tiles of 128 x 128 multiply, in shares of the sustained peak.
constexpr double sm90FlopsOfLoadedByte = 64, sm90SectorFactor = 2, sm90LineFactor = 1.5,
                 sm90LoadingClock = 1.085;
/// Cluster split-K: a step of waiting for twice as many CTAs, and bytes of accumulators that a CTA
/// receives a second; the share of all multiprocessors that clusters of 4 and 8 can take at a time
/// (32 clusters of 4 and 16 of 8 take longer than 24 and 12 by whole waves and the start of a
/// cluster each).
constexpr double splitKStepSeconds = 0.56e-6, splitKReductionBandwidth = 20e9,
                 shareOfClustersOfFour = 112.0 / 132, shareOfClustersOfEight = 56.0 / 132,
                 clusterStartSeconds = 1.5e-6;
/// Bandwidth that one block reaches at most, in shares of a multiprocessor's (estimate; 64 of 132
/// blocks do not reach the bandwidth).
constexpr double sm90ShareOfMemory = 1.6;
/// Stream-K: a CTA writes its accumulators of a tile and reads those of others, twice (estimate);
/// its tiles take so much longer than whole ones, those of fewer flop a byte more, since few blocks
/// multiply the same k-tiles at one time (H200, the gradient of 768 x 3072 weights over 2048, 4096
/// and 8192 packed tokens: 128 x 192, 128 x 256 and 256 x 128 0.80 to 1.09 times as long, 128 x 128
/// 1.05 to 1.36, 2026-11-30).
constexpr double streamKSeconds = 1.5e-6, streamKWideFactor = 1.05, streamKNarrowFactor = 1.2,
                 streamKWideIntensity = 70;
/// Added to the price of kernels with several strides along a group of axes, while none are
/// measured: less than any transpose costs, and more than the differences between plans of one
/// stride, which `compile --measure` is to compare.
constexpr double sm90StridesSeconds = 1e-6;
/// Epilogue reductions: the last-arriving tile of a strip reads the partial sums of the others
/// through L2 (estimate).
constexpr double epilogueReductionSeconds = 1.5e-6;
/// Single-consumer tiles: share of the peak that one consumer reaches (estimate), and the columns
/// below which a GEMM of 64 rows is bound by shared memory and not by the tensor cores (16 cycles
/// for 2 KB).
constexpr double singleConsumerEfficiency = 0.6, singleConsumerColumns = 32;
/// The share of a multiprocessor's arithmetic that the three warps of a block have which rewrite an
/// operand (an estimate).
constexpr double sm90TransformShare = 0.5;

}  // namespace weft::analytic

namespace weft::margins {

/// What a feature adds (passes/configure/Margins.h): split-K 0.08 in all, dropout 0.07, reductions
/// and prologues 0.07, local softmax 0.10, one consumer (20 measurements); stream-K (an estimate).
constexpr double splitK = 0.03, dropout = 0.02, epilogueReduction = 0.02, prologue = 0.02,
                 localSoftmax = 0.05, singleConsumer = 0.04, streamK = 0.08;

}  // namespace weft::margins
