// Prices at an expected fill: the mean of those at its levels, whatever was priced before.
#include "passes/configure/FilledCost.h"

#include "codegen/families/gemm_sm90/Sm90GemmKnobs.h"
#include "kernel/Error.h"
#include "kernel/UnusedTokens.h"
#include "passes/configure/Families.h"
#include "passes/configure/Family.h"
#include "passes/configure/OptimisticCost.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/samples/SampleAttentions.h"
#include "tests/unit/samples/SampleTokens.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <memory>
#include <vector>

using namespace weft;
using namespace weft::samples;
using weft::test::nonEmpty;

namespace {

// The last two have the same extents in multiples of what kernels are shortened by.
const ExpectedFill fill = {.tokens = 0.5,
                           .pairs = 0.3,
                           .levels = {{.tokens = 0.25, .pairs = 0.1, .weight = 0.25},
                                      {.tokens = 0.5, .pairs = 0.3, .weight = 0.25},
                                      {.tokens = 0.625, .pairs = 0.4, .weight = 0.25},
                                      {.tokens = 0.625, .pairs = 0.4001, .weight = 0.25}}};

struct Priced {
  Kernel kernel;
  std::vector<Configuration> configurations;
};

/// Some configurations of every family that takes the kernel.
Priced pricedOf(const Kernel &kernel) {
  Priced result{.kernel = kernel, .configurations = {}};
  for (const ConfigurationSpace &space :
       nonEmpty(configurationSpaces(kernel, findDevice("h200")))) {
    const LayoutTuple *last = nullptr;
    for (const LayoutTuple &tuple : space.tuples) last = &tuple;
    for (size_t k = 0; last && k < std::min<size_t>(3, space.knobs.size()); ++k)
      if (isUseful(kernel, *last, space.knobs[k]))
        result.configurations.push_back(toConfiguration(kernel, *last, space.knobs[k]));
  }
  REQUIRE(!result.configurations.empty());
  return result;
}

const std::vector<Priced> &kernels() {
  static const std::vector<Priced> all = {
      pricedOf(gemmOfTokens({.t = 4096, .i = 768, .u = 768, .sequences = 8}, DType::f16, true)),
      pricedOf(gemmOfTokens({.t = 4096, .i = 768, .u = 768, .sequences = 8}, DType::f16, false,
                            false, true)),
      pricedOf(
          attentionOfTokens({.b = 8, .h = 12, .j = 512, .k = 512, .p = 64, .w = 64}, DType::f16)),
      pricedOf(
          cachedAttention({.b = 8, .h = 12, .j = 1, .k = 2048, .p = 64, .w = 64}, DType::f16))};
  return all;
}

}  // namespace

TEST_CASE("a price at several fills is the mean of those at each, if kernels take turns or not") {
  const std::unique_ptr<CostModel> whole = analyticCostModel(findDevice("h200")),
                                   all = filledCostModel(*whole, fill);
  std::vector<std::unique_ptr<CostModel>> levels;
  for (const FillLevel &level : fill.levels)
    levels.push_back(filledCostModel(*whole, {.tokens = level.tokens, .pairs = level.pairs}));
  const auto meanOf = [&](const Kernel &kernel, const Configuration &configuration) {
    double mean = 0;
    for (size_t level = 0; level < levels.size(); ++level)
      mean += fill.levels[level].weight * levels[level]->cost(kernel, configuration).seconds;
    return mean;
  };
  size_t shorter = 0;
  for (const Priced &one : nonEmpty(kernels()))
    for (const Configuration &configuration : nonEmpty(one.configurations)) {
      const double seconds = all->cost(one.kernel, configuration).seconds,
                   full = whole->cost(one.kernel, configuration).seconds;
      CHECK(seconds == Approx(meanOf(one.kernel, configuration)).epsilon(1e-12));
      shorter += seconds < full ? 1 : 0;
    }
  CHECK(shorter >= kernels().size());
  for (size_t n = 0; n < 3; ++n)
    for (const Priced &one : nonEmpty(kernels())) {
      if (n >= one.configurations.size()) continue;
      const Configuration &configuration = one.configurations[n];
      CHECK(all->cost(one.kernel, configuration).seconds ==
            Approx(meanOf(one.kernel, configuration)).epsilon(1e-12));
    }
}

