// Names of ops; see OpKind.h.
#include "kernel/OpKind.h"

#include <algorithm>
#include <array>

namespace weft {
namespace {

constexpr std::array<std::string_view,
#define WEFT_OP(kind, name) +1
#include "kernel/OpKinds.inc"
#undef WEFT_OP
                     >
    names = {
#define WEFT_OP(kind, name) name,
#include "kernel/OpKinds.inc"
#undef WEFT_OP
};

}  // namespace

std::string_view nameOf(OpKind kind) { return names[static_cast<size_t>(kind)]; }

std::optional<OpKind> opKindNamed(std::string_view name) {
  const auto *found = std::ranges::find(names, name);
  if (found == names.end()) return std::nullopt;
  return static_cast<OpKind>(found - names.begin());
}

}  // namespace weft
