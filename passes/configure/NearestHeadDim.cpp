// Tries one extent after another; see NearestHeadDim.h.
#include "passes/configure/NearestHeadDim.h"

#include "kernel/AttentionRegion.h"

#include <fmt/format.h>

#include <algorithm>

namespace weft {
namespace {

/// The one axis that has more than one element; -1 where several have, or none.
AxisId longAxis(const Kernel &kernel, const std::vector<AxisId> &axes) {
  AxisId found = -1;
  for (const AxisId axis : axes) {
    if (kernel.axes[size_t(axis)].extent == 1) continue;
    if (found >= 0) return -1;
    found = axis;
  }
  return found;
}

}  // namespace

std::string nearestHeadDim(const Kernel &kernel,
                           const std::function<std::string(const Kernel &)> &rejection) {
  const Expected<AttentionRegion, Reason> &region = attentionRegion(kernel);
  // An axis of pairs that turn is more than its extent.
  if (!region || region->turned) return "";
  const AxisId ofQueries = longAxis(kernel, region->headDim),
               ofValues = longAxis(kernel, region->valueDim);
  if (ofQueries < 0 || ofValues < 0) return "";
  const int64_t queries = kernel.axes[size_t(ofQueries)].extent,
                values = kernel.axes[size_t(ofValues)].extent, own = std::max(queries, values);
  const auto textOf = [&](int64_t extent) -> std::string {
    Kernel other = kernel;
    if (queries == own) other.axes[size_t(ofQueries)].extent = extent;
    if (values == own) other.axes[size_t(ofValues)].extent = extent;
    if (!rejection(other).empty()) return "";
    if (queries == values) return fmt::format("head dim {}", extent);
    return fmt::format("head dims {} and {}", other.axes[size_t(ofQueries)].extent,
                       other.axes[size_t(ofValues)].extent);
  };
  // Of whole chunks of 16 bytes, which every family copies.
  const int64_t chunk = 16 / int64_t(sizeOf(kernel.values[size_t(region->q)].dtype));
  for (int64_t distance = 1; distance < std::max(own, chunk); ++distance)
    for (const int64_t extent : {own + distance, own - distance})
      if (extent > 0 && extent % chunk == 0)
        if (std::string text = textOf(extent); !text.empty()) return text;
  return "";
}

}  // namespace weft
