// One backward walk over the body; see PositiveValues.h.
#include "kernel/PositiveValues.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace weft {
namespace {

/// Whether results of the op are positive where all of its float operands are.
bool preservesPositive(const BodyOp &op) {
  constexpr std::array<std::string_view, 18> names = {
      "add",   "mul",    "div",      "bias",       "residual",   "average",
      "sqrt",  "rsqrt",  "cast",     "scale",      "reduce",     "transpose",
      "slice", "concat", "identity", "split_axis", "merge_axes", "broadcast"};
  return std::ranges::find(names, op.name) != names.end();
}

bool isSquare(const BodyOp &op) { return op.name == "mul" && op.operands[0] == op.operands[1]; }

/// Whether the op itself is undefined unless the operand is positive.
bool requiresPositive(const BodyOp &op, size_t operand) {
  if (op.name == "sqrt" || op.name == "rsqrt") return true;
  return ((op.name == "div" || op.name == "reduce_subvectors" || op.name == "rms_normalize") &&
          operand == 1) ||
         (op.name == "normalize" && operand == 2);
}

}  // namespace

std::vector<bool> positiveValues(const Kernel &kernel, std::vector<bool> required) {
  required.resize(kernel.values.size(), false);
  for (auto op = kernel.body.rbegin(); op != kernel.body.rend(); ++op) {
    const bool isAsked = std::ranges::any_of(
        op->results, [&](int result) { return bool(required[size_t(result)]); });
    const bool passesOn = isAsked && preservesPositive(*op) && !isSquare(*op);
    for (size_t n = 0; n < op->operands.size(); ++n)
      if (passesOn || requiresPositive(*op, n)) required[size_t(op->operands[n])] = true;
  }
  return required;
}

}  // namespace weft
