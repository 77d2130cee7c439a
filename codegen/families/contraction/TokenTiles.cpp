// The side of a GEMM that packed tokens lie along; see TokenTiles.h.
#include "codegen/families/contraction/TokenTiles.h"

#include "kernel/UnusedTokens.h"

#include <fmt/format.h>

#include <algorithm>

namespace weft {

bool hasEndingSum(const Kernel &kernel) {
  if (!summedTokens(kernel)) return false;
  const Expected<ContractionRegion, Reason> &region = contractionRegion(kernel);
  return region && !region->prologue;
}

TokenSide tokenSide(const Kernel &kernel, const ContractionRegion &region, bool isSwapped) {
  const std::optional<UnusedTokens> unused = unusedTokens(kernel);
  if (!unused || region.prologue || region.softmax) return TokenSide::none;
  const ContractionGroups groups = contractionGroups(kernel, {region.a, region.b, region.c});
  const auto isAllOf = [&](ContractionGroup group) {
    return std::ranges::find(groups[group], unused->axis) != groups[group].end() &&
           std::ranges::all_of(groups[group], [&](AxisId axis) {
             return axis == unused->axis || kernel.axes[size_t(axis)].extent == 1;
           });
  };
  if (isAllOf(mGroup)) return isSwapped ? TokenSide::columns : TokenSide::rows;
  if (isAllOf(nGroup)) return isSwapped ? TokenSide::rows : TokenSide::columns;
  return TokenSide::none;
}

std::string tokensArgument(const Kernel &kernel, TokenSide side, const std::string &space,
                           const std::string &count) {
  if (side == TokenSide::none || count.empty()) return "";
  return fmt::format("{}::{}{}Tokens{{{}}}", space, areUnusedUnread(kernel) ? "Unread" : "",
                     side == TokenSide::rows ? "Row" : "Column", count);
}

}  // namespace weft
