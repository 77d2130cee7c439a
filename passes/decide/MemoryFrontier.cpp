// Time and memory of the plans of all variants; see MemoryFrontier.h.
#include "passes/decide/MemoryFrontier.h"

#include "passes/decide/ChunkChoice.h"

#include <algorithm>
#include <limits>

namespace weft::decision {
namespace {

/// Slower than the fastest plan by this factor, nobody wants a plan for its memory.
constexpr double slowest = 2;

}  // namespace

std::vector<FrontierPoint> undominated(std::vector<FrontierPoint> points) {
  std::ranges::stable_sort(points, [](const FrontierPoint &a, const FrontierPoint &b) {
    return std::pair(a.workspaceBytes, a.seconds) < std::pair(b.workspaceBytes, b.seconds);
  });
  std::vector<FrontierPoint> kept;
  for (FrontierPoint &point : points)
    if (kept.empty() || point.seconds < kept.back().seconds) kept.push_back(std::move(point));
  return kept;
}

Expected<std::vector<FrontierPoint>> memoryPoints(const Problem &problem, const Options &options) {
  std::vector<select::VariantProblem> asked;
  const size_t variants = problem.variants.size();
  for (const bool mayWorkInMemory : {true, false})
    for (const Variant &variant : problem.variants) {
      asked.push_back(variantProblem(problem, variant, options, options.pins, 2 * variants));
      if (!mayWorkInMemory) asked.back().options.mostWorkspace = 0;
    }
  std::vector<std::optional<select::Selection>> solved;
  try {
    solved = std::move(selectIn(problem, std::move(asked), comparedByMemory).solved);
  } catch (const Error &error) {
    if (error.kind != ErrorKind::unsupported && error.kind != ErrorKind::strictMiss) throw;
    return Unexpected(error);
  }
  double fastest = std::numeric_limits<double>::infinity();
  for (const std::optional<select::Selection> &one : solved)
    if (one) fastest = std::min(fastest, one->best().seconds);
  std::vector<FrontierPoint> points;
  for (size_t n = 0; n < solved.size(); ++n) {
    if (!solved[n] || solved[n]->best().seconds > slowest * fastest) continue;
    const Variant &variant = problem.variants[n % variants];
    const SelectedVariant selected{.index = n % variants,
                                   .name = variant.name(),
                                   .notes = variant.notes,
                                   .selection = std::move(*solved[n])};
    std::string rejection;
    for (const PricedChunking &priced :
         pricedChunkings(problem.context, options, selected, selected.selection.best(), rejection))
      points.push_back({.seconds = priced.sumSeconds,
                        .graphSeconds = priced.seconds,
                        .workspaceBytes = priced.workspaceBytes,
                        .index = selected.index,
                        .variant = selected.name,
                        .rewrites = selected.rewrites(),
                        .chunks = priced.chunks});
  }
  return points;
}

}  // namespace weft::decision
