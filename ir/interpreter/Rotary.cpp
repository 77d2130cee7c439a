// Angles are computed in double in either precision: at position 10^4 an fp32 angle has already
// lost three digits.
#include "ir/interpreter/Rotary.h"

#include <cmath>

namespace weft::reference {

template <typename Real>
TensorValue rotary(const TensorValue &x, int64_t position, int64_t dim, double base,
                   RotaryStyle style, bool isReverse) {
  const Shape strides = stridesOf(x.shape);
  const int64_t extent = x.shape[dim], half = extent / 2;
  TensorValue result = zeros(x.shape);
  for (int64_t n = 0; n < int64_t(x.elements.size()); ++n) {
    const Shape at = coordinatesOf(n, x.shape);
    const bool halved = style == RotaryStyle::halved;
    const bool second = halved ? at[dim] >= half : at[dim] % 2 != 0;
    const int64_t pair = halved ? at[dim] % half : at[dim] / 2;
    const double angle =
        double(at[position]) * std::pow(base, -2.0 * double(pair) / double(extent));
    const int64_t distance =
        (halved ? half : 1) * strides[dim];  // between the two elements of a pair
    const Real own = Real(x.elements[n]),
               other = Real(x.elements[second ? n - distance : n + distance]);
    const Real cosine = Real(std::cos(angle)), sine = Real(std::sin(isReverse ? -angle : angle));
    result.elements[n] = second ? own * cosine + other * sine : own * cosine - other * sine;
  }
  return result;
}

template TensorValue rotary<float>(const TensorValue &, int64_t, int64_t, double, RotaryStyle,
                                   bool);
template TensorValue rotary<double>(const TensorValue &, int64_t, int64_t, double, RotaryStyle,
                                    bool);

}  // namespace weft::reference
