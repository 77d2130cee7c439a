// The price of one kernel in one configuration. Two implementations behind one interface: the
// analytic roofline, and the measurements of a profile with the roofline for what is unmeasured.
#pragma once

#include "kernel/Configuration.h"
#include "kernel/Device.h"
#include "kernel/Profile.h"
#include "passes/configure/PriceSource.h"

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

class CostModel {
public:
  virtual ~CostModel() = default;
  virtual Cost cost(const Kernel &kernel, const Configuration &configuration) const = 0;
  virtual const Device &device() const = 0;
  /// Whether every loop configuration of the kernel is priced by LoopPricer (LoopCost.h), so that
  /// selection may add up operands instead of asking for each configuration.
  virtual bool isSeparable(const Kernel &kernel) const { return false; }
  /// The margin of what LoopPricer prices (Margins.h).
  virtual double separableMargin() const { return 0; }
  /// What LoopPricer prices in the kernel's place: one of fewer tokens (FilledCost.h).
  virtual Kernel separableKernel(const Kernel &kernel) const { return kernel; }
  /// Prices unmeasured kernels: as this model does, but without a lookup of measurements. Lives as
  /// long as this one.
  virtual const CostModel &modelled() const { return *this; }
  /// The measured configurations of a kernel whose operands are contiguous (no StridedViews.h),
  /// with the lesser price where the same orders of axes were measured on views, too; and those
  /// that measurements on views alone or under other layouts price (Family::marginOfOtherLayouts),
  /// whose costs are not `measured`. If there are any, selection chooses among them alone. Of those
  /// with equal layouts and family only the fastest few. Lives as long as the model; may be called
  /// from several threads.
  virtual const std::vector<PricedConfiguration> &measured(const Kernel &) const {
    static const std::vector<PricedConfiguration> none;
    return none;
  }
  /// Of those, the ones in the configuration's family under its layouts, which may be views: each
  /// with its own knobs, fastest first.
  virtual std::vector<PricedConfiguration> measuredAs(const Kernel &, const Configuration &) const {
    return {};
  }
  /// Whether there are measurements at all, so that a kernel without one is worth a note.
  virtual bool hasMeasurements() const { return false; }
  /// Whether kernels without measurements may be priced by the model (not with --strict).
  virtual bool admitsModelled() const { return true; }
  virtual PriceSource source() const = 0;
  /// Its text: "analytic model of h200" or "profile FILE (h200, 812 measurements)".
  std::string description() const { return source().text(); }
  /// 16 digits, equal for models that price every kernel alike: a hash of the measurements, of the
  /// device's figures and of the families' versions. Which kernels they may be asked of (--strict,
  /// --no-library) is no part of it.
  virtual std::string identity() const = 0;
};

/// Roofline: max(bytes / bandwidth x coalescing, flop / peak x tile efficiency) + launch.
std::unique_ptr<CostModel> analyticCostModel(const Device &device);

/// Measurements of a profile; what has none is priced by the analytic model, or, with `strict`,
/// throws Error(strictMiss) naming the kernel. A profile of another device throws Error(badInput).
/// `name`: "profile FILE".
std::unique_ptr<CostModel> measuredCostModel(const Device &device, Profile profile,
                                             const std::string &name, bool strict);

}  // namespace weft
