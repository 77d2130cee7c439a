// Names of what a training step takes and gives beside its model's tensors: the optimizer gives
// them (passes/differentiate/AdamW.cpp), whoever trains reads them in a plan.
#pragma once

#include <string_view>

namespace weft {

/// Tensor d_NAME is the gradient of the loss by NAME (passes/differentiate/Differentiate.cpp).
inline constexpr std::string_view gradientPrefix = "d_";
/// The scalar that a gradient is multiplied by before it is applied: 1 / the gradient of the loss.
inline constexpr const char *inverseLossScaleName = "inverse_loss_scale";
/// The scalar result beside it: finite exactly if all gradients are.
inline constexpr const char *gradientCheckName = "gradient_check";

}  // namespace weft
