// Names of gradients.
//
// Invariant: which tensor is whose gradient, next value or master, and what it is to a training
// step, attributes of the graph and members of the plan say (passes/SavedTensors.h,
// kernel/TrainingRole.h, plan/Plan.h), and no name.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace weft {

/// What the gradient of the loss by a tensor is called, for people: "d_NAME". The names of further
/// ops that compute it begin so, too (passes/differentiate/Differentiate.cpp).
inline std::string gradientName(std::string_view of) { return "d_" + std::string(of); }
/// NAME of "d_NAME", with what follows it; nothing: it is no name of a gradient.
inline std::optional<std::string_view> nameBehindGradient(std::string_view name) {
  if (!name.starts_with(gradientName(""))) return std::nullopt;
  return name.substr(gradientName("").size());
}

}  // namespace weft
