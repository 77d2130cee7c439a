// Strided views: in which layouts a concatenation has them, which kernels accept them, and what
// such kernels cost.
#include "codegen/families/loop/LoopKnobs.h"
#include "codegen/families/view/ViewFamily.h"
#include "codegen/families/view/ViewKnobs.h"
#include "kernel/Error.h"
#include "kernel/StridedBatchedGemm.h"
#include "passes/configure/Family.h"
#include "passes/configure/Packing.h"
#include "passes/configure/StridedViews.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/samples/SampleKernels.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <set>

using namespace weft;
using weft::test::nonEmpty;
using namespace weft::samples;

namespace {

const Device &device() { return findDevice("h200"); }

/// Heads joined: q heads and r heads of [p, heads, j] make s.
Kernel joinHeads(int64_t q, int64_t r, int64_t j, DType type = DType::f16) {
  KernelBuilder builder("concat", {{'p', 8}, {'q', q}, {'r', r}, {'s', q + r}, {'j', j}});
  const int a = builder.input("a", "pqj", type), b = builder.input("b", "prj", type);
  const int c = builder.op("concat", OperatorClass::movement, {a, b}, "c", "psj", "", type);
  builder.last().attributes = {{"axis", int64_t(1)}};
  return builder.build({c});
}

std::vector<LayoutTuple> viewsOf(const Kernel &kernel) {
  const Expected<ConfigurationSpace, Reason> answer = viewSpace(kernel, device());
  return answer ? answer->tuples : std::vector<LayoutTuple>{};
}

std::set<std::vector<int>> ordersOf(const std::vector<LayoutTuple> &tuples) {
  std::set<std::vector<int>> orders;
  for (const LayoutTuple &tuple : tuples) orders.insert(tuple.back().order);
  return orders;
}

/// [p, h, ...] of `heads` heads among all: the layout of one part.
Layout partOfHeads(int64_t heads, int64_t inner) {
  return {.order = {0, 1, 2}, .strides = {heads * inner, inner, 1}};
}

}  // namespace

TEST_CASE("every element of a concatenation belongs to exactly one operand, in every layout") {
  const Kernel kernel = joinHeads(2, 3, 64);
  const std::vector<LayoutTuple> tuples = viewsOf(kernel);
  // 64 or 8 heads' elements of 2 bytes behind each head make lines, a single head's element does
  // not.
  CHECK(ordersOf(tuples) == std::set<std::vector<int>>{{0, 1, 2}, {1, 0, 2}, {1, 2, 0}});
  for (const LayoutTuple &tuple : nonEmpty(tuples)) {
    std::multiset<int64_t> places;
    const std::vector<int64_t> whole = extentsOf(kernel, kernel.outputs[0]);
    for (size_t part = 0; part < 2; ++part) {
      const std::vector<int64_t> extents = extentsOf(kernel, kernel.inputs[part]),
                                 strides = stridesOf(tuple[part], extents);
      CHECK(tuple[part].offset * 2 % 16 == 0);
      CHECK(hasStridedView(tuple[part], extents) == (tuple.back().order.front() != 1));
      CHECK(tuple[part].strides.empty() == !hasStridedView(tuple[part], extents));
      for (int64_t p = 0; p < extents[0]; ++p)
        for (int64_t h = 0; h < extents[1]; ++h)
          for (int64_t j = 0; j < extents[2]; ++j)
            places.insert(tuple[part].offset + p * strides[0] + h * strides[1] + j * strides[2]);
    }
    CHECK(places.size() == size_t(whole[0] * whole[1] * whole[2]));
    CHECK(std::set<int64_t>(places.begin(), places.end()).size() == places.size());
    CHECK(*places.rbegin() == whole[0] * whole[1] * whole[2] - 1);
  }
}

TEST_CASE(
    "contiguous runs of a strided view are whole lines; contiguous views need only alignment") {
  const auto has = [](const Kernel &kernel, std::vector<int> order) {
    return ordersOf(viewsOf(kernel)).contains(order);
  };
  CHECK(has(joinHeads(2, 3, 64), {0, 1, 2}));
  CHECK(has(joinHeads(2, 4, 32), {0, 1, 2}));
  CHECK_FALSE(has(joinHeads(2, 3, 32), {0, 1, 2}));  // 192 bytes
  CHECK_FALSE(has(joinHeads(3, 2, 32), {0, 1, 2}));
  CHECK(has(joinHeads(2, 3, 32, DType::f32), {0, 1, 2}));
  CHECK(has(joinHeads(2, 3, 32), {1, 0, 2}));
  CHECK(has(joinHeads(1, 3, 5), {1, 0, 2}));  // 40 elements before the second
  CHECK(has(joinHeads(3, 1, 7), {1, 0, 2}));
}

