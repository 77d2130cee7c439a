// Products of f32 operands that are read as tf32: what names them, which families take them and why
// not, that no other GEMM becomes one, and that the admitted error covers both roundings and
// little else.
#include "codegen/Emit.h"
#include "codegen/families/contraction/GemmProblem.h"
#include "codegen/families/gemm_sm90/Sm90GemmKnobs.h"
#include "codegen/families/gemm_sm90/Sm90Tile.h"
#include "codegen/families/library/LibraryEpilogue.h"
#include "codegen/families/library/LibraryGemm.h"
#include "codegen/families/library/LibraryKnobs.h"
#include "kernel/ConfigurationText.h"
#include "kernel/Error.h"
#include "kernel/reference/PointEvaluator.h"
#include "kernel/reference/Rounding.h"
#include "passes/configure/CostModel.h"
#include "passes/configure/Families.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/samples/EmittedText.h"
#include "tests/unit/samples/SampleAttentions.h"
#include "tests/unit/samples/SampleTf32.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

using namespace weft;
using weft::test::nonEmpty;
using namespace weft::samples;

namespace {

const Device &ofH200() { return findDevice("h200"); }

template <typename Family>
std::vector<Configuration> ofFamily(const Kernel &kernel, const Device &device = ofH200()) {
  std::vector<Configuration> result;
  for (const Configuration &configuration : enumerate(kernel, device).legal)
    if (configuration.knobs.is<Family>()) result.push_back(configuration);
  return result;
}

std::string exclusion(const Kernel &kernel, const char *family, const Device &device = ofH200()) {
  for (const Exclusion &excluded : enumerate(kernel, device).excluded)
    if (excluded.family == family) return excluded.reason;
  return "";
}

Configuration rowMajorGemm(const Knobs &knobs) {
  return {.inputs = {rowMajor(3), rowMajor(3)}, .outputs = {rowMajor(3)}, .knobs = knobs};
}

double bestMicroseconds(const Kernel &kernel) {
  double best = 1e9;
  for (const Configuration &one : ofFamily<Sm90GemmKnobs>(kernel))
    best = std::min(best, 1e6 * analyticCostModel(ofH200())->cost(kernel, one).seconds);
  return best;
}

/// With the lower 13 bits cut off.
double truncated(double value) {
  const double nearest = reference::roundTo(DType::tf32, value),
               unit = std::ldexp(1.0, std::ilogb(value) - 10);
  return std::abs(nearest) > std::abs(value) ? nearest - std::copysign(unit, value) : nearest;
}

struct Accumulators {
  double exact = 0, magnitude = 0, squares = 0, nearest = 0, cut = 0;
  double bound() const { return reference::tf32SumError(exact, magnitude, squares); }
};

template <typename Draw>
Accumulators sumsOf(size_t n, Draw draw) {
  Accumulators sums;
  for (size_t i = 0; i < n; ++i) {
    const double a = reference::roundTo(DType::f32, draw()),
                 b = reference::roundTo(DType::f32, draw());
    sums.exact += a * b;
    sums.magnitude += std::abs(a * b);
    sums.squares += a * b * a * b;
    sums.nearest += reference::roundTo(DType::tf32, a) * reference::roundTo(DType::tf32, b);
    sums.cut += truncated(a) * truncated(b);
  }
  return sums;
}

}  // namespace

