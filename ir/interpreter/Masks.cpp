// Each mask is a predicate over the coordinates of one element.
#include "ir/interpreter/Masks.h"

#include "kernel/TileBounds.h"

#include <algorithm>
#include <limits>

namespace weft::reference {
namespace {

/// Keeps the elements for which visible(coordinates) holds.
template <typename Visible>
TensorValue keepWhere(const TensorValue &x, double fill, Visible visible) {
  TensorValue result = x;
  for (size_t n = 0; n < result.elements.size(); ++n)
    if (!visible(coordinatesOf(int64_t(n), x.shape))) result.elements[n] = fill;
  return result;
}

}  // namespace

TensorValue maskWindow(const TensorValue &x, int64_t query, int64_t key, int64_t left,
                       int64_t right, int64_t global, double fill, const SequenceStarts &starts) {
  const int64_t shift = starts.isGiven() ? 0 : x.shape[key] - x.shape[query];
  return keepWhere(x, fill, [&](const Shape &at) {
    const int64_t position = at[query] + shift + starts.of(at), distance = at[key] - position;
    if (global > 0 && (at[key] < global || position < global)) return true;
    return -left <= distance && distance <= right;
  });
}

TensorValue maskCausal(const TensorValue &x, int64_t query, int64_t key, double fill,
                       const SequenceStarts &starts) {
  const int64_t all = std::numeric_limits<int32_t>::max();
  return maskWindow(x, query, key, all, 0, 0, fill, starts);
}

TensorValue maskPadding(const TensorValue &x, int64_t key, const TensorValue &lengths,
                        int64_t along, double fill) {
  return keepWhere(x, fill,
                   [&](const Shape &at) { return double(at[key]) < lengths.elements[at[along]]; });
}

TensorValue maskTokens(const TensorValue &x, int64_t key, const TensorValue &offsets, double fill) {
  return keepWhere(x, fill,
                   [&](const Shape &at) { return double(at[key]) < offsets.elements.back(); });
}

TensorValue maskBlock(const TensorValue &x, int64_t query, int64_t key, int64_t size,
                      const TensorValue &table, double fill) {
  return keepWhere(x, fill, [&](const Shape &at) {
    return table.elements[at[query] / size * table.shape[1] + at[key] / size] != 0;
  });
}

TensorValue maskPattern(const TensorValue &x, int64_t query, int64_t key,
                        const std::vector<int64_t> &heads, const BlockTable &table, double fill) {
  return keepWhere(x, fill, [&](const Shape &at) {
    int64_t head = 0;
    for (const int64_t dimension : heads) head = head * x.shape[dimension] + at[dimension];
    return table.sees(head, at[query], at[key]);
  });
}

TensorValue maskDocument(const TensorValue &x, int64_t query, int64_t key,
                         const TensorValue &segments, int64_t along, double fill) {
  const int64_t keys = x.shape[key], shift = keys - x.shape[query];
  return keepWhere(x, fill, [&](const Shape &at) {
    const int64_t row = at[along] * keys;
    return segments.elements[row + at[key]] == segments.elements[row + at[query] + shift];
  });
}

TensorValue tileBounds(const TensorValue &segments) {
  Shape shape = segments.shape;
  const int64_t positions = shape.back();
  shape.back() = boundedTiles(positions);
  shape.push_back(boundsOfTile);
  TensorValue bounds = zeros(shape);
  size_t at = 0;
  for (auto row = segments.elements.begin(); row != segments.elements.end(); row += positions)
    for (int64_t first = 0; first < positions; first += boundedTile) {
      const auto [least, greatest] =
          std::minmax_element(row + first, row + std::min(first + boundedTile, positions));
      bounds.elements[at++] = *least;
      bounds.elements[at++] = *greatest;
    }
  return bounds;
}

}  // namespace weft::reference
