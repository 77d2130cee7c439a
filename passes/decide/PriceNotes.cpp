// Strided views, determinism and the source of prices; see PriceNotes.h.
#include "passes/decide/PriceNotes.h"

#include "kernel/Family.h"
#include "kernel/Format.h"
#include "kernel/VisibleWork.h"
#include "passes/configure/FamilyConfigurations.h"
#include "passes/configure/StridedViews.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace weft::decision {

void takeMeasurementsOfStridedViews(PlannedKernels &planned, const CostModel &prices) {
  const Device &device = prices.device();
  for (size_t index = 0; index < planned.kernels.size(); ++index) {
    ChosenKernel &chosen = planned.kernels[index];
    const bool runs = !chosen.configuration.knobs.isView();
    if (!runs || !hasStridedView(chosen.kernel, chosen.configuration)) continue;
    const std::vector<PricedConfiguration> measurements =
        prices.measuredAs(chosen.kernel, chosen.configuration);
    // Fastest first: the search ends at the first legal one, because each check enumerates.
    const auto best = std::ranges::find_if(measurements, [&](const PricedConfiguration &one) {
      return isLegal(chosen.kernel, one.configuration, device);
    });
    if (best == measurements.end()) {
      chosen.cost.source = Cost().source;  // that of the contiguous text
      if (chosen.cost.measured)
        planned.plan.notes.push_back(
            {.kind = NoteKind::prices,
             .text = fmt::format("{} was measured with contiguous operands, not with strided views",
                                 chosen.kernel.name)});
      continue;
    }
    chosen.configuration = best->configuration;
    chosen.cost = best->cost;
    chosen.cost.flop *= computedShare(chosen.kernel, chosen.configuration.knobs.family());
    describeConfigured(planned.plan.kernels[index], chosen, device);
  }
}

namespace {

/// What the fastest configuration in the same layouts takes whose launches leave the same bits each
/// time where the chosen one's do not, or need not where they do; nothing where there is none.
std::optional<double> otherSeconds(const ChosenKernel &chosen, const CostModel &prices) {
  const bool isOwnDeterministic = isDeterministic(chosen.configuration.knobs);
  Device device = prices.device();
  device.mayBeNondeterministic = isOwnDeterministic;
  const LayoutConstraints layouts = layoutsOf(chosen.configuration);
  std::optional<double> least;
  for (const Family *family : families()) {
    if (isOwnDeterministic && !withOtherDeterminism(family->defaults())) continue;
    forEachConfigurationOf(*family, chosen.kernel, device, layouts, [&](const Configuration &one) {
      if (isDeterministic(one.knobs) == isOwnDeterministic) return true;
      const double seconds = prices.modelled().cost(chosen.kernel, one).seconds;
      least = std::min(least.value_or(seconds), seconds);
      return true;
    });
  }
  return least;
}

}  // namespace

void noteDeterminism(PlannedKernels &planned, const CostModel &prices) {
  std::erase_if(planned.plan.notes,
                [](const PlanNote &note) { return note.kind == NoteKind::determinism; });
  for (const ChosenKernel &chosen : planned.kernels) {
    const std::optional<double> other = otherSeconds(chosen, prices);
    if (!other) continue;
    const std::string own =
        formatSeconds(prices.modelled().cost(chosen.kernel, chosen.configuration).seconds);
    const std::string &name = chosen.kernel.name;
    planned.plan.notes.push_back(
        {.kind = NoteKind::determinism,
         .text = isDeterministic(chosen.configuration.knobs)
                     ? fmt::format("{} sums in a fixed order, estimated {}; in any order {} "
                                   "(--deterministic off)",
                                   name, own, formatSeconds(*other))
                     : fmt::format("{} sums in any order, so that two launches need not leave the "
                                   "same bits, estimated {}; in a fixed order {} (--deterministic "
                                   "on)",
                                   name, own, formatSeconds(*other)),
         .kernel = name});
  }
}

void notePrices(Plan &plan, const CostModel &costModel) {
  const bool isMeasured = std::ranges::any_of(plan.kernels, &PlanKernel::measured);
  plan.costModel =
      isMeasured ? costModel.source() : analyticCostModel(costModel.device())->source();
  plan.prices = costModel.identity();
}

}  // namespace weft::decision
