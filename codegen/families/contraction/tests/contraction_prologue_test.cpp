// Operands that are transformed on load: which kernels have a prologue, the roles of what it reads,
// every rejection, how it must lie, and which families take it.
#include "codegen/Emit.h"
#include "codegen/families/contraction/ContractionLayouts.h"
#include "codegen/families/gemm_sm80/Sm80GemmKnobs.h"
#include "codegen/families/gemm_sm80/Sm80Tile.h"
#include "codegen/families/gemm_sm90/Sm90GemmKnobs.h"
#include "codegen/families/gemm_sm90/Sm90Tile.h"
#include "codegen/families/library/LibraryEpilogue.h"
#include "kernel/ConfigurationText.h"
#include "kernel/ContractionRegion.h"
#include "kernel/CoordinateExpressions.h"
#include "kernel/Error.h"
#include "kernel/reference/PointEvaluator.h"
#include "passes/configure/CostModel.h"
#include "passes/configure/Families.h"
#include "passes/configure/Family.h"
#include "passes/configure/StridedViews.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/samples/SamplePrologues.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <set>

using namespace weft;
using weft::test::nonEmpty;
using namespace weft::samples;

namespace {

const std::map<char, int64_t> letters = {{'b', 2},  {'j', 6}, {'i', 16},
                                         {'u', 10}, {'n', 2}, {'q', 7}};

/// x[b,j,i] is to become an operand of c[b,j,u].
struct Projection {
  TransformedContraction made{"projection", letters, DType::f16};
  int x = made.input("x", "bji"), w = made.input("w", "iu");
  int times(int of, int by) { return made.map("mul", "{0} * {1}", {of, by}, "y", "bji"); }
  int contract(int a) { return made.contract(a, w, "bji,iu->bju", "i"); }
  Kernel build(int a) { return made.build(contract(a)); }
};

std::string rejectionOf(const Kernel &kernel) {
  const Expected<ContractionRegion, Reason> answer = contractionRegion(kernel);
  CHECK(answer.has_value() == reasonOf(answer).empty());
  return reasonOf(answer);
}
std::string rejectionWith(const std::string &name, const std::string &axes,
                          DType type = DType::f16) {
  Projection p;
  const int read = p.made.input(name, axes, type);
  return rejectionOf(p.build(p.times(p.x, read)));
}

template <typename Family>
std::vector<Configuration> ofFamily(const Kernel &kernel, const char *device) {
  std::vector<Configuration> result;
  for (const Configuration &configuration : enumerate(kernel, findDevice(device)).legal)
    if (configuration.knobs.is<Family>()) result.push_back(configuration);
  return result;
}

Configuration rowMajorConfiguration(const Kernel &kernel, const Knobs &knobs) {
  Configuration configuration{.inputs = {}, .outputs = {}, .knobs = knobs};
  for (const ValueId value : kernel.inputs)
    configuration.inputs.push_back(rowMajor(kernel.values[size_t(value)].axes.size()));
  for (const ValueId value : kernel.outputs)
    configuration.outputs.push_back(rowMajor(kernel.values[size_t(value)].axes.size()));
  return configuration;
}

}  // namespace

TEST_CASE(
    "a normalization before a contraction is its prologue, and every other input has a role") {
  const Kernel kernel = normalizedProjection({}, DType::bf16);
  const auto answer = contractionRegion(kernel);
  REQUIRE(answer);
  REQUIRE(answer->prologue);
  const ContractionPrologue &prologue = *answer->prologue;
  CHECK(prologue.contraction == 4);
  CHECK(answer->contraction == 4);
  CHECK(answer->isPlain());
  CHECK(prologue.isOfA);
  CHECK(prologue.read == kernel.inputs[0]);
  CHECK(answer->a == kernel.inputs[0]);
  CHECK(answer->operands == GemmInputs{0, 5});
  CHECK(prologue.made == kernel.body[4].operands[0]);
  const std::vector<PrologueInput> expected = {
      {.input = 1, .value = kernel.inputs[1], .isOverOuter = true},
      {.input = 2, .value = kernel.inputs[2], .isOverOuter = true},
      {.input = 3, .value = kernel.inputs[3], .isOverK = true},
      {.input = 4, .value = kernel.inputs[4], .isOverK = true}};
  CHECK(prologue.inputs == expected);
  CHECK(gemmTypes(kernel) == GemmTypes{DType::bf16, DType::bf16, DType::bf16});
}

