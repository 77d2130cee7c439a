// Checks and prices of edited plans; see EditedPlan.h.
#include "passes/decide/EditedPlan.h"

#include "kernel/Error.h"
#include "passes/configure/Family.h"
#include "passes/configure/FamilyConfigurations.h"
#include "passes/decide/KernelPrices.h"
#include "passes/decide/NearestConfiguration.h"
#include "passes/decide/PriceNotes.h"
#include "plan/Buffers.h"
#include "plan/PlanFigures.h"
#include "plan/PlanMemory.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iterator>
#include <set>
#include <utility>
#include <vector>

namespace weft::decision {
namespace {

/// Workspaces as large as the kernels, whose knobs may be edited, ask for.
void resizeWorkspaces(PlannedKernels &planned) {
  for (size_t index = 0; index < planned.kernels.size(); ++index) {
    const ChosenKernel &chosen = planned.kernels[index];
    resizeWorkspace(planned.plan, planned.plan.kernels[index],
                    workspaceBytesOf(chosen.kernel, chosen.configuration));
  }
}

LayoutTuple tupleOf(const Configuration &configuration) {
  LayoutTuple tuple = configuration.inputs;
  tuple.insert(tuple.end(), configuration.outputs.begin(), configuration.outputs.end());
  return tuple;
}

/// "hpi bji -> bjhp".
std::string printLayouts(const Kernel &kernel, const LayoutTuple &tuple) {
  const std::vector<ValueId> values = operandValues(kernel);
  std::vector<std::string> texts;
  for (size_t i = 0; i < tuple.size(); ++i) {
    if (i == kernel.inputs.size()) texts.emplace_back("->");
    Layout layout = tuple[i];
    layout.offset = 0;
    texts.push_back(layout.order.empty() ? "-"
                                         : print(layout, kernel, kernel.values[size_t(values[i])]));
  }
  return fmt::format("{}", fmt::join(texts, " "));
}

/// The legal layouts that differ in the fewest operands, three of them.
std::string nearestLegal(const Kernel &kernel, const Configuration &configuration,
                         const Device &device) {
  constexpr size_t shown = 3;
  const LayoutTuple wanted = tupleOf(configuration);
  std::set<std::pair<int, std::string>> ranked;  // operands that differ, layouts
  for (const ConfigurationSpace &space : everySpace(kernel, device))
    for (const LayoutTuple &tuple : space.tuples) {
      int differing = 0;
      for (size_t i = 0; i < tuple.size(); ++i) differing += tuple[i].order != wanted[i].order;
      ranked.emplace(differing, printLayouts(kernel, tuple));
      if (ranked.size() > shown) ranked.erase(std::prev(ranked.end()));
    }
  std::vector<std::string> texts;
  for (const auto &[differing, text] : ranked) texts.push_back(text);
  return texts.empty() ? "" : fmt::format("; legal and nearest: {}", fmt::join(texts, "; "));
}

struct Legality {
  bool isLegal = false;
  std::vector<std::string> others;  ///< if it is not: knobs of any family, legal in its layouts
};

Legality legality(const Kernel &kernel, const Configuration &configuration, const Device &device) {
  constexpr size_t shown = 3;
  Legality result{.isLegal = isLegal(kernel, configuration, device), .others = {}};
  if (!result.isLegal)
    forEachConfiguration(kernel, device, layoutsOf(configuration),
                         [&](const Configuration &candidate) {
                           result.others.push_back(describe(kernel, candidate.knobs));
                           return result.others.size() < shown;
                         });
  return result;
}

Expected<void> checkLegal(const Kernel &kernel, const Configuration &configuration,
                          const Device &device) {
  const auto [isLegal, others] = legality(kernel, configuration, device);
  if (isLegal) return {};
  if (others.empty())
    return Unexpected(Error::badInput(
        "kernel '{}': no configuration of any family takes the layouts {}{}", kernel.name,
        printLayouts(kernel, tupleOf(configuration)), nearestLegal(kernel, configuration, device)));
  const std::string reason = knobsRejection(kernel, configuration, device);
  return Unexpected(Error::badInput(
      "kernel '{}': '{}' is not legal with these layouts{}{}; legal are, for example: {}",
      kernel.name, describe(kernel, configuration.knobs), reason.empty() ? "" : ": ", reason,
      fmt::join(others, "; ")));
}

}  // namespace

Expected<void> priceAgain(PlannedKernels &planned, const CostModel &prices,
                          const std::string &file) {
  for (size_t index = 0; index < planned.kernels.size(); ++index) {
    ChosenKernel &chosen = planned.kernels[index];
    if (Expected<void> legal = checkLegal(chosen.kernel, chosen.configuration, prices.device());
        !legal)
      return legal;
    priceKernelAgain(planned.plan.kernels[index], chosen, prices);
  }
  planned.plan.predictedSeconds = sumOfKernels(planned.plan);
  noteCopies(planned);
  noteDeterminism(planned, prices);
  if (Expected<void> apart = checkOverwriting(planned, file); !apart) return apart;
  resizeWorkspaces(planned);
  planned.plan.workspaceBytes = PlanMemory(planned.plan).bytes(BufferKind::temporary);
  notePrices(planned.plan, prices);
  return {};
}

}  // namespace weft::decision
