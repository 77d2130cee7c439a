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

/// Reads in flight per multiprocessor, in bytes, after which a share 1 - 1/e of the bandwidth is
/// reached: fits 16, 32, 48 KB -> 0.79, 0.94, 0.97 for copies, and 16, 32, 48, 80 KB -> 0.46, 0.75,
/// 0.86, 0.98 for rows (H200 runs).
constexpr double mapBytesInFlight = 8 * 1024, rowBytesInFlight = 20 * 1024;
/// Little's law: slower memory needs proportionally fewer bytes in flight.
inline double referenceBandwidth(const Device &device) {
  constexpr double h200BytesPerMultiprocessor = 4.29e12 / 132;
  return h200BytesPerMultiprocessor / (device.copyBandwidth / device.multiprocessors);
}

/// Registers before the row or vector itself: layer norm with 32 elements a lane of two tensors
/// takes about 104.
constexpr double mapRegisters = 24, rowRegisters = 40;
/// Where most multiprocessors have no block, each of the others moves this much more than its share
/// (16 blocks: 43 us).
constexpr double loneMultiprocessorGain = 1.2;
constexpr double columnStripBytes = 64, columnStripExponent = 0.45;
constexpr int sequentialUnroll =
    4;  ///< loads that the compiler keeps in flight in a sequential loop

/// Estimates: coordinates from a thread index (divisions by constants) and the guard; converting,
/// computing and rounding.
constexpr double indexInstructions = 24, instructionsPerFlop = 2;
/// Threads per multiprocessor that fill its four schedulers (estimate: 4 warps each).
constexpr double threadsToFillIssue = 512;

// GEMMs of the library. "cuBLASLt runs" are GEMMs of f16 on an H200 (CUDA 13.0), all candidates of
// a shape interleaved.

/// One step of k in a block, in elements, which does not overlap with the stores of its result:
/// fits 512x512x64 x 128 in 27.7 us (memory 19.6, tensor 6.8) and 512x64x512 x 128 in 23.2 us with
/// the same bytes and flop (cuBLASLt runs).
constexpr double libraryDepthStep = 64;

/// gemm-sm80 (estimates, no run yet): share of the peak of mma.sync, and of the peak of WGMMA on
/// sm_90a; by m n / (m + n) of a tile: 128 x 128 (64) all of it, 64 x 64 (32) 0.75.
constexpr double sm80Share = 0.85, sm80ShareOfWgmma = 0.55;
constexpr double sm80LeastEfficiency = 0.5, sm80EfficiencyPerIntensity = 0.5 / 64;
/// Rows that are not aligned go through registers, and nothing hides the load of a block's first
/// k-tiles.
constexpr double sm80GuardedShare = 0.2, sm80StartSeconds = 0.5e-6;
/// Factor over the library's first candidate, at least, until there are measurements.
constexpr double sm80Unmeasured = 1.05;

/// Prologue fusion: what an element costs besides its arithmetic, as instructions, rewritten in
/// shared memory or computed by threads that copy (H200: 0.14 to 0.2 and 0.26 to 0.28 ns an element
/// and multiprocessor; accesses to shared memory next to WGMMA take 60 cycles a warp); the share of
/// a multiprocessor's arithmetic that three warps of a block on sm_90a have, and the MMA warps
/// before sm_90 (estimates). The factor is of products that wait for rewritten k-tiles (fitted to
/// 2,400 measurements of profiles/h200); the instructions of a flop fit GELU and scaling alike.
constexpr double transformInstructions = 20, copyingInstructions = 34,
                 prologueInstructionsPerFlop = 4, sm90TransformShare = 0.5,
                 sm80TransformShare = 0.6, prologueFactor = 1.05;

}  // namespace weft::analytic
