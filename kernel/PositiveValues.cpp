// One backward walk over the body; see PositiveValues.h.
#include "kernel/PositiveValues.h"

#include <algorithm>
#include <array>

namespace weft {

bool preservesPositive(OpKind op, size_t operand) {
  if (op == OpKind::averageSquare) return operand == 0;
  constexpr std::array kinds = {
      OpKind::add,       OpKind::mul,       OpKind::div,      OpKind::bias,   OpKind::residual,
      OpKind::average,   OpKind::sqrt,      OpKind::rsqrt,    OpKind::cast,   OpKind::scale,
      OpKind::reduce,    OpKind::transpose, OpKind::slice,    OpKind::concat, OpKind::identity,
      OpKind::splitAxis, OpKind::mergeAxes, OpKind::broadcast};
  return std::ranges::find(kinds, op) != kinds.end();
}

bool requiresPositive(OpKind op, size_t operand) {
  if (op == OpKind::sqrt || op == OpKind::rsqrt) return true;
  if (op == OpKind::adamwStep) return operand == 2 || operand == 5;
  return ((op == OpKind::div || op == OpKind::reduceSubvectors || op == OpKind::rmsNormalize) &&
          operand == 1) ||
         (op == OpKind::normalize && operand == 2);
}

std::vector<bool> positiveValues(const Kernel &kernel, std::vector<bool> required) {
  required.resize(kernel.values.size(), false);
  for (auto op = kernel.body.rbegin(); op != kernel.body.rend(); ++op) {
    const bool isAsked = std::ranges::any_of(
        op->results, [&](ValueId result) { return bool(required[size_t(result)]); });
    const bool isSquare = op->kind == OpKind::mul && op->operands[0] == op->operands[1];
    for (size_t n = 0; n < op->operands.size(); ++n)
      if ((isAsked && !isSquare && preservesPositive(op->kind, n)) || requiresPositive(op->kind, n))
        required[size_t(op->operands[n])] = true;
  }
  return required;
}

}  // namespace weft