TEST_CASE("prologue inputs may be per row, per sub-vector of k or scalar, for either operand") {
  const Kernel scaled = scaledContext({}, DType::f16),
               recomposed = recomposedContext({}, DType::f16),
               cast = castProjection({}, DType::f16, DType::f8e4m3);
  const ContractionPrologue ofScaled = contractionPrologue(scaled).value().value(),
                            ofRecomposed = contractionPrologue(recomposed).value().value(),
                            ofCast = contractionPrologue(cast).value().value();
  CHECK(ofScaled.inputs == std::vector<PrologueInput>{
                               {.input = 1, .value = 1, .isOverBatch = true, .isOverOuter = true}});
  CHECK_FALSE(ofRecomposed.isOfA);
  CHECK(ofRecomposed.inputs.at(0).subVector == 32);
  CHECK(recomposed.axes[size_t(ofRecomposed.inputs.at(0).subVectorAxis)].name == "n");
  CHECK((ofRecomposed.inputs.at(0).isOverBatch && ofRecomposed.inputs.at(0).isOverOuter &&
         !ofRecomposed.inputs.at(0).isOverK));
  CHECK_FALSE(ofCast.isOfA);
  CHECK(ofCast.inputs == std::vector<PrologueInput>{{.input = 2, .value = 2}});
  CHECK(gemmTypes(cast) == GemmTypes{DType::f16, DType::f16, DType::f16});
}

TEST_CASE("a single row: gains along k are no second tensor of the operand's shape") {
  TransformedContraction made("decode", {{'b', 1}, {'i', 64}, {'u', 8}}, DType::f16);
  const int gain = made.input("gain", "i"), x = made.input("x", "bi"), w = made.input("w", "iu");
  const Kernel kernel = made.build(
      made.contract(made.map("mul", "{0} * {1}", {x, gain}, "y", "bi"), w, "bi,iu->bu", "i"));
  const auto prologue = contractionRegion(kernel).value().prologue.value();
  CHECK(prologue.read == x);
  CHECK(prologue.inputs ==
        std::vector<PrologueInput>{{.input = 0, .value = gain, .isOverK = true}});
}

TEST_CASE("an epilogue is recognised behind a prologue") {
  const Kernel kernel = scaledBiasedProjection({}, DType::f16);
  const ContractionRegion region = contractionRegion(kernel).value();
  CHECK(region.prologue);
  CHECK(region.contraction == 1);
  CHECK(region.epilogue == std::vector<OpId>{2});
  CHECK(region.inputs == std::vector<EpilogueInput>{{3, 3, EpilogueRole::n}});
}

