// The price of contractions by FMA: what it prefers, and what it stays within.
#include "codegen/families/gemm_fma/FmaGemm.h"
#include "kernel/Device.h"
#include "passes/configure/CostModel.h"
#include "passes/configure/Family.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/samples/SampleKernels.h"

#include <catch2/catch.hpp>

#include <array>
#include <limits>
#include <vector>

using namespace weft;
using test::nonEmpty;

namespace {

struct Priced {
  FmaGemmKnobs knobs;
  double seconds = std::numeric_limits<double>::infinity();
};

/// Operands along k or along their rows, C along n.
Configuration configurationOf(bool isAlongKA, bool isAlongKB, const FmaGemmKnobs &knobs) {
  const Layout first{.order = {0, 1, 2}}, second{.order = {0, 2, 1}};
  return {.inputs = {isAlongKA ? first : second, isAlongKB ? first : second},
          .outputs = {first},
          .knobs = knobs};
}

Kernel gemm(int64_t b, int64_t m, int64_t n, int64_t k) {
  Kernel kernel =
      samples::contractKernel({{'b', b}, {'m', m}, {'n', n}, {'k', k}}, "bmk", "bnk", "bmn");
  for (Value &value : kernel.values) value.dtype = DType::f32;
  return kernel;
}

std::vector<Knobs> tilesOf(const Kernel &kernel) {
  return fmaGemmSpace(kernel, findDevice("h200")).value().knobs;
}

Priced best(const Kernel &kernel, bool isAlongKB) {
  const Device &device = findDevice("h200");
  Priced least;
  for (const Knobs &knobs : tilesOf(kernel))
    if (const double seconds =
            fmaGemmCost(kernel, configurationOf(true, isAlongKB, knobs.get<FmaGemmKnobs>()), device)
                .seconds;
        seconds < least.seconds)
      least = {knobs.get<FmaGemmKnobs>(), seconds};
  return least;
}

double secondsOf(const Kernel &kernel, const FmaGemmKnobs &knobs) {
  return fmaGemmCost(kernel, configurationOf(true, true, knobs), findDevice("h200")).seconds;
}

}  // namespace

TEST_CASE("groups of threads share k where tiles are few and sums are long") {
  const Priced few = best(gemm(1, 1024, 64, 1024), false);
  CHECK(few.knobs.kGroups > 1);
  const Kernel many = gemm(1, 4096, 4096, 1024), shortSums = gemm(2, 1024, 1024, 64);
  for (const Kernel &kernel : {many, shortSums})
    for (const Knobs &knobs : nonEmpty(tilesOf(kernel)))
      CHECK(knobs.get<FmaGemmKnobs>().kGroups == 1);
  // One block of several groups takes less time than one of one group.
  const Kernel one = gemm(1, 64, 64, 4096);
  const FmaGemmKnobs alone{.tileK = 32, .threadM = 8, .threadN = 8, .stages = 3};
  FmaGemmKnobs shared = alone;
  shared.kGroups = 4;
  CHECK(secondsOf(one, shared) < 0.6 * secondsOf(one, alone));
}

TEST_CASE("large tiles serve large GEMMs, and no price is below the peak") {
  const Device &device = findDevice("h200");
  const Kernel large = gemm(1, 4096, 4096, 1024);
  const Priced found = best(large, true);
  CHECK(found.knobs.threadM * found.knobs.threadN == 64);
  CHECK(large.flop() / found.seconds < device.fmaFlops);
  CHECK(large.flop() / found.seconds > 0.5 * device.fmaFlops);
  for (const auto &[b, m, n, k] : {std::array<int64_t, 4>{1, 1, 1, 1},
                                   {1, 1024, 1024, 64},
                                   {2, 2048, 64, 2048},
                                   {1, 1000, 777, 333}}) {
    const Kernel kernel = gemm(b, m, n, k);
    const double seconds = best(kernel, false).seconds;
    CHECK(seconds > device.launchSeconds);
    CHECK(seconds > kernel.flop() / device.fmaFlops);
  }
}

TEST_CASE("operands that come by single elements take longer") {
  const FmaGemmKnobs knobs{.threadM = 8, .threadN = 8, .stages = 3};
  for (const int64_t m : {64, 2048})  // one block alone, and as many as registers leave
    CHECK(secondsOf(gemm(1, m, m, 1023), knobs) > 1.05 * secondsOf(gemm(1, m, m, 1024), knobs));
}
