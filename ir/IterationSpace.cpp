// Set mathematics of iteration spaces; the essay is in the header.
#include "ir/IterationSpace.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace weft {
namespace {

using Axes = std::set<int>;

Axes minus(const Axes &a, const Axes &b) {
  Axes difference;
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(),
                      std::inserter(difference, difference.end()));
  return difference;
}

Axes both(const Axes &a, const Axes &b) {
  Axes intersection;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(),
                        std::inserter(intersection, intersection.end()));
  return intersection;
}

Axes either(const Axes &a, const Axes &b) {
  Axes united = a;
  united.insert(b.begin(), b.end());
  return united;
}

FusionVerdict verdict(Fusability fusability, std::string reason, const Axes &blocking = {}) {
  return {fusability, std::move(reason), {blocking.begin(), blocking.end()}};
}

/// The map runs inside the reducing op's loop if it covers that op's domain, or exactly the rows
/// that remain after it.
bool differByOneReduction(const AxisSets &map, const AxisSets &reducing) {
  return map.reduced.empty() && !reducing.reduced.empty() &&
         (map.independent == reducing.domain() || map.independent == reducing.independent);
}

}  // namespace

std::string_view nameOf(AxisMapping mapping) {
  switch (mapping) {
    case AxisMapping::unmapped: return "unmapped";
    case AxisMapping::grid: return "grid";
    case AxisMapping::block: return "block";
    case AxisMapping::warp: return "warp";
    case AxisMapping::sequential: return "sequential";
  }
  return "?";
}

std::string_view nameOf(Fusability fusability) {
  switch (fusability) {
    case Fusability::equal: return "equal";
    case Fusability::oneReduction: return "one-reduction";
    case Fusability::partial: return "partial";
    case Fusability::none: return "none";
  }
  return "?";
}

std::string print(const IterationSpace &space) {
  const auto list = [](const std::vector<SpaceAxis> &axes) {
    std::string text;
    for (const SpaceAxis &axis : axes)
      text += fmt::format("{}{}={}", text.empty() ? "" : " ", axis.name, axis.extent);
    return text;
  };
  if (space.reduced.empty()) return list(space.independent);
  return fmt::format("{}{}| {} (reduced)", list(space.independent),
                     space.independent.empty() ? "" : " ", list(space.reduced));
}

Axes AxisSets::domain() const { return either(independent, reduced); }

FusionVerdict canFuse(const AxisSets &a, const AxisSets &b) {
  if (a == b) return verdict(Fusability::equal, "equal-spaces");
  if (differByOneReduction(a, b) || differByOneReduction(b, a))
    return verdict(Fusability::oneReduction, "one-reduction");
  const Axes mismatched = either(minus(a.reduced, b.reduced), minus(b.reduced, a.reduced));
  const Axes shared = minus(both(a.independent, b.independent), either(a.reduced, b.reduced));
  const Axes different = either(minus(a.domain(), b.domain()), minus(b.domain(), a.domain()));
  const bool reductionsDiffer = !a.reduced.empty() && !b.reduced.empty() && a.reduced != b.reduced;
  const Axes &blocking = reductionsDiffer || different.empty() ? mismatched : different;
  if (!shared.empty()) return verdict(Fusability::partial, "shared-outer-axes", blocking);
  return verdict(Fusability::none, reductionsDiffer ? "reduction-axis-mismatch" : "no-shared-axes",
                 blocking);
}

AxisSets unite(const AxisSets &a, const AxisSets &b) {
  AxisSets united;
  united.reduced = either(a.reduced, b.reduced);
  united.independent = minus(either(a.domain(), b.domain()), united.reduced);
  return united;
}

}  // namespace weft