TEST_CASE("ops before a contraction that are no prologue are rejected with the reason") {
  CHECK(rejectionWith("rows", "bj").empty());
  CHECK(rejectionWith("rows", "bj", DType::f8e4m3) ==
        "'mul' reads 'rows' of f8e4m3; f32, f16 and bf16 are taken");
  CHECK(rejectionWith("rows", "j") ==
        "'mul' reads 'rows' along some axes of those that are one axis of the GEMM");
  CHECK(rejectionWith("some", "ji") ==
        "'mul' reads 'some' along some axes of those that are one axis of the GEMM");
  CHECK(rejectionWith("rest", "bji") ==
        "'mul' reads 'rest', a second tensor along rows and k of the operand; 'x' is one");
  CHECK(rejectionWith("other", "q") == "'mul' reads 'other' along 'q', which the operand lacks");
  {
    Projection p;
    CHECK(rejectionOf(p.build(p.times(p.x, p.w))).find("'w'") != std::string::npos);
  }
  {
    Projection p;
    const int drawn = p.made.map("dropout", "", {p.x}, "kept", "bji");
    CHECK(rejectionOf(p.build(drawn)) ==
          "'dropout' draws; a prologue is a function of what it reads");
  }
  {
    Projection p;
    const int turned = p.made.map("rotary", "", {p.x}, "turned", "bji");
    CHECK(rejectionOf(p.build(turned)) == "'rotary' is no function of single elements");
  }
  {
    Projection p;
    const int turned = p.made.map("rotary", "", {p.x}, "turned", "bji");
    p.made.compute(rotaryExpression({.dimension = 2, .position = 1, .rank = 3, .extent = 64}));
    CHECK(rejectionOf(p.build(turned)) ==
          "'rotary' reads an operand at other coordinates than its element's; a prologue has the "
          "elements at its own");
  }
  {
    Projection p;
    const int masked = p.made.map("mask", "", {p.x}, "masked", "bji");
    p.made.compute(maskExpression({.key = 2, .query = 1}));
    CHECK(rejectionOf(p.build(masked)) ==
          "'mask' reads coordinates; a prologue is a function of what it reads alone");
  }
  {
    Projection p;
    const int rows = p.made.input("rows", "bj"),
              twice = p.made.map("add", "{0} + {0}", {rows}, "twice", "bj");
    CHECK(rejectionOf(p.build(p.times(p.x, twice))) ==
          "'add' gives 'twice' over other axes than the contraction's operand");
  }
  {
    Projection p;
    const int factors = p.made.input("factors", "bjn");
    CHECK(rejectionOf(p.build(p.made.globalScaling(p.x, factors, "bji", 12))) ==
          "'global_scaling' has sub-vectors of 12 elements; multiples of 8 are taken");
  }
  {
    TransformedContraction made("wide", letters, DType::f32);
    const int x = made.input("x", "bji"), w = made.input("w", "iu");
    CHECK(rejectionOf(made.build(made.contract(made.map("relu", "weft::relu({0})", {x}, "y", "bji"),
                                               w, "bji,iu->bju", "i"))) ==
          "'y' is f32; operands of f16 and bf16 are transformed on load");
  }
}

TEST_CASE("nothing but the contraction reads or stores the tensors of a prologue") {
  KernelBuilder builder("projection", letters);
  const auto relu = [&](int of, const std::string &result, const std::string &axes) {
    const int value = builder.op("relu", OperatorClass::elementwise, {of}, result, axes);
    builder.last().expression = Expression::parse("weft::relu({0})");
    return value;
  };
  const int x = builder.input("x", "bji"), w = builder.input("w", "iu"),
            rows = builder.input("rows", "bj");
  const int y = relu(x, "y", "bji");
  const int scaled = builder.op("mul", OperatorClass::elementwise, {y, rows}, "scaled", "bji");
  builder.last().expression = Expression::parse("{0} * {1}");
  const int c = builder.op("contract", OperatorClass::contraction, {scaled, w}, "c", "bju", "i");
  const Kernel plain = builder.build({c});
  CHECK(rejectionOf(plain).empty());
  Kernel stored = plain;
  stored.outputs = {c, scaled};
  CHECK(rejectionOf(stored) == "'mul' gives 'scaled', which is stored");
  const int end = builder.op("mul", OperatorClass::elementwise, {c, rows}, "end", "bju");
  builder.last().expression = Expression::parse("{0} * {1}");
  CHECK(rejectionOf(builder.build({end})) == "'mul' reads 'rows', which is read behind it, too");
  Projection both;
  const int first = both.made.map("relu", "weft::relu({0})", {both.x}, "first", "bji"),
            second = both.made.map("relu", "weft::relu({0})", {both.w}, "second", "iu");
  CHECK(rejectionOf(both.made.build(both.made.contract(first, second, "bji,iu->bju", "i"))) ==
        "'first' and 'second', both operands of the contraction, are computed; one may be");
  Kernel late = plain;
  late.body[2].operands = {x, w};
  CHECK(rejectionOf(late) == "'relu' stands before the contraction and makes none of its operands");
}

