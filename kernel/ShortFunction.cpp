// What has a short form: by the name of the function that the op spells.
#include "kernel/ShortFunction.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

namespace weft {
namespace {

struct ShortFunction {
  std::string_view name;  ///< as spelled, up to the parenthesis
  bool isOfStored;        ///< what it is applied to must be stored in the same type
};
constexpr std::array functions = {ShortFunction{"weft::gelu(", false},
                                  ShortFunction{"weft::slope::gelu(", true}};

}  // namespace

std::optional<std::string> shortSpelling(const Kernel &kernel, const BodyOp &op) {
  const auto function = std::ranges::find_if(functions, [&](const ShortFunction &one) {
    return op.spelling.find(one.name) != std::string::npos;
  });
  if (function == functions.end()) return std::nullopt;
  const int value = op.results[0];
  const DType type = kernel.values[size_t(value)].dtype;
  if (type != DType::f16 && type != DType::bf16) return std::nullopt;
  if (std::ranges::none_of(kernel.body, [](const BodyOp &other) {
        return other.operatorClass == OperatorClass::contraction;
      }))
    return std::nullopt;
  const auto readsMore = [&](const BodyOp &other) {
    const bool isSumOfSameType =
        other.name == "reduce" && kernel.values[size_t(other.results[0])].dtype == type;
    return !isSumOfSameType && std::ranges::count(other.operands, value) > 0;
  };
  if (std::ranges::count(kernel.outputs, value) == 0 || std::ranges::any_of(kernel.body, readsMore))
    return std::nullopt;
  if (function->isOfStored) {
    const int place = op.operands.back();
    if (kernel.values[size_t(place)].dtype != type || std::ranges::count(kernel.inputs, place) == 0)
      return std::nullopt;
  }
  std::string text = op.spelling;
  text.insert(text.find(function->name) + function->name.size() - 1,
              type == DType::f16 ? "ForHalf" : "ForBfloat16");
  return text;
}

double shortError(DType type, double value, double x) {
  // As the coefficients were fitted.
  const double terms = std::abs(value) + 2 * std::abs(x) * 0.39894228 * std::exp(-x * x / 2);
  return type == DType::f16 ? 1.2 * std::max(0x1p-14 * terms, 0x1p-27)
                            : 1.2 * 0x1p-11 * terms + 0x1p-116;
}

}  // namespace weft
