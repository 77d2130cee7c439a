// The tensor seen as [outer][rows][columns], element by element.
#include "ir/interpreter/Dropout.h"

namespace weft::reference {

template <typename Real>
TensorValue dropout(const TensorValue &x, double p, const DropoutSource &source) {
  const int64_t rank = int64_t(x.shape.size());
  const int64_t columns = rank >= 1 ? x.shape[rank - 1] : 1,
                rows = rank >= 2 ? x.shape[rank - 2] : 1;
  const uint32_t threshold = dropoutThreshold(p);
  const Real scale = dropoutScale(p);
  TensorValue result = zeros(x.shape);
  for (int64_t n = 0; n < int64_t(x.elements.size()); ++n) {
    const bool kept =
        dropoutDraw(source, n / (rows * columns), n / columns % rows, n % columns) >= threshold;
    result.elements[n] = kept ? Real(x.elements[n]) * scale : Real(0);
  }
  return result;
}

template TensorValue dropout<float>(const TensorValue &, double, const DropoutSource &);
template TensorValue dropout<double>(const TensorValue &, double, const DropoutSource &);

}  // namespace weft::reference
