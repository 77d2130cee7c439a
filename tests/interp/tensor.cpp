// The comparison that every numeric test rests on: what must never pass, and what must.
#include "ir/interpreter/Tensor.h"

#include <catch2/catch.hpp>

#include <limits>

using weft::TensorValue;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double notANumber = std::numeric_limits<double>::quiet_NaN();

TensorValue vector(std::vector<double> elements) {
  return {.shape = {int64_t(elements.size())}, .elements = std::move(elements)};
}

}  // namespace

TEST_CASE("distance is the worst element in units of the tolerance") {
  CHECK(weft::distance(vector({1, 2.5}), vector({1, 2}), 0.1, 0.2) == Approx(1.0));
  CHECK(weft::distance(vector({3}), vector({3}), 0, 0) == 0);
  CHECK(weft::distance(vector({3}), vector({2}), 0, 0) == infinity);
}

TEST_CASE("equal infinities agree, nothing else agrees with an infinity") {
  CHECK(weft::distance(vector({-infinity}), vector({-infinity}), 0, 0) == 0);
  CHECK(weft::distance(vector({-infinity}), vector({infinity}), 1, 1) == infinity);
  CHECK(weft::distance(vector({1}), vector({infinity}), 1, 1) == infinity);
  CHECK(weft::distance(vector({infinity}), vector({1}), 1, 1) == infinity);
}

TEST_CASE("NaN never passes, whatever stands behind it") {
  CHECK(weft::distance(vector({notANumber}), vector({notANumber}), 1, 1) == infinity);
  CHECK(weft::distance(vector({notANumber, 1}), vector({1, 1}), 1, 1) == infinity);
  CHECK(weft::distance(vector({1, 1}), vector({notANumber, 1}), 1, 1) == infinity);
}

TEST_CASE("shapes must agree, not only counts") {
  const TensorValue row{.shape = {1, 2}, .elements = {1, 2}},
      column{.shape = {2, 1}, .elements = {1, 2}};
  CHECK(weft::distance(row, column, 1, 1) == infinity);
}

TEST_CASE("an axis view walks any axis") {
  const weft::reference::Shape shape{2, 3, 5};
  const weft::reference::AxisView view(shape, 1);
  CHECK(view.outer == 2);
  CHECK(view.extent == 3);
  CHECK(view.inner == 5);
  CHECK(view.at(1, 2, 3) == 1 * 15 + 2 * 5 + 3);
  CHECK(weft::reference::coordinatesOf(28, shape) == weft::reference::Shape{1, 2, 3});
}
