// Edit distance in three rows: the swap of neighbours looks back two.
#include "kernel/Nearest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <numeric>

namespace weft {

size_t editDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> beforeLast(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t(0));
  for (size_t i = 1; i <= a.size(); ++i) {
    beforeLast.swap(last);
    last.swap(row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], beforeLast[j - 2] + 1);
    }
  }
  return row[b.size()];
}

namespace {
std::string lowerCase(std::string_view text) {
  std::string lower(text);
  for (char &c : lower) c = char(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}
}  // namespace

std::string nearest(std::string_view name, const std::vector<std::string> &candidates) {
  std::string best;
  size_t fewest = 0;
  for (const std::string &candidate : candidates) {
    const size_t edits = editDistance(lowerCase(name), lowerCase(candidate));
    const bool isNear = 2 * edits < std::max(name.size(), candidate.size());
    if (!isNear || (!best.empty() && edits >= fewest)) continue;
    best = candidate;
    fewest = edits;
  }
  return best;
}

std::string nearestAndKnown(std::string_view name, const std::vector<std::string> &candidates) {
  const std::string near = nearest(name, candidates);
  constexpr size_t shown = 40;  // the names of a model of many layers would fill screens
  const size_t count = candidates.size() > shown ? shown : candidates.size();
  const std::string rest =
      candidates.size() > count ? fmt::format(", and {} more", candidates.size() - count) : "";
  const std::string known = fmt::format(
      "(known: {}{})", fmt::join(candidates.begin(), candidates.begin() + long(count), ", "), rest);
  return near.empty() ? " " + known : fmt::format("; nearest is '{}' {}", near, known);
}

}  // namespace weft
