// Names of what a training step takes and gives beside its model's tensors: the optimizer gives
// them (passes/differentiate/AdamW.cpp), whoever trains reads them in a plan.
//
// Invariant: which tensor is whose gradient, next value or master, attributes of the graph and
// members of the plan say (passes/SavedTensors.h, plan/Plan.h), and no name.
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
/// The scalar that a gradient is multiplied by before it is applied: 1 / the gradient of the loss.
inline constexpr const char *inverseLossScaleName = "inverse_loss_scale";
/// The scalar result beside it: finite exactly if all gradients are.
inline constexpr const char *gradientCheckName = "gradient_check";

}  // namespace weft
