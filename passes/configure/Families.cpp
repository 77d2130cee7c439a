// Enumeration over the families of the registry.
#include "passes/configure/Families.h"

#include "kernel/AttentionBackwardRegion.h"
#include "kernel/AttentionRegion.h"
#include "kernel/ContractionRegion.h"
#include "kernel/Error.h"
#include "kernel/RecentAnswers.h"
#include "passes/configure/Family.h"
#include "passes/configure/FamilyConfigurations.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <set>

namespace weft {
namespace {

/// Offsets do not count: kernels are given the address of element zero. Kernels that run take any
/// strides in an order that they take; of a view they are what makes it one.
bool takes(const Layout &choice, const Layout &wanted, bool isView) {
  return choice.order == wanted.order && choice.pitchUnit == wanted.pitchUnit &&
         (choice.strides == wanted.strides || (!isView && choice.strides.empty()));
}

/// Keeps the tuples that meet the constraints, with the strides that these give.
void constrain(ConfigurationSpace &space, const Kernel &kernel,
               const LayoutConstraints &constraints) {
  bool isStrided = false;
  const auto constrainOperand = [&](size_t operand, ValueId value,
                                    const std::optional<Layout> &wanted) {
    if (!wanted) return;
    const Layout layout = normalized(*wanted, extentsOf(kernel, value));
    const bool isView = space.family->isView;
    isStrided = isStrided || (!isView && !layout.strides.empty());
    if (!space.choices.empty())
      std::erase_if(space.choices[operand],
                    [&](const Layout &choice) { return !takes(choice, layout, isView); });
    std::erase_if(space.tuples,
                  [&](const LayoutTuple &tuple) { return !takes(tuple[operand], layout, isView); });
    if (!space.choices.empty())
      for (Layout &choice : space.choices[operand]) choice.strides = layout.strides;
    for (LayoutTuple &tuple : space.tuples) tuple[operand].strides = layout.strides;
  };
  for (size_t i = 0; i < constraints.inputs.size(); ++i)
    constrainOperand(i, kernel.inputs[i], constraints.inputs[i]);
  for (size_t i = 0; i < constraints.outputs.size(); ++i)
    constrainOperand(kernel.inputs.size() + i, kernel.outputs[i], constraints.outputs[i]);
  if (isStrided && space.family->isGemm)  // axes may no longer merge
    std::erase_if(space.tuples, [&](const LayoutTuple &tuple) {
      return space.hasSeveralStrides
                 ? !space.family->takesStrides(kernel, tuple)
                 : !stridedBatchedGemm(kernel, toConfiguration(kernel, tuple, space.knobs.front()));
    });
}

/// Layouts with several strides along a group are many: they are for callers that know which ones
/// they ask for.
bool fixesEveryLayout(const Kernel &kernel, const LayoutConstraints &constraints) {
  const auto isFixed = [](const std::optional<Layout> &layout) { return layout.has_value(); };
  return constraints.inputs.size() == kernel.inputs.size() &&
         constraints.outputs.size() == kernel.outputs.size() &&
         std::ranges::all_of(constraints.inputs, isFixed) &&
         std::ranges::all_of(constraints.outputs, isFixed);
}

}  // namespace

Configuration toConfiguration(const Kernel &kernel, const LayoutTuple &tuple, const Knobs &knobs) {
  const auto outputs = tuple.begin() + static_cast<ptrdiff_t>(kernel.inputs.size());
  return {.inputs = {tuple.begin(), outputs}, .outputs = {outputs, tuple.end()}, .knobs = knobs};
}

bool isUseful(const Kernel &kernel, const LayoutTuple &layouts, const Knobs &knobs) {
  const auto rule = knobs.family().isUseful;
  return !rule || rule(kernel, layouts, knobs);
}

std::vector<ConfigurationSpace> configurationSpaces(const Kernel &kernel, const Device &device,
                                                    std::vector<Exclusion> *excluded) {
  std::vector<ConfigurationSpace> spaces;
  for (const Family *family : families()) {
    Expected<ConfigurationSpace, Reason> answer = family->space(kernel, device);
    if (answer) spaces.push_back(std::move(*answer));
    else if (excluded) excluded->push_back({std::string(family->name), answer.error().text});
  }
  return spaces;
}

namespace {

std::optional<ConfigurationSpace> severalStridesOf(const Kernel &kernel, const Device &device,
                                                   const FixedLayouts *fixed) {
  for (const Family *family : families())
    if (family->severalStrides)
      if (auto space = family->severalStrides(kernel, device, fixed)) return space;
  return std::nullopt;
}

}  // namespace

std::optional<ConfigurationSpace> severalStridesSpace(const Kernel &kernel, const Device &device) {
  return severalStridesOf(kernel, device, nullptr);
}
std::optional<ConfigurationSpace> severalStridesSpace(const Kernel &kernel, const Device &device,
                                                      const FixedLayouts &fixed) {
  return severalStridesOf(kernel, device, &fixed);
}

std::vector<ConfigurationSpace> everySpace(const Kernel &kernel, const Device &device) {
  std::vector<ConfigurationSpace> spaces = configurationSpaces(kernel, device);
  if (auto space = severalStridesSpace(kernel, device)) spaces.push_back(std::move(*space));
  return spaces;
}

namespace {

std::function<std::string(const Kernel &)> rejections(const Device &device, bool Family::*takes) {
  if (std::ranges::none_of(families(), takes)) return {};
  // Layers repeat: most kernels are equal to one that was taken before.
  return [device, takes, taken = std::make_shared<std::set<std::string>>()](const Kernel &kernel) {
    std::string text = canonicalText(kernel);
    if (taken->contains(text)) return std::string();
    std::vector<std::string> reasons;
    for (const Family *family : families()) {
      if (!(family->*takes)) continue;
      const Expected<ConfigurationSpace, Reason> answer = family->space(kernel, device);
      if (answer) {
        taken->insert(std::move(text));
        return std::string();
      }
      reasons.push_back(fmt::format("{}: {}", family->name, answer.error().text));
    }
    return fmt::format("{}", fmt::join(reasons, "; "));
  };
}

}  // namespace

std::function<std::string(const Kernel &)> epilogueRejections(const Device &device) {
  return rejections(device, &Family::takesEpilogues);
}
std::function<std::string(const Kernel &)> prologueRejections(const Device &device) {
  return rejections(device, &Family::takesPrologues);
}
std::function<std::string(const Kernel &)> attentionRejections(const Device &device) {
  return rejections(device, &Family::takesAttention);
}
std::function<std::string(const Kernel &)> attentionBackwardRejections(const Device &device) {
  return rejections(device, &Family::takesAttentionBackward);
}
std::string attentionFamiliesLeftOut(const Kernel &kernel, const Device &device) {
  std::vector<std::string> reasons;
  for (const Family *family : families()) {
    if (!family->takesAttention && !family->takesAttentionBackward) continue;
    const bool runs =
        device.offers(*family) &&
        (!family->targetRejection ||
         family->targetRejection(kernel, family->defaults(), device.architecture).empty());
    const bool isOfPass = family->takesAttention ? bool(attentionRegion(kernel))
                                                 : bool(attentionBackwardRegion(kernel));
    if (!runs || !isOfPass) continue;
    const Expected<ConfigurationSpace, Reason> answer = family->space(kernel, device);
    if (answer) return fmt::format("{}", fmt::join(reasons, "; "));
    reasons.push_back(fmt::format("{}: {}", family->name, answer.error().text));
  }
  return "";
}
bool offersFamilyWith(bool Family::*property, const Device &device) {
  return std::ranges::any_of(families(), [&](const Family *family) {
    return family->*property && device.offers(*family) &&
           (!family->targetRejection ||
            family->targetRejection(Kernel{}, family->defaults(), device.architecture).empty());
  });
}

double countConfigurations(const Kernel &kernel, const ConfigurationSpace &space) {
  double count = 0;
  if (!space.tuples.empty()) {
    for (const LayoutTuple &tuple : space.tuples)
      for (const Knobs &knobs : space.knobs) count += isUseful(kernel, tuple, knobs) ? 1 : 0;
    return count;
  }
  const std::vector<ValueId> values = operandValues(kernel);
  double combinations = 1;
  for (const std::vector<Layout> &choices : space.choices)
    combinations *= static_cast<double>(choices.size());
  std::map<std::pair<int, int>, double> countOf;  // per vector axis and width
  for (const Knobs &knobs : space.knobs) {
    const std::pair<int, int> access =
        space.family->vectorAccess ? space.family->vectorAccess(knobs) : std::pair(-1, 1);
    const auto [axis, width] = access;
    const auto [found, isNew] = countOf.try_emplace(access, combinations);
    if (isNew && width > 1) {
      double without = 1;
      for (size_t i = 0; i < values.size(); ++i)
        without *= static_cast<double>(std::count_if(
            space.choices[i].begin(), space.choices[i].end(), [&](const Layout &layout) {
              return !isVectorAccessed(kernel, values[i], layout, axis, width);
            }));
      found->second -= without;
    }
    count += found->second;
  }
  return count;
}

bool forEachTuple(const ConfigurationSpace &space,
                  const std::function<bool(const LayoutTuple &)> &visit) {
  for (const LayoutTuple &tuple : space.tuples)
    if (!visit(tuple)) return false;
  if (space.choices.empty()) return true;
  LayoutTuple tuple(space.choices.size());
  const std::function<bool(size_t)> descend = [&](size_t operand) {
    if (operand == tuple.size()) return visit(tuple);
    for (const Layout &layout : space.choices[operand]) {
      tuple[operand] = layout;
      if (!descend(operand + 1)) return false;
    }
    return true;
  };
  return descend(0);
}

namespace {

/// False if `visit` stopped it.
bool forEachIn(ConfigurationSpace &space, const Kernel &kernel,
               const LayoutConstraints &constraints,
               const std::function<bool(const Configuration &)> &visit) {
  constrain(space, kernel, constraints);
  return forEachTuple(space, [&](const LayoutTuple &tuple) {
    for (const Knobs &knobs : space.knobs)
      if (isUseful(kernel, tuple, knobs) && !visit(toConfiguration(kernel, tuple, knobs)))
        return false;
    return true;
  });
}

}  // namespace

void forEachConfiguration(const Kernel &kernel, const Device &device,
                          const LayoutConstraints &constraints,
                          const std::function<bool(const Configuration &)> &visit) {
  for (ConfigurationSpace &space : fixesEveryLayout(kernel, constraints)
                                       ? everySpace(kernel, device)
                                       : configurationSpaces(kernel, device))
    if (!forEachIn(space, kernel, constraints, visit)) return;
}

void forEachConfigurationOf(const Family &family, const Kernel &kernel, const Device &device,
                            const LayoutConstraints &constraints,
                            const std::function<bool(const Configuration &)> &visit) {
  const SteadyKernel steady(kernel);
  Expected<ConfigurationSpace, Reason> answer = family.space(kernel, device);
  if (answer && !forEachIn(*answer, kernel, constraints, visit)) return;
  if (!family.severalStrides || !fixesEveryLayout(kernel, constraints)) return;
  if (auto space = severalStridesSpace(kernel, device); space && space->family == &family)
    forEachIn(*space, kernel, constraints, visit);
}

LayoutConstraints layoutsOf(const Configuration &configuration) {
  LayoutConstraints constraints;
  constraints.inputs.assign(configuration.inputs.begin(), configuration.inputs.end());
  constraints.outputs.assign(configuration.outputs.begin(), configuration.outputs.end());
  return constraints;
}

void forEachConfigurationLike(const Kernel &kernel, const Configuration &configuration,
                              const Device &device,
                              const std::function<bool(const Configuration &)> &visit) {
  Device offering = device;
  offering.mayBeNondeterministic |= !isDeterministic(configuration.knobs);
  forEachConfigurationOf(configuration.knobs.family(), kernel, offering, layoutsOf(configuration),
                         visit);
}

bool hasConfigurationLike(const Kernel &kernel, const Configuration &configuration,
                          const Device &device) {
  bool isVisited = false;
  forEachConfigurationLike(kernel, configuration, device, [&](const Configuration &) {
    isVisited = true;
    return false;
  });
  return isVisited;
}

bool isLegal(const Kernel &kernel, const Configuration &configuration, const Device &device) {
  const Knobs &asked = configuration.knobs;
  if (const auto takesUnlisted = asked.family().takesUnlisted;
      takesUnlisted && takesUnlisted(kernel, configuration, device))
    return true;
  bool isTaken = false;
  forEachConfigurationLike(kernel, configuration, device, [&](const Configuration &candidate) {
    isTaken = candidate.knobs == asked;
    return !isTaken;
  });
  return isTaken;
}

Configurations enumerate(const Kernel &kernel, const Device &device,
                         const LayoutConstraints &constraints) {
  Configurations result;
  configurationSpaces(kernel, device, &result.excluded);
  forEachConfiguration(kernel, device, constraints, [&](const Configuration &configuration) {
    result.legal.push_back(configuration);
    return true;
  });
  std::sort(result.legal.begin(), result.legal.end());
  result.legal.erase(std::unique(result.legal.begin(), result.legal.end()), result.legal.end());
  return result;
}

}  // namespace weft
