// What one kernel in one configuration costs: a cost model's answer (CostModel.h), which plans
// keep.
#pragma once

#include "kernel/Configuration.h"
#include "kernel/Device.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace weft {

enum class Bound : uint8_t { memory, tensor, fma, launch };
std::string_view nameOf(Bound bound);

struct Cost {
  double seconds = 0;
  int64_t bytesMoved = 0;      ///< D of the MUE metric: what this configuration moves
  int64_t bytesNecessary = 0;  ///< Q of the MUE metric
  double flop = 0;
  Bound bound = Bound::memory;
  double margin = 0;  ///< of an estimate: the share that `seconds` has above the mean (Margins.h)
  bool measured = false;  ///< false: modelled
  bool stale = false;     ///< measured, but with an older version of its family
  std::string source =
      "-";  ///< codegen::sourceHash() of what was measured; "-": unknown, or no text of ours
};

struct PricedConfiguration {
  Configuration configuration;
  Cost cost;
};

/// MUE = Q/D * B/Bpeak * 100 ("Data Movement Is All You Need", section 3.3); B = D / seconds.
double memoryUsageEfficiency(const Cost &cost, const Device &device);

/// Flop/s that the kernel's units could do: tensor cores for contractions where the device has them
/// for the element type, else FMA units.
double peakFlops(const Kernel &kernel, const Device &device);
/// Achieved over peak flop/s, in percent.
double percentOfPeak(const Cost &cost, const Kernel &kernel, const Device &device);
/// Memory where MUE exceeds the percentage of peak, else the units that compute (section 4.1
/// there).
Bound boundOf(const Cost &cost, const Kernel &kernel, const Device &device);

}  // namespace weft
