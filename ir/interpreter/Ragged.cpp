// Packing by the coordinates of each element of the result; see kernel/Ragged.h for where a token
// stands.
#include "ir/interpreter/Ragged.h"

#include "kernel/Ragged.h"

#include <algorithm>

namespace weft::reference {
namespace {

/// Visits the coordinates of every element, in row-major order.
template <typename Visit>
void forEach(const Shape &shape, Visit visit) {
  Shape at(shape.size(), 0);
  const int64_t count = elementCount(shape);
  for (int64_t n = 0; n < count; ++n) {
    visit(at, n);
    for (size_t d = shape.size(); d-- > 0 && ++at[d] == shape[d];) at[d] = 0;
  }
}

int64_t placeOf(const Shape &strides, const Shape &at) {
  int64_t place = 0;
  for (size_t d = 0; d < at.size(); ++d) place += at[d] * strides[d];
  return place;
}

auto offsetReader(const TensorValue &offsets) {
  return [&](int64_t sequence) { return int64_t(offsets.elements[size_t(sequence)]); };
}

}  // namespace

TensorValue offsets(const TensorValue &lengths, int64_t bound) {
  TensorValue result = zeros({lengths.shape[0] + 1});
  for (size_t n = 0; n < lengths.elements.size(); ++n)
    result.elements[n + 1] =
        result.elements[n] + std::clamp(lengths.elements[n], 0.0, double(bound));
  return result;
}

TensorValue lengths(const TensorValue &mask) {
  TensorValue result = zeros({mask.shape[0]});
  for (size_t n = 0; n < mask.elements.size(); ++n)
    result.elements[n / size_t(mask.shape[1])] += mask.elements[n] != 0 ? 1 : 0;
  return result;
}

TensorValue pack(const TensorValue &x, const TensorValue &offsets, int64_t sequences,
                 int64_t positions, double fill) {
  const int64_t count = x.shape[size_t(sequences)], length = x.shape[size_t(positions)];
  const Shape strides = stridesOf(x.shape);
  Shape shape = x.shape;
  shape[size_t(sequences)] *= length;
  shape.erase(shape.begin() + positions);
  TensorValue result = zeros(shape);
  forEach(shape, [&](const Shape &at, int64_t n) {
    Shape from = at;
    from.insert(from.begin() + positions, 0);
    const std::optional<TokenPlace> place =
        placeOfToken(from[size_t(sequences)], count, length, offsetReader(offsets));
    if (!place) {
      result.elements[size_t(n)] = fill;
      return;
    }
    from[size_t(sequences)] = place->sequence, from[size_t(positions)] = place->position;
    result.elements[size_t(n)] = x.elements[size_t(placeOf(strides, from))];
  });
  return result;
}

TensorValue unpack(const TensorValue &x, const TensorValue &offsets, int64_t tokens,
                   int64_t sequences, int64_t positions, Shape shape, double fill) {
  const Shape strides = stridesOf(x.shape);
  TensorValue result = zeros(shape);
  forEach(shape, [&](const Shape &at, int64_t n) {
    const std::optional<int64_t> token = tokenAt(at[size_t(sequences)], at[size_t(positions)],
                                                 x.shape[size_t(tokens)], offsetReader(offsets));
    Shape from;
    for (size_t d = 0; d < at.size(); ++d)
      if (int64_t(d) != sequences && int64_t(d) != positions) from.push_back(at[d]);
    from.insert(from.begin() + tokens, token.value_or(0));
    result.elements[size_t(n)] = token ? x.elements[size_t(placeOf(strides, from))] : fill;
  });
  return result;
}

TensorValue append(const TensorValue &cache, const TensorValue &tokens, const TensorValue &starts,
                   int64_t positions, int64_t sequences) {
  const Shape strides = stridesOf(cache.shape);
  TensorValue result = cache;
  forEach(tokens.shape, [&](const Shape &at, int64_t n) {
    Shape to = at;
    int64_t &position = to[size_t(positions)];
    position += int64_t(starts.elements[size_t(at[size_t(sequences)])]);
    if (position >= 0 && position < cache.shape[size_t(positions)])
      result.elements[size_t(placeOf(strides, to))] = tokens.elements[size_t(n)];
  });
  return result;
}

TensorValue appendToPages(const TensorValue &pages, const TensorValue &tokens,
                          const TensorValue &starts, const TensorValue &table, int64_t positions,
                          int64_t along) {
  const Shape strides = stridesOf(pages.shape);
  const int64_t size = pages.shape[size_t(positions)], entries = table.shape[1];
  TensorValue result = pages;
  forEach(tokens.shape, [&](const Shape &at, int64_t n) {
    const int64_t sequence = at[size_t(along)],
                  position = at[size_t(positions)] + int64_t(starts.elements[size_t(sequence)]);
    if (position < 0 || position >= entries * size) return;
    const auto page = int64_t(table.elements[size_t(sequence * entries + position / size)]);
    if (page < 0 || page >= pages.shape[size_t(along)]) return;
    Shape to = at;
    to[size_t(along)] = page, to[size_t(positions)] = position % size;
    result.elements[size_t(placeOf(strides, to))] = tokens.elements[size_t(n)];
  });
  return result;
}

TensorValue gatherPages(const TensorValue &pages, const TensorValue &table, int64_t positions,
                        int64_t along) {
  const Shape strides = stridesOf(pages.shape);
  const int64_t size = pages.shape[size_t(positions)], entries = table.shape[1];
  Shape shape = pages.shape;
  shape[size_t(along)] = table.shape[0], shape[size_t(positions)] = entries * size;
  TensorValue result = zeros(shape);
  forEach(shape, [&](const Shape &at, int64_t n) {
    const int64_t position = at[size_t(positions)];
    const auto page =
        int64_t(table.elements[size_t(at[size_t(along)] * entries + position / size)]);
    if (page < 0 || page >= pages.shape[size_t(along)]) return;
    Shape from = at;
    from[size_t(along)] = page, from[size_t(positions)] = position % size;
    result.elements[size_t(n)] = pages.elements[size_t(placeOf(strides, from))];
  });
  return result;
}

}  // namespace weft::reference