TEST_CASE("the precision is in the key of a kernel and of its gemm, and only where it is set") {
  const Kernel full = fullGemm({}), tf32 = tf32Gemm({});
  CHECK(canonicalText(full).find("precision") == std::string::npos);
  CHECK(canonicalText(tf32).find("precision=\"tf32\"") != std::string::npos);
  CHECK(gemmTypes(full) == GemmTypes{});
  CHECK(gemmTypes(tf32) == tf32Types);
  CHECK(nameOf(tf32Types) == "tf32,tf32->f32");
  CHECK(parseGemmTypes("tf32,tf32->f32") == tf32Types);
  const Configuration ours = rowMajorGemm(Sm90GemmKnobs{}), theirs = rowMajorGemm(LibraryKnobs{});
  CHECK(subjectOf(tf32, ours).text == "gemm tf32,tf32->f32 1 x 64 x 64 x 64");
  CHECK(subjectOf(tf32, theirs).text == subjectOf(tf32, ours).text);
  CHECK(subjectOf(full, theirs).text == "gemm f32 1 x 64 x 64 x 64");
  // Of operands that are no f32 it says nothing.
  CHECK(gemmTypes(inTf32(float8Gemm({}, {DType::f16, DType::f16, DType::f32}))) ==
        GemmTypes{DType::f16, DType::f16, DType::f32});
}

TEST_CASE(
    "tf32 on sm_90a: operands along k alone, slices of 32, maps of tf32, results that threads "
    "store where they are f32") {
  for (const DType result : {DType::f32, DType::f16, DType::bf16}) {
    const Kernel kernel = tf32Gemm({.b = 2, .m = 40, .n = 48, .k = 80}, result);
    const std::vector<Configuration> all = ofFamily<Sm90GemmKnobs>(kernel);
    INFO(nameOf(result));
    CHECK(!all.empty());
    std::set<bool> orders;
    for (const Configuration &one : nonEmpty(all)) {
      const GemmProblem gemm = *wgmmaProblem(kernel, one);
      CHECK((gemm.a.isAlongK() && gemm.b.isAlongK() && gemm.a.usesTma && gemm.b.usesTma));
      CHECK(gemm.usesTma == (result != DType::f32));
      CHECK((gemm.depth() == 32 && sm90KTiles(gemm) == 3));
      orders.insert(gemm.isSwapped);
      const codegen::EmittedKernel emitted = codegen::emit(kernel, one, "sm_90a");
      requireAllTensors(emitted, kernel);
      size_t maps = 0;
      for (const codegen::Parameter &parameter : nonEmpty(emitted.parameters))
        if (parameter.map && parameter.map->dtype == DType::tf32)
          CHECK((++maps > 0 && parameter.map->box[0] == 32));
      CHECK(maps == 2);
    }
    CHECK(orders.size() == 2);
  }
  const Configuration one = rowMajorGemm(Sm90GemmKnobs{});
  const auto tmaOperands = [&](int64_t k) {
    const GemmProblem gemm = *wgmmaProblem(tf32Gemm({.m = 33, .n = 40, .k = k}), one);
    return gemm.a.usesTma && gemm.b.usesTma;
  };
  CHECK(tmaOperands(36));
  CHECK(!tmaOperands(35));
  for (const Kernel &kernel : nonEmpty(fusedContractions({}, DType::f32))) {
    INFO(kernel.name);
    CHECK(!ofFamily<Sm90GemmKnobs>(inTf32(kernel)).empty());
  }
}

TEST_CASE("why other products of f32 have none there") {
  CHECK(exclusion(fullGemm({}), "gemm-sm90") ==
        "element type f32; f16, bf16, f32 at precision tf32, and GEMMs of f8e4m3 and f8e5m2 are "
        "taken");
  CHECK(exclusion(tf32Gemm({}), "gemm-sm90") == "");
  CHECK(exclusion(tf32Gemm({}), "gemm-sm90", findDevice("a100")) ==
        "sm_80 has no WGMMA; sm_90a has");
  CHECK(exclusion(tf32Gemm({}, DType::f8e4m3), "gemm-sm90") ==
        "'c' is f8e4m3; an epilogue takes f32, f16 and bf16");
  Configuration outer = rowMajorGemm(Sm90GemmKnobs{});
  outer.inputs[1].order = {0, 2, 1};
  const Kernel kernel = tf32Gemm({.m = 64, .n = 48, .k = 80});
  CHECK(reasonOf(wgmmaProblem(kernel, outer)) ==
        "operand B is not contiguous along k; WGMMA takes tf32 in no other order");
  CHECK_THROWS_WITH(codegen::emit(kernel, outer, "sm_90a"),
                    Catch::Contains("operand B is not contiguous along k"));
  Device unknown = ofH200();
  unknown.tensorFlops.erase(DType::tf32);
  CHECK(exclusion(kernel, "gemm-sm90", unknown) == "h200 names no flop rate of GEMMs of tf32");
  for (const Configuration &one : nonEmpty(ofFamily<Sm90GemmKnobs>(kernel)))
    CHECK(one.knobs.get<Sm90GemmKnobs>().schedule != Sm90Schedule::singleConsumer);
}

