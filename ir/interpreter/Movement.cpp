// Transposes, slices, concatenations, reshapes, gathers and broadcasts over dense row-major
// tensors.
#include "ir/interpreter/Movement.h"

#include <algorithm>
#include <utility>

namespace weft::reference {
namespace {

/// Reads x at strides given per dimension of the result.
TensorValue strided(const TensorValue &x, Shape shape, std::span<const int64_t> strides) {
  TensorValue result = zeros(std::move(shape));
  for (size_t n = 0; n < result.elements.size(); ++n) {
    int64_t rest = int64_t(n), position = 0;
    for (size_t d = result.shape.size(); d-- > 0; rest /= result.shape[d])
      position += rest % result.shape[d] * strides[d];
    result.elements[n] = x.elements[position];
  }
  return result;
}

}  // namespace

TensorValue transpose(const TensorValue &x, std::span<const int64_t> permutation) {
  const Shape all = stridesOf(x.shape);
  Shape shape, strides;
  for (int64_t source : permutation) {
    shape.push_back(x.shape[source]);
    strides.push_back(all[source]);
  }
  return strided(x, std::move(shape), strides);
}

TensorValue slice(const TensorValue &x, int64_t axis, int64_t start, int64_t size) {
  const AxisView view(x.shape, axis);
  Shape shape = x.shape;
  shape[axis] = size;
  TensorValue result{.shape = std::move(shape), .elements = {}};
  result.elements.reserve(view.outer * size * view.inner);
  for (int64_t o = 0; o < view.outer; ++o) {
    const auto from = x.elements.begin() + view.at(o, start, 0);
    result.elements.insert(result.elements.end(), from, from + size * view.inner);
  }
  return result;
}

TensorValue concat(std::span<const TensorValue *const> parts, int64_t axis) {
  Shape shape = parts.front()->shape;
  shape[axis] = 0;
  for (const TensorValue *part : parts) shape[axis] += part->shape[axis];
  TensorValue result{.shape = std::move(shape), .elements = {}};
  result.elements.reserve(elementCount(result.shape));
  const int64_t outer = AxisView(result.shape, axis).outer;
  for (int64_t o = 0; o < outer; ++o)
    for (const TensorValue *part : parts) {
      const int64_t run = int64_t(part->elements.size()) / outer;
      const auto from = part->elements.begin() + o * run;
      result.elements.insert(result.elements.end(), from, from + run);
    }
  return result;
}

TensorValue reshape(const TensorValue &x, Shape shape) {
  return {.shape = std::move(shape), .elements = x.elements};
}

TensorValue gather(const TensorValue &table, const TensorValue &indices, double outside) {
  const int64_t rows = table.shape[0], run = elementCount(std::span(table.shape).subspan(1));
  Shape shape = indices.shape;
  shape.insert(shape.end(), table.shape.begin() + 1, table.shape.end());
  TensorValue result{.shape = std::move(shape), .elements = {}};
  result.elements.reserve(elementCount(result.shape));
  for (size_t n = 0; n < indices.elements.size(); ++n) {
    const int64_t row = int64_t(indices.elements[n]);
    if (row < 0 || row >= rows) {
      result.elements.insert(result.elements.end(), run, outside);
      continue;
    }
    const auto from = table.elements.begin() + row * run;
    result.elements.insert(result.elements.end(), from, from + run);
  }
  return result;
}

TensorValue pad(const TensorValue &x, int64_t axis, int64_t start, int64_t size) {
  Shape shape = x.shape;
  shape[axis] = size;
  TensorValue result = zeros(std::move(shape));
  const AxisView from(x.shape, axis), to(result.shape, axis);
  for (int64_t o = 0; o < from.outer; ++o)
    std::copy_n(x.elements.begin() + from.at(o, 0, 0), from.extent * from.inner,
                result.elements.begin() + to.at(o, start, 0));
  return result;
}

template <typename Real>
TensorValue scatterAdd(const TensorValue &rows, const TensorValue &indices, Shape shape) {
  TensorValue result = zeros(std::move(shape));
  const int64_t count = result.shape[0], run = elementCount(std::span(result.shape).subspan(1));
  for (size_t n = 0; n < indices.elements.size(); ++n) {
    const int64_t row = int64_t(indices.elements[n]);
    if (row < 0 || row >= count) continue;
    for (int64_t e = 0; e < run; ++e) {
      double &sum = result.elements[row * run + e];
      sum = Real(sum) + Real(rows.elements[int64_t(n) * run + e]);
    }
  }
  return result;
}

template TensorValue scatterAdd<float>(const TensorValue &, const TensorValue &, Shape);
template TensorValue scatterAdd<double>(const TensorValue &, const TensorValue &, Shape);

TensorValue broadcast(const TensorValue &b, std::span<const int64_t> shape,
                      std::span<const int64_t> along) {
  const Shape all = stridesOf(b.shape);
  Shape strides(shape.size());
  for (size_t n = 0; n < along.size(); ++n) strides[along[n]] = all[n];
  return strided(b, Shape(shape.begin(), shape.end()), strides);
}

}  // namespace weft::reference
