// Dropout bits against values computed apart: Philox4x32-7 by the known-answer vectors of its
// authors' Random123 library, the mix of words and the draws by a Python program written from
// SPEC.md alone (words, key and draw of each coordinate, nothing shared).
#include "ir/interpreter/Dropout.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>

using weft::TensorValue;
using namespace weft::reference;

TEST_CASE("Philox4x32 with 7 rounds gives the known answers") {
  using Words = std::array<uint32_t, 4>;
  CHECK(philox({0, 0, 0, 0}, {0, 0}) == Words{0x5f6fb709, 0x0d893f64, 0x4f121f81, 0x4f730a48});
  CHECK(philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}) ==
        Words{0x5207ddc2, 0x45165e59, 0x4d8ee751, 0x8c52f662});
  CHECK(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        Words{0x4dfccaba, 0x190a87f0, 0xc47362ba, 0xb6b5242a});
}

TEST_CASE("words are mixed as they should be") {
  using Words = std::array<uint32_t, 4>;
  CHECK(mixed({0, 0, 0, 0}) == Words{0, 0, 0, 0});
  CHECK(mixed({1, 2, 3, 4}) == Words{0x363c6, 0x37ee03b, 0x6c57f876, 0x27326ae3});
  CHECK(mixed({0xffffffff, 0xfffffffe, 0x80000000, 0x12345678}) ==
        Words{0x4b1661ab, 0xfa8d6a25, 0x23804ebb, 0xd1c9d114});
}

TEST_CASE("draws of single elements") {
  const DropoutSource first{.seed = 1, .step = 0, .stream = 3};
  const uint32_t expected[2][5] = {{50851, 9530, 1062, 23166, 63281},
                                   {21942, 57469, 61131, 9691, 50602}};
  for (int row = 0; row < 2; ++row)
    for (int column = 0; column < 5; ++column)
      CHECK(dropoutDraw(first, 0, row, column) == expected[row][column]);

  const DropoutSource wide{.seed = 0x123456789abcdef0, .step = 7, .stream = 3};
  CHECK(dropoutDraw(wide, 0, 0, 0) == 11706);
  CHECK(dropoutDraw(wide, 2, 17, 35) == 17622);
  CHECK(dropoutDraw(wide, 1, 8, 9) == 55533);
  CHECK(dropoutDraw(wide, 5, 100, 1023) == 4547);
}

TEST_CASE(
    "the keep rate is 1 - p within five standard deviations, and streams, steps and seeds are "
    "independent") {
  const int64_t extent = 128;
  TensorValue ones = zeros({2, extent, extent});
  std::ranges::fill(ones.elements, 1);
  const double count = double(ones.elements.size());
  const auto sample = [&](double p, DropoutSource source) {
    return dropout<float>(ones, p, source);
  };
  for (double p : {0.1, 0.5, 0.9}) {
    const TensorValue kept = sample(p, {});
    const double rate =
        double(std::ranges::count_if(kept.elements, [](double x) { return x != 0; })) / count;
    CHECK(std::abs(rate - (1 - p)) < 5 * std::sqrt(p * (1 - p) / count));
  }
  const TensorValue base = sample(0.5, {});
  for (DropoutSource other :
       {DropoutSource{.seed = 2}, DropoutSource{.step = 1}, DropoutSource{.stream = 1}}) {
    const TensorValue kept = sample(0.5, other);
    double agreeing = 0;
    for (size_t n = 0; n < kept.elements.size(); ++n)
      agreeing += kept.elements[n] == base.elements[n];
    CHECK(std::abs(agreeing / count - 0.5) < 5 * std::sqrt(0.25 / count));
  }
}

TEST_CASE("neighbours of every kind are independent, and so are rows, columns and slices") {
  constexpr int64_t slices = 4, rows = 256, columns = 512;
  TensorValue ones = zeros({slices, rows, columns});
  std::ranges::fill(ones.elements, 1);
  for (double p : {0.1, 0.5}) {
    const TensorValue sample = dropout<float>(ones, p, {.seed = 11, .step = 5, .stream = 2});
    const auto isKept = [&](int64_t slice, int64_t row, int64_t column) {
      return sample.elements[size_t((slice * rows + row) * columns + column)] != 0;
    };
    // Two elements of one mix, of one lane's next mix along each axis, and of another lane's: pairs
    // agree as independent ones do.
    const double agree = p * p + (1 - p) * (1 - p);
    for (const auto &[slice, row, column] : {std::array<int64_t, 3>{0, 0, 1},
                                             {0, 0, 2},
                                             {0, 0, 8},
                                             {0, 0, 16},
                                             {0, 0, 256},
                                             {0, 1, 0},
                                             {0, 8, 0},
                                             {0, 16, 0},
                                             {0, 128, 0},
                                             {0, 8, 8},
                                             {0, 16, 16},
                                             {1, 0, 0},
                                             {2, 0, 0},
                                             {1, 16, 16}}) {
      double agreeing = 0, pairs = 0;
      for (int64_t s = 0; s + slice < slices; ++s)
        for (int64_t r = 0; r + row < rows; ++r)
          for (int64_t c = 0; c + column < columns; ++c, ++pairs)
            agreeing += isKept(s, r, c) == isKept(s + slice, r + row, c + column);
      INFO(p << ": " << slice << ", " << row << ", " << column << " apart");
      CHECK(std::abs(agreeing / pairs - agree) < 5 * std::sqrt(agree * (1 - agree) / pairs));
    }
    // Counts of rows and of columns spread as binomials do: the mean of squared deviations, within
    // five of its deviations.
    const auto spread = [&](int64_t count, int64_t each, const auto &at) {
      double squares = 0;
      for (int64_t n = 0; n < count; ++n) {
        double sum = 0;
        for (int64_t i = 0; i < each; ++i) sum += at(n, i) ? 1 : 0;
        squares += (sum - double(each) * (1 - p)) * (sum - double(each) * (1 - p)) /
                   (double(each) * p * (1 - p));
      }
      return std::abs(squares / double(count) - 1) / std::sqrt(2.0 / double(count));
    };
    CHECK(spread(slices * rows, columns,
                 [&](int64_t n, int64_t i) { return isKept(n / rows, n % rows, i); }) < 5);
    CHECK(spread(slices * columns, rows,
                 [&](int64_t n, int64_t i) { return isKept(n / columns, i, n % columns); }) < 5);
  }
}

TEST_CASE("an element's fate depends on its coordinates, not on the extents around it") {
  TensorValue large = zeros({40, 50}), small = zeros({17, 19});
  std::ranges::fill(large.elements, 1);
  std::ranges::fill(small.elements, 1);
  const TensorValue a = dropout<float>(large, 0.5, {}), b = dropout<float>(small, 0.5, {});
  for (int row = 0; row < 17; ++row)
    for (int column = 0; column < 19; ++column)
      REQUIRE(a.elements[row * 50 + column] == b.elements[row * 19 + column]);
}

TEST_CASE(
    "kept values are scaled by the fp32 factor; probability one keeps nothing, zero everything") {
  const TensorValue x{.shape = {3}, .elements = {1, -2, 3}};
  CHECK(dropout<double>(x, 0, {}).elements == x.elements);
  CHECK(dropout<double>(x, 1, {}).elements == std::vector<double>{0, 0, 0});
  const TensorValue kept = dropout<double>(x, 0.1, {});
  for (size_t n = 0; n < 3; ++n)
    CHECK((kept.elements[n] == 0 ||
           kept.elements[n] == x.elements[n] * double(1.0f / (1.0f - 0.1f))));
}