TEST_CASE("the library multiplies in tf32 where it is asked for, and nowhere else") {
  const auto typesOf = [](const Kernel &kernel) {
    std::set<GemmTypes> found;
    for (const Configuration &one : ofFamily<LibraryKnobs>(kernel))
      found.insert(libraryGemm(kernel, one).types());
    return found;
  };
  CHECK(typesOf(tf32Gemm({})) == std::set{tf32Types});
  CHECK(typesOf(fullGemm({})) == std::set{GemmTypes{}});
  // In every layout, with its epilogues.
  CHECK(ofFamily<LibraryKnobs>(tf32Gemm({})).size() == ofFamily<LibraryKnobs>(fullGemm({})).size());
  const Kernel biased = gemmBias({}, DType::f32);
  CHECK(typesOf(inTf32(biased)) == std::set{tf32Types});
  CHECK(typesOf(biased) == std::set{GemmTypes{}});
  CHECK(ofFamily<LibraryKnobs>(inTf32(biased)).size() == ofFamily<LibraryKnobs>(biased).size());
  CHECK(exclusion(tf32Gemm({}, DType::f16), "cublaslt") ==
        "'a' is f32, the result f16; a library GEMM has one element type");
  LibraryGemm gemm = libraryGemm(tf32Gemm({}), rowMajorGemm(LibraryKnobs{}));
  CHECK(gemm.dtype == DType::f32);
  gemm.dtype = DType::f16;
  CHECK(libraryRejection(gemm) == "a result of f16 of tf32 operands; the library stores f32 alone");
}

TEST_CASE("tf32 takes twice the time of halves, and a fraction of that of f32") {
  const Tf32Extents square{.m = 4096, .n = 4096, .k = 4096};
  const Kernel halves = contractKernel({{'b', 1}, {'m', 4096}, {'n', 4096}, {'k', 4096}}, "bmk",
                                       "bnk", "bmn"),
               tf32 = tf32Gemm(square);
  CHECK(bestMicroseconds(tf32) == Approx(2 * bestMicroseconds(halves)).epsilon(0.1));
  CHECK(peakFlops(tf32, ofH200()) == ofH200().tensorFlops.at(DType::tf32));
  CHECK(peakFlops(fullGemm(square), ofH200()) == ofH200().fmaFlops);
  const auto library = [](const Kernel &kernel) {
    return analyticCostModel(ofH200())->cost(kernel, rowMajorGemm(LibraryKnobs{}));
  };
  CHECK(library(tf32).seconds < library(fullGemm(square)).seconds / 3);
  CHECK(library(tf32).bound == Bound::tensor);
  CHECK(library(fullGemm(square)).bound == Bound::fma);
}

TEST_CASE("rounding to tf32 keeps ten bits of the fraction, ties to even") {
  using reference::roundTo;
  CHECK(roundTo(DType::tf32, 1 + 0x1p-10) == 1 + 0x1p-10);
  CHECK(roundTo(DType::tf32, 1 + 0x1p-11) == 1);
  CHECK(roundTo(DType::tf32, 1 + 0x3p-11) == 1 + 0x1p-9);
  CHECK(roundTo(DType::tf32, -0x1.fffp100) == -0x1p101);
  CHECK(roundTo(DType::tf32, 0x1p-126) == 0x1p-126);
  CHECK(reference::roundingError(DType::tf32, 1.5) == 0x1p-11);
}