TEST_CASE("an epilogue reduction is rejected beside a prologue") {
  Projection p;
  const int c = p.contract(p.made.map("relu", "weft::relu({0})", {p.x}, "y", "bji"));
  Kernel kernel = p.made.build(c);
  kernel.values.push_back(
      {.name = "total", .dtype = DType::f16, .axes = kernel.values[size_t(c)].axes, .number = -1});
  kernel.values.back().axes = {kernel.values[size_t(c)].axes.back()};
  BodyOp sum{.kind = OpKind::reduce,
             .operatorClass = OperatorClass::normalization,
             .operands = {c},
             .results = {int(kernel.values.size()) - 1}};
  sum.reducedAxes = {kernel.values[size_t(c)].axes[0], kernel.values[size_t(c)].axes[1]};
  sum.attributes = {{"kind", std::string("sum")}};
  kernel.body.push_back(sum);
  kernel.outputs.push_back(int(kernel.values.size()) - 1);
  CHECK(rejectionOf(kernel) ==
        "'reduce' to 'total' stands in one kernel with ops before the contraction");
}

TEST_CASE("a tile is rejected if ptxas serializes its WGMMA beside prologue threads") {
  const Kernel aligned = normalizedProjection({}, DType::f16),
               odd = normalizedProjection({.b = 3, .j = 50, .i = 203, .u = 331}, DType::f16);
  const auto rejection = [](const Kernel &kernel, int tileM, int tileN) {
    const Sm90GemmKnobs tile{.schedule = Sm90Schedule::pingPong,
                             .tileM = tileM,
                             .tileN = tileN,
                             .stages = 4,
                             .epilogueStages = 2};
    Configuration one{.knobs = tile};
    for (const ValueId value : kernel.inputs)
      one.inputs.push_back(rowMajor(kernel.values[size_t(value)].axes.size()));
    for (const ValueId value : kernel.outputs)
      one.outputs.push_back(rowMajor(kernel.values[size_t(value)].axes.size()));
    return sm90Rejection(kernel, one, tile, findDevice("h200").sharedMemoryPerBlock);
  };
  CHECK(rejection(aligned, 64, 128) == "");
  CHECK(rejection(odd, 64, 192) == "");
  CHECK_THAT(rejection(odd, 64, 128), Catch::Contains("C7514"));
}

TEST_CASE("two families accept a prologue, the others are rejected with the reason") {
  const Kernel kernel = normalizedProjection({}, DType::f16);
  const Configurations h200 = enumerate(kernel, findDevice("h200")),
                       a100 = enumerate(kernel, findDevice("a100"));
  std::set<std::string> families;
  for (const Configuration &one : nonEmpty(h200.legal)) {
    families.emplace(one.knobs.family().name);
    const auto &tile = one.knobs.get<Sm90GemmKnobs>();
    CHECK(tile.splitK == 1);
    CHECK(tile.schedule != Sm90Schedule::singleConsumer);
    CHECK(sm90Rejection(kernel, one, tile, findDevice("h200").sharedMemoryPerBlock).empty());
  }
  CHECK(families == std::set<std::string>{"gemm-sm90"});
  CHECK(!ofFamily<Sm80GemmKnobs>(kernel, "a100").empty());
  const auto reasonOf = [](const Configurations &all, const std::string &family) {
    for (const Exclusion &excluded : all.excluded)
      if (excluded.family == family) return excluded.reason;
    return std::string();
  };
  CHECK(
      reasonOf(h200, "cublaslt") ==
      "'sub' stands before the contraction; the library reads its operands as they are in memory");
  CHECK(reasonOf(h200, "gemm-fma") ==
        "'sub' stands before the contraction, whose operands are read as they are in memory");
  CHECK(prologueRejections(findDevice("a100"))(kernel).empty());
  CHECK(prologueRejections(findDevice("v100"))(kernel).find("sm_80 and later") !=
        std::string::npos);
  CHECK(!ofFamily<Sm80GemmKnobs>(scaledBiasedProjection({}, DType::f16), "a100").empty());
}

TEST_CASE("a norm may be a prologue that reads the sums of its rows") {
  for (const bool isRms : {false, true}) {
    const Kernel kernel = reducedProjection({}, DType::f16, isRms);
    INFO(kernel.name);
    const auto answer = contractionRegion(kernel);
    REQUIRE(answer);
    REQUIRE(answer->prologue);
    CHECK(answer->prologue->read == kernel.inputs[0]);
    std::vector<PrologueInput> expected = {
        {.input = 1, .value = kernel.inputs[1], .isOverOuter = true},
        {.input = 2, .value = kernel.inputs[2], .isOverK = true}};
    if (!isRms) {
      expected[1] = {.input = 2, .value = kernel.inputs[2], .isOverOuter = true};
      expected.push_back({.input = 3, .value = kernel.inputs[3], .isOverK = true});
    }
    CHECK(answer->prologue->inputs == expected);
  }
}

