// Contractions with several strides along a group of axes: factors and boxes, every element of a
// map, what is rejected and why, keys, the layouts that are offered, and that a profile offers them
// by their measurements alone.
#include "codegen/Emit.h"
#include "codegen/families/contraction/ContractionLayouts.h"
#include "codegen/families/gemm_fma/FmaGemmKnobs.h"
#include "codegen/families/gemm_sm80/Sm80GemmKnobs.h"
#include "codegen/families/gemm_sm90/Sm90GemmKnobs.h"
#include "codegen/families/gemm_sm90/Sm90Strides.h"
#include "codegen/families/gemm_sm90/Sm90Tile.h"
#include "codegen/families/library/LibraryGemm.h"
#include "codegen/families/library/LibraryKnobs.h"
#include "kernel/ConfigurationText.h"
#include "kernel/ContractionRegion.h"
#include "kernel/Error.h"
#include "passes/configure/CostModel.h"
#include "passes/configure/Family.h"
#include "passes/select/KernelSpaces.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/samples/SampleStrides.h"

#include <catch2/catch.hpp>

#include <set>

using namespace weft;
using samples::stridedConfiguration, samples::stridedKernel, samples::stridedGemmCases,
    samples::stridedProjection;
using weft::test::nonEmpty;

namespace {

const std::map<char, int64_t> layer{{'b', 8},   {'h', 16}, {'i', 1024}, {'j', 512},
                                    {'k', 512}, {'p', 64}, {'w', 2}},
    small{{'b', 3}, {'h', 2}, {'i', 72}, {'j', 32}, {'k', 40}, {'p', 64}, {'w', 2}},
    wide{{'b', 2}, {'h', 3}, {'i', 136}, {'j', 192}, {'k', 72}, {'p', 128}, {'w', 4}};

const Device &device() { return findDevice("h200"); }

/// The projection behind attention: rows (b,j) and k (h,p) of a [b,h,j,p].
Kernel projection(const std::map<char, int64_t> &extents = layer) {
  return stridedKernel(stridedGemmCases[0], extents);
}
constexpr Sm90GemmKnobs usual{.schedule = Sm90Schedule::pingPong,
                              .tileM = 128,
                              .tileN = 128,
                              .stages = 6,
                              .epilogueStages = 2};

std::vector<std::pair<int64_t, int64_t>> pairs(const GroupFactors &group) {
  std::vector<std::pair<int64_t, int64_t>> result;
  for (const StrideFactor &factor : group) result.emplace_back(factor.extent, factor.stride);
  return result;
}
using Pairs = std::vector<std::pair<int64_t, int64_t>>;

std::string rejectionOf(const Kernel &kernel, const Configuration &configuration) {
  return sm90Rejection(kernel, configuration, configuration.knobs.get<Sm90GemmKnobs>(),
                       device().sharedMemoryPerBlock);
}
std::string rejectionOf(const samples::StridedGemmCase &gemm,
                        const std::map<char, int64_t> &extents, DType type = DType::f16) {
  const Kernel kernel = stridedKernel(gemm, extents, type);
  return rejectionOf(kernel, stridedConfiguration(kernel, usual));
}

/// Offset of an index along the group's factors, as memory has it; nothing where it is out of
/// bounds.
std::optional<int64_t> offsetOf(const GroupFactors &group, int64_t index) {
  int64_t offset = 0;
  for (size_t i = 0; i < group.size(); ++i) {
    const int64_t at = i + 1 < group.size() ? index % group[i].extent : index;
    if (at >= group[i].extent) return std::nullopt;
    offset += at * group[i].stride;
    index /= group[i].extent;
  }
  return offset;
}

/// Offset of a box's element, as TMA finds it: coordinates of the box's first index
/// along each group, then the place in the box.
std::optional<int64_t> offsetInBox(const TensorMap &map, const std::vector<int64_t> &at,
                                   int64_t element) {
  int64_t offset = 0;
  for (size_t d = 0; d < map.box.size(); ++d) {
    const int64_t index = at[d] + element % map.box[d];
    if (index >= map.extents[d]) return std::nullopt;
    offset += index * (d == 0 ? 1 : map.strides[d - 1]);
    element /= map.box[d];
  }
  return offset;
}

void addCoordinates(std::vector<int64_t> &at, const GroupFactors &group, int64_t index) {
  for (size_t i = 0; i < group.size(); index /= group[i++].extent)
    at.push_back(i + 1 < group.size() ? index % group[i].extent : index);
}

int64_t extentOf(const GroupFactors &group) {
  int64_t extent = 1;
  for (const StrideFactor &factor : group) extent *= factor.extent;
  return extent;
}

/// Every element of every box of a map: where 64 columns and `rows` rows of the merged groups would
/// lie, in that order.
void checkBoxes(const MapGroups &groups, int rows) {
  const TensorMap map = mapOf(DType::f16, groups, rows);
  REQUIRE(map.box.size() == map.extents.size());
  REQUIRE(map.strides.size() + 1 == map.extents.size());
  REQUIRE(map.box.size() <= 5);
  REQUIRE(map.box[0] == 64);
  int64_t elements = 1;
  for (const int side : nonEmpty(map.box)) {
    CHECK(side <= 256);
    elements *= side;
  }
  REQUIRE(elements == int64_t(64) * rows);
  for (const int64_t stride : nonEmpty(map.strides)) CHECK(stride * 2 % 16 == 0);
  int64_t wrong = 0;
  for (int64_t batch = 0; batch < extentOf(groups.batch); ++batch)
    for (int64_t row = 0; row < extentOf(groups.rows); row += rows)
      for (int64_t column = 0; column < extentOf(groups.columns); column += 64) {
        std::vector<int64_t> at;
        addCoordinates(at, groups.columns, column);
        addCoordinates(at, groups.rows, row);
        addCoordinates(at, groups.batch, batch);
        for (int64_t element = 0; element < elements; ++element) {
          const auto ofColumn = offsetOf(groups.columns, column + element % 64),
                     ofRow = offsetOf(groups.rows, row + element / 64);
          const std::optional<int64_t> wanted =
              ofColumn && ofRow
                  ? std::optional(*ofColumn + *ofRow + offsetOf(groups.batch, batch).value())
                  : std::nullopt;
          wrong += wanted == offsetInBox(map, at, element) ? 0 : 1;
        }
      }
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("groups have the fewest strides that every operand allows, in the order of the result") {
  const Kernel kernel = projection();
  const MultiStrideGemm gemm = multiStrideGemm(kernel, stridedConfiguration(kernel, usual)).value();
  CHECK(gemm.extents == std::array<int64_t, 4>{1, 4096, 1024, 1024});
  CHECK(pairs(gemm.a[mGroup]) == Pairs{{512, 64}, {8, 16 * 512 * 64}});
  CHECK(pairs(gemm.a[kGroup]) == Pairs{{64, 1}, {16, 512 * 64}});
  CHECK(pairs(gemm.b[kGroup]) == Pairs{{1024, 1024}});
  CHECK(pairs(gemm.b[nGroup]) == Pairs{{1024, 1}});
  CHECK(pairs(gemm.c[mGroup]) == Pairs{{4096, 1024}});
  CHECK(gemm.a[batchGroup].empty());
  CHECK(hasSeveralStrides(gemm.a));
  CHECK_FALSE(hasSeveralStrides(gemm.b));
  CHECK_FALSE(hasSeveralStrides(gemm.c));
  Configuration merged = stridedConfiguration(kernel, usual);
  merged.inputs[0].order = {0, 2, 1, 3};
  const MultiStrideGemm plain = multiStrideGemm(kernel, merged).value();
  CHECK_FALSE(hasSeveralStrides(plain.a));
  CHECK(stridedBatchedGemm(kernel, merged)->strideAm == plain.a[mGroup].front().stride);
  CHECK(*gemmOfResult(kernel, merged) ==
        StridedBatchedGemm{.m = 4096, .n = 1024, .k = 1024, .strideCm = 1024, .strideCn = 1});
  CHECK(gemmOfResult(kernel, merged)->strideCm == stridedBatchedGemm(kernel, merged)->strideCm);
  // Of k the order is that of the operand which leaves fewer strides: w [p,h,i] counts h fastest, a
  // [b,j,h,p] p.
  Configuration other = merged;
  other.inputs[1].order = {1, 0, 2};
  const MultiStrideGemm both = multiStrideGemm(kernel, other).value();
  CHECK(pairs(both.a[kGroup]) == Pairs{{1024, 1}});
  CHECK(pairs(both.b[kGroup]) == Pairs{{64, 16 * 1024}, {16, 1024}});
}

TEST_CASE("a range of a group is a box where factors and side divide each other") {
  const GroupFactors positions{
      {.extent = 32, .stride = 64}, {.extent = 6, .stride = 4096}, {.extent = 5, .stride = 65536}};
  CHECK(boxSides(positions, 16) == std::vector{16, 1, 1});
  CHECK(boxSides(positions, 64) == std::vector{32, 2, 1});
  CHECK(boxSides(positions, 192) == std::vector{32, 6, 1});
  CHECK(boxSides(positions, 384) == std::vector{32, 6, 2});
  CHECK_FALSE(boxSides(positions, 128));  // 4 of 6
  CHECK_FALSE(boxSides(positions, 48));
  CHECK(boxSides({{.extent = 7, .stride = 8}}, 128) == std::vector{128});
  CHECK(boxSides({}, 64) == std::vector<int>{});
}

TEST_CASE("boxes hold the elements of merged groups in their order, and nothing beside them") {
  for (const auto &extents : {small, wide})
    for (const samples::StridedGemmCase &one : stridedGemmCases) {
      const Kernel kernel = stridedKernel(one, extents);
      const GemmProblem gemm = *wgmmaProblem(kernel, stridedConfiguration(kernel, usual));
      INFO(one.what);
      CHECK(gemm.hasSeveralStrides());
      for (const GemmOperand *operand : {&gemm.a, &gemm.b})
        if (operand->hasSeveralStrides())
          for (const int side : {64, 128, 192, 256})
            checkBoxes(mapGroups(*operand),
                       operand->isAlongK() ? boxRows(mapGroups(*operand), side) : 64);
      if (gemm.resultHasSeveralStrides()) checkBoxes(mapGroups(gemm), 64);
    }
  const Kernel kernel = projection(wide);  // 192 rows are no tiles of 128, but three boxes of 64
  const GemmProblem gemm = *wgmmaProblem(kernel, stridedConfiguration(kernel, usual));
  CHECK(boxRows(mapGroups(gemm.a), 128) == 64);
  CHECK(boxRows(mapGroups(gemm.a), 192) == 192);
  CHECK(boxRows(mapGroups(gemm.a), 64) == 64);
}

TEST_CASE("the map of a parameter and the text name the same dimensions") {
  const Kernel kernel = projection();
  const codegen::EmittedKernel emitted =
      codegen::emit(kernel, stridedConfiguration(kernel, usual), "sm_90a");
  const auto &map = emitted.parameters.at(0).map;
  REQUIRE(map);
  CHECK(map->extents == std::vector<int64_t>{64, 16, 512, 8});
  CHECK(map->strides == std::vector<int64_t>{512 * 64, 64, 16 * 512 * 64});
  CHECK(map->box == std::vector{64, 1, 128, 1});
  // Of each dimension the text has the extent: with another one it is another text.
  for (const char axis : {'p', 'h', 'j', 'b'}) {
    std::map<char, int64_t> doubled = layer;
    doubled[axis] *= 2;
    const Kernel other = projection(doubled);
    INFO(axis);
    CHECK(codegen::emit(other, stridedConfiguration(other, usual), "sm_90a").text != emitted.text);
  }
  CHECK(emitted.parameters.at(1).map->extents.size() == 2);
}

TEST_CASE("what a tensor map does not take is rejected with the axis and the limit") {
  const auto with = [](std::map<char, int64_t> extents, char axis, int64_t extent) {
    extents[axis] = extent;
    return extents;
  };
  CHECK(rejectionOf(stridedGemmCases[0], layer) == "");
  CHECK(rejectionOf(stridedGemmCases[0], with(layer, 'p', 72)) ==
        "operand A: 72 of p in a row; with several strides along that group rows of whole 64 are "
        "taken");
  CHECK(rejectionOf(stridedGemmCases[0], with(layer, 'p', 32)) ==
        "operand A: 32 of p in a row; with several strides along that group rows of whole 64 are "
        "taken");
  CHECK(rejectionOf(stridedGemmCases[0], with(layer, 'j', 48)) ==
        "operand A: 64 rows along j are no box; factors that divide them or that they divide are "
        "taken");
  const samples::StridedGemmCase byBatch = stridedGemmCases[3];  // rows of p elements
  CHECK_THAT(rejectionOf(byBatch, with(layer, 'p', 36)),
             Catch::StartsWith("operand A: stride 36 of h; a tensor map with several strides along "
                               "a group takes multiples of 8 below"));
  CHECK(rejectionOf(byBatch, with(layer, 'p', 40)) == "");
  CHECK(rejectionOf({"bhgjp", "hgpi", "bjgi", ""},
                    {{'b', 2}, {'h', 4}, {'g', 2}, {'j', 64}, {'p', 64}, {'i', 64}}) == "");
  CHECK(rejectionOf({"wbhgjp", "whgpi", "wbjgi", ""},
                    {{'b', 2}, {'h', 4}, {'g', 2}, {'j', 64}, {'p', 64}, {'i', 64}, {'w', 3}}) ==
        "operand A has 6 strides; a tensor map has 5 dimensions");
  CHECK(rejectionOf({"bhjp", "hpi", "bji", ""}, with(layer, 'i', 1)) ==
        "a group of axes has several strides, and a side of the GEMM or k is less than 2");
  CHECK(rejectionOf({"bjhp", "bkhp", "hjkb", ""}, layer) ==
        "the result is contiguous along neither of its axes");
  CHECK(rejectionOf(stridedGemmCases[0], layer, DType::f32) ==
        "a group of axes has several strides; GEMMs of f32 take one, of f16 and bf16 several");
  CHECK(rejectionOf({"bji", "hpi", "bhjp", ""}, with(layer, 'p', 68)) ==
        "the result: stride 68 of j; a tensor map with several strides along a group takes "
        "multiples of 8 below 549755813888");
  const Kernel kernel = projection();
  Configuration configuration = stridedConfiguration(kernel, usual);
  configuration.inputs[0].alignment = 8;
  CHECK(rejectionOf(kernel, configuration) ==
        "operand A has several strides along a group and starts at a multiple of 8 bytes; 16 are "
        "taken");
  configuration = stridedConfiguration(
      kernel, Sm90GemmKnobs{.schedule = Sm90Schedule::singleConsumer, .tileM = 64, .tileN = 48});
  CHECK(rejectionOf(kernel, configuration) ==
        "single-consumer tiles take one stride along each group of axes: take others where there "
        "are several");
}

TEST_CASE("other families and an epilogue on such a result say that they take one stride") {
  samples::KernelBuilder builder("projection_relu",
                                 {{'b', 8}, {'h', 16}, {'i', 1024}, {'j', 512}, {'p', 64}});
  const int x = builder.input("x", "bji"), w = builder.input("w", "hpi");
  const int gemm = builder.op("contract", OperatorClass::contraction, {x, w}, "gemm", "bhjp", "i");
  const int y = builder.op("relu", OperatorClass::elementwise, {gemm}, "y", "bhjp");
  builder.last().expression = Expression::parse("weft::relu({0})");
  const Kernel fused = builder.build({y});
  CHECK(rejectionOf(fused, stridedConfiguration(fused, usual)) ==
        "the result has several strides along a group of its axes; an epilogue takes one of one "
        "stride");
  const Kernel kernel = projection();
  CHECK_THROWS_WITH(libraryGemm(kernel, stridedConfiguration(kernel, LibraryKnobs{})),
                    Catch::Contains("its layouts map to no batched strided GEMM"));
  CHECK(reasonOf(mmaSyncProblem(kernel, stridedConfiguration(kernel, Sm80GemmKnobs{}))) ==
        "the layouts map to no batched strided GEMM");
  CHECK_THROWS_WITH(configurationLine(kernel, stridedConfiguration(kernel, FmaGemmKnobs{})),
                    Catch::Contains("not one strided GEMM"));
}

TEST_CASE("lines of products name all strides, and the subject is that of one stride") {
  const Kernel kernel = projection();
  const Configuration configuration = stridedConfiguration(kernel, usual);
  const std::string line = configurationLine(kernel, configuration);
  CHECK_THAT(line,
             Catch::StartsWith(
                 "gemm-sm90 64x512/524288,1x64/32768:0_1024,1:0>1024,1:0 schedule=ping-pong"));
  const std::string_view place = splitLine(line).layouts;
  const MultiStrideGemm strides = parseStrides(place).value();
  CHECK(hasSeveralStrides(strides));
  CHECK(strides.a[mGroup] == GroupFactors{{.extent = 512, .stride = 64}, {.stride = 524288}});
  CHECK(strides.a[kGroup] == GroupFactors{{.extent = 64, .stride = 1}, {.stride = 32768}});
  CHECK(strides.b[kGroup] == GroupFactors{{.stride = 1024}});
  CHECK(strides.b[nGroup] == GroupFactors{{.stride = 1}});
  CHECK(strides.c[mGroup] == GroupFactors{{.stride = 1024}});
  CHECK(strideText(strides) == place);
  CHECK_FALSE(parseStrides("0132,01>0132"));
  CHECK_NOTHROW(checkLine(line));
  CHECK_THROWS_WITH(checkLine("gemm-sm90 64/524288,1:0_1024,1:0>1024,1:0"),
                    Catch::Contains("'64' lacks the extent"));
  CHECK_THROWS_WITH(checkLine("gemm-sm90 64xj/524288,1:0_1024,1:0>1024,1:0"),
                    Catch::Contains("'j' is no number"));
  Configuration merged = configuration;
  merged.inputs[0].order = {0, 2, 1, 3};
  CHECK(subjectOf(kernel, configuration).text == subjectOf(kernel, merged).text);
  CHECK(subjectOf(kernel, merged).text == "gemm f16 1 x 4096 x 1024 x 1024");
  CHECK_FALSE(hasSeveralStrides(parseStrides(placeText(kernel, merged)).value()));
  // An epilogue's layouts are told apart by the same text.
  const Kernel fused = stridedProjection(layer);
  Configuration one = stridedConfiguration(fused, usual), other = one;
  other.inputs[0].order = {0, 2, 1, 3};
  CHECK_THAT(contractionForm(fused, one), Catch::StartsWith("64x512/524288,1x64/32768:0_"));
  CHECK(contractionForm(fused, one) != contractionForm(fused, other));
}

TEST_CASE(
    "layouts that are offered: one operand has several strides, or both alike, and every tile "
    "takes them") {
  for (const auto &extents : {layer, wide})
    for (const samples::StridedGemmCase &one : stridedGemmCases) {
      const Kernel kernel = stridedKernel(one, extents);
      const auto space = severalStridesSpace(kernel, device());
      INFO(one.what);
      REQUIRE(space);
      CHECK(space->hasSeveralStrides);
      CHECK(space->knobs.size() <= 8);
      size_t both = 0;
      std::set<LayoutTuple> merged;
      const std::vector<LayoutTuple> plain = contractionTuples(kernel);
      merged.insert(plain.begin(), plain.end());
      for (const LayoutTuple &tuple : nonEmpty(space->tuples)) {
        CHECK_FALSE(merged.contains(tuple));
        const GemmProblem gemm = *wgmmaProblem(kernel, toConfiguration(kernel, tuple, usual));
        CHECK((gemm.a.hasSeveralStrides() || gemm.b.hasSeveralStrides()));
        CHECK_FALSE(gemm.resultHasSeveralStrides());
        CHECK((gemm.a.usesTma && gemm.b.usesTma));
        both += gemm.a.hasSeveralStrides() && gemm.b.hasSeveralStrides() ? 1 : 0;
        for (const Knobs &knobs : nonEmpty(space->knobs))
          CHECK(rejectionOf(kernel, toConfiguration(kernel, tuple, knobs)) == "");
      }
      CHECK(both < space->tuples.size());
    }
  // [b,h,j,p] is what attention leaves; no other family takes it.
  const Kernel kernel = projection();
  const Layout rows = rowMajor(4);
  const auto takes = [&](const ConfigurationSpace &space) {
    return std::ranges::any_of(space.tuples,
                               [&](const LayoutTuple &tuple) { return tuple[0] == rows; });
  };
  CHECK(takes(*severalStridesSpace(kernel, device())));
  CHECK(std::ranges::none_of(configurationSpaces(kernel, device()), takes));
  CHECK_FALSE(severalStridesSpace(kernel, findDevice("a100")));
  CHECK_FALSE(severalStridesSpace(stridedKernel(stridedGemmCases[0], layer, DType::f32), device()));
  const LayoutConstraints fixed{.inputs = {rows, rowMajor(3)}, .outputs = {rowMajor(3)}};
  CHECK_FALSE(enumerate(kernel, device(), fixed).legal.empty());
  CHECK(enumerate(kernel, device(), {.inputs = {rows, std::nullopt}, .outputs = {std::nullopt}})
            .legal.empty());
}

TEST_CASE("a result of several strides is for whoever fixes it") {
  const Kernel kernel = samples::contractKernel(
      {{'b', 4}, {'h', 8}, {'j', 256}, {'k', 192}, {'w', 64}}, "bhjk", "bkhw", "bjhw");
  const Layout rows = rowMajor(4);
  const FixedLayouts free(3), fixed = {std::nullopt, rows, rows};
  CHECK(stridedResultTuples(kernel, free).empty());
  CHECK(stridedResultTuples(kernel, {rows, std::nullopt, Layout{.order = {0, 2, 1, 3}}})
            .empty());  // [b,h,j,w]: one stride
  CHECK_FALSE(severalStridesSpace(kernel, device(),
                                  {rows, rows, Layout{.order = {1, 3, 2, 0}}}));  // b fastest
  const auto space = severalStridesSpace(kernel, device(), fixed);
  REQUIRE(space);
  CHECK(space->hasSeveralStrides);
  for (const LayoutTuple &tuple : nonEmpty(space->tuples)) {
    CHECK((tuple[1] == rows && tuple[2] == rows));
    CHECK(wgmmaProblem(kernel, toConfiguration(kernel, tuple, usual))->resultHasSeveralStrides());
    for (const Knobs &knobs : nonEmpty(space->knobs))
      CHECK(rejectionOf(kernel, toConfiguration(kernel, tuple, knobs)) == "");
  }
  CHECK(std::ranges::any_of(space->tuples,
                            [&](const LayoutTuple &tuple) { return tuple[0] == rows; }));
  const Kernel fused = stridedProjection(layer);
  CHECK(stridedResultTuples(fused, FixedLayouts(operandValues(fused).size(), rows))
            .empty());  // an epilogue takes one stride
  // With a free result the fixed operand's own layouts are left, as they are offered without.
  const auto ofOperand = severalStridesSpace(kernel, device(), {std::nullopt, rows, std::nullopt});
  REQUIRE(ofOperand);
  for (const LayoutTuple &tuple : nonEmpty(ofOperand->tuples)) {
    CHECK(tuple[1] == rows);
    CHECK_FALSE(
        wgmmaProblem(kernel, toConfiguration(kernel, tuple, usual))->resultHasSeveralStrides());
  }
}

TEST_CASE(
    "the model prices them above one stride; beside rows they are offered, as estimates where they "
    "have none") {
  for (const bool isFused : {false, true}) {
    const Kernel kernel = isFused ? stridedProjection(layer) : projection();
    const Configuration strided = stridedConfiguration(kernel, usual);
    Configuration merged = strided;
    merged.inputs[0].order = {0, 2, 1, 3};
    const auto analytic = analyticCostModel(device());
    CHECK(analytic->cost(kernel, strided).seconds > analytic->cost(kernel, merged).seconds);
    const auto spaceOf = [](const select::KernelSpaces &spaces) {
      return std::ranges::count_if(
          spaces.legal, [](const auto &legal) { return legal.space->hasSeveralStrides; });
    };
    CHECK(spaceOf(select::spacesOf(kernel, *analytic, {})) == 1);
    Profile profile{.device = "h200", .protocols = {{1, "pretended"}}, .kernels = {}};
    const auto row = [](double seconds) {
      return ProfileMeasurement{
          .seconds = seconds, .n = 9, .spread = 0.01, .familyVersion = sm90GemmFamily.version};
    };
    addMeasurement(profile, kernel, merged, row(2e-5));
    const auto offered = [&](const CostModel &model) {
      std::set<LayoutTuple> tuples;
      for (const PricedConfiguration &one : model.measured(kernel)) {
        LayoutTuple tuple = one.configuration.inputs;
        tuple.push_back(one.configuration.outputs[0]);
        if (!stridedBatchedGemm(kernel, one.configuration)) tuples.insert(tuple);
      }
      return tuples;
    };
    const auto without = measuredCostModel(device(), profile, "profile p", false);
    const select::KernelSpaces spaces = select::spacesOf(kernel, *without, {});
    CHECK(spaceOf(spaces) == 1);
    CHECK(offered(*without).empty());
    addMeasurement(profile, kernel, strided, row(1e-5));
    const auto with = measuredCostModel(device(), profile, "profile p", false);
    CHECK(with->cost(kernel, strided).seconds == 1e-5);
    const std::set<LayoutTuple> tuples = offered(*with);
    LayoutTuple own = strided.inputs;
    own.push_back(strided.outputs[0]);
    CHECK(tuples.contains(own));
    for (const LayoutTuple &tuple : nonEmpty(tuples)) {  // other names of axes, the same strides
      const Configuration one = toConfiguration(kernel, tuple, usual);
      CHECK((isFused ? contractionForm(kernel, one) == contractionForm(kernel, strided)
                     : placeText(kernel, one) == placeText(kernel, strided)));
    }
    const select::KernelSpaces found = select::spacesOf(kernel, *with, {});
    CHECK(spaceOf(found) == 1);
    CHECK(std::ranges::count_if(found.points, &select::MeasuredPoint::hasSeveralStrides) ==
          std::ssize(tuples));
    // Each row is one of the space that has such layouts.
    REQUIRE((!spaces.legal.empty() && found.legal.size() == spaces.legal.size()));
    for (size_t i = 0; i < spaces.legal.size(); ++i)
      CHECK(found.legal[i].withoutMeasurements ==
            spaces.legal[i].withoutMeasurements -
                (spaces.legal[i].space->hasSeveralStrides ? double(tuples.size()) : 0));
  }
}
