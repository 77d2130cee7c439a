// Names of what a training step takes and gives beside its model's tensors: the optimizer gives
// them (passes/differentiate/AdamW.cpp), whoever trains reads them in a plan.
#pragma once

#include <string_view>

namespace weft {

/// Tensor d_NAME is the gradient of the loss by NAME (passes/differentiate/Differentiate.cpp).
inline constexpr std::string_view gradientPrefix = "d_";
/// Result NAME_next is what the argument NAME is in the next step.
inline constexpr std::string_view nextSuffix = "_next";
/// Argument NAME_master holds in f32 what the parameter NAME of f16 or bf16 is the rounding of.
inline constexpr std::string_view masterSuffix = "_master";
/// The scalar that a gradient is multiplied by before it is applied: 1 / the gradient of the loss.
inline constexpr const char *inverseLossScaleName = "inverse_loss_scale";
/// The scalar result beside it: finite exactly if all gradients are.
inline constexpr const char *gradientCheckName = "gradient_check";

}  // namespace weft