TEST_CASE("bytes and flop at several fills are those at the mean") {
  const std::unique_ptr<CostModel> whole = analyticCostModel(findDevice("h200")),
                                   all = filledCostModel(*whole, fill),
                                   mean = filledCostModel(
                                       *whole, {.tokens = fill.tokens, .pairs = fill.pairs});
  for (const Priced &one : nonEmpty(kernels())) {
    const Configuration &configuration = one.configurations.front();
    const Cost cost = all->cost(one.kernel, configuration);
    CHECK(cost.flop == mean->cost(one.kernel, configuration).flop);
    CHECK(cost.bytesMoved == mean->cost(one.kernel, configuration).bytesMoved);
    CHECK(cost.bytesNecessary < whole->cost(one.kernel, configuration).bytesNecessary);
  }
}

TEST_CASE("the identity of prices follows from what they depend on, and from no name") {
  const Device &h200 = findDevice("h200");
  Device slower = h200, offersLess = h200;
  slower.copyBandwidth *= 0.9;
  offersLess.familiesTakenAway.insert(families().front());
  const std::string analytic = analyticCostModel(h200)->identity();
  CHECK(analyticCostModel(h200)->identity() == analytic);
  CHECK(analyticCostModel(offersLess)->identity() == analytic);
  CHECK(analyticCostModel(slower)->identity() != analytic);

  const Priced priced = pricedOf(plainAttention({}, DType::f16));
  const auto profileOf = [&](double seconds, int version) {
    Profile profile{.device = "h200", .protocols = {{1, "cold L2"}}, .kernels = {}};
    addMeasurement(profile, priced.kernel, priced.configurations.front(),
                   {.seconds = seconds, .n = 9, .familyVersion = version});
    return profile;
  };
  const auto measured = [&](const Profile &profile, const std::string &name, bool strict) {
    return measuredCostModel(h200, profile, name, strict);
  };
  const auto one = measured(profileOf(1e-5, 1), "one", false);
  CHECK(one->identity() != analytic);
  CHECK(measured(profileOf(1e-5, 1), "another", true)->identity() == one->identity());
  const auto later = measured(profileOf(1.1e-5, 1), "one", false);
  CHECK(later->description() == one->description());
  CHECK(later->identity() != one->identity());
  CHECK(measured(profileOf(1e-5, 2), "one", false)->identity() != one->identity());

  CHECK(filledCostModel(*one, {})->identity() == one->identity());
  const std::string half = filledCostModel(*one, {.tokens = 0.5, .pairs = 0.3})->identity();
  CHECK(half != one->identity());
  CHECK(filledCostModel(*one, fill)->identity() != half);  // of the same means
  CHECK(optimisticCostModel(*one)->identity() != one->identity());
}

TEST_CASE("a kernel of all tokens has its price at any fill") {
  const Kernel kernel =
      plainAttention({.b = 8, .h = 12, .j = 512, .k = 512, .p = 64, .w = 64}, DType::f16);
  const std::unique_ptr<CostModel> whole = analyticCostModel(findDevice("h200")),
                                   filled = filledCostModel(*whole, fill);
  const Priced priced = pricedOf(kernel);
  for (const Configuration &configuration : nonEmpty(priced.configurations))
    CHECK(filled->cost(kernel, configuration).seconds ==
          whole->cost(kernel, configuration).seconds);
}

TEST_CASE("an attention of unequal lengths takes the mean of what equal ones take") {
  const Kernel kernel =
      attentionOfTokens({.b = 8, .h = 12, .j = 512, .k = 512, .p = 64, .w = 64}, DType::f16);
  const std::unique_ptr<CostModel> whole = analyticCostModel(findDevice("h200"));
  // 0.1, 0.3, .. 0.9, whose squares have the mean 0.33; and one of eight as long as may be, others
  // of an eleventh.
  using Lengths = std::vector<std::pair<double, double>>;
  for (const auto &[fill, lengths] :
       {std::pair(ExpectedFill{.tokens = 0.5, .pairs = 0.33},
                  Lengths{{0.1, 0.2}, {0.3, 0.2}, {0.5, 0.2}, {0.7, 0.2}, {0.9, 0.2}}),
        std::pair(ExpectedFill{.tokens = 1 / 8.0 + 7 / 88.0, .pairs = 1 / 8.0 + 7 / 968.0},
                  Lengths{{1, 1 / 8.0}, {1 / 11.0, 7 / 8.0}})}) {
    const std::unique_ptr<CostModel> unequal = filledCostModel(*whole, fill);
    const Priced priced = pricedOf(kernel);
    for (const Configuration &configuration : nonEmpty(priced.configurations)) {
      // Straight lines between elevenths.
      const auto at = [&](int eleventh) {
        const double share = std::max(eleventh / 11.0, 1e-3);
        return filledCostModel(*whole, {.tokens = share, .pairs = share * share})
            ->cost(kernel, configuration)
            .seconds;
      };
      double mean = 0;
      for (const auto &[length, weight] : lengths) {
        const int below = std::min(int(length * 11 + 1e-9), 10);
        const double above = length * 11 - below;
        mean += weight * ((1 - above) * at(below) + above * at(below + 1));
      }
      CHECK(unequal->cost(kernel, configuration).seconds == Approx(mean).epsilon(1e-9));
    }
  }
}

