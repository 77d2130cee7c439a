// What the recognitions of regions share (AttentionRegion.cpp, ContractionPrologue.cpp, ...).
#pragma once

#include "kernel/Kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace weft {

/// Why an op has no place in a region: "'softmax' has several results".
inline std::string cannotStand(const BodyOp &op, std::string_view why) {
  return fmt::format("'{}' {}", nameOf(op.kind), why);
}
template <typename List>
bool holds(const List &list, typename List::value_type value) {
  return std::ranges::find(list, value) != list.end();
}

}  // namespace weft
