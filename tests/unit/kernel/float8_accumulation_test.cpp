// The admitted error of sums of products of 8-bit floats against a model of the hardware in which
// they are made: 32 products and the sum before them, aligned to the largest of them, cut towards
// zero below 13 bits of its fraction.
#include "kernel/reference/PointEvaluator.h"
#include "kernel/reference/Rounding.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

using namespace weft;

namespace {

constexpr int keptBits = 13;
constexpr size_t together = 32;

double cut(double value, int exponent) {
  const double unit = std::ldexp(1.0, exponent - keptBits);
  return std::trunc(value / unit) * unit;
}

double hardwareSum(const std::vector<double> &products) {
  double sum = 0;
  for (size_t begin = 0; begin < products.size(); begin += together) {
    const size_t end = std::min(begin + together, products.size());
    double largest = std::abs(sum);
    for (size_t i = begin; i < end; ++i) largest = std::max(largest, std::abs(products[i]));
    if (largest == 0) continue;
    const int exponent = std::ilogb(largest);
    double aligned = cut(sum, exponent);
    for (size_t i = begin; i < end; ++i) aligned += cut(products[i], exponent);
    sum = aligned == 0 ? 0 : cut(aligned, std::ilogb(aligned));
  }
  return sum;
}

struct Accumulators {
  double exact = 0, magnitude = 0, squares = 0, hardware = 0;
  double bound(size_t n) const {
    return reference::float8SumError(int64_t(n), exact, magnitude, squares);
  }
};

template <typename Draw>
Accumulators sumsOf(size_t n, DType a, DType b, Draw draw) {
  std::vector<double> products;
  Accumulators sums;
  for (size_t i = 0; i < n; ++i) {
    products.push_back(reference::roundTo(a, draw()) * reference::roundTo(b, draw()));
    sums.exact += products.back();
    sums.magnitude += std::abs(products.back());
    sums.squares += products.back() * products.back();
  }
  sums.hardware = hardwareSum(products);
  return sums;
}

}  // namespace

TEST_CASE("the bound holds for random operands of both formats, around zero and not") {
  std::mt19937 random(3);
  for (const double mean : {0.0, 0.1, 2.0})
    for (const DType other : {DType::f8e4m3, DType::f8e5m2})
      for (const size_t n : {1, 7, 32, 100, 1000, 4096, 65536}) {
        std::normal_distribution<double> normal(mean, 1);
        for (int repeat = 0; repeat < 20; ++repeat) {
          const Accumulators sums = sumsOf(n, DType::f8e4m3, other, [&] { return normal(random); });
          INFO(mean << " " << nameOf(other) << " " << n);
          CHECK(std::abs(sums.hardware - sums.exact) <= sums.bound(n));
        }
      }
}

TEST_CASE(
    "the bound tells a sum of 32 other products from a sum of thousands, and one other GEMM "
    "from a sum of some") {
  std::mt19937 random(4);
  std::normal_distribution<double> normal(0, 1);
  const auto found = [&](size_t n, size_t missing) {
    int count = 0;
    for (int repeat = 0; repeat < 200; ++repeat) {
      const Accumulators sums =
          sumsOf(n, DType::f8e4m3, DType::f8e4m3, [&] { return normal(random); });
      const Accumulators lost =
          sumsOf(missing, DType::f8e4m3, DType::f8e4m3, [&] { return normal(random); });
      count += std::abs(sums.hardware - lost.exact - sums.exact) > sums.bound(n);
    }
    return count;
  };
  CHECK(found(4096, 32) > 20);
  CHECK(found(64, 1) > 100);
}

TEST_CASE("whole numbers are added up exactly, which an exact comparison may rely on") {
  std::mt19937 random(5);
  for (const size_t n : {1, 31, 32, 560, 1000})
    for (int repeat = 0; repeat < 20; ++repeat) {
      const Accumulators sums =
          sumsOf(n, DType::f8e4m3, DType::f8e5m2, [&] { return double(int(random() % 5) - 2); });
      CHECK(sums.hardware == sums.exact);
    }
}