TEST_CASE("every kind of prologue accepts row-major tensors") {
  for (const PrologueExtents &extents :
       {PrologueExtents{},
        {.b = 8, .h = 16, .j = 512, .k = 512, .i = 1024, .p = 64, .u = 1024},
        {.b = 3, .h = 2, .j = 50, .k = 203, .i = 203, .p = 40, .u = 331}})
    for (const Kernel &kernel : nonEmpty(transformedContractions(extents, DType::bf16))) {
      INFO(kernel.name);
      LayoutConstraints rows;
      for (const ValueId value : kernel.inputs)
        rows.inputs.push_back(rowMajor(kernel.values[size_t(value)].axes.size()));
      for (const ValueId value : kernel.outputs)
        rows.outputs.push_back(rowMajor(kernel.values[size_t(value)].axes.size()));
      CHECK(!enumerate(kernel, findDevice("h200"), rows).legal.empty());
      CHECK(!enumerate(kernel, findDevice("a100"), rows).legal.empty());
    }
}

TEST_CASE("the axes of a prologue's input have the order of the GEMM's axes") {
  const Kernel kernel = scaledContext({}, DType::f16);
  const ContractionPrologue prologue = contractionPrologue(kernel).value().value();
  Configuration configuration = rowMajorConfiguration(kernel, Sm80GemmKnobs{});
  CHECK(prologueLayoutRejection(kernel, configuration, prologue).empty());
  CHECK(prologueStrides(kernel, configuration, prologue, prologue.inputs[0]) ==
        PrologueStrides{.batch = 72, .outer = 1});
  configuration.inputs[1].order = {2, 0, 1};  // j slowest
  CHECK(prologueStrides(kernel, configuration, prologue, prologue.inputs[0]) ==
        PrologueStrides{.batch = 1, .outer = 6});
  configuration.inputs[1].order = {0, 2, 1};  // between the axes of the batch
  CHECK(prologueLayoutRejection(kernel, configuration, prologue) ==
        "'inverse', which is read before the contraction, does not lie as the GEMM's axes do");
  CHECK_THROWS_WITH(codegen::emit(kernel, configuration, "sm_80"),
                    Catch::Contains("does not lie as the GEMM's axes do"));
  configuration.knobs =
      Sm90GemmKnobs{.schedule = Sm90Schedule::pingPong, .tileM = 64, .tileN = 128, .stages = 4};
  CHECK_THROWS_WITH(codegen::emit(kernel, configuration, "sm_90a"),
                    Catch::Contains("does not lie as the GEMM's axes do"));
  const Kernel recomposed = recomposedContext({}, DType::f16);
  const ContractionPrologue subVectors = contractionPrologue(recomposed).value().value();
  CHECK(prologueStrides(recomposed, rowMajorConfiguration(recomposed, Sm80GemmKnobs{}), subVectors,
                        subVectors.inputs[0]) ==
        PrologueStrides{.batch = 72 * 5, .outer = 5, .k = 1});
}

