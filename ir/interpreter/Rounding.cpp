// Rounding by the value's own quantum (unit in the last place): exact in double for every format narrower than it.
#include "ir/interpreter/Rounding.h"

#include <cmath>
#include <limits>

namespace weft::reference {
namespace {

/// A binary floating-point format: bits of the significand after the point, and the range of normal exponents.
struct Format {
  int fractionBits, minimumExponent, maximumExponent;
};
constexpr Format half{10, -14, 15}, bfloat16{7, -126, 127};

double roundTo(const Format &format, double value) {
  if (value == 0 || !std::isfinite(value)) return value;
  const int exponent = std::max(std::ilogb(value), format.minimumExponent);
  const double quantum = std::ldexp(1.0, exponent - format.fractionBits);
  const double rounded = std::nearbyint(value / quantum) * quantum;  // the default mode: ties to even
  // The carry of rounding may step beyond the largest finite value, which has all fraction bits set.
  const double beyond = std::ldexp(1.0, format.maximumExponent + 1);
  return std::abs(rounded) < beyond ? rounded : std::copysign(std::numeric_limits<double>::infinity(), value);
}

}  // namespace

double roundTo(DType type, double value) {
  switch (type) {
  case DType::f64:
    return value;
  case DType::f32:
    return static_cast<float>(value);
  case DType::f16:
    return roundTo(half, value);
  case DType::bf16:
    return roundTo(bfloat16, value);
  case DType::i32:
    return std::trunc(value);
  case DType::i1:
    return value == 0 ? 0 : 1;
  }
  return value;
}

void roundTo(DType type, TensorValue &tensor) {
  if (type == DType::f64) return;
  for (double &element : tensor.elements) element = roundTo(type, element);
}

}  // namespace weft::reference
