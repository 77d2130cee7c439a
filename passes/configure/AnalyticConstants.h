// Constants of the analytic cost model, each with where it is from. "H200 runs" are the streaming
// kernels measured on an H200 that profiles/devices/h200.json cites.
#pragma once

#include "kernel/Device.h"

#include <cstdint>

namespace weft::analytic {

constexpr int64_t warpSize = 32;
constexpr int64_t sectorBytes = 32;  ///< unit of L1 and L2 traffic
constexpr int64_t lineBytes = 128;   ///< unit of L1's tags
constexpr double threadsPerMultiprocessor = 2048, registersPerMultiprocessor = 65536,
                 registersPerThread = 255;

/// L2 over DRAM bandwidth: about 5.5 TB/s from L2 to the multiprocessors of an H200, whose best
/// copy moves 4.29 TB/s.
constexpr double l2Speedup = 5.5 / 4.29;

/// Cycles in which L1 looks up a line, and flop of a multiprocessor's FMA units in a cycle.
constexpr double cyclesOfLine = 2, flopsOfCycle = 256;
/// Of the device's launchSeconds, what a loop kernel takes beside its work: the smallest ones, and
/// more where memory works for so long.
constexpr double loopLaunchShare = 0.6, loopRampShare = 0.15, loopRampSeconds = 2e-6;

/// Share of the instruction time that memory time does not hide, or the other way round (estimate):
/// rows of narrow loads must not tie with rows of wide ones where memory is the bound.
constexpr double exposedShare = 0.1;
/// Prices are rounded to it, so that what no measurement could tell apart is equal, and equality is
/// transitive.
constexpr double resolutionSeconds = 1e-9;

/// Reads in flight per multiprocessor, in bytes, after which a share 1 - 1/e of the bandwidth is
/// reached: fits 16, 32, 48 KB -> 0.79, 0.94, 0.97 for copies, and 16, 32, 48, 80 KB -> 0.46, 0.75,
/// 0.86, 0.98 for rows (H200 runs).
constexpr double mapBytesInFlight = 8 * 1024, rowBytesInFlight = 20 * 1024;
/// Little's law: slower memory needs proportionally fewer bytes in flight.
inline double referenceBandwidth(const Device &device) {
  constexpr double h200BytesPerMultiprocessor = 4.29e12 / 132;
  return h200BytesPerMultiprocessor / (device.copyBandwidth / device.multiprocessors);
}

/// A row reduction by one thread of the block, for each thread it asks, and by a tree, for each
/// step; of one multiprocessor (H200 runs: softmax of 65536 rows of 512, blocks of 64 threads: 41.8
/// us by shuffles, 42.6 by a tree, 56.5 linearly).
constexpr double linearCombineSeconds = 0.23e-9, treeStepSeconds = 0.13e-9;

/// Registers before the row or vector itself: layer norm with 32 elements a lane of two tensors
/// takes about 104.
constexpr double mapRegisters = 24, rowRegisters = 40;
/// Columns (H200 runs, sums of 12288 and 4096 rows of 1024 f16 in 212 configurations, within 18% on
/// average): steps of a thread in flight together; bytes in flight as above; joining the threads of
/// a block, for each sum, and of a cluster; and strips of fewer bytes than DRAM moves at once,
/// whose other half comes later: 64, 32, 16 bytes -> 9.0, 12.3, 17.5 us.
constexpr double columnUnroll = 8, columnBytesInFlight = 12000, columnCombineSeconds = 0.3e-6,
                 clusterCombineSeconds = 0.3e-6;
/// Columns that blocks of the grid share: writing, the ticket, and reading by the last block (H200
/// runs: sums of 25, 50 and 75 MB take 1.5, 2.2 and 2.8 us more than their bytes and a launch).
/// Without batches of loads, columns of several tensors reach this share of what those of one do
/// (H200 runs: 74 -> 91 to 125 us and 15.5 -> 18 to 25 us).
constexpr double gridCombineSeconds = 0.9e-6, unbatchedColumnShare = 0.75;
/// Where most multiprocessors have no block, each of the others moves this much more than its share
/// (16 blocks: 43 us).
constexpr double loneMultiprocessorGain = 1.2;
constexpr double columnStripBytes = 64, columnStripExponent = 0.45;
constexpr int sequentialUnroll =
    4;  ///< loads that the compiler keeps in flight in a sequential loop

/// Estimates: coordinates from a thread index (divisions by constants) and the guard; converting,
/// computing and rounding.
constexpr double indexInstructions = 24, instructionsPerFlop = 2;
/// One draw of dropout; the cosine and sine of an element's rotation (rotary embedding of 35 x 101
/// x 22 x 64, 15.8 us, and of 7 x 148 x 30 x 96, 10.8 us).
constexpr double drawInstructions = 40, rotationInstructions = 80, shortRotationInstructions = 40,
                 vectorRotationInstructions = 24;
/// Seconds of a multiprocessor for a load and a store of a thread that transposes: 6080 x 2160
/// element by element take 34 us, 21091 x 1200 60 us.
constexpr double transposeAccessSeconds = 155e-12;
/// Threads per multiprocessor that fill its four schedulers (estimate: 4 warps each).
constexpr double threadsToFillIssue = 512;

// GEMMs of the library. "cuBLASLt runs" are GEMMs of f16 on an H200 (CUDA 13.0), all candidates of
// a shape interleaved.

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
/// One step of k in a block, in elements, which does not overlap with the stores of its result:
/// fits 512x512x64 x 128 in 27.7 us (memory 19.6, tensor 6.8) and 512x64x512 x 128 in 23.2 us with
/// the same bytes and flop (cuBLASLt runs).
constexpr double libraryDepthStep = 64;
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
/// gemm-sm90: fitted to the 11,000 measurements of profiles/h200 (docs/experiments/estimates.md).
/// Share of the sustained peak that a tile reaches by m n / (m + n): 64 x 64 (32) 0.79, 64 x 128
/// (43) 1.0, and a short kernel more than the power allows for long.
constexpr double sm90LeastEfficiency = 0.16, sm90EfficiencyPerIntensity = 0.0196,
                 sm90WideEfficiency = 0.70, sm90WideEfficiencyPerIntensity = 0.0060,
                 sm90MostEfficiency = 1.13;
/// What each wave behind the first adds to tiles with a side of 64, by the root of k: H100 runs of
/// tiles of 64 x 128 in five waves, 1344 x 3840 with k of 1344 and 5376, 1472 x 3456 with 3968,
/// take 1.3, 1.6 and 1.5 times what larger tiles' times predict. The cause is not known.
constexpr double narrowTileWaveShare = 0.06, narrowTileSide = 64, narrowTileDepth = 1344;
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
/// Stream-K: a CTA writes its accumulators of a tile and reads those of others, twice (estimate).
constexpr double streamKSeconds = 1.5e-6;
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

/// gemm-sm80 (estimates, no run yet): share of the peak of mma.sync, and of the peak of WGMMA on
/// sm_90a; by m n / (m + n) of a tile: 128 x 128 (64) all of it, 64 x 64 (32) 0.75.
constexpr double sm80Share = 0.85, sm80ShareOfWgmma = 0.55;
constexpr double sm80LeastEfficiency = 0.5, sm80EfficiencyPerIntensity = 0.5 / 64;
/// Rows that are not aligned go through registers, and nothing hides the load of a block's first
/// k-tiles.
constexpr double sm80GuardedShare = 0.2, sm80StartSeconds = 0.5e-6;
/// Factor over the library's first candidate, at least, until there are measurements.
constexpr double sm80Unmeasured = 1.05;
/// attention-sm80 on sm_90a, many queries: 10 heads of 96 on 5, B=3 L=768, causal, take 37.2, 33.3
/// and 35.2 us with tiles of 64 x 32, 64 x 64 and 128 x 64, 1.7 to 2.2 times what its parts add up
/// to (H100 run). The cause is not known.
constexpr double sm80AttentionOnWgmma = 2;

/// Prologue fusion: what an element costs besides its arithmetic, as instructions, rewritten in
/// shared memory or computed by threads that copy (H200: 0.14 to 0.2 and 0.26 to 0.28 ns an element
/// and multiprocessor; accesses to shared memory next to WGMMA take 60 cycles a warp); the share of
/// a multiprocessor's arithmetic that three warps of a block on sm_90a have, and the MMA warps
/// before sm_90 (estimates). The factor is of products that wait for rewritten k-tiles (fitted to
/// 2,400 measurements of profiles/h200); the instructions of a flop fit GELU and scaling alike.
constexpr double transformInstructions = 20, copyingInstructions = 34,
                 prologueInstructionsPerFlop = 4, sm90TransformShare = 0.5,
                 sm80TransformShare = 0.6, prologueFactor = 1.05;
/// Instead of the first before sm_90, where no WGMMA keeps shared memory busy: what the loops have
/// that NVRTC builds of gemm-sm80 for sm_80 (unpack 1, pack 1/2, load, store and address 1/2;
/// docs/experiments/estimates.md, "Prologues of mma.sync before sm_90").
constexpr double mmaSyncTransformInstructions = 2;
/// The factor where accumulators are scaled instead of an operand (H200: 7% over the plain GEMM).
constexpr double scaledFactor = 1.07;

/// gemm-fma: blocks that wait for their first tiles (384 measurements of profiles/h200 take 1.4
/// times the estimate without it).
constexpr double fmaStartSeconds = 0.8e-6;
/// fp32 GEMMs without tensor cores, against the peak of the FMA units (estimate).
constexpr double libraryFmaShare = 0.75, libraryFmaIntensity = 16;

}  // namespace weft::analytic
