// Plans that fit; see MemoryLimit.h.
#include "passes/decide/MemoryLimit.h"

#include "kernel/ByteText.h"
#include "kernel/Error.h"
#include "kernel/Format.h"
#include "passes/decide/ChunkChoice.h"
#include "passes/decide/MemoryFrontier.h"
#include "passes/decide/PathPlan.h"
#include "plan/BufferPacking.h"

#include <algorithm>
#include <limits>
#include <map>
#include <ranges>

namespace weft::decision {
namespace {

/// The fastest plan of a variant that fits.
class Search {
public:
  std::optional<FittedPath> fitted = {};
  int64_t smallest = std::numeric_limits<int64_t>::max();  ///< workspace of any plan that was tried
  std::string rejection = {};  ///< why a plan does not run in the fewest chunks that were tried

  /// Seeks the fewest chunks that fit, by halves: more chunks take less workspace, but for the
  /// granularity of packing.
  void consider(const PlanContext &context, const Options &options, const SelectedVariant &variant,
                const select::SelectionResult &path, int64_t limit) {
    const PathPlans plans(context, variant, path);
    const std::vector<int> counts = chunkCounts(options);
    std::vector<PlannedKernels> fitting;
    // Those below `first` are too large or do not run, those from `last` on are not needed.
    size_t first = 0, last = counts.size();
    while (first < last) {
      const size_t middle =
          fitting.empty() && last == counts.size() ? last - 1 : (first + last) / 2;
      size_t tried = middle;  // counts that do not divide the axis say nothing: the next one below
      std::optional<PlannedKernels> planned;
      while (!(planned = tryCount(plans, options, counts[tried])) && tried > first) --tried;
      if (!planned) {
        first = middle + 1;
      } else if (planned->plan.workspaceBytes > limit) {
        first = middle + 1;
      } else {
        last = tried;
        fitting.push_back(std::move(*planned));
      }
    }
    if (fitting.empty()) return;
    const PlannedKernels &best = fitting.back();  // more chunks are more launches
    if (!fitted || best.plan.predictedSeconds < fitted->seconds)
      fitted = FittedPath{.path = path,
                          .chunks = counts[last],
                          .workspaceBytes = best.plan.workspaceBytes,
                          .seconds = best.plan.predictedSeconds};
  }

private:
  /// Nothing where the path does not run in so many chunks.
  std::optional<PlannedKernels> tryCount(const PathPlans &plans, const Options &options,
                                         int count) {
    Expected<PlannedKernels> planned = plans.in(count, options.isConcurrent());
    if (planned) {
      smallest = std::min(smallest, planned->plan.workspaceBytes);
      return std::move(*planned);
    }
    if (planned.error().kind != ErrorKind::unsupported) throw planned.error();
    if (count < rejectedCount) {
      rejection = fmt::format("; {}", planned.error().what());
      rejectedCount = count;
    }
    return std::nullopt;
  }

