// Choices by estimate on a profile of two GEMMs.
#include "codegen/families/gemm_sm90/Sm90GemmKnobs.h"
#include "codegen/families/library/LibraryCostConstants.h"
#include "codegen/families/library/LibraryKnobs.h"
#include "passes/configure/EstimateRegret.h"
#include "passes/configure/Margins.h"
#include "tests/unit/samples/SampleKernels.h"

#include <catch2/catch.hpp>

using namespace weft;
using namespace weft::samples;

namespace {

const Device &h200() { return findDevice("h200"); }

Kernel gemm(int64_t rows) {
  return contractKernel({{'m', rows}, {'n', 1024}, {'k', 1024}}, "mk", "kn", "mn");
}

Configuration rowMajorOf(const Knobs &knobs) {
  return {.inputs = {rowMajor(2), rowMajor(2)}, .outputs = {rowMajor(2)}, .knobs = knobs};
}

constexpr Sm90GemmKnobs pingPong{.schedule = Sm90Schedule::pingPong, .stages = 6};

/// Of the larger GEMM the library is faster than estimated, of the smaller one nothing is.
Profile madeUpProfile() {
  Profile profile{.device = "h200", .protocols = {{1, "made up"}}, .kernels = {}};
  const auto analytic = analyticCostModel(h200());
  const auto add = [&](int64_t rows, const Knobs &knobs, double ofEstimate) {
    const Kernel kernel = gemm(rows);
    const Cost cost = analytic->cost(kernel, rowMajorOf(knobs));
    addMeasurement(profile, kernel, rowMajorOf(knobs),
                   {.seconds = cost.seconds / (1 + cost.margin) * ofEstimate,
                    .n = 9,
                    .spread = 0.01,
                    .familyVersion = knobs.family().version});
  };
  add(4096, pingPong, 1);
  add(4096, LibraryKnobs{}, 0.5);
  add(1024, pingPong, 1.25);
  return profile;
}

std::vector<EstimateSample> madeUp() {
  const auto prices = measuredCostModel(h200(), madeUpProfile(), "profile p", false);
  std::vector<EstimateSample> all = estimateSamples(gemm(4096), *prices);
  for (EstimateSample &one : estimateSamples(gemm(1024), *prices)) all.push_back(std::move(one));
  return all;
}

}  // namespace

TEST_CASE("a choice by estimate costs what the best measurement is faster") {
  const std::vector<FamilyRegret> found = regrets(madeUp());
  REQUIRE(found.size() == 1);  // the other subject has one measurement
  CHECK(found[0].families == "cublaslt, gemm-sm90");
  REQUIRE(found[0].subjects.size() == 1);
  const auto &[chosen, best] = found[0].subjects[0];
  CHECK(chosen.family == "gemm-sm90");
  CHECK(best.family == "cublaslt");
  CHECK(found[0].mean == Approx(chosen.measured / best.measured));
  CHECK(found[0].mean > 1.5);
}

TEST_CASE("biases are those of the chosen configurations, without their margins") {
  const std::vector<EstimateBias> found = biases(madeUp());
  REQUIRE(found.size() == 2);
  CHECK(found[0].family == "cublaslt");
  CHECK(found[0].margin == Approx(margins::library));
  CHECK(found[0].bias == Approx(2));
  CHECK(found[0].deviation == Approx(0).margin(1e-6));
  CHECK(found[1].family == "gemm-sm90");
  CHECK(found[1].subjects == 2);
  CHECK(found[1].bias == Approx(1 / std::sqrt(1.25)));
  CHECK(found[1].deviation == Approx(std::log(1.25) / 2));
}

TEST_CASE("beside measurements an estimate has a further margin") {
  const auto prices = measuredCostModel(h200(), madeUpProfile(), "profile p", false);
  const Configuration configuration = rowMajorOf(pingPong);
  const Cost beside = prices->cost(gemm(2048), configuration),
             mean = analyticCostModel(h200())->cost(gemm(2048), configuration);
  CHECK(mean.margin == 0);
  CHECK(beside.margin == Approx(margins::besideMeasurements));
  CHECK(beside.seconds == Approx(mean.seconds * (1 + margins::besideMeasurements)));
  CHECK(prices->modelled().cost(gemm(2048), configuration).seconds == beside.seconds);
  // Of a profile without measurements it has none.
  const auto empty = measuredCostModel(h200(), {.device = "h200", .protocols = {}, .kernels = {}},
                                       "profile p", false);
  CHECK(empty->cost(gemm(2048), configuration).seconds == mean.seconds);
}
