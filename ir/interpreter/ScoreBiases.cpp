// Each is a sum or a lookup by the coordinates of one element.
#include "ir/interpreter/ScoreBiases.h"

#include <algorithm>

namespace weft::reference {
namespace {

/// Of the key from the query.
int64_t distanceAt(const Shape &at, const Shape &shape, int64_t query, int64_t key) {
  return at[size_t(key)] - (at[size_t(query)] + shape[size_t(key)] - shape[size_t(query)]);
}

}  // namespace

template <typename Real>
TensorValue alibi(const TensorValue &x, std::span<const int64_t> heads, int64_t query, int64_t key,
                  double steepness) {
  int64_t count = 1;
  for (const int64_t dimension : heads) count *= x.shape[size_t(dimension)];
  TensorValue result = x;
  for (size_t n = 0; n < result.elements.size(); ++n) {
    const Shape at = coordinatesOf(int64_t(n), x.shape);
    int64_t head = 0;
    for (const int64_t dimension : heads)
      head = head * x.shape[size_t(dimension)] + at[size_t(dimension)];
    const double bias =
        alibiSlope(head, count, steepness) * double(distanceAt(at, x.shape, query, key));
    result.elements[n] = Real(result.elements[n] + bias);
  }
  return result;
}

template <typename Real>
TensorValue relativeBias(const TensorValue &x, const TensorValue &table,
                         std::span<const int64_t> along, int64_t query, int64_t key,
                         int64_t farthest, bool isReverse) {
  const int64_t distances = table.shape.back();
  TensorValue result = x;
  for (size_t n = 0; n < result.elements.size(); ++n) {
    const Shape at = coordinatesOf(int64_t(n), x.shape);
    int64_t place = 0;
    for (const int64_t dimension : along)
      place = place * x.shape[size_t(dimension)] + at[size_t(dimension)];
    const int64_t distance = distanceAt(at, x.shape, query, key);
    const int64_t column =
        std::clamp<int64_t>((isReverse ? -distance : distance) + farthest, 0, distances - 1);
    result.elements[n] =
        Real(result.elements[n] + table.elements[size_t(place * distances + column)]);
  }
  return result;
}

TensorValue expandBuckets(const TensorValue &table, BucketKind kind, int64_t farthest) {
  const int64_t buckets = table.shape.front(),
                columns = elementCount(std::span(table.shape).subspan(1));
  Shape shape(table.shape.begin() + 1, table.shape.end());
  shape.push_back(2 * farthest + 1);
  TensorValue result = zeros(shape);
  for (int64_t column = 0; column < columns; ++column)
    for (int64_t place = 0; place <= 2 * farthest; ++place)
      result.elements[size_t(column * (2 * farthest + 1) + place)] = table.elements[size_t(
          relativeBucket(kind, buckets, farthest, place - farthest) * columns + column)];
  return result;
}

template TensorValue alibi<float>(const TensorValue &, std::span<const int64_t>, int64_t, int64_t,
                                  double);
template TensorValue alibi<double>(const TensorValue &, std::span<const int64_t>, int64_t, int64_t,
                                   double);
template TensorValue relativeBias<float>(const TensorValue &, const TensorValue &,
                                         std::span<const int64_t>, int64_t, int64_t, int64_t, bool);
template TensorValue relativeBias<double>(const TensorValue &, const TensorValue &,
                                          std::span<const int64_t>, int64_t, int64_t, int64_t,
                                          bool);

}  // namespace weft::reference
