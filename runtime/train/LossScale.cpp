// The scale of the loss; see LossScale.h.
#include "runtime/train/LossScale.h"

#include "kernel/Error.h"

#include <charconv>
#include <cmath>

namespace weft::runtime {

namespace {

constexpr double largestLossScale = 16777216;

}  // namespace

LossScaleChoice parseLossScale(const std::string &text) {
  if (text == "dynamic") return {.isDynamic = true, .value = firstDynamicLossScale};
  double value = 0;
  const char *end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, value);
  if (problem != std::errc() || stop != end || !(value > 0 && std::isfinite(value)))
    throw Error::badInput("--loss-scale {}: a finite number above 0, or dynamic", text);
  return {.isDynamic = false, .value = value};
}

void LossScale::countTaken() {
  ++takenInARow;
  if (!choice.isDynamic || takenInARow < growthInterval) return;
  takenInARow = 0;
  if (2 * choice.value <= largestLossScale) choice.value *= 2;
}

void LossScale::countOverflow() {
  takenInARow = 0;
  if (choice.isDynamic) choice.value /= 2;
}

}  // namespace weft::runtime
