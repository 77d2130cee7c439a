// Rounding by the value's own quantum (unit in the last place): exact in double for every format
// narrower than it.
#include "kernel/reference/Rounding.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace weft::reference {
namespace {

/// A binary floating-point format: bits of the significand after the point, and the range of normal
/// exponents.
struct Format {
  int fractionBits, minimumExponent, maximumExponent;
};
constexpr Format half{10, -14, 15}, bfloat16{7, -126, 127}, tensorFloat{10, -126, 127},
    single{23, -126, 127}, e4m3{3, -6, 8}, e5m2{2, -14, 15};
constexpr double largestE4m3 = 448, largestE5m2 = 57344;  ///< 0x7E: 0x7F is NaN; 0x7B

double quantumOf(const Format &format, double value) {
  const int exponent =
      value == 0 ? format.minimumExponent : std::max(std::ilogb(value), format.minimumExponent);
  return std::ldexp(1.0, exponent - format.fractionBits);
}

double roundTo(const Format &format, double value) {
  if (value == 0 || !std::isfinite(value)) return value;
  const double quantum = quantumOf(format, value);
  const double rounded =
      std::nearbyint(value / quantum) * quantum;  // the default mode: ties to even
  // The carry of rounding may step beyond the largest finite value, which has all fraction bits
  // set.
  const double beyond = std::ldexp(1.0, format.maximumExponent + 1);
  return std::abs(rounded) < beyond ? rounded
                                    : std::copysign(std::numeric_limits<double>::infinity(), value);
}

}  // namespace

double roundTo(DType type, double value) {
  switch (type) {
    case DType::f64: return value;
    case DType::f32: return static_cast<float>(value);
    case DType::tf32: return roundTo(tensorFloat, value);
    case DType::f16: return roundTo(half, value);
    case DType::bf16: return roundTo(bfloat16, value);
    case DType::f8e4m3: return roundTo(e4m3, saturated(type, value));
    case DType::f8e5m2: return roundTo(e5m2, saturated(type, value));
    case DType::i32: return std::trunc(value);
    case DType::i1: return value == 0 ? 0 : 1;
  }
  return value;
}

double roundToTf32(double value) {
  constexpr int fractionBits = 10;
  int exponent = 0;
  if (!std::isfinite(value) || value == 0) return value;
  const double fraction = std::frexp(value, &exponent);  // in [1/2, 1)
  return std::ldexp(std::nearbyint(std::ldexp(fraction, fractionBits + 1)),
                    exponent - fractionBits - 1);
}

double saturated(DType type, double value) {
  const bool isE4m3 = type == DType::f8e4m3;
  if ((!isE4m3 && type != DType::f8e5m2) || std::isnan(value) || (!isE4m3 && std::isinf(value)))
    return value;
  const double largest = isE4m3 ? largestE4m3 : largestE5m2;
  return std::clamp(value, -largest, largest);
}

double roundingError(DType type, double value) {
  if (!std::isfinite(value)) return 0;
  switch (type) {
    case DType::f32: return quantumOf(single, value) / 2;
    case DType::tf32: return quantumOf(tensorFloat, value) / 2;
    case DType::f16: return quantumOf(half, value) / 2;
    case DType::bf16: return quantumOf(bfloat16, value) / 2;
    case DType::f8e4m3: return quantumOf(e4m3, value) / 2;
    case DType::f8e5m2: return quantumOf(e5m2, value) / 2;
    default: return 0;
  }
}

}  // namespace weft::reference
