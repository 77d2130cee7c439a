// Plans that fit; see MemoryLimit.h.
#include "tools/driver/MemoryLimit.h"

#include "kernel/Error.h"
#include "kernel/Format.h"
#include "tools/driver/ChunkChoice.h"
#include "tools/driver/Planning.h"

#include <algorithm>
#include <limits>
#include <ranges>

namespace weft::driver {
namespace {

/// The fastest plan of a variant that fits.
class Search {
public:
  std::optional<FittedPath> fitted = {};
  int64_t smallest = std::numeric_limits<int64_t>::max();  ///< workspace of any plan that was tried
  std::string rejection = {};  ///< why a plan does not run in the fewest chunks that were tried

  /// Seeks the fewest chunks that fit, by halves: more chunks take less workspace, but for the
  /// granularity of packing.
  void consider(const Compilation &compilation, const SelectedVariant &variant,
                const select::SelectionResult &path, int64_t limit) {
    const std::vector<int> counts = chunkCounts(compilation.choiceFlags());
    std::vector<PlannedKernels> fitting;
    // Those below `first` are too large or do not run, those from `last` on are not needed.
    size_t first = 0, last = counts.size();
    while (first < last) {
      const size_t middle =
          fitting.empty() && last == counts.size() ? last - 1 : (first + last) / 2;
      size_t tried = middle;  // counts that do not divide the axis say nothing: the next one below
      std::optional<PlannedKernels> planned;
      while (!(planned = tryCount(compilation, variant, path, counts[tried])) && tried > first)
        --tried;
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
  std::optional<PlannedKernels> tryCount(const Compilation &compilation,
                                         const SelectedVariant &variant,
                                         const select::SelectionResult &path, int count) {
    try {
      PlannedKernels planned = planOf(compilation, variant, path, count,
                                      compilation.choiceFlags().concurrencyRequested());
      smallest = std::min(smallest, planned.plan.workspaceBytes);
      return planned;
    } catch (const Error &error) {
      if (error.kind != ErrorKind::unsupported) throw;
      if (count < refusedCount) {
        rejection = fmt::format("; {}", error.what());
        refusedCount = count;
      }
      return std::nullopt;
    }
  }

  int refusedCount = std::numeric_limits<int>::max();
};

std::string reasonOf(const Search &search, int64_t limit) {
  const std::string found =
      search.smallest == std::numeric_limits<int64_t>::max()
          ? ""
          : fmt::format("; the smallest found takes {}", formatBytes(search.smallest));
  return fmt::format("no plan keeps its workspace within {}{}{}", formatBytes(limit), found,
                     search.rejection);
}

}  // namespace

void chooseWithinMemory(const Compilation &compilation, Selected &selected, int64_t limit) {
  std::vector<SelectedVariant> kept;
  int64_t smallest = std::numeric_limits<int64_t>::max();
  double fastest = std::numeric_limits<double>::infinity();
  std::string smallestOf, rejection;
  for (SelectedVariant &variant : selected.variants) {
    Search search;
    search.consider(compilation, variant, variant.selection.best(), limit);
    // Chunks do not make a path faster, so those that are slower whole than what fits are left out.
    const std::vector<select::SelectionResult> paths =
        variant.selection.kBest(compilation.alternatives());
    for (const select::SelectionResult &path : paths | std::views::drop(1)) {
      const double known = search.fitted ? std::min(fastest, search.fitted->seconds) : fastest;
      if (path.seconds < known) search.consider(compilation, variant, path, limit);
    }
    if ((variant.fitted = std::move(search.fitted))) {
      fastest = std::min(fastest, variant.fitted->seconds);
      kept.push_back(std::move(variant));
      continue;
    }
    selected.dropped.push_back(
        {.name = variant.proposed.name(), .reason = reasonOf(search, limit)});
    if (search.smallest < smallest)
      smallest = search.smallest, smallestOf = variant.proposed.name();
    if (rejection.empty()) rejection = search.rejection;
  }
  if (kept.empty()) {
    const std::string &asked = compilation.choiceFlags().maxMemory;
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
  selected.variants = std::move(kept);
  selected.chosen = 0;
  selected.chosenPath = selected.best().fitted->path;
  selected.chunks = selected.best().fitted->chunks;
}

}  // namespace weft::driver