TEST_CASE("the admitted error covers rounding and cutting, around zero and not") {
  std::mt19937 random(3);
  for (const double mean : {0.0, 0.1, 2.0})
    for (const size_t n : {1, 2, 3, 7, 32, 100, 1000, 4096, 65536}) {
      std::normal_distribution<double> normal(mean, 1);
      for (int repeat = 0; repeat < 50; ++repeat) {
        const Accumulators sums = sumsOf(n, [&] { return normal(random); });
        INFO(mean << " " << n);
        CHECK(std::abs(sums.nearest - sums.exact) <= sums.bound());
        CHECK(std::abs(sums.cut - sums.exact) <= sums.bound());
      }
    }
  // The worst that cutting can do: all lower bits set, one sign.
  const double worst = 1 + (1 - 0x1p-13) * 0x1p-10;
  const Accumulators sums = sumsOf(100, [&] { return worst; });
  CHECK(std::abs(sums.cut - sums.exact) > 0.99 * sums.bound());
  CHECK(std::abs(sums.cut - sums.exact) <= sums.bound());
}

TEST_CASE(
    "the admitted error is no more than some tens of fp32's, and tells a wrong GEMM from a "
    "right one") {
  std::mt19937 random(4);
  std::normal_distribution<double> normal(0, 1);
  size_t found = 0;
  for (int repeat = 0; repeat < 200; ++repeat) {
    const Accumulators sums = sumsOf(4096, [&] { return normal(random); });
    const double other = normal(random) * normal(random);
    found += std::abs(other) > sums.bound();
    CHECK(sums.bound() < 0.02 * std::sqrt(sums.squares) + 0x1p-8 * std::abs(sums.exact));
  }
  CHECK(found > 50);
}

TEST_CASE("single elements of a tf32 contraction have the exact value and the wider bound") {
  const auto point = [](const Kernel &kernel) {
    const auto reader = [](std::span<const int64_t> at) {
      return 1 + 0.001 * double(at[1] + 3 * at[2]);
    };
    reference::PointEvaluator points(kernel, {reader, reader}, {});
    const std::vector<int64_t> place{0, 3, 5};
    return points.output(0, place);
  };
  const reference::Point full = point(fullGemm({})), tf32 = point(tf32Gemm({}));
  CHECK(full.value == tf32.value);
  CHECK(tf32.error - full.error == Approx(0x1p-9 * full.value));
}

TEST_CASE(
    "an element of an attention of tf32 has the exact value and the bounds of both products") {
  const auto point = [](const Kernel &kernel, size_t output) {
    const auto reader = [](std::span<const int64_t> at) {
      return 1 + 0.001 * double(at[at.size() - 1] + 3 * at[at.size() - 2]);
    };
    reference::PointEvaluator points(kernel, {reader, reader, reader}, {});
    std::vector<int64_t> place{0, 1, 0, 5};
    if (output == 0) place.push_back(3);
    return points.output(output, place);
  };
  const Kernel kernel = plainAttention({.j = 8, .k = 40, .p = 16, .w = 16}, DType::f32, true);
  Kernel scoresAlone = inTf32(kernel);
  scoresAlone.body.back().attributes.erase("precision");
  const reference::Point full = point(kernel, 0), tf32 = point(inTf32(kernel), 0),
                         first = point(scoresAlone, 0);
  CHECK(full.value == tf32.value);
  // All terms have one sign: the second product loses 2^-9 of the result at most.
  CHECK(tf32.error - first.error == Approx(0x1p-9 * full.value).epsilon(0.01));
  CHECK(first.error > 2 * full.error);
  CHECK(point(inTf32(kernel), 1).error == point(scoresAlone, 1).error);
}
