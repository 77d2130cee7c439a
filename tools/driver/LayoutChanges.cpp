// Questions about the layouts that matter; see LayoutChanges.h.
#include "tools/driver/LayoutChanges.h"

#include "passes/decide/LayoutPredictions.h"
#include "plan/PlanFigures.h"

#include <ranges>

namespace weft::driver {

std::optional<LayoutChange> costliestChange(const decision::Problem &problem,
                                            const decision::Options &options,
                                            const decision::Decision &decision,
                                            const nlohmann::json &layouts) {
  constexpr size_t most = 3, mostPredictions = 2;  // tensors, and layouts of each
  // Where the search was cut, what it left out may outweigh any layout, and each prediction is a
  // search as long. So it is with a limit of memory, within which plans of all variants are packed.
  if (!decision.searchCuts.empty() || options.maxMemory) return std::nullopt;
  const Plan &plan = decision.planned.plan;
  const double graphSeconds = planFigures(plan)["graphSeconds"];
  for (const LayoutQuestion &question : layoutQuestions(plan, layouts) | std::views::take(most)) {
    std::optional<LayoutChange> best;
    const std::vector<NamedLayout> nearest =
        decision::nearestLayouts(problem, options, decision, question.tensor, question.layout);
    for (const NamedLayout &other : nearest | std::views::take(mostPredictions)) {
      const decision::LayoutPrediction prediction =
          decision::predictLayout(problem, options, question.tensor, other);
      if (!prediction.rejection.empty() || prediction.chunks != chunkCount(plan)) continue;
      const double seconds = prediction.graphSeconds - graphSeconds;
      if (!best || seconds < best->seconds)
        best = {.tensor = question.tensor,
                .layout = question.layout,
                .other = other,
                .seconds = seconds,
                .workspaceBytes = prediction.workspaceBytes};
    }
    if (best && isNotable(plan, *best)) return best;
  }
  return std::nullopt;
}

}  // namespace weft::driver
