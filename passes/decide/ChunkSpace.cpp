// Kernels in chunks or with strided views, without duplicates; see ChunkSpace.h.
#include "passes/decide/ChunkSpace.h"

#include "kernel/ConfigurationText.h"
#include "kernel/Profile.h"
#include "passes/configure/StridedViews.h"
#include "passes/decide/KernelPrices.h"

#include <algorithm>
#include <set>

namespace weft::decision {
namespace {

class Collector {
public:
  Collector(const CostModel &model, const ProfileSpaceOptions &options,
            const IsOfOlderText &isOfOlderText)
      : model(model), isOfOlderText(isOfOlderText) {
    space.options = options;
  }

  /// `isSpecial`: no measurement of another kernel serves it.
  void add(const ChosenKernel &chosen, bool isSpecial) {
    if (chosen.configuration.knobs.isLibrary()) {
      if (isSpecial) addGemm(chosen);
    } else if (!chosen.configuration.knobs.isView()) {
      if (isSpecial) addKernel(chosen);
      if (isOfOlderText(chosen)) addAgain(chosen);
    }
  }

  ProfileSpace space;

private:
  void addGemm(const ChosenKernel &chosen) {
    ProfileGemm gemm = profileGemm(chosen.kernel, chosen.configuration,
                                   model.cost(chosen.kernel, chosen.configuration).seconds);
    if (seen.insert(gemm.subject + gemm.place).second) space.gemms.push_back(std::move(gemm));
  }

  void addAgain(const ChosenKernel &chosen) {
    ProfileItem item{.kernel = space.kernels.size(),
                     .configuration = chosen.configuration,
                     .subject = profileHash(subjectOf(chosen.kernel, chosen.configuration).text),
                     .line = configurationLine(chosen.kernel, chosen.configuration),
                     .modelled = model.cost(chosen.kernel, chosen.configuration).seconds,
                     .again = true};
    const auto same = std::ranges::find_if(space.items, [&](const ProfileItem &one) {
      return one.subject == item.subject && one.line == item.line;
    });
    if (same != space.items.end()) {
      same->again = true;
      return;
    }
    seen.insert(item.subject + item.line);
    space.kernels.push_back({.kernel = chosen.kernel,
                             .name = chosen.candidateName,
                             .legal = 1,
                             .combinations = 1,
                             .layouts = 1,
                             .configurations = 1});
    space.items.push_back(std::move(item));
  }

  void addKernel(const ChosenKernel &chosen) {
    std::vector<PricedConfiguration> ranked = pricedInItsLayouts(chosen, model);
    std::ranges::stable_sort(ranked, {}, [](const auto &one) { return one.cost.seconds; });
    if (ranked.empty()) return;
    const double best = ranked.front().cost.seconds;
    ProfileKernelSpace kernel{.kernel = chosen.kernel,
                              .name = chosen.candidateName,
                              .legal = double(ranked.size()),
                              .combinations = 1,
                              .layouts = 1};
    size_t taken = 0;
    for (const auto &[configuration, cost] : ranked) {
      if (taken >= space.options.mostKnobs && configuration.knobs != chosen.configuration.knobs)
        continue;
      ++taken;
      ProfileItem item{.kernel = space.kernels.size(),
                       .configuration = configuration,
                       .subject = profileHash(subjectOf(chosen.kernel, configuration).text),
                       .line = configurationLine(chosen.kernel, configuration),
                       .modelled = cost.seconds,
                       .rank = cost.seconds / best};
      if (!seen.insert(item.subject + item.line).second) continue;
      ++kernel.configurations;
      space.items.push_back(std::move(item));
    }
    if (kernel.configurations > 0) space.kernels.push_back(std::move(kernel));
  }

  const CostModel &model;
  const IsOfOlderText &isOfOlderText;
  std::set<std::string> seen;
};

}  // namespace

ProfileSpace chunkSpace(const std::vector<PlannedKernels> &plans, const CostModel &model,
                        const ProfileSpaceOptions &options, const IsOfOlderText &isOfOlderText) {
  Collector collector(model, options, isOfOlderText);
  for (const PlannedKernels &planned : plans)
    for (size_t kernel = 0; kernel < planned.kernels.size(); ++kernel) {
      const ChosenKernel &chosen = planned.kernels[kernel];
      collector.add(chosen, planned.plan.kernels[kernel].chunk ||
                                hasStridedView(chosen.kernel, chosen.configuration));
    }
  std::ranges::stable_sort(collector.space.items, {}, &ProfileItem::rank);
  return std::move(collector.space);
}

}  // namespace weft::decision
