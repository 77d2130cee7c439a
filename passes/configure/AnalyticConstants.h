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

}  // namespace weft::analytic
