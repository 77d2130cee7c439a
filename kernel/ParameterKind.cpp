// Reads the names of ParameterKind; see ParameterKind.h.
#include "kernel/ParameterKind.h"

#include <algorithm>

namespace weft {

std::optional<ParameterKind> parseParameterKind(std::string_view name) {
  const auto *found = std::ranges::find(parameterKindNames, name);
  if (found == parameterKindNames.end()) return std::nullopt;
  return static_cast<ParameterKind>(found - parameterKindNames.begin());
}

}  // namespace weft
