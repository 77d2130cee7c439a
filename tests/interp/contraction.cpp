// Einsum against the definition: a sum over every coordinate of the joint iteration space, written
// without permutations.
#include "ir/interpreter/Contraction.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <string>

using weft::TensorValue;
using namespace weft::reference;

namespace {

using Extents = std::map<char, int64_t>;

/// Small integers: products and sums are exact in float as well.
TensorValue filled(const std::string &term, const Extents &extents, int seed) {
  Shape shape;
  for (char letter : term) shape.push_back(extents.at(letter));
  TensorValue value = zeros(shape);
  for (double &element : value.elements) element = (seed = (seed * 37 + 11) % 101) % 9 - 4;
  return value;
}

double at(const TensorValue &x, const std::string &term, const Extents &point) {
  int64_t position = 0;
  for (size_t d = 0; d < term.size(); ++d) position = position * x.shape[d] + point.at(term[d]);
  return x.elements[position];
}

/// Advances a point of the iteration space; false after the last.
bool advance(Extents &point, const Extents &extents) {
  for (auto &[letter, coordinate] : point) {
    if (++coordinate < extents.at(letter)) return true;
    coordinate = 0;
  }
  return false;
}

void check(const std::string &a, const std::string &b, const std::string &result,
           const Extents &extents) {
  INFO(a << "," << b << "->" << result);
  const TensorValue x = filled(a, extents, 3), y = filled(b, extents, 5);
  TensorValue expected = filled(result, extents, 0);
  std::ranges::fill(expected.elements, 0);
  Extents point = extents;
  for (auto &[letter, coordinate] : point) coordinate = 0;
  do {
    int64_t position = 0;
    for (size_t d = 0; d < result.size(); ++d)
      position = position * expected.shape[d] + point.at(result[d]);
    expected.elements[position] += 0.5 * at(x, a, point) * at(y, b, point);
  } while (advance(point, extents));
  CHECK(weft::distance(contract<float>(a, b, result, x, y, 0.5), expected, 0, 0) == 0);
  CHECK(weft::distance(contract<double>(a, b, result, x, y, 0.5), expected, 0, 0) == 0);
}

}  // namespace

TEST_CASE("contractions of a transformer in any order of letters") {
  check("phi", "bji", "phbj", {{'p', 3}, {'h', 2}, {'i', 7}, {'b', 2}, {'j', 5}});
  check("phbk", "phbj", "hbjk", {{'p', 3}, {'h', 2}, {'b', 2}, {'j', 5}, {'k', 4}});
  check("whbk", "hbjk", "whbj", {{'w', 3}, {'h', 2}, {'b', 2}, {'j', 5}, {'k', 7}});
  check("pgbk", "pgrbj", "grbjk",
        {{'p', 3}, {'g', 2}, {'r', 3}, {'b', 1}, {'j', 2}, {'k', 5}});  // grouped query
}

TEST_CASE(
    "degenerate groups: outer product, matrix-vector, full reduction, batch only, capital "
    "letters") {
  check("a", "b", "ba", {{'a', 3}, {'b', 4}});
  check("ab", "b", "a", {{'a', 3}, {'b', 4}});
  check("ab", "ba", "", {{'a', 3}, {'b', 4}});
  check("ab", "ab", "ba", {{'a', 3}, {'b', 4}});
  check("aA", "Ab", "ab", {{'a', 3}, {'b', 4}, {'A', 5}});
}

TEST_CASE("extents beyond one block of the product") {
  check("mk", "kn", "mn", {{'m', 3}, {'n', 259}, {'k', 67}});
  check("mk", "nk", "nm", {{'m', 2}, {'n', 300}, {'k', 130}});
}
