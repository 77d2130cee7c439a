// Prices outside of a search; see KernelPrices.h.
#include "passes/decide/KernelPrices.h"

#include "kernel/VisibleWork.h"
#include "passes/configure/Families.h"
#include "passes/configure/StridedViews.h"

#include <numeric>

namespace weft::decision {

void priceKernelAgain(PlanKernel &entry, ChosenKernel &chosen, const CostModel &prices) {
  const Family &family = chosen.configuration.knobs.family();
  chosen.cost = costWithStridedViews(prices, chosen.kernel, chosen.configuration);
  chosen.cost.flop *= computedShare(chosen.kernel, family);
  if (family.isView) chosen.cost.bytesNecessary = 0;  // nothing runs
  entry.configuration = describe(chosen.kernel, chosen.configuration.knobs);
  entry.family = family;
  entry.familyVersion = family.version;
  entry.ops = planOps(chosen.kernel);
  entry.seconds = chosen.cost.seconds;
  entry.measured = chosen.cost.measured;
  entry.margin = chosen.cost.margin;
  entry.edited = entry.isUntold = false;  // text and price are derived here
  entry.bytesMoved = chosen.cost.bytesMoved;
  entry.bytesNecessary = chosen.cost.bytesNecessary;
  entry.flop = chosen.cost.flop;
  entry.mue = chosen.cost.seconds > 0 ? memoryUsageEfficiency(chosen.cost, prices.device()) : 0;
  entry.bound = boundOf(chosen.cost, chosen.kernel, prices.device());
}

double secondsBy(const CostModel &prices, const std::vector<ChosenKernel> &kernels) {
  double seconds = 0;
  for (const ChosenKernel &chosen : kernels)
    seconds += costWithStridedViews(prices, chosen.kernel, chosen.configuration).seconds;
  return seconds;
}

std::vector<PricedConfiguration> pricedInItsLayouts(const ChosenKernel &chosen,
                                                    const CostModel &prices) {
  const LayoutConstraints layouts = layoutsOf(chosen.configuration);
  std::vector<PricedConfiguration> priced;
  forEachConfiguration(chosen.kernel, prices.device(), layouts, [&](const Configuration &one) {
    if (one.knobs.family() == chosen.configuration.knobs.family())
      priced.push_back({.configuration = one, .cost = prices.cost(chosen.kernel, one)});
    return true;
  });
  return priced;
}

GraphPrediction graphOf(const Plan &plan) {
  std::vector<int> inOrder(plan.kernels.size());
  std::iota(inOrder.begin(), inOrder.end(), 0);
  return predictGraph(plan, inOrder);
}

double graphSecondsBy(const CostModel &prices, const PlannedKernels &planned) {
  Plan plan = planned.plan;
  for (size_t index = 0; index < plan.kernels.size(); ++index) {
    ChosenKernel chosen = planned.kernels[index];
    priceKernelAgain(plan.kernels[index], chosen, prices);
  }
  return graphOf(plan).seconds();
}

}  // namespace weft::decision