TEST_CASE(
    "sm_90a transforms a TMA operand in shared memory, any other in the threads that copy it") {
  const auto problemOf = [](const Kernel &kernel) {
    return wgmmaProblem(kernel, rowMajorConfiguration(kernel, Sm90GemmKnobs{})).value();
  };
  const GemmProblem aligned = problemOf(normalizedProjection({}, DType::f16)),
                    odd = problemOf(normalizedProjection({.i = 135}, DType::f16)),
                    oddOther = problemOf(normalizedProjection({.u = 263}, DType::f16)),
                    cast = problemOf(castProjection({}, DType::f16, DType::f32)),
                    sameWidth = problemOf(castProjection({}, DType::f16, DType::bf16));
  CHECK((aligned.a.isTransformed && !aligned.b.isTransformed && aligned.a.usesTma &&
         aligned.b.usesTma));
  CHECK(isTransformedInPlace(aligned));
  CHECK((!odd.a.usesTma && odd.b.usesTma && !isTransformedInPlace(odd)));
  CHECK((oddOther.a.isTransformed && !oddOther.a.usesTma && !oddOther.b.usesTma));
  CHECK((cast.b.isTransformed && !cast.b.usesTma && cast.a.usesTma));
  CHECK(isTransformedInPlace(sameWidth));
  const Sm90GemmKnobs tile{
      .schedule = Sm90Schedule::pingPong, .tileM = 128, .tileN = 128, .stages = 4};
  CHECK(sm90SharedBytes(tile, true) - sm90SharedBytes(tile) == 8 * 4);
  Sm90GemmKnobs split = tile;
  split.splitK = 2;
  CHECK(sm90TileRejection(aligned, tile, 0).empty());
  CHECK(sm90TileRejection(aligned, split, 0) ==
        "blocks share the k of a tile whose operand is transformed on load or scaled; one does");
  CHECK(sm90TileRejection(aligned,
                          {.schedule = Sm90Schedule::singleConsumer, .tileM = 64, .tileN = 8},
                          0) == "single-consumer tiles take operands as they are in memory");
}

TEST_CASE("accumulators are scaled instead of an operand only for rows of A in whole k-tiles") {
  const auto problemOf = [](const Kernel &kernel, bool isSwapped) {
    Configuration configuration = rowMajorConfiguration(kernel, Sm90GemmKnobs{});
    if (isSwapped)
      std::ranges::swap(configuration.outputs[0].order[2], configuration.outputs[0].order[3]);
    return wgmmaProblem(kernel, configuration).value();
  };
  const PrologueExtents extents{.b = 2, .h = 2, .j = 72, .k = 192, .p = 64};
  const GemmProblem rows = problemOf(recomposedRows(extents, DType::f16, 64, true), false);
  CHECK((rows.isScaled() && !rows.isAnyTransformed() && !rows.isSwapped));
  CHECK(problemOf(recomposedRows(extents, DType::bf16, 128, false), false)
            .isScaled());  // runs of two slices, the last one short
  // The result contiguous along the rows of the scaled operand: the kernel template's A is the
  // other one.
  CHECK((problemOf(recomposedRows(extents, DType::f16, 64, true), true).isAnyTransformed()));
  for (const Kernel &made :
       {recomposedRows(extents, DType::f16, 32, true),
        recomposedRows({.b = 2, .h = 2, .j = 72, .k = 196, .p = 64}, DType::f16, 64, true),
        scaledContext(extents, DType::f16)}) {
    INFO(made.name);
    const GemmProblem gemm = problemOf(made, false);
    CHECK((gemm.isAnyTransformed() && !gemm.isScaled()));
  }
  TransformedContraction half(
      "half", {{'h', 1}, {'b', 2}, {'j', 64}, {'k', 128}, {'n', 2}, {'p', 64}}, DType::f16);
  const int halfX = half.input("x", "hbjk"), halfFactors = half.input("factors", "hbjn"),
            halfV = half.input("v", "phbk");
  CHECK(problemOf(half.build(half.contract(half.globalScaling(halfX, halfFactors, "hbjk", 64),
                                           halfV, "hbjk,phbk->hbjp", "k")),
                  false)
            .isAnyTransformed());
  TransformedContraction longer(
      "longer", {{'h', 1}, {'b', 2}, {'j', 64}, {'k', 128}, {'n', 2}, {'p', 64}}, DType::f16);
  const int x = longer.input("x", "hbjk"), factors = longer.input("factors", "hbjn", DType::f32),
            v = longer.input("v", "phbk");
  const int doubled = longer.map("scale", "2.0f * {0}",
                                 {longer.globalScaling(x, factors, "hbjk", 64)}, "doubled", "hbjk");
  CHECK(problemOf(longer.build(longer.contract(doubled, v, "hbjk,phbk->hbjp", "k")), false)
            .isAnyTransformed());

  Sm90GemmKnobs tile{.schedule = Sm90Schedule::pingPong, .tileM = 128, .tileN = 64, .stages = 8};
  CHECK(sm90TileRejection(rows, tile, 0).empty());
  tile.splitK = 2;
  CHECK(sm90TileRejection(rows, tile, 0) ==
        "blocks share the k of a tile whose operand is transformed on load or scaled; one does");
  CHECK(sm90TileRejection(rows, {.schedule = Sm90Schedule::singleConsumer, .tileM = 64, .tileN = 8},
                          0) == "single-consumer tiles take operands as they are in memory");
  CHECK_THAT(
      sm90TileRejection(
          rows, {.schedule = Sm90Schedule::pingPong, .tileM = 128, .tileN = 128, .stages = 4}, 0),
      Catch::StartsWith("268 accumulators and factors a thread and 0 registers of the epilogue"));
}

