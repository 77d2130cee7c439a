// The price of one kernel in one configuration. Two implementations behind one interface: the
// analytic roofline, and the measurements of a profile with the roofline for what is unmeasured.
#pragma once

#include "kernel/Profile.h"
#include "passes/configure/Cost.h"
#include "passes/configure/PriceSource.h"

#include <memory>
#include <vector>

namespace weft {

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
