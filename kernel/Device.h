// What the analytic cost model and the emitter know of a GPU. Read from profiles/devices/*.json,
// which name the source of every figure; embedded at build so that a single binary works anywhere.
#pragma once
#ifndef WEFT_KERNEL_DEVICE_H  // beside a precompiled header of a compiler cache
#define WEFT_KERNEL_DEVICE_H

#include "kernel/DType.h"

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

struct Family;  // kernel/Family.h

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
  /// Kernel families that the caller took away (--no-library).
  std::set<const Family *> familiesTakenAway;
  /// Whether families may offer schedules whose launches need not leave the same bits each time
  /// (--deterministic off).
  bool mayBeNondeterministic = false;
  std::set<std::string> measured;  ///< figures that were measured on this device
  /// Figure -> where it is from, for people: "measured on ..", "estimate: ..", or a publication.
  std::map<std::string, std::string> sources;

  /// Whether no figure was measured on this device: it is known by data sheets alone, with what
  /// other devices lend (docs/extending.md).
  bool isFromDataSheet() const { return measured.empty(); }
  bool offers(const Family &family) const { return !familiesTakenAway.contains(&family); }
};

/// Every figure that a price may depend on, as text to be hashed: equal for equal devices.
std::string figuresText(const Device &device);

/// All embedded devices, sorted by name.
const std::vector<Device> &devices();
/// Throws Error(badInput) with the nearest known name.
const Device &findDevice(std::string_view name);
/// Parses one device description; `where` names the file in errors.
Device parseDevice(std::string_view json, std::string_view where);

}  // namespace weft

#endif  // WEFT_KERNEL_DEVICE_H