TEST_CASE("factors of sub-vectors have the layout of the operand, or have its rows contiguous") {
  const Kernel kernel = recomposedRows({}, DType::f16, 64, false);
  std::set<std::vector<int>> orders;
  for (const LayoutTuple &tuple : contractionTuples(kernel))
    if (tuple[0] == rowMajor(4)) orders.insert(tuple[1].order);
  CHECK(orders == std::set<std::vector<int>>{{0, 1, 2, 3}, {0, 1, 3, 2}});
}

TEST_CASE("an operand with a prologue has one stride along each group of axes") {
  const Kernel kernel = normalizedProjection({}, DType::f16);
  Configuration configuration = rowMajorConfiguration(kernel, Sm90GemmKnobs{});
  CHECK(wgmmaProblem(kernel, configuration));
  configuration.outputs[0].order = {1, 0, 2};  // rows (b,j) of x do not merge in it
  const Expected<GemmProblem, Reason> answer = wgmmaProblem(kernel, configuration);
  CHECK_FALSE(answer);
  CHECK(reasonOf(answer) ==
        "the layouts give a group of axes several strides, which an operand that is transformed on "
        "load "
        "does not take");
}

TEST_CASE("a measurement of a prologue serves its kernel in every layout of one form") {
  const Kernel kernel = normalizedProjection({}, DType::f16);
  CHECK_FALSE(isTimedAsGemm(kernel, sm90GemmFamily));
  Configuration configuration = rowMajorConfiguration(kernel, Sm90GemmKnobs{});
  const std::string form = contractionForm(kernel, configuration);
  configuration.inputs[1].order = {1, 0}, configuration.inputs[2].order = {1, 0};
  CHECK_THROWS_AS(contractionForm(kernel, configuration),
                  Error);  // j and b are one axis of the GEMM
  configuration.inputs[0].order = {1, 0, 2}, configuration.outputs[0].order = {1, 0, 2};
  CHECK(contractionForm(kernel, configuration) == form);
}

TEST_CASE(
    "the operands of a contraction may be strided views, other inputs of a prologue may not") {
  const Kernel kernel = normalizedProjection({}, DType::f16);
  Layout view = rowMajor(3);
  view.strides = {72 * 200, 200, 1};
  CHECK(stridedViewRejection(kernel, 0, view).empty());
  Layout ofRows = rowMajor(2);
  ofRows.strides = {100, 1};
  CHECK(stridedViewRejection(kernel, 1, ofRows) == "ops before the contraction read it");
}

