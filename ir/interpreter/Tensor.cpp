// Shapes, strides and the comparison of tensors.
#include "ir/interpreter/Tensor.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace weft::reference {

int64_t elementCount(std::span<const int64_t> shape) {
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  return count;
}

Shape stridesOf(std::span<const int64_t> shape) {
  Shape strides(shape.size());
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= shape[d];
  }
  return strides;
}

TensorValue zeros(Shape shape) {
  const size_t count = elementCount(shape);
  return {.shape = std::move(shape), .elements = std::vector<double>(count)};
}

Shape coordinatesOf(int64_t position, std::span<const int64_t> shape) {
  Shape coordinates(shape.size());
  for (size_t d = shape.size(); d-- > 0; position /= shape[d]) coordinates[d] = position % shape[d];
  return coordinates;
}

AxisView::AxisView(std::span<const int64_t> shape, int64_t axis)
    : outer(elementCount(shape.first(axis))),
      extent(shape[axis]),
      inner(elementCount(shape.subspan(axis + 1))) {}

Shape withoutAxes(std::span<const int64_t> shape, std::span<const int64_t> axes) {
  Shape rest;
  for (size_t d = 0; d < shape.size(); ++d)
    if (std::ranges::find(axes, int64_t(d)) == axes.end()) rest.push_back(shape[d]);
  return rest;
}

double elementDistance(double a, double b, double absolute, double relative) {
  if (a == b) return 0;
  const double ratio = std::abs(a - b) / (absolute + relative * std::abs(b));
  // inf - finite over inf would be NaN; zero tolerance gives infinity by itself.
  const bool comparable = std::isfinite(a) && std::isfinite(b);
  return comparable ? ratio : std::numeric_limits<double>::infinity();
}

}  // namespace weft::reference

double weft::distance(const TensorValue &a, const TensorValue &b, double absolute,
                      double relative) {
  if (a.shape != b.shape) return std::numeric_limits<double>::infinity();
  double worst = 0;
  for (size_t n = 0; n < a.elements.size(); ++n)
    worst = std::max(worst,
                     reference::elementDistance(a.elements[n], b.elements[n], absolute, relative));
  return worst;
}