TEST_CASE(
    "a strided view is rejected where a GEMM merges its axes, and where it may be a view itself") {
  const std::map<char, int64_t> extents = {{'p', 8}, {'h', 2}, {'j', 64}, {'k', 32}};
  const Layout part = partOfHeads(5, 64);
  // scores of heads: h is a batch. C = [p, h, j] is written along p, by heads.
  const Kernel byHeads = contractKernel(extents, "phk", "hkj", "phj");
  CHECK(stridedViewRejection(byHeads, 2, part).empty());
  // A projection: p and h are m together.
  const Kernel projection = contractKernel(extents, "phk", "kj", "phj");
  CHECK(stridedViewRejection(projection, 2, part) == "p and h are one axis of the GEMM");
  CHECK(stridedViewRejection(projection, 2, rowMajor(3)).empty());
  CHECK(stridedViewRejection(projection, 2, {.order = {0, 1, 2}, .strides = {128, 64, 1}})
            .empty());  // dense
  CHECK(stridedViewRejection(reluKernel(extents, "phj"), 0, part).empty());
  CHECK(stridedViewRejection(softmaxKernel(extents, "phj"), 1, part).empty());
  CHECK(stridedViewRejection(identityKernel(extents, "phj"), 0, part) ==
        "'identity' may be a view itself");
  CHECK(stridedViewRejection(joinHeads(2, 3, 64), 0, part) == "'concat' may be a view itself");
}

TEST_CASE("a kernel has a configuration with strided views exactly where it accepts them") {
  const std::map<char, int64_t> extents = {{'p', 8}, {'h', 2}, {'j', 64}, {'k', 32}};
  const Layout part = partOfHeads(5, 64);
  const auto count = [&](const Kernel &kernel, LayoutConstraints layouts) {
    return enumerate(kernel, device(), layouts).legal.size();
  };
  LayoutConstraints dense{.inputs = std::vector<std::optional<Layout>>(2),
                          .outputs = {rowMajor(3)}},
      strided = dense;
  strided.outputs = {part};
  const Kernel byHeads = contractKernel(extents, "phk", "hkj", "phj"),
               projection = contractKernel(extents, "phk", "kj", "phj");
  CHECK(count(byHeads, dense) > 0);
  CHECK(count(byHeads, strided) == count(byHeads, dense));
  CHECK(count(projection, dense) > 0);
  CHECK(count(projection, strided) == 0);
  for (const Configuration &configuration : nonEmpty(enumerate(byHeads, device(), strided).legal)) {
    CHECK(configuration.outputs[0].strides == part.strides);
    CHECK(stridedBatchedGemm(byHeads, configuration));
    CHECK(asContiguous(byHeads, configuration).outputs[0] == rowMajor(3));
  }
  const Kernel relu = reluKernel(extents, "phj");
  const auto reluTwins = [&](const Layout &in) {
    return enumerate(relu, device(), {.inputs = {in}, .outputs = {rowMajor(3)}}).legal;
  };
  CHECK(reluTwins(part).size() == reluTwins(rowMajor(3)).size());
  CHECK(spanBytes(relu, relu.inputs[0], part) == 2 * (7 * 320 + 64 + 63 + 1));
  CHECK(spanBytes(relu, relu.inputs[0], rowMajor(3)) == relu.bytes(relu.inputs[0]));
}

TEST_CASE("a view kernel accepts only the strides of its operands in the result") {
  const Kernel kernel = joinHeads(2, 3, 64);
  LayoutConstraints layouts{.inputs = {partOfHeads(5, 64), partOfHeads(5, 64)},
                            .outputs = {rowMajor(3)}};
  const auto views = [&] {
    const std::vector<Configuration> legal = enumerate(kernel, device(), layouts).legal;
    return std::count_if(legal.begin(), legal.end(),
                         [](const Configuration &one) { return one.knobs.is<ViewKnobs>(); });
  };
  CHECK(views() == 1);
  layouts.inputs[1]->strides = {384, 64, 1};
  CHECK(views() == 0);
  layouts.inputs[1] = rowMajor(3);
  CHECK(views() == 0);
}

TEST_CASE("a copied concatenation has a reason code, and a view has none") {
  const auto reason = [](const Kernel &kernel, std::vector<int> order) {
    const Layout layout{.order = std::move(order)};
    const auto why = whyCopied(kernel, {.inputs = std::vector(kernel.inputs.size(), layout),
                                        .outputs = {layout},
                                        .knobs = LoopKnobs{}});
    return why ? why->text() : "";
  };
  CHECK(reason(joinHeads(2, 3, 64), {0, 1, 2}).starts_with("V004 part-not-free"));
  CHECK(reason(joinHeads(2, 3, 20), {0, 1, 2}) ==
        "V005 runs-not-whole-lines (runs along s in psj are no multiples of 128 bytes)");
  // Long runs are of whole sectors: parts of lines at their ends are few.
  CHECK_FALSE(viewsOf(joinHeads(9, 10, 96)).empty());
  CHECK(reason(joinHeads(9, 10, 96), {0, 1, 2}).starts_with("V004 part-not-free"));
  CHECK(reason(joinHeads(9, 10, 100), {0, 1, 2}) ==
        "V005 runs-not-whole-lines (runs along s in psj are no multiples of 32 bytes)");
  KernelBuilder builder("concat", {{'q', 64}, {'s', 128}});
  const int x = builder.input("x", "q");
  const int y = builder.op("concat", OperatorClass::movement, {x, x}, "y", "s");
  builder.last().attributes = {{"axis", int64_t(0)}};
  const Kernel twice = builder.build({y});
  CHECK(viewsOf(twice).empty());
  CHECK(reason(twice, {0}).starts_with("V004 part-not-free"));
  CHECK_FALSE(whyCopied(
      joinHeads(2, 3, 64),
      {.inputs = {rowMajor(3), rowMajor(3)}, .outputs = {rowMajor(3)}, .knobs = ViewKnobs{}}));
}