TEST_CASE("tiles that are best for few of the packed tokens are offered") {
  const Device &device = findDevice("h200");
  const std::unique_ptr<CostModel> prices = analyticCostModel(device);
  const auto tilesOf = [&](const Kernel &kernel) {
    for (ConfigurationSpace &space : configurationSpaces(kernel, device))
      if (space.family->name == "gemm-sm90" && !space.hasSeveralStrides) return space;
    throw Error::checkFailed("'{}' has no tiles", kernel.name);
  };
  for (const int64_t u : {768, 1024, 3072}) {
    const Kernel kernel =
        gemmOfTokens({.t = 4096, .i = 3072, .u = u, .sequences = 8}, DType::f16, true);
    const ConfigurationSpace offered = tilesOf(kernel);
    for (const double share : {0.75, 0.58, 0.5, 0.25}) {
      INFO(u << " columns, a share of " << share);
      const Kernel shorter =
          shortenedKernel(kernel, {.tokens = share, .pairs = share * share}, false).value();
      const ConfigurationSpace own = tilesOf(shorter);
      for (const LayoutTuple &tuple : nonEmpty(own.tuples)) {
        const auto bestOf = [&](const std::vector<Knobs> &tiles) {
          double best = 1;
          for (const Knobs &knobs : tiles)
            if (knobs.get<Sm90GemmKnobs>().splitK == 1 && isUseful(shorter, tuple, knobs))
              best = std::min(
                  best, prices->cost(shorter, toConfiguration(shorter, tuple, knobs)).seconds);
          return best;
        };
        const double best = bestOf(own.knobs);
        REQUIRE(best < 1);
        CHECK(bestOf(offered.knobs) <= 1.02 * best);
      }
    }
  }
}

TEST_CASE("of sums over tokens those that end with the last one take less of fewer") {
  const Kernel kernel =
      sumOverTokens({.t = 8192, .i = 768, .u = 3072, .sequences = 16}, DType::f16);
  const std::unique_ptr<CostModel> whole = analyticCostModel(findDevice("h200"));
  const std::unique_ptr<CostModel> quarter =
      filledCostModel(*whole, {.tokens = 0.25, .pairs = 0.0625});
  size_t ending = 0, others = 0;
  for (const ConfigurationSpace &space : nonEmpty(configurationSpaces(kernel, findDevice("h200"))))
    for (const LayoutTuple &tuple : nonEmpty(space.tuples))
      for (const Knobs &knobs : nonEmpty(space.knobs)) {
        if (!isUseful(kernel, tuple, knobs)) continue;
        const Configuration one = toConfiguration(kernel, tuple, knobs);
        const double all = whole->cost(kernel, one).seconds,
                     few = quarter->cost(kernel, one).seconds;
        const auto endsSums = space.family->endsSums;
        if (endsSums && endsSums(kernel, knobs)) {
          CHECK(few < 0.5 * all);
          CHECK(few > 0.2 * all);
          ++ending;
        } else {
          CHECK(few == all);
          ++others;
        }
      }
  CHECK(ending > 0);
  CHECK(others > 0);
}

TEST_CASE("what was measured of a plain contraction serves one that knows its tokens") {
  const Kernel kernel = sumOverTokens({.t = 512, .i = 64, .u = 128, .sequences = 4}, DType::f16);
  const Kernel plain = withoutTokenMasks(kernel).value();
  CHECK(plain.inputs.size() == 2);
  CHECK(plain.body.front().operands.size() == 2);
  CHECK(plain.body.front().reducedAxes == kernel.body.front().reducedAxes);
  CHECK_FALSE(summedTokens(plain));
}
