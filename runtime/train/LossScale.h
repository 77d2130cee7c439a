// The scale of the loss that f16 gradients are kept in range by, fixed or found on the way
// (Micikevicius et al., "Mixed precision training", ICLR 2018, section 3.2; the rule of PyTorch's
// GradScaler): a step whose gradients overflow is not taken, and halves the scale; so many taken
// steps in a row double it.
//
// Invariant: a power of two times what it began with, at most 2^24, as NVIDIA's Apex has it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace weft::runtime {

/// What --loss-scale asks for: a number, or `dynamic`.
struct LossScaleChoice {
  bool isDynamic = false;
  double value = 1;  ///< of a dynamic one where it begins
};
inline constexpr double firstDynamicLossScale = 65536;

/// Throws Error(badInput) for what is neither "dynamic" nor a finite number above 0.
LossScaleChoice parseLossScale(const std::string &text);

class LossScale {
public:
  LossScale() = default;
  /// `growthInterval`: taken steps in a row that double a dynamic scale; `taken` of them are
  /// behind it.
  LossScale(const LossScaleChoice &choice, int64_t growthInterval, int64_t taken)
      : choice(choice), growthInterval(growthInterval), takenInARow(taken) {}

  double value() const { return choice.value; }
  bool isDynamic() const { return choice.isDynamic; }
  int64_t taken() const { return takenInARow; }
  /// After a step that was taken, or not because its gradients overflowed.
  void countTaken();
  void countOverflow();

private:
  LossScaleChoice choice;
  int64_t growthInterval = 0, takenInARow = 0;
};

}  // namespace weft::runtime
