// The price of one kernel in one configuration. Two implementations behind one interface: the analytic roofline, and
// measured rows of a profile file with the roofline where a row is missing.
#pragma once

#include "kernel/Configuration.h"
#include "kernel/Device.h"

#include <memory>

namespace weft {

enum class Bound : uint8_t { memory, tensor, fma, launch };
std::string_view nameOf(Bound bound);

struct Cost {
  double seconds = 0;
  int64_t bytesMoved = 0;      ///< D of the MUE metric: what this configuration moves
  int64_t bytesNecessary = 0;  ///< Q of the MUE metric
  double flop = 0;
  Bound bound = Bound::memory;
  bool measured = false;  ///< false: modelled
  bool stale = false;     ///< measured, but with an older kernel source
};

/// MUE = Q/D * B/Bpeak * 100 ("Data Movement Is All You Need", section 3.3); B = D / seconds.
double memoryUsageEfficiency(const Cost &cost, const Device &device);

class CostModel {
public:
  virtual ~CostModel() = default;
  virtual Cost cost(const Kernel &kernel, const Configuration &configuration) const = 0;
  virtual const Device &device() const = 0;
  /// Whether every loop configuration of the kernel is priced by LoopPricer (LoopCost.h), so that selection may add up
  /// operands instead of asking for each configuration.
  virtual bool isSeparable(const Kernel &kernel) const { return false; }
  /// "analytic model of h200" or "profile FILE (H200, 812 rows)".
  virtual std::string description() const = 0;
};

/// Roofline: max(bytes / bandwidth x coalescing, flop / peak x tile efficiency) + launch.
std::unique_ptr<CostModel> analyticCostModel(const Device &device);

/// Rows of a profile text file; a missing row is priced by the analytic model, or, with `strict`, throws
/// Error(strictMiss) naming the kernel. A profile of another device throws Error(badInput).
std::unique_ptr<CostModel> measuredCostModel(const Device &device, const std::string &file, bool strict);

}  // namespace weft