TEST_CASE("a strided view costs its measurement, and unmeasured as much as a contiguous operand") {
  const std::map<char, int64_t> extents = {{'p', 8}, {'h', 2}, {'j', 64}};
  const Kernel relu = reluKernel(extents, "phj");
  const Configuration dense =
      enumerate(relu, device(), {.inputs = {rowMajor(3)}, .outputs = {rowMajor(3)}}).legal.front();
  Configuration strided = dense;
  strided.inputs[0] = partOfHeads(5, 64);
  Profile profile{.device = "h200", .protocols = {{1, "pretended"}}, .kernels = {}};
  addMeasurement(profile, relu, dense,
                 {.seconds = 3e-6, .n = 9, .spread = 0.01, .familyVersion = loopFamily.version});
  const auto before = measuredCostModel(device(), profile, "profile p", false);
  CHECK(costWithStridedViews(*before, relu, dense).seconds == 3e-6);
  CHECK(costWithStridedViews(*before, relu, strided).seconds == 3e-6);
  CHECK(costWithStridedViews(*before, relu, strided).source == "-");
  addMeasurement(profile, relu, strided,
                 {.seconds = 4e-6, .n = 9, .spread = 0.01, .familyVersion = loopFamily.version});
  const auto after = measuredCostModel(device(), profile, "profile p", false);
  CHECK(costWithStridedViews(*after, relu, strided).seconds == 4e-6);
  CHECK(costWithStridedViews(*after, relu, dense).seconds == 3e-6);
  // Selection considers orders of axes alone: the lesser price of both.
  REQUIRE(after->measured(relu).size() == 1);
  CHECK(after->measured(relu).front().cost.seconds == 3e-6);
  Profile other{.device = "h200", .protocols = {{1, "pretended"}}, .kernels = {}};
  addMeasurement(other, relu, dense,
                 {.seconds = 3e-6, .n = 9, .spread = 0.01, .familyVersion = loopFamily.version});
  addMeasurement(other, relu, strided,
                 {.seconds = 2e-6, .n = 9, .spread = 0.01, .familyVersion = loopFamily.version});
  const auto faster = measuredCostModel(device(), other, "profile p", false);
  CHECK(costWithStridedViews(*faster, relu, dense).seconds == 3e-6);
  REQUIRE(faster->measured(relu).size() == 1);
  CHECK(faster->measured(relu).front().cost.seconds == 2e-6);
  CHECK(faster->measured(relu).front().configuration == dense);
}

TEST_CASE("a measurement on views of other knobs is an offer beside contiguous measurements") {
  const std::map<char, int64_t> extents = {{'p', 8}, {'h', 2}, {'j', 64}};
  const Kernel relu = reluKernel(extents, "phj");
  const std::vector<Configuration> legal =
      enumerate(relu, device(), {.inputs = {rowMajor(3)}, .outputs = {rowMajor(3)}}).legal;
  REQUIRE(legal.size() > 1);
  Configuration strided = legal[1];
  strided.inputs[0] = partOfHeads(5, 64);
  const ProfileMeasurement slow{
      .seconds = 3e-6, .n = 9, .spread = 0.01, .familyVersion = loopFamily.version};
  Profile profile{.device = "h200", .protocols = {{1, "pretended"}}, .kernels = {}};
  addMeasurement(profile, relu, strided,
                 {.seconds = 2e-6, .n = 9, .spread = 0.01, .familyVersion = loopFamily.version});
  // Alone it would take all other layouts from the kernel.
  CHECK(measuredCostModel(device(), profile, "profile p", false)->measured(relu).empty());
  addMeasurement(profile, relu, legal[0], slow);
  const auto both = measuredCostModel(device(), profile, "profile p", false);
  const std::vector<PricedConfiguration> &offered = both->measured(relu);
  REQUIRE(offered.size() == 2);
  CHECK(offered[0].cost.measured);
  CHECK(offered[1].configuration == legal[1]);
  CHECK(offered[1].cost.seconds == 2e-6);
  CHECK_FALSE(offered[1].cost.measured);
}
