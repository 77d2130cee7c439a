// Parts by time and memory; see PartsChoice.h.
#include "tools/driver/PartsChoice.h"

#include "kernel/Error.h"
#include "runtime/GraphPrediction.h"
#include "tools/driver/Planning.h"

#include <algorithm>

namespace weft::driver {
namespace {

struct Place {
  size_t variant;
  select::Plan path;
};

/// Paths that are as fast as the best but for what memory may cost, best first.
std::vector<Place> nearBest(const Compilation &compilation, const Selected &selected) {
  std::vector<Place> places;
  const double limit = selected.best().selection.best().seconds * (1 + timeForMemory);
  for (size_t variant = 0; variant < selected.variants.size(); ++variant)
    for (select::Plan &path : selected.variants[variant].selection.kBest(compilation.alternatives()))
      if (path.seconds <= limit) places.push_back({.variant = variant, .path = std::move(path)});
  std::ranges::stable_sort(places, {}, [](const Place &place) { return place.path.seconds; });
  constexpr size_t mostPlaces = 12;
  if (places.size() > mostPlaces) places.resize(mostPlaces);
  return places;
}

}  // namespace

std::vector<int> partCounts(const ChoiceFlags &choices) {
  if (choices.parts > 0) return {choices.parts};
  return {1, 2, 3, 4, 6, 8, 12, 16, 20, 24, 32, 40, 48, 64};
}

std::vector<PricedParts> pricedParts(const Compilation &compilation, const SelectedVariant &variant, const select::Plan &path, std::string &refusal) {
  std::vector<PricedParts> priced;
  for (const int count : partCounts(compilation.choiceFlags())) {
    try {
      const runtime::Plan plan = planOf(compilation, variant, path, count).plan;
      const double seconds = runtime::predictGraph(plan, compilation.costModel().device()).seconds();
      priced.push_back({.parts = count, .seconds = seconds, .sumSeconds = plan.predictedSeconds, .workspaceBytes = plan.workspaceBytes});
    } catch (const Error &error) {
      if (error.kind != ErrorKind::unsupported && error.kind != ErrorKind::strictMiss) throw;
      if (refusal.empty()) refusal = error.what();
    }
  }
  return priced;
}

size_t preferred(std::span<const PricedParts> priced) {
  const double limit = std::ranges::min_element(priced, {}, &PricedParts::seconds)->seconds * (1 + timeForMemory);
  size_t best = priced.size();
  for (size_t index = 0; index < priced.size(); ++index)
    if (priced[index].seconds <= limit && (best == priced.size() || priced[index].workspaceBytes < priced[best].workspaceBytes)) best = index;
  return best;
}

void chooseParts(const Compilation &compilation, Selected &selected) {
  const int asked = compilation.choiceFlags().parts;
  if (asked == 1) return;
  std::string refusal;
  std::vector<Place> places;
  std::vector<std::vector<PricedParts>> pricedAt;
  std::vector<PricedParts> all;
  std::vector<size_t> placeOf;  // of all
  for (Place &place : nearBest(compilation, selected)) {
    std::vector<PricedParts> priced = pricedParts(compilation, selected.variants[place.variant], place.path, refusal);
    all.insert(all.end(), priced.begin(), priced.end());
    placeOf.resize(all.size(), places.size());
    places.push_back(std::move(place));
    pricedAt.push_back(std::move(priced));
  }
  if (all.empty()) throw Error::unsupported("--parts {}: {}", asked, refusal);
  const size_t chosen = preferred(all);
  selected.pricedParts = std::move(pricedAt[placeOf[chosen]]);
  selected.parts = all[chosen].parts;
  selected.chosen = places[placeOf[chosen]].variant;
  selected.chosenPath = std::move(places[placeOf[chosen]].path);
}

}  // namespace weft::driver
