// Kernels on parts, without duplicates; see PartsSpace.h.
#include "tools/driver/PartsSpace.h"

#include "kernel/ConfigurationText.h"
#include "kernel/LibraryProduct.h"
#include "kernel/Profile.h"
#include "passes/configure/Families.h"
#include "passes/configure/Gaps.h"

#include <algorithm>
#include <set>

namespace weft::driver {
namespace {

class Collector {
public:
  Collector(const CostModel &model, const ProfileSpaceOptions &options) : model(model) { space.options = options; }

  void add(const ChosenKernel &chosen) {
    if (std::holds_alternative<LibraryKnobs>(chosen.configuration.knobs)) addProduct(chosen);
    else if (!std::holds_alternative<ViewKnobs>(chosen.configuration.knobs)) addKernel(chosen);
  }

  ProfileSpace space;

private:
  void addProduct(const ChosenKernel &chosen) {
    ProfileProduct product = profileProduct(chosen.kernel, chosen.configuration, model.cost(chosen.kernel, chosen.configuration).seconds);
    if (seen.insert(product.subject + product.place).second) space.products.push_back(std::move(product));
  }

  void addKernel(const ChosenKernel &chosen) {
    LayoutConstraints layouts;
    layouts.inputs.assign(chosen.configuration.inputs.begin(), chosen.configuration.inputs.end());
    layouts.outputs.assign(chosen.configuration.outputs.begin(), chosen.configuration.outputs.end());
    std::vector<std::pair<double, Configuration>> ranked;
    forEachConfiguration(chosen.kernel, model.device(), layouts, [&](const Configuration &candidate) {
      if (familyOf(candidate.knobs) == familyOf(chosen.configuration.knobs)) ranked.emplace_back(model.cost(chosen.kernel, candidate).seconds, candidate);
      return true;
    });
    std::ranges::stable_sort(ranked, {}, [](const auto &one) { return one.first; });
    if (ranked.empty()) return;
    const double best = ranked.front().first;
    ProfileKernelSpace kernel{.kernel = chosen.kernel, .name = wholeNameOf(chosen), .legal = double(ranked.size()), .combinations = 1, .layouts = 1};
    size_t taken = 0;
    for (const auto &[seconds, configuration] : ranked) {
      if (taken >= space.options.mostKnobs && configuration.knobs != chosen.configuration.knobs) continue;
      ++taken;
      ProfileItem item{.kernel = space.kernels.size(), .configuration = configuration, .subject = profileHash(subjectOf(chosen.kernel, configuration).text),
                       .line = configurationLine(chosen.kernel, configuration), .modelled = seconds, .rank = seconds / best};
      if (!seen.insert(item.subject + item.line).second) continue;
      ++kernel.configurations;
      space.items.push_back(std::move(item));
    }
    if (kernel.configurations > 0) space.kernels.push_back(std::move(kernel));
  }

  static std::string wholeNameOf(const ChosenKernel &chosen) { return chosen.kernel.name.substr(0, chosen.kernel.name.find("__")); }

  const CostModel &model;
  std::set<std::string> seen;
};

}  // namespace

ProfileSpace partsSpace(const std::vector<PlannedKernels> &plans, const CostModel &model, const ProfileSpaceOptions &options) {
  Collector collector(model, options);
  for (const PlannedKernels &planned : plans)
    for (size_t kernel = 0; kernel < planned.kernels.size(); ++kernel)
      if (planned.plan.kernels[kernel].part || hasGaps(planned.kernels[kernel].kernel, planned.kernels[kernel].configuration))
        collector.add(planned.kernels[kernel]);
  std::ranges::stable_sort(collector.space.items, {}, &ProfileItem::rank);
  return std::move(collector.space);
}

}  // namespace weft::driver
