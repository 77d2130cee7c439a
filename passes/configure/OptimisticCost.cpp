// Estimates at the other end of their margins; see OptimisticCost.h.
#include "passes/configure/OptimisticCost.h"

#include <fmt/format.h>

namespace weft {

Cost atOtherEnd(Cost cost) {
  cost.seconds *= (1 - cost.margin) / (1 + cost.margin);
  cost.margin = -cost.margin;
  return cost;
}

namespace {

class OptimisticCostModel : public CostModel {
public:
  explicit OptimisticCostModel(const CostModel &prices) : prices(prices) {
    if (&prices.modelled() != &prices)
      estimates = std::make_unique<OptimisticCostModel>(prices.modelled());
  }
  Cost cost(const Kernel &kernel, const Configuration &configuration) const override {
    return atOtherEnd(prices.cost(kernel, configuration));
  }
  double separableMargin() const override { return -prices.separableMargin(); }
  const CostModel &modelled() const override { return estimates ? *estimates : *this; }
  const std::vector<PricedConfiguration> &measured(const Kernel &kernel) const override {
    return prices.measured(kernel);
  }
  std::vector<PricedConfiguration> measuredAs(const Kernel &kernel,
                                              const Configuration &configuration) const override {
    return prices.measuredAs(kernel, configuration);
  }
  bool isSeparable(const Kernel &kernel) const override { return prices.isSeparable(kernel); }
  Kernel separableKernel(const Kernel &kernel) const override {
    return prices.separableKernel(kernel);
  }
  const Device &device() const override { return prices.device(); }
  bool hasMeasurements() const override { return prices.hasMeasurements(); }
  bool admitsModelled() const override { return prices.admitsModelled(); }
  PriceSource source() const override {
    PriceSource source = prices.source();
    source.remark += ", estimates at their optimistic end";
    return source;
  }
  std::string identity() const override {
    return profileHash(fmt::format("optimistic {}", prices.identity()));
  }

private:
  const CostModel &prices;
  std::unique_ptr<OptimisticCostModel> estimates;
};

}  // namespace

std::unique_ptr<CostModel> optimisticCostModel(const CostModel &prices) {
  return std::make_unique<OptimisticCostModel>(prices);
}

}  // namespace weft