TEST_CASE(
    "unmeasured, a prologue costs more than the GEMM alone; less than a separate kernel only "
    "where few tiles make the operand") {
  const auto best = [](const Kernel &kernel, const char *device) {
    const auto model = analyticCostModel(findDevice(device));
    double seconds = 1;
    for (const Configuration &one : enumerate(kernel, findDevice(device)).legal)
      seconds = std::min(seconds, model->cost(kernel, one).seconds);
    return seconds;
  };
  // One tile along p makes probabilities once. Measured: 141 us of 198.
  const std::map<char, int64_t> context{{'b', 2}, {'h', 16}, {'j', 2048}, {'k', 2048}, {'p', 64}};
  TransformedContraction scale("scale", context, DType::f16);
  const int exponentials = scale.input("exponentials", "hbjk"),
            inverse = scale.input("inverse", "hbj", DType::f32);
  const Kernel scaled =
      scale.build(scale.map("mul", "{0} * {1}", {exponentials, inverse}, "prob", "hbjk"));
  const double made =
      best(scaledContext({.b = 2, .h = 16, .j = 2048, .k = 2048, .p = 64}, DType::f16), "h200");
  const double gemm = best(contractKernel(context, "phbk", "hbjk", "phbj"), "h200");
  CHECK(made > gemm);
  CHECK(made < gemm + best(scaled, "h200"));
  for (const char *device : {"h200", "a100"}) {
    const PrologueExtents extents{.b = 8, .j = 512, .i = 1024, .u = 3072};
    Kernel gained = scaledBiasedProjection(extents, DType::f16);
    gained.body.pop_back(), gained.inputs.pop_back(), gained.outputs = gained.body.back().results;
    TransformedContraction gain("gain", {{'b', 8}, {'j', 512}, {'i', 1024}}, DType::f16);
    const int x = gain.input("x", "bji"), of = gain.input("gain", "i");
    const Kernel alone = gain.build(gain.map("mul", "{0} * {1}", {x, of}, "y", "bji"));
    const double projection = best(
        contractKernel({{'b', 8}, {'j', 512}, {'i', 1024}, {'u', extents.u}}, "bji", "iu", "bju"),
        device);
    CHECK(best(gained, device) > projection + best(alone, device));
  }
}

TEST_CASE("the fp64 reference rounds a cast operand, with an error only near a tie") {
  TransformedContraction made("rounded", {{'m', 1}, {'k', 1}, {'n', 1}}, DType::f16);
  const int x = made.input("x", "mk", DType::f32), w = made.input("w", "kn");
  const Kernel kernel =
      made.build(made.contract(made.map("cast", "{0}", {x}, "narrow", "mk"), w, "mk,kn->mn", "k"));
  const auto at = [&](double element) {
    reference::PointEvaluator evaluator(kernel,
                                        {[&](std::span<const int64_t>) { return element; },
                                         [](std::span<const int64_t>) { return 1.0; }},
                                        {});
    const std::vector<int64_t> origin = {0, 0};
    return evaluator.output(0, origin);
  };
  CHECK(at(1 + 0x1p-12).value == 1);
  CHECK(at(1 + 0x1p-12).error < 0x1p-20);
  CHECK(at(1 + 0x1.8p-11).value == 1 + 0x1p-10);
}

TEST_CASE(
    "the fp64 reference admits an unrounded scaled operand, and no factor of another sub-vector") {
  const Kernel kernel =
      recomposedRows({.b = 1, .h = 1, .j = 1, .k = 128, .p = 1}, DType::f16, 64, false);
  const auto at = [&](double x, double first, double second) {
    reference::PointEvaluator evaluator(
        kernel,
        {[&](std::span<const int64_t>) { return x; },
         [&](std::span<const int64_t> place) { return place[3] == 0 ? first : second; },
         [](std::span<const int64_t>) { return 1.0; }},
        {});
    return evaluator.output(0, std::vector<int64_t>(4, 0));
  };
  const double x = 1 + 0x1p-10,
               factor = 1 + 0x1p-11;  // whose GEMM is rounded by nearly half a unit
  const reference::Point point = at(x, factor, factor);
  const double unrounded = 64 * x * factor,
               rounded = 64 * (1 + 0x1p-9);  // times 0.5 for 128 elements
  CHECK(std::abs(point.value - rounded) < 1e-9);
  CHECK(std::abs(unrounded - rounded) > 0.01);
  CHECK(std::abs(point.value - unrounded) <= point.error);
  CHECK(point.error < 2 * std::abs(unrounded - rounded));
  // Where halves have few digits left, more than a hundredth.
  const reference::Point tiny = at(1.1, 0x1p-22, 0x1p-22);
  CHECK(std::abs(tiny.value - 64 * 0x1p-22) < 1e-12);
  CHECK(std::abs(tiny.value - 64 * 1.1 * 0x1p-22) <= tiny.error);
  const reference::Point runs = at(1, 1, 2);
  CHECK(std::abs(runs.value - 96) < 1e-9);
  CHECK(runs.error < 0.1);  // the second run by the first one's factor: 64
}