  int rejectedCount = std::numeric_limits<int>::max();
};

std::string reasonOf(const Search &search, int64_t limit) {
  const std::string found =
      search.smallest == std::numeric_limits<int64_t>::max()
          ? ""
          : fmt::format("; the smallest found takes {}", formatBytes(search.smallest));
  return fmt::format("no plan keeps its workspace within {}{}{}", formatBytes(limit), found,
                     search.rejection);
}

/// Bytes that a launch may work in for the limit to hold, as far as the other temporaries of the
/// plan stay as they are; nothing where none of its launches works in any.
std::optional<int64_t> roomForWorkspaces(const Plan &plan, int64_t limit) {
  const std::vector<int64_t> live = liveBytes(plan);
  std::optional<int64_t> room;
  for (size_t index = 0; index < plan.kernels.size(); ++index)
    if (const int64_t own = workspaceBytesOf(plan.kernels[index]); own > 0)
      room = std::min({room.value_or(own - 1), own - 1, limit - (live[index] - own)});
  return room ? std::optional(std::max<int64_t>(0, *room)) : std::nullopt;
}

/// The plan of a path as a whole; nothing where it does not run.
std::optional<Plan> wholePlan(const Problem &problem, const Options &options,
                              const SelectedVariant &variant) {
  Expected<PlannedKernels> planned =
      PathPlans(problem.context, variant, variant.selection.best()).in(1, options.isConcurrent());
  return planned ? std::optional(std::move(planned->plan)) : std::nullopt;
}

/// What a variant is selected again within.
struct Within {
  int64_t workspace = std::numeric_limits<int64_t>::max();
  int64_t temporary = std::numeric_limits<int64_t>::max();
};

/// Selections of variants beside their first ones, by variant.
using Again = std::vector<std::vector<SelectedVariant>>;

/// Selects these variants again, adds what is found to `again`, and returns the plans.
std::map<size_t, Plan> selectWithin(const Problem &problem, const Options &options,
                                    const Decision &decision,
                                    const std::map<size_t, Within> &variants, Again &again) {
  std::vector<select::VariantProblem> asked;
  for (const auto &[index, within] : variants) {
    asked.push_back(variantProblem(problem, problem.variants[decision.variants[index].index],
                                   options, decision.asked, decision.variants.size()));
    asked.back().options.mostWorkspace = within.workspace;
    asked.back().options.mostTemporary = within.temporary;
  }
  std::map<size_t, Plan> plans;
  select::VariantSelections found;
  try {
    found = selectIn(problem, std::move(asked), comparedByMemory);
  } catch (const Error &error) {  // none has such a path
    if (error.kind != ErrorKind::unsupported && error.kind != ErrorKind::strictMiss) throw;
    return plans;
  }
  size_t place = 0;
  for (const auto &[index, within] : variants) {
    std::optional<select::Selection> &solved = found.solved[place++];
    if (!solved) continue;
    const SelectedVariant &first = decision.variants[index];
    again[index].push_back({.index = first.index,
                            .name = first.name,
                            .notes = first.notes,
                            .selection = std::move(*solved)});
    if (std::optional<Plan> plan = wholePlan(problem, options, again[index].back()))
      plans[index] = std::move(*plan);
  }
  return plans;
}

/// Among configurations whose launches work in less, where the best path does not fit and works in
/// memory.
void selectWithLessWorkspace(const Problem &problem, const Options &options,
                             const Decision &decision, const std::map<size_t, Plan> &large,
                             int64_t limit, Again &again) {
  std::map<size_t, Within> variants;
  for (const auto &[index, plan] : large)
    if (const std::optional<int64_t> room = roomForWorkspaces(plan, limit))
      variants[index] = {.workspace = *room};
  while (!variants.empty()) {
    const std::map<size_t, Plan> plans = selectWithin(problem, options, decision, variants, again);
    std::map<size_t, Within> next;
    for (const auto &[index, within] : variants) {
      const auto plan = plans.find(index);
      if (within.workspace > 0 && (plan == plans.end() || plan->second.workspaceBytes > limit))
        next[index] = {.workspace = 0};
    }
    variants = std::move(next);
  }
}

/// Among kernels that store no temporary larger than the limit, which no whole plan within it has,
/// and, as several are alive at once, than a half, a quarter and an eighth of it.
void selectWithSmallerTemporaries(const Problem &problem, const Options &options,
                                  const Decision &decision, const std::map<size_t, Plan> &large,
                                  int64_t limit, Again &again) {
  std::map<size_t, Within> variants;
  for (const auto &[index, plan] : large) variants[index] = {.temporary = limit};
  for (const int64_t part : {1, 2, 4, 8}) {
    if (variants.empty()) return;
    for (auto &[index, within] : variants) within.temporary = limit / part;
    const std::map<size_t, Plan> plans = selectWithin(problem, options, decision, variants, again);
    std::erase_if(variants, [&](const auto &variant) {
      const auto plan = plans.find(variant.first);  // without a path none stores less
      return plan == plans.end() || plan->second.workspaceBytes <= limit;
    });
  }
}

/// By variant: what is selected again where its best path does not fit.
Again selectedAgain(const Problem &problem, const Options &options, const Decision &decision,
                    int64_t limit) {
  std::map<size_t, Plan> large;
  for (size_t index = 0; index < decision.variants.size(); ++index)
    if (std::optional<Plan> plan = wholePlan(problem, options, decision.variants[index]);
        plan && plan->workspaceBytes > limit)
      large[index] = std::move(*plan);
  Again again(decision.variants.size());
  selectWithLessWorkspace(problem, options, decision, large, limit, again);
  selectWithSmallerTemporaries(problem, options, decision, large, limit, again);
  return again;
}

/// Seeks in the best paths of a variant, of which no other than those faster than `fastest`.
Search searched(const PlanContext &context, const Options &options, const SelectedVariant &variant,
                int64_t limit, double fastest) {
  Search search;
  search.consider(context, options, variant, variant.selection.best(), limit);
  // Chunks do not make a path faster, so those that are slower whole than what fits are left out.
  const std::vector<select::SelectionResult> paths = variant.selection.kBest(options.alternatives);
  for (const select::SelectionResult &path : paths | std::views::drop(1)) {
    const double known = search.fitted ? std::min(fastest, search.fitted->seconds) : fastest;
    if (path.seconds < known) search.consider(context, options, variant, path, limit);
  }
  return search;
}

/// By variant the fastest plan within the limit of those that falling limits find, and the
/// selection that it is of, where that is another one than the variant's.
struct FoundPlan {
  std::optional<FittedPath> fitted = {};
  std::optional<SelectedVariant> limited = {};
};
std::vector<FoundPlan> foundByFallingLimits(const Problem &problem, const Options &options,
                                            const Decision &decision, int64_t limit) {
  const std::vector<SelectedVariant> &variants = decision.variants;
  PlansByMemory found = plansByMemory(problem, options, decision.asked, variants, limit);
  std::vector<FoundPlan> best(variants.size());
  std::map<size_t, size_t> selectionOf;  // by variant, of those under limits
  for (const auto &[selection, path, priced] : found.plans) {
    if (priced.workspaceBytes > limit) continue;
    const bool isFirst = selection < variants.size();
    const size_t place = isFirst ? 0 : selection - variants.size(),
                 index = isFirst ? selection : found.firstOf[place];
    std::optional<FittedPath> &fitted = best[index].fitted;
    if (fitted && fitted->seconds <= priced.sumSeconds) continue;
    const SelectedVariant &of = isFirst ? variants[selection] : found.limited[place];
    fitted = FittedPath{.path = of.selection.kBest(options.alternatives).at(path),
                        .chunks = priced.chunks,
                        .workspaceBytes = priced.workspaceBytes,
                        .seconds = priced.sumSeconds};
    if (isFirst) selectionOf.erase(index);
    else selectionOf[index] = place;
  }
  for (const auto &[index, place] : selectionOf)
    best[index].limited = std::move(found.limited[place]);
  return best;
}

}  // namespace

void chooseWithinMemory(const Problem &problem, const Options &options, Decision &decision,
                        int64_t limit) {
  const PlanContext &context = problem.context;
  std::vector<FoundPlan> found = foundByFallingLimits(problem, options, decision, limit);
  Again again = selectedAgain(problem, options, decision, limit);
  std::vector<SelectedVariant> kept;
  int64_t smallest = std::numeric_limits<int64_t>::max();
  double fastest = std::numeric_limits<double>::infinity();
  std::string smallestOf, rejection;
  for (size_t index = 0; index < decision.variants.size(); ++index) {
    SelectedVariant &variant = decision.variants[index];
    Search search = searched(context, options, variant, limit, fastest);
    for (SelectedVariant &other : again[index]) {
      Search within = searched(context, options, other, limit, fastest);
      search.smallest = std::min(search.smallest, within.smallest);
      if (!within.fitted || (search.fitted && search.fitted->seconds <= within.fitted->seconds))
        continue;
      search.fitted = std::move(within.fitted);
      variant.selection = std::move(other.selection);
    }
    if (std::optional<FittedPath> &other = found[index].fitted;
        other && (!search.fitted || other->seconds < search.fitted->seconds)) {
      search.fitted = std::move(other);
      if (found[index].limited) variant.selection = std::move(found[index].limited->selection);
    }
    if ((variant.fitted = std::move(search.fitted))) {
      fastest = std::min(fastest, variant.fitted->seconds);
      kept.push_back(std::move(variant));
      continue;
    }
    decision.dropped.push_back({.name = variant.name, .reason = reasonOf(search, limit)});
    if (search.smallest < smallest) smallest = search.smallest, smallestOf = variant.name;
    if (rejection.empty()) rejection = search.rejection;
  }
  if (kept.empty()) {
    const std::string &asked = options.maxMemoryText;
    if (smallestOf.empty())
      throw Error::unsupported("--max-memory {}: no plan keeps its workspace so small{}", asked,
                               rejection);
    throw Error::unsupported(
        "--max-memory {}: no plan keeps its workspace so small; the smallest found,\nof variant "
        "{}, takes --max-memory {}",
        asked, smallestOf, printBytesAs(smallest, asked));
  }
  std::ranges::stable_sort(kept, {},
                           [](const SelectedVariant &variant) { return variant.fitted->seconds; });
  decision.variants = std::move(kept);
  decision.chosen = 0;
  decision.chosenPath = decision.best().fitted->path;
  decision.chunks = decision.best().fitted->chunks;
}

}  // namespace weft::decision
