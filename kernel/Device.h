// What the analytic cost model and the emitter know of a GPU. Read from profiles/devices/*.json,
// which name the source of every figure; embedded at build so that a single binary works anywhere.
#pragma once

#include "kernel/DType.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

/// Whether blocks of an architecture ("sm_90a") can form clusters, which read each other's shared
/// memory.
bool hasClusters(std::string_view architecture);

/// Whether it has products of a whole warpgroup (wgmma) and TMA that moves boxes of
/// tensors (TMA).
bool hasWgmma(std::string_view architecture);

/// Whether it has asynchronous copies to shared memory and mma.sync with fp32 sums
/// (cp.async, mma.sync): sm_80 and later.
bool hasMmaSync(std::string_view architecture);

struct Device {
  std::string name;          ///< "h200": the --device spelling
  std::string title;         ///< "NVIDIA H200 SXM"
  std::string architecture;  ///< "sm_90a": the --target spelling
  bool canEmit = true;  ///< false for V100 and T4: modelled, but NVRTC 13 emits nothing for them
  int multiprocessors = 0;
  double copyBandwidth =
      0;  ///< bytes/s, read plus written, of the best copy kernel (measured where known)
  double peakBandwidth = 0;  ///< bytes/s, datasheet
  double memoryBytes = 0;    ///< of the whole GPU, as it is sold
  double l2Bytes = 0;
  std::map<DType, double>
      tensorFlops;           ///< flop/s with fp32 accumulation, dense, sustained where measured
  double fmaFlops = 0;       ///< flop/s of fp32 FMA units
  double launchSeconds = 0;  ///< cost of one kernel in a graph, beyond its work
  int64_t sharedMemoryPerBlock = 0;  ///< bytes, maximum dynamic
  bool libraryGemms = true;  ///< cuBLASLt may compute contractions; --no-library takes it away
  std::map<std::string, std::string> sources;  ///< figure -> where it is from
};

/// All embedded devices, sorted by name.
const std::vector<Device> &devices();
/// Throws Error(badInput) with the nearest known name.
const Device &findDevice(std::string_view name);
/// Parses one device description; `where` names the file in errors.
Device parseDevice(std::string_view json, std::string_view where);

}  // namespace weft
