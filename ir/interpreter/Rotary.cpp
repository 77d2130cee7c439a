// Angles are computed in double in either precision: at position 10^4 an fp32 angle has already
// lost three digits.
#include "ir/interpreter/Rotary.h"

#include <cmath>

namespace weft::reference {
namespace {

double frequencyOf(const RotaryForm &form, int64_t pair) {
  const double frequency = std::pow(form.base, -2.0 * double(pair) / double(form.turned));
  if (form.original == 0) return frequency / form.factor;
  const double wavelength = 2 * std::acos(-1.0) / frequency, original = double(form.original);
  if (wavelength < original / form.high) return frequency;
  if (wavelength > original / form.low) return frequency / form.factor;
  const double kept = (original / wavelength - form.low) / (form.high - form.low);
  return kept * frequency + (1 - kept) * frequency / form.factor;
}

}  // namespace

template <typename Real>
TensorValue rotary(const TensorValue &x, const RotaryForm &form, const SequenceStarts &starts) {
  const Shape strides = stridesOf(x.shape);
  const int64_t half = form.turned / 2;
  TensorValue result = x;
  for (int64_t n = 0; n < int64_t(x.elements.size()); ++n) {
    const Shape at = coordinatesOf(n, x.shape);
    const int64_t here = at[form.dim];
    if (here >= form.turned) continue;
    if (form.among >= 0 && (at[form.among] < form.begin || at[form.among] >= form.end)) continue;
    const bool halved = form.style == RotaryStyle::halved;
    const bool second = halved ? here >= half : here % 2 != 0;
    const int64_t pair = halved ? here % half : here / 2;
    const bool isPacked = starts.isGiven() && starts.along == form.position;
    const int64_t start = starts.of(at), position = at[form.position] + (isPacked ? -start : start);
    const double angle = double(position) * frequencyOf(form, pair);
    const int64_t distance =
        (halved ? half : 1) * strides[form.dim];  // between the two elements of a pair
    const Real own = Real(x.elements[n]),
               other = Real(x.elements[second ? n - distance : n + distance]);
    const Real cosine = Real(std::cos(angle)),
               sine = Real(std::sin(form.isReverse ? -angle : angle));
    result.elements[n] = second ? own * cosine + other * sine : own * cosine - other * sine;
  }
  return result;
}

template TensorValue rotary<float>(const TensorValue &, const RotaryForm &, const SequenceStarts &);
template TensorValue rotary<double>(const TensorValue &, const RotaryForm &,
                                    const SequenceStarts &);

}  // namespace weft::reference
