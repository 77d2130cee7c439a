// One backward walk over the body; see PositiveValues.h.
#include "kernel/PositiveValues.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace weft {

bool preservesPositive(std::string_view op) {
  constexpr std::array<std::string_view, 18> names = {
      "add",   "mul",    "div",      "bias",       "residual",   "average",
      "sqrt",  "rsqrt",  "cast",     "scale",      "reduce",     "transpose",
      "slice", "concat", "identity", "split_axis", "merge_axes", "broadcast"};
  return std::ranges::find(names, op) != names.end();
}

bool requiresPositive(std::string_view op, size_t operand) {
  if (op == "sqrt" || op == "rsqrt") return true;
  return ((op == "div" || op == "reduce_subvectors" || op == "rms_normalize") && operand == 1) ||
         (op == "normalize" && operand == 2);
}

std::vector<bool> positiveValues(const Kernel &kernel, std::vector<bool> required) {
  required.resize(kernel.values.size(), false);
  for (auto op = kernel.body.rbegin(); op != kernel.body.rend(); ++op) {
    const bool isAsked = std::ranges::any_of(
        op->results, [&](int result) { return bool(required[size_t(result)]); });
    const bool isSquare = op->name == "mul" && op->operands[0] == op->operands[1];
    const bool passesOn = isAsked && preservesPositive(op->name) && !isSquare;
    for (size_t n = 0; n < op->operands.size(); ++n)
      if (passesOn || requiresPositive(op->name, n)) required[size_t(op->operands[n])] = true;
  }
  return required;
}

}  // namespace weft
