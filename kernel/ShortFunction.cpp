// What has a short form: by the function that the op calls.
#include "kernel/ShortFunction.h"

#include "kernel/UnusedTokens.h"

#include <algorithm>
#include <cmath>

namespace weft {
namespace {

/// The function that has a short form; null where the op calls none.
const DeviceFunction *shortenable(const BodyOp &op) {
  for (const ExpressionNode &node : op.expression.all())
    if (node.function && node.function->shortForms) return node.function;
  return nullptr;
}

/// Whether every element of the value leaves the kernel in 16 bits, as it is, multiplied by dropout
/// or not at all, and nothing else reads it but sums that are stored in its type.
bool isStoredAtOnce(const Kernel &kernel, ValueId value) {
  const DType type = kernel.values[size_t(value)].dtype;
  const BodyOp *reader = nullptr;
  for (const BodyOp &op : kernel.body) {
    const auto reads = std::ranges::count(op.operands, value);
    if (reads == 0 ||
        (op.kind == OpKind::reduce && kernel.values[size_t(op.results[0])].dtype == type))
      continue;
    const bool handsOn = op.kind == OpKind::dropout || isTokenMask(op);
    if (!handsOn || reads != 1 || op.operands[0] != value || reader) return false;
    reader = &op;
  }
  if (!reader) return std::ranges::count(kernel.outputs, value) > 0;
  const ValueId next = reader->results[0];
  return kernel.values[size_t(next)].dtype == type && isStoredAtOnce(kernel, next);
}

}  // namespace

std::optional<Expression> shortExpression(const Kernel &kernel, const BodyOp &op) {
  const DeviceFunction *function = shortenable(op);
  if (!function) return std::nullopt;
  const ValueId value = op.results[0];
  const DType type = kernel.values[size_t(value)].dtype;
  if (type != DType::f16 && type != DType::bf16) return std::nullopt;
  if (std::ranges::none_of(kernel.body, [](const BodyOp &other) {
        return other.operatorClass == OperatorClass::contraction;
      }))
    return std::nullopt;
  if (!isStoredAtOnce(kernel, value)) return std::nullopt;
  if (function->isShortOfStored) {
    const ValueId place = op.operands.back();
    if (kernel.values[size_t(place)].dtype != type || std::ranges::count(kernel.inputs, place) == 0)
      return std::nullopt;
  }
  const DeviceFunction::ShortForms &forms = *function->shortForms;
  return op.expression.withFunction(
      *function, deviceFunction(type == DType::f16 ? forms.forHalf : forms.forBfloat16));
}

double shortError(DType type, double value, double x) {
  // As the coefficients were fitted.
  const double terms = std::abs(value) + 2 * std::abs(x) * 0.39894228 * std::exp(-x * x / 2);
  return type == DType::f16 ? 1.2 * std::max(0x1p-14 * terms, 0x1p-27)
                            : 1.2 * 0x1p-11 * terms + 0x1p-116;
}

}  // namespace weft
