// What a training step takes and gives beside its model's tensors, for all who mark graphs, write
// plans and train: the batch, the scalars that an optimizer reads, the loss. No name says so.
#pragma once

#include "kernel/WordTable.h"

#include <cstdint>

namespace weft {

enum class TrainingRole : uint8_t {
  none,
  tokens,            ///< of the batch: i32 over (sequence, position)
  labels,            ///< likewise: what the model should give at each position
  weights,           ///< likewise, of f32: what the loss at each position counts
  lossGradient,      ///< the scale of the loss, which its gradient brings
  inverseLossScale,  ///< one over it: what gradients are multiplied by before they are applied
  keptShare,         ///< 1 - rate * decay (passes/differentiate/AdamW.cpp)
  stepSize,          ///< the rate with the bias corrections of both averages
  epsilon,           ///< of the root, with the correction of the second average
  loss,              ///< a result: the scalar that training prints
  gradientCheck,     ///< a result: finite exactly if all gradients are
};

/// As graphs (`weft.training`) and plan.json have them; the empty word of `none` is never written.
inline constexpr WordTable<TrainingRole, 11> trainingRoleWords = {
    {{TrainingRole::none, ""},
     {TrainingRole::tokens, "tokens"},
     {TrainingRole::labels, "labels"},
     {TrainingRole::weights, "weights"},
     {TrainingRole::lossGradient, "lossGradient"},
     {TrainingRole::inverseLossScale, "inverseLossScale"},
     {TrainingRole::keptShare, "keptShare"},
     {TrainingRole::stepSize, "stepSize"},
     {TrainingRole::epsilon, "epsilon"},
     {TrainingRole::loss, "loss"},
     {TrainingRole::gradientCheck, "gradientCheck"}}};
constexpr std::string_view nameOf(TrainingRole role) { return wordOf(trainingRoleWords, role); }
/// Nothing for the empty word, too.
constexpr std::optional<TrainingRole> trainingRoleNamed(std::string_view word) {
  return word.empty() ? std::nullopt : valueNamed(trainingRoleWords, word);
}
/// Whether a result has it; all others but `none` are of arguments.
constexpr bool isOfResult(TrainingRole role) {
  return role == TrainingRole::loss || role == TrainingRole::gradientCheck;
}
/// Whether what has it is one number of f32; the others but `none` are the batch.
constexpr bool isScalar(TrainingRole role) { return role >= TrainingRole::lossGradient; }

}  // namespace weft
