// What has a short form: by the function that the op calls.
#include "kernel/ShortFunction.h"

#include "kernel/Error.h"

#include <algorithm>
#include <cmath>

namespace weft {
namespace {

/// The function that has a short form; null where the op calls none.
const DeviceFunction *shortenable(const BodyOp &op) {
  for (const ExpressionNode &node : op.expression.all())
    if (node.function && node.function->hasShortForm) return node.function;
  return nullptr;
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
  const auto readsMore = [&](const BodyOp &other) {
    const bool isSumOfSameType =
        other.kind == OpKind::reduce && kernel.values[size_t(other.results[0])].dtype == type;
    return !isSumOfSameType && std::ranges::count(other.operands, value) > 0;
  };
  if (std::ranges::count(kernel.outputs, value) == 0 || std::ranges::any_of(kernel.body, readsMore))
    return std::nullopt;
  if (function->isShortOfStored) {
    const ValueId place = op.operands.back();
    if (kernel.values[size_t(place)].dtype != type || std::ranges::count(kernel.inputs, place) == 0)
      return std::nullopt;
  }
  const DeviceFunction *shortened = deviceFunction(
      fmt::format("{}{}", function->name, type == DType::f16 ? "ForHalf" : "ForBfloat16"));
  if (!shortened)
    throw Error::checkFailed("the device library has no short form of '{}'", function->name);
  return op.expression.withFunction(*function, *shortened);
}

double shortError(DType type, double value, double x) {
  // As the coefficients were fitted.
  const double terms = std::abs(value) + 2 * std::abs(x) * 0.39894228 * std::exp(-x * x / 2);
  return type == DType::f16 ? 1.2 * std::max(0x1p-14 * terms, 0x1p-27)
                            : 1.2 * 0x1p-11 * terms + 0x1p-116;
}

}  // namespace weft
