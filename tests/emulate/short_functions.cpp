// The short forms of activations on the host: within the error that the reference grants them
// (kernel/ShortFunction.h), at every number of the type that they are stored in, beyond it, at
// infinities and at NaN.
#include "tests/emulate/host/emulate_keywords.h"

#include "weft/slope.cuh"

#include "kernel/ShortFunction.h"
#include "kernel/reference/StoredElement.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <functional>
#include <limits>

using namespace weft;

namespace {

double phi(double x) { return 0.39894228040143268 * std::exp(-x * x / 2); }
double exactGelu(double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }
double exactSlope(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)) + x * phi(x); }

/// Finite numbers of the type, in the order of their bits.
void forEachNumber(DType type, const std::function<void(float)> &visit) {
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    const unsigned short pattern = (unsigned short)bits;
    if (const double value =
            reference::loadElement(type, reinterpret_cast<const std::byte *>(&pattern));
        std::isfinite(value))
      visit(float(value));
  }
}

/// The worst error in units of what is granted.
double worst(DType type, const std::function<float(float)> &function,
             const std::function<double(double)> &exact, bool isSlope) {
  double most = 0;
  forEachNumber(type, [&](float x) {
    const double want = exact(x), got = function(x);
    REQUIRE(std::isfinite(got));
    // The arguments of fp32 functions are off by some units in their last place, and so is the
    // result (PointEvaluator).
    const double moved = std::abs(exact(x * (1 + 0x1p-21)) - want) + 0x1p-21 * std::abs(want);
    most = std::max(most, std::abs(got - want) / (shortError(type, want, isSlope ? x : 0) + moved));
  });
  return most;
}

}  // namespace

TEST_CASE("short forms of gelu and its derivative stay within what the reference grants") {
  const double half = worst(DType::f16, geluForHalf, exactGelu, false),
               brain = worst(DType::bf16, geluForBfloat16, exactGelu, false);
  const double halfSlope = worst(DType::f16, slope::geluForHalf, exactSlope, true),
               brainSlope = worst(DType::bf16, slope::geluForBfloat16, exactSlope, true);
  CAPTURE(half, brain, halfSlope, brainSlope);
  for (double one : {half, brain, halfSlope, brainSlope}) {
    CHECK(one <= 1.0);
    CHECK(one > 0.5);  // else it grants more than they need
  }
}

TEST_CASE("derivatives by the sigmoid stay within what the reference grants") {
  // Errors of both operands and of the result, 8 units each (PointEvaluator): where the sigmoid is
  // close to 1, what it lacks must not be a difference.
  const auto share = [](float x, float (*function)(float), double (*exact)(double)) {
    constexpr double units = 8 * 0x1p-24;
    const double want = exact(x), moved = std::max(std::abs(exact(x * (1 + units)) - want),
                                                   std::abs(exact(x * (1 - units)) - want));
    return std::abs(function(x) - want) / (2 * units * std::abs(want) + moved + 0x1p-126);
  };
  const auto exactGeluTanh = [](double x) {
    const double v = 1.5957691216057308 * (x + 0.044715 * x * x * x), s = 1 / (1 + std::exp(-v));
    return s + x * s / (1 + std::exp(v)) * 1.5957691216057308 * (1 + 0.134145 * x * x);
  };
  const auto exactSilu = [](double x) {
    const double s = 1 / (1 + std::exp(-x));
    return s + x * s / (1 + std::exp(x));
  };
  double geluTanh = 0, silu = 0;
  forEachNumber(DType::f16, [&](float x) {
    if (std::abs(x) > 9) return;  // beyond, fp64 itself loses what the sigmoid lacks
    geluTanh = std::max(geluTanh, share(x, slope::geluTanh, exactGeluTanh));
    silu = std::max(silu, share(x, slope::silu, exactSilu));
  });
  CAPTURE(geluTanh, silu);
  CHECK(geluTanh <= 1.0);
  CHECK(silu <= 1.0);
  for (float (*function)(float) : {slope::geluTanh, slope::silu}) {
    CHECK(std::isnan(function(std::numeric_limits<float>::quiet_NaN())));
    CHECK(function(1e4f) == 1.0f);
    CHECK(function(-1e4f) == 0.0f);
  }
}

TEST_CASE("short forms pass NaN and infinities on") {
  constexpr float infinity = std::numeric_limits<float>::infinity(),
                  nan = std::numeric_limits<float>::quiet_NaN();
  for (float (*function)(float) : {geluForHalf, geluForBfloat16}) {
    CHECK(std::isnan(function(nan)));
    CHECK(function(infinity) == infinity);
    CHECK(std::abs(function(-infinity)) < 1e-7f);
    CHECK(function(3e38f) == 3e38f);
  }
  for (float (*function)(float) : {slope::geluForHalf, slope::geluForBfloat16})
    CHECK(std::isnan(function(nan)));
  CHECK(slope::geluForBfloat16(infinity) == 1.0f);
  CHECK(slope::geluForBfloat16(-3e38f) == 0.0f);
}
