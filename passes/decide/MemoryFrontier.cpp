// Time and memory of the plans of all variants; see MemoryFrontier.h.
#include "passes/decide/MemoryFrontier.h"

#include "passes/decide/ChunkChoice.h"
#include "passes/decide/MemoryLimit.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace weft::decision {
namespace {

/// More searches are not made: of GPT-2's layer five are enough.
constexpr int mostSearches = 16;

constexpr double never = std::numeric_limits<double>::infinity();

/// Goes down the limits; see MemoryFrontier.h.
class FallingLimits {
public:
  FallingLimits(const Problem &problem, const Options &options, const std::vector<Pin> &pins,
                std::span<const SelectedVariant> first)
      : problem(problem), options(options), pins(pins), first(first) {
    for (size_t index = 0; index < first.size(); ++index) {
      const select::Selection &selection = first[index].selection;
      add(selection);
      ofVariant.push_back({.seconds = selection.best().seconds,
                           .leastLive = selection.leastLiveBytes(),
                           .number = index});
    }
  }

  PlansByMemory downTo(int64_t enough) && {
    int64_t limit = std::numeric_limits<int64_t>::max();
    bool isAsked = false;
    for (int step = 0; step < mostSearches; ++step) {
      if (const PricedChunking *fastest = fastestWithin(limit)) {
        if (fastest->workspaceBytes <= std::max<int64_t>(0, enough)) break;
        limit = fastest->workspaceBytes - 1;
      } else if (!isAsked) {
        break;
      }
      priceOthersWithin(limit);
      isAsked = selectWithin(limit);
      priceOthersWithin(limit);
    }
    return std::move(found);
  }

private:
  /// A selection, by number: without a limit, then under limits.
  struct Known {
    double seconds = 0;
    int64_t leastStored = 0;
    bool isPricedWhole = false;  ///< all of its k best paths
  };

  const SelectedVariant &variantOf(size_t number) const {
    return number < first.size() ? first[number] : found.limited[number - first.size()];
  }

  /// Seconds of the fastest plan known within the limit.
  double secondsWithin(int64_t limit) const {
    const PricedChunking *fastest = fastestWithin(limit);
    return fastest ? fastest->sumSeconds : never;
  }
  const PricedChunking *fastestWithin(int64_t limit) const {
    const PricedChunking *best = nullptr;
    const auto rank = [](const PricedChunking &one) {
      return std::pair(one.sumSeconds, one.workspaceBytes);
    };
    for (const PlanByMemory &plan : found.plans)
      if (plan.priced.workspaceBytes <= limit && (!best || rank(plan.priced) < rank(*best)))
        best = &plan.priced;
    return best;
  }

  /// Takes a selection that variantOf() already has, and prices its best path.
  void add(const select::Selection &selection) {
    known.push_back(
        {.seconds = selection.best().seconds, .leastStored = selection.leastStoredBytes()});
    price(known.size() - 1, selection.best(), 0);
  }

  void price(size_t number, const select::SelectionResult &path, size_t place) {
    std::string rejection;
    for (const PricedChunking &priced :
         pricedChunkings(problem.context, options, variantOf(number), path, rejection))
      found.plans.push_back({.selection = number, .path = place, .priced = priced});
  }

  /// Prices the other paths of a selection that may be faster than what is known within the limit:
  /// of paths that are about as fast, some take less.
  void priceOthers(size_t number, int64_t limit) {
    Known &one = known[number];
    if (one.isPricedWhole || one.leastStored > limit || !(one.seconds < secondsWithin(limit)))
      return;
    one.isPricedWhole = true;
    const std::vector<select::SelectionResult> paths =
        variantOf(number).selection.kBest(options.alternatives);
    for (size_t place = 1; place < paths.size(); ++place) price(number, paths[place], place);
  }

  void priceOthersWithin(int64_t limit) {
    for (size_t number = 0; number < known.size(); ++number) priceOthers(number, limit);
  }

  int64_t fewestBytes(size_t number) const {
    int64_t fewest = std::numeric_limits<int64_t>::max();
    for (const PlanByMemory &plan : found.plans)
      if (plan.selection == number) fewest = std::min(fewest, plan.priced.workspaceBytes);
    return fewest;
  }

  /// What the temporaries of a variant may take to be selected within a limit: less than its last
  /// selection, where these take no more than the limit, but the plan does, whose buffers are
  /// aligned.
  int64_t liveWithin(size_t index, int64_t limit) const {
    const size_t number = ofVariant[index].number;
    const int64_t peak = variantOf(number).selection.best().peakTemporaryBytes;
    return peak <= limit && fewestBytes(number) > limit ? peak - 1 : limit;
  }

