// Dropout bits against values computed apart: Philox4x32-7 by the known-answer vectors of its authors' Random123 library,
// the draws by a Python program written from SPEC.md alone (counter, key and draw of each coordinate, nothing shared).
#include "ir/interpreter/Dropout.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>

using weft::TensorValue;
using namespace weft::reference;

TEST_CASE("Philox4x32 with 7 rounds gives the known answers") {
  using Words = std::array<uint32_t, 4>;
  CHECK(philox({0, 0, 0, 0}, {0, 0}) == Words{0x5f6fb709, 0x0d893f64, 0x4f121f81, 0x4f730a48});
  CHECK(philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}) == Words{0x5207ddc2, 0x45165e59, 0x4d8ee751, 0x8c52f662});
  CHECK(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        Words{0x4dfccaba, 0x190a87f0, 0xc47362ba, 0xb6b5242a});
}

TEST_CASE("draws of single elements") {
  const DropoutSource first{.seed = 1, .step = 0, .stream = 3};
  const uint32_t expected[2][5] = {{57419, 4387, 32352, 43015, 38462}, {60286, 11156, 39606, 10126, 48612}};
  for (int row = 0; row < 2; ++row)
    for (int column = 0; column < 5; ++column) CHECK(dropoutDraw(first, 0, row, column) == expected[row][column]);

  const DropoutSource wide{.seed = 0x123456789abcdef0, .step = 7, .stream = 3};
  CHECK(dropoutDraw(wide, 0, 0, 0) == 17831);
  CHECK(dropoutDraw(wide, 2, 17, 35) == 36957);
  CHECK(dropoutDraw(wide, 1, 8, 9) == 37869);
  CHECK(dropoutDraw(wide, 5, 100, 1023) == 62522);
}

TEST_CASE("the keep rate is 1 - p within five standard deviations, and streams, steps and seeds are independent") {
  const int64_t extent = 128;
  TensorValue ones = zeros({2, extent, extent});
  std::ranges::fill(ones.elements, 1);
  const double count = double(ones.elements.size());
  const auto sample = [&](double p, DropoutSource source) { return dropout<float>(ones, p, source); };
  for (double p : {0.1, 0.5, 0.9}) {
    const TensorValue kept = sample(p, {});
    const double rate = double(std::ranges::count_if(kept.elements, [](double x) { return x != 0; })) / count;
    CHECK(std::abs(rate - (1 - p)) < 5 * std::sqrt(p * (1 - p) / count));
  }
  const TensorValue base = sample(0.5, {});
  for (DropoutSource other : {DropoutSource{.seed = 2}, DropoutSource{.step = 1}, DropoutSource{.stream = 1}}) {
    const TensorValue kept = sample(0.5, other);
    double agreeing = 0;
    for (size_t n = 0; n < kept.elements.size(); ++n) agreeing += kept.elements[n] == base.elements[n];
    CHECK(std::abs(agreeing / count - 0.5) < 5 * std::sqrt(0.25 / count));
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

TEST_CASE("kept values are scaled by the fp32 factor; probability one keeps nothing, zero everything") {
  const TensorValue x{.shape = {3}, .elements = {1, -2, 3}};
  CHECK(dropout<double>(x, 0, {}).elements == x.elements);
  CHECK(dropout<double>(x, 1, {}).elements == std::vector<double>{0, 0, 0});
  const TensorValue kept = dropout<double>(x, 0.1, {});
  for (size_t n = 0; n < 3; ++n)
    CHECK((kept.elements[n] == 0 || kept.elements[n] == x.elements[n] * double(1.0f / (1.0f - 0.1f))));
}
