// Kernels in chunks or with strided views, without duplicates; see ChunkSpace.h.
#include "tools/driver/ChunkSpace.h"

#include "codegen/Emit.h"
#include "codegen/SourceHash.h"
#include "kernel/ConfigurationText.h"
#include "kernel/Profile.h"
#include "passes/configure/Families.h"
#include "passes/configure/StridedViews.h"

#include <algorithm>
#include <set>

namespace weft::driver {
namespace {

class Collector {
public:
  Collector(const CostModel &model, const ProfileSpaceOptions &options,
            const std::string &architecture)
      : model(model), architecture(architecture) {
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

  bool isOfOlderText(const ChosenKernel &chosen) const {
    if (!chosen.cost.measured || chosen.cost.source == Cost().source) return false;
    return chosen.cost.stale ||
           chosen.cost.source !=
               codegen::sourceHash(
                   codegen::emit(chosen.kernel, chosen.configuration, architecture).timedText);
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
    LayoutConstraints layouts;
    layouts.inputs.assign(chosen.configuration.inputs.begin(), chosen.configuration.inputs.end());
    layouts.outputs.assign(chosen.configuration.outputs.begin(),
                           chosen.configuration.outputs.end());
    std::vector<std::pair<double, Configuration>> ranked;
    forEachConfiguration(
        chosen.kernel, model.device(), layouts, [&](const Configuration &candidate) {
          if (candidate.knobs.family() == chosen.configuration.knobs.family())
            ranked.emplace_back(model.cost(chosen.kernel, candidate).seconds, candidate);
          return true;
        });
    std::ranges::stable_sort(ranked, {}, [](const auto &one) { return one.first; });
    if (ranked.empty()) return;
    const double best = ranked.front().first;
    ProfileKernelSpace kernel{.kernel = chosen.kernel,
                              .name = chosen.candidateName,
                              .legal = double(ranked.size()),
                              .combinations = 1,
                              .layouts = 1};
    size_t taken = 0;
    for (const auto &[seconds, configuration] : ranked) {
      if (taken >= space.options.mostKnobs && configuration.knobs != chosen.configuration.knobs)
        continue;
      ++taken;
      ProfileItem item{.kernel = space.kernels.size(),
                       .configuration = configuration,
                       .subject = profileHash(subjectOf(chosen.kernel, configuration).text),
                       .line = configurationLine(chosen.kernel, configuration),
                       .modelled = seconds,
                       .rank = seconds / best};
      if (!seen.insert(item.subject + item.line).second) continue;
      ++kernel.configurations;
      space.items.push_back(std::move(item));
    }
    if (kernel.configurations > 0) space.kernels.push_back(std::move(kernel));
  }

  const CostModel &model;
  const std::string &architecture;
  std::set<std::string> seen;
};

}  // namespace

ProfileSpace chunkSpace(const std::vector<PlannedKernels> &plans, const CostModel &model,
                        const ProfileSpaceOptions &options, const std::string &architecture) {
  Collector collector(model, options, architecture);
  for (const PlannedKernels &planned : plans)
    for (size_t kernel = 0; kernel < planned.kernels.size(); ++kernel) {
      const ChosenKernel &chosen = planned.kernels[kernel];
      collector.add(chosen, planned.plan.kernels[kernel].chunk ||
                                hasStridedView(chosen.kernel, chosen.configuration));
    }
  std::ranges::stable_sort(collector.space.items, {}, &ProfileItem::rank);
  return std::move(collector.space);
}

}  // namespace weft::driver