  /// Selects the variants again that may be faster than what is known within the limit; false if
  /// there are none.
  bool selectWithin(int64_t limit) {
    const double seconds = secondsWithin(limit);
    std::vector<select::VariantProblem> asked;
    std::vector<size_t> askedOf;
    for (size_t index = 0; index < first.size(); ++index) {
      const int64_t live = liveWithin(index, limit);
      if (!(ofVariant[index].seconds < seconds) || live < ofVariant[index].leastLive) continue;
      asked.push_back(variantProblem(problem, problem.variants[first[index].index], options, pins,
                                     problem.variants.size()));
      asked.back().options.maxMemory = live;
      askedOf.push_back(index);
    }
    if (asked.empty()) return false;
    std::vector<std::optional<select::Selection>> solved;
    try {
      solved = std::move(selectIn(problem, std::move(asked), comparedByMemory).solved);
    } catch (const Error &error) {  // none has such a path
      if (error.kind != ErrorKind::unsupported && error.kind != ErrorKind::strictMiss) throw;
      solved.resize(askedOf.size());
    }
    for (size_t place = 0; place < askedOf.size(); ++place)
      take(askedOf[place], std::move(solved[place]));
    return true;
  }

  void take(size_t index, std::optional<select::Selection> selection) {
    // What is slower within more memory is no faster within less.
    ofVariant[index].seconds = selection ? selection->best().seconds : never;
    if (!selection) return;
    ofVariant[index].number = known.size();
    found.firstOf.push_back(index);
    found.limited.push_back({.index = first[index].index,
                             .name = first[index].name,
                             .notes = first[index].notes,
                             .selection = std::move(*selection)});
    add(found.limited.back().selection);
  }

  /// Of a variant, its last selection.
  struct Last {
    double seconds = 0;     ///< that no path beats within the last limit, or a lower one
    int64_t leastLive = 0;  ///< limits below it leave no path
    size_t number = 0;
  };

  const Problem &problem;
  const Options &options;
  const std::vector<Pin> &pins;
  std::span<const SelectedVariant> first;
  std::vector<Last> ofVariant;
  std::vector<Known> known;
  PlansByMemory found;
};

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

PlansByMemory plansByMemory(const Problem &problem, const Options &options,
                            const std::vector<Pin> &pins, std::span<const SelectedVariant> first,
                            int64_t enough) {
  return FallingLimits(problem, options, pins, first).downTo(enough);
}

namespace {

/// Variants by their index, selected without a limit; those that have no plan are left out.
std::vector<SelectedVariant> selectedFreely(const Problem &problem, const Options &options,
                                            const std::vector<size_t> &variants) {
  std::vector<select::VariantProblem> asked;
  for (const size_t index : variants)
    asked.push_back(variantProblem(problem, problem.variants[index], options, options.pins,
                                   problem.variants.size()));
  std::vector<std::optional<select::Selection>> solved =
      std::move(selectIn(problem, std::move(asked), comparedByMemory).solved);
  std::vector<SelectedVariant> selected;
  for (size_t place = 0; place < solved.size(); ++place)
    if (const Variant &variant = problem.variants[variants[place]]; solved[place])
      selected.push_back({.index = variants[place],
                          .name = variant.name(),
                          .notes = variant.notes,
                          .selection = std::move(*solved[place])});
  return selected;
}

FrontierPoint pointOf(const SelectedVariant &variant, const PricedChunking &priced) {
  return {.seconds = priced.sumSeconds,
          .graphSeconds = priced.seconds,
          .workspaceBytes = priced.workspaceBytes,
          .index = variant.index,
          .variant = variant.name,
          .rewrites = variant.rewrites(),
          .chunks = priced.chunks};
}

/// What --max-memory makes of a point's variant in as much memory: it also seeks among temporaries
/// and launches that take less each, where a search under a limit of all ends at another plan.
void addChosenWithin(const Problem &problem, const Options &options, const FrontierPoint &point,
                     std::vector<FrontierPoint> &points) {
  Decision decision;
  decision.asked = options.pins;
  decision.variants = selectedFreely(problem, options, {point.index});
  if (decision.variants.empty()) return;
  try {
    chooseWithinMemory(problem, options, decision, point.workspaceBytes);
  } catch (const Error &error) {  // searches of one variant alone go down other limits
    if (error.kind != ErrorKind::unsupported) throw;
    return;
  }
  const SelectedVariant &chosen = decision.best();
  std::string rejection;
  for (const PricedChunking &priced :
       pricedChunkings(problem.context, options, chosen, chosen.path(), rejection))
    points.push_back(pointOf(chosen, priced));
}

}  // namespace

Expected<std::vector<FrontierPoint>> memoryPoints(const Problem &problem, const Options &options) {
  std::vector<size_t> all(problem.variants.size());
  std::iota(all.begin(), all.end(), size_t(0));
  std::vector<SelectedVariant> first;
  try {
    first = selectedFreely(problem, options, all);
  } catch (const Error &error) {
    if (error.kind != ErrorKind::unsupported && error.kind != ErrorKind::strictMiss) throw;
    return Unexpected(error);
  }
  const PlansByMemory found = plansByMemory(problem, options, options.pins, first, 0);
  std::vector<FrontierPoint> points;
  for (const auto &[selection, path, priced] : found.plans) {
    const SelectedVariant &selected =
        selection < first.size() ? first[selection] : found.limited[selection - first.size()];
    points.push_back(pointOf(selected, priced));
  }
  for (const FrontierPoint &point : undominated(points))
    addChosenWithin(problem, options, point, points);
  return points;
}

}  // namespace weft::decision
