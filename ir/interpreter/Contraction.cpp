// A contraction is brought to batched matrix form [batch][m][k] x [batch][k][n] by permuting the
// operands, multiplied in blocks that stay in the cache, and permuted to the result's order. Each
// element sums k in ascending order, so the blocking does not show in the result. This is the only
// routine of the interpreter where speed matters: the file is compiled with -O2 in every build
// type.
#include "ir/interpreter/Contraction.h"

#include <algorithm>
#include <string>

namespace weft::reference {
namespace {

bool contains(std::string_view term, char letter) {
  return term.find(letter) != std::string_view::npos;
}

/// The letters of the four groups, each in the order of the term that comes first.
struct Letters {
  std::string batch, m, n, k;
};

Letters classify(std::string_view a, std::string_view b, std::string_view result) {
  Letters letters;
  for (char letter : a) {
    if (!contains(result, letter)) letters.k += letter;
    else (contains(b, letter) ? letters.batch : letters.m) += letter;
  }
  for (char letter : b)
    if (!contains(a, letter)) letters.n += letter;
  return letters;
}

/// Extents and strides of one tensor's letters in a given order; a position walks them row-major.
struct Walk {
  Shape extents, strides;

  Walk(const std::string &order, std::string_view term, std::span<const int64_t> shape) {
    const Shape all = stridesOf(shape);
    for (char letter : order) {
      const size_t dimension = term.find(letter);
      extents.push_back(shape[dimension]);
      strides.push_back(all[dimension]);
    }
  }

  /// Calls visit(source position) for every coordinate, the last letter fastest.
  template <typename Visit>
  void forEach(Visit visit) const {
    Shape coordinates(extents.size());
    const int64_t count = elementCount(extents);
    int64_t source = 0;
    for (int64_t n = 0; n < count; ++n) {
      visit(source);
      for (size_t d = extents.size(); d-- > 0;) {
        source += strides[d];
        if (++coordinates[d] < extents[d]) break;
        source -= strides[d] * extents[d];
        coordinates[d] = 0;
      }
    }
  }
};

template <typename Real>
std::vector<Real> gather(const Walk &walk, const std::vector<double> &elements) {
  std::vector<Real> packed;
  packed.reserve(elements.size());
  walk.forEach([&](int64_t source) { packed.push_back(Real(elements[source])); });
  return packed;
}

constexpr int64_t blockK = 64, blockN = 256;  // a block of b: 64 KiB in float, 128 KiB in double

/// c[m][n] += a[m][k] * b[k][n] for one batch entry.
template <typename Real>
void multiply(const Real *a, const Real *b, Real *c, int64_t m, int64_t n, int64_t k) {
  for (int64_t k0 = 0; k0 < k; k0 += blockK) {
    const int64_t k1 = std::min(k, k0 + blockK);
    for (int64_t n0 = 0; n0 < n; n0 += blockN) {
      const int64_t n1 = std::min(n, n0 + blockN);
      for (int64_t row = 0; row < m; ++row) {
        Real *out = c + row * n;
        for (int64_t at = k0; at < k1; ++at) {
          const Real left = a[row * k + at];
          const Real *right = b + at * n;
          for (int64_t column = n0; column < n1; ++column) out[column] += left * right[column];
        }
      }
    }
  }
}

int64_t extentOf(const std::string &letters, std::string_view termA, const TensorValue &a,
                 std::string_view termB, const TensorValue &b) {
  int64_t extent = 1;
  for (char letter : letters)
    extent *= contains(termA, letter) ? a.shape[termA.find(letter)] : b.shape[termB.find(letter)];
  return extent;
}

}  // namespace

template <typename Real>
TensorValue contract(std::string_view termA, std::string_view termB, std::string_view termResult,
                     const TensorValue &a, const TensorValue &b, double scale) {
  const Letters letters = classify(termA, termB, termResult);
  const auto extent = [&](const std::string &group) { return extentOf(group, termA, a, termB, b); };
  const int64_t batch = extent(letters.batch), m = extent(letters.m), n = extent(letters.n),
                k = extent(letters.k);

  const auto left =
      gather<Real>(Walk(letters.batch + letters.m + letters.k, termA, a.shape), a.elements);
  const auto right =
      gather<Real>(Walk(letters.batch + letters.k + letters.n, termB, b.shape), b.elements);
  std::vector<Real> product(batch * m * n);
  for (int64_t entry = 0; entry < batch; ++entry)
    multiply(left.data() + entry * m * k, right.data() + entry * k * n,
             product.data() + entry * m * n, m, n, k);

  Shape shape;
  for (char letter : termResult) shape.push_back(extent(std::string(1, letter)));
  TensorValue result = zeros(std::move(shape));
  size_t next = 0;
  const Walk walk(letters.batch + letters.m + letters.n, termResult, result.shape);
  walk.forEach(
      [&](int64_t position) { result.elements[position] = product[next++] * Real(scale); });
  return result;
}

template TensorValue contract<float>(std::string_view, std::string_view, std::string_view,
                                     const TensorValue &, const TensorValue &, double);
template TensorValue contract<double>(std::string_view, std::string_view, std::string_view,
                                      const TensorValue &, const TensorValue &, double);

}  // namespace weft::reference
