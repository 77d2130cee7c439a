// Plans that fit; see MemoryLimit.h.
#include "tools/driver/MemoryLimit.h"

#include "kernel/Error.h"
#include "kernel/Format.h"
#include "tools/driver/PartsChoice.h"
#include "tools/driver/Planning.h"

#include <algorithm>
#include <limits>

namespace weft::driver {
namespace {

/// The fastest plan of a variant that fits.
struct Search {
  std::optional<FittedPath> fitted = {};
  int64_t smallest = std::numeric_limits<int64_t>::max();  ///< workspace of any plan that was tried
  std::string refusal = {};  ///< why the first plan does not run in parts

  void consider(const Compilation &compilation, const SelectedVariant &variant,
                const select::Plan &path, int64_t limit) {
    for (const int count : partCounts(compilation.choiceFlags())) {
      std::optional<PlannedKernels> planned;
      try {
        planned =
            planOf(compilation, variant, path, count, compilation.choiceFlags().branchesAsked());
      } catch (const Error &error) {
        if (error.kind != ErrorKind::unsupported) throw;
        if (refusal.empty()) refusal = fmt::format("; {}", error.what());
        continue;
      }
      const runtime::Plan &plan = planned->plan;
      smallest = std::min(smallest, plan.workspaceBytes);
      if (plan.workspaceBytes > limit) continue;
      if (!fitted || plan.predictedSeconds < fitted->seconds)
        fitted = FittedPath{.path = path,
                            .parts = count,
                            .workspaceBytes = plan.workspaceBytes,
                            .seconds = plan.predictedSeconds};
      return;  // more parts are more launches
    }
  }
};

std::string reasonOf(const Search &search, int64_t limit) {
  const std::string found =
      search.smallest == std::numeric_limits<int64_t>::max()
          ? ""
          : fmt::format("; the smallest found takes {}", formatBytes(search.smallest));
  return fmt::format("no plan keeps its workspace within {}{}{}", formatBytes(limit), found,
                     search.refusal);
}

}  // namespace

void chooseWithinMemory(const Compilation &compilation, Selected &selected, int64_t limit) {
  std::vector<SelectedVariant> kept;
  int64_t smallest = std::numeric_limits<int64_t>::max();
  std::string smallestOf, refusal;
  for (SelectedVariant &variant : selected.variants) {
    Search search;
    search.consider(compilation, variant, variant.selection.best(), limit);
    for (const select::Plan &path : variant.selection.kBest(compilation.alternatives()))
      search.consider(compilation, variant, path, limit);
    if ((variant.fitted = std::move(search.fitted))) {
      kept.push_back(std::move(variant));
      continue;
    }
    selected.dropped.push_back(
        {.name = variant.proposed.name(), .reason = reasonOf(search, limit)});
    if (search.smallest < smallest)
      smallest = search.smallest, smallestOf = variant.proposed.name();
    if (refusal.empty()) refusal = search.refusal;
  }
  if (kept.empty()) {
    const std::string &asked = compilation.choiceFlags().maxMemory;
    if (smallestOf.empty())
      throw Error::unsupported("--max-memory {}: no plan keeps its workspace so small{}", asked,
                               refusal);
    throw Error::unsupported(
        "--max-memory {}: no plan keeps its workspace so small; the smallest found,\nof variant "
        "{}, takes --max-memory {}",
        asked, smallestOf, printBytesAs(smallest, asked));
  }
  std::ranges::stable_sort(kept, {},
                           [](const SelectedVariant &variant) { return variant.fitted->seconds; });
  selected.variants = std::move(kept);
  selected.chosen = 0;
  selected.chosenPath = selected.best().fitted->path;
  selected.parts = selected.best().fitted->parts;
}

}  // namespace weft::driver
