// Fused contractions: which kernels are one, the role of what their epilogues read, and every
// rejection.
#include "codegen/families/contraction/EpilogueLimits.h"
#include "codegen/families/gemm_fma/FmaGemmKnobs.h"
#include "kernel/ContractionRegion.h"
#include "kernel/CoordinateExpressions.h"
#include "tests/unit/samples/SampleContractions.h"
#include "tests/unit/samples/SampleKernels.h"
#include "tests/unit/samples/SampleRotary.h"
#include "tests/unit/samples/SampleSoftmaxes.h"

#include <catch2/catch.hpp>

using namespace weft;
using namespace weft::samples;

namespace {

const std::map<char, int64_t> projectionExtents = {{'b', 2}, {'j', 6}, {'i', 16}, {'u', 10},
                                                   {'h', 3}, {'o', 1}, {'r', 4}};

/// c[b,j,u] = x[b,j,i] w[i,u], to be continued.
struct Projection {
  KernelBuilder builder{"projection", projectionExtents};
  int x, w, c = -1;

  /// What the epilogue reads must be added before the first op.
  Projection() : x(builder.input("x", "bji")), w(builder.input("w", "iu")) {}
  int input(const std::string &name, const std::string &letters) {
    return builder.input(name, letters);
  }
  int contract() {
    c = builder.op("contract", OperatorClass::contraction, {x, w}, "c", "bju", "i");
    builder.last().attributes["spec"] = std::string("bji,iu->bju");
    return c;
  }
  int map(const std::string &name, std::vector<ValueId> operands, const std::string &result,
          const std::string &letters = "bju") {
    const ValueId value =
        builder.op(name, OperatorClass::elementwise, std::move(operands), result, letters);
    builder.last().expression = Expression::parse("{0}");
    return value;
  }
};

/// A reduction of p's result, or of what follows it, to `letters`.
int reduce(Projection &p, int of, const std::string &kind, const std::string &letters,
           const std::string &reduced, const std::string &result = "total") {
  const int value =
      p.builder.op("reduce", OperatorClass::normalization, {of}, result, letters, reduced);
  p.builder.last().attributes["kind"] = kind;
  return value;
}

std::string rejectionOf(const Kernel &kernel) {
  const Expected<ContractionRegion, Reason> answer = contractionRegion(kernel);
  CHECK(answer.has_value() == reasonOf(answer).empty());
  return reasonOf(answer);
}

}  // namespace

TEST_CASE("a contraction alone is a region without an epilogue") {
  const auto answer =
      contractionRegion(contractKernel({{'m', 4}, {'n', 5}, {'k', 6}}, "mk", "kn", "mn"));
  REQUIRE(answer);
  CHECK(answer->isPlain());
  CHECK(answer->inputs.empty());
  CHECK(answer->storesAccumulator);
  CHECK(answer->operands == GemmInputs{0, 1});
}

TEST_CASE("inputs of an epilogue have roles, outputs may be intermediate") {
  Projection p;
  const int bias = p.input("bias", "u"), rows = p.input("rows", "bj"),
            residual = p.input("residual", "ubj"), some = p.input("some", "bu"),
            factor = p.input("factor", "o"), row = p.input("row", "j");
  p.contract();
  const int biased = p.map("bias", {p.c, bias}, "biased"),
            kept = p.map("dropout", {biased}, "kept");
  p.builder.last().expression = {};  // the bits are a function of coordinates
  const int sum = p.map("add", {kept, residual}, "sum"),
            scaled = p.map("mul", {sum, rows}, "scaled");
  const int masked = p.map("mul", {scaled, some}, "masked"),
            last = p.map("mul", {masked, factor}, "last");
  const int end = p.map("sub", {last, row}, "end");
  const auto answer = contractionRegion(p.builder.build({biased, end}));
  REQUIRE(answer);
  const ContractionRegion &region = *answer;
  CHECK(region.epilogue == std::vector<OpId>{1, 2, 3, 4, 5, 6, 7});
  CHECK_FALSE(region.storesAccumulator);
  CHECK(region.c == p.c);
  const std::vector<EpilogueInput> expected = {
      {2, bias, EpilogueRole::n},          {3, rows, EpilogueRole::m},
      {4, residual, EpilogueRole::result}, {5, some, EpilogueRole::mixed},
      {6, factor, EpilogueRole::scalar},   {7, row, EpilogueRole::mixed}};
  CHECK(region.inputs == expected);
}

TEST_CASE("masks of coordinates stand in an epilogue, before a local softmax, too") {
  const samples::ContractionExtents extents{.b = 2, .j = 6, .i = 16, .u = 10};
  const Kernel causal = samples::gemmCausal(extents, DType::f16),
               padding = samples::gemmWindowPadding(extents, DType::f16),
               batched = samples::batchedPadding(extents, DType::f16);
  const ContractionRegion ofCausal = contractionRegion(causal).value();
  CHECK(ofCausal.epilogue == std::vector<OpId>{1});
  CHECK(ofCausal.inputs.empty());
  CHECK_FALSE(ofCausal.isPlain());
  CHECK(contractionRegion(padding).value().inputs ==
        std::vector<EpilogueInput>{{2, 2, EpilogueRole::mixed}, {3, 3, EpilogueRole::n}});
  CHECK(contractionRegion(batched).value().inputs ==
        std::vector<EpilogueInput>{{2, 2, EpilogueRole::mixed}});
  const Kernel scores = samples::windowLocalSoftmax({}, DType::f16);
  const ContractionRegion ofScores = contractionRegion(scores).value();
  CHECK(ofScores.epilogue == std::vector<OpId>{1, 2});
  CHECK(ofScores.softmax);
  // Coordinates take registers beside the accumulators.
  Kernel other = causal;
  other.body[1].expression = Expression::parse("weft::relu({0})");
  CHECK(epilogueRegisters(causal, ofCausal) > epilogueRegisters(other, ofCausal));
}

TEST_CASE("the GEMM itself may be stored; results may lie in another logical order") {
  Projection p;
  const int up = p.input("up", "ubj");
  p.contract();
  const int gated = p.map("mul", {up, p.c}, "gated", "ubj");
  const auto answer = contractionRegion(p.builder.build({p.c, gated}));
  REQUIRE(answer);
  CHECK(answer->storesAccumulator);
  CHECK(answer->inputs.front().role == EpilogueRole::result);
}

TEST_CASE("operands stand in any place among the inputs") {
  KernelBuilder builder("projection", projectionExtents);
  const int bias = builder.input("bias", "u"), w = builder.input("w", "iu"),
            x = builder.input("x", "bji");
  const int c = builder.op("contract", OperatorClass::contraction, {x, w}, "c", "bju", "i");
  const int biased = builder.op("bias", OperatorClass::elementwise, {c, bias}, "biased", "bju");
  builder.last().expression = Expression::parse("{0} + {1}");
  const Kernel kernel = builder.build({biased});
  const auto answer = contractionRegion(kernel);
  REQUIRE(answer);
  CHECK(answer->operands == GemmInputs{2, 1});
  const Configuration configuration{.inputs = {rowMajor(1), rowMajor(2), rowMajor(3)},
                                    .outputs = {rowMajor(3)},
                                    .knobs = FmaGemmKnobs{}};
  const auto gemm = stridedBatchedGemm(kernel, configuration);
  REQUIRE(gemm);
  CHECK(gemm->m == 12);
  CHECK(gemm->n == 10);
  CHECK(gemm->strideAm == 16);
  CHECK(gemm->strideBk == 10);
  CHECK(gemm->strideCm == 10);
}

TEST_CASE("what is no region says why") {
  CHECK(rejectionOf(reluKernel({{'i', 4}}, "i")) ==
        "the body does not open with a contraction of two operands");
  {
    KernelBuilder builder("square", {{'i', 4}, {'j', 4}, {'k', 4}});
    const int x = builder.input("x", "ik");
    const int c = builder.op("contract", OperatorClass::contraction, {x, x}, "c", "i", "k");
    CHECK(rejectionOf(builder.build({c})) == "both operands of the contraction are one tensor");
  }
  {
    Projection p;
    p.contract();
    const int y = p.builder.op("softmax", OperatorClass::normalization, {p.c}, "y", "bju", "u");
    CHECK(rejectionOf(p.builder.build({y})) ==
          "'softmax' is of class normalization; an epilogue is element-wise");
  }
  {
    Projection p;
    p.contract();
    const int y = p.map("rotary", {p.c}, "y");
    p.builder.last().expression = {};
    CHECK(rejectionOf(p.builder.build({y})) == "'rotary' is no function of single elements");
    p.builder.compute(rotaryExpression({.dimension = 2, .position = 1, .rank = 3, .extent = 10}));
    CHECK(rejectionOf(p.builder.build({y})) ==
          "'rotary' reads an operand at other coordinates than its element's; an epilogue has the "
          "elements at its own");
  }
  {
    Projection p;
    const int table = p.builder.input("table", "hr", DType::i1);
    p.contract();
    const int y = p.map("mask", {p.c, table}, "y");
    p.builder.compute(maskExpression({.kind = MaskShape::Kind::block, .key = 2, .query = 1}));
    CHECK(rejectionOf(p.builder.build({y})) ==
          "'mask' reads a table of blocks, at other coordinates than its element's");
  }
  {
    Projection p;
    const int table = p.builder.input("table", "u");
    p.contract();
    const int y = p.map("add", {p.c, table}, "y");
    const auto rejection = [&](const char *expression) {
      p.builder.last().expression = Expression::parse(expression);
      return rejectionOf(p.builder.build({y}));
    };
    CHECK(rejection("{0} + {1}[weft::clampedIndex([1] - [2], 10)]") == "");
    CHECK(rejection("{1} + {0}[[0], [1], weft::clampedIndex([2] + 1, 10)]") ==
          "'add' reads 'c', which the kernel computes, at other coordinates than its element's");
    CHECK(rejection("{0} + {1} + {1}[weft::clampedIndex([2] + 1, 10)]") ==
          "'add' reads 'table' at other coordinates than another read of it");
  }
  {
    Projection p;
    const int bias = p.input("bias", "u");
    p.contract();
    const int relu = p.map("relu", {bias}, "relu", "u"), y = p.map("bias", {p.c, relu}, "y");
    CHECK(rejectionOf(p.builder.build({y})) ==
          "'relu' does not depend on the contraction's result");
  }
  {
    Projection p;
    const int table = p.input("table", "bjur");
    p.contract();
    const int y = p.map("mul", {table, p.c}, "y", "bjur");
    CHECK(rejectionOf(p.builder.build({y})) ==
          "'mul' gives 'y' over other axes than the contraction's result");
  }
  {
    Projection p;
    const int other = p.input("other", "bjr");
    p.contract();
    const int y = p.map("mul", {p.c, other}, "y");
    CHECK(rejectionOf(p.builder.build({y})) ==
          "'mul' reads 'other' along an axis that the contraction's result lacks");
  }
  {
    KernelBuilder builder("outer", {{'m', 4}, {'n', 5}});
    const int x = builder.input("x", "m"), y = builder.input("y", "n");
    const int c = builder.op("contract", OperatorClass::contraction, {x, y}, "c", "mn");
    const int sum = builder.op("add", OperatorClass::elementwise, {c, x}, "sum", "mn");
    builder.last().expression = Expression::parse("{0} + {1}");
    CHECK(rejectionOf(builder.build({sum})) == "'add' reads 'x', an operand of the contraction");
  }
  {
    Projection p;
    p.contract();
    const int y = p.builder.op("contract", OperatorClass::contraction, {p.c, p.w}, "y", "bji", "u");
    CHECK(rejectionOf(p.builder.build({y})) ==
          "'contract' is of class contraction; an epilogue is element-wise");
  }
}

TEST_CASE("sums of what follows a contraction keep the axes of one side of the GEMM") {
  Projection p;
  const int bias = p.input("bias", "u");
  p.contract();
  const int biased = p.map("bias", {p.c, bias}, "biased"),
            square = p.map("mul", {biased, biased}, "square");
  const int columns = reduce(p, biased, "sum", "u", "bj", "columns"),
            rows = reduce(p, square, "sum", "jb", "u", "rows");
  const auto answer = contractionRegion(p.builder.build({biased, rows, columns}));
  REQUIRE(answer);
  const ContractionRegion &region = *answer;
  CHECK(region.epilogue == std::vector<OpId>{1, 2});
  CHECK(region.reductions == std::vector<EpilogueReduction>{{3, 2, biased, EpilogueRole::n},
                                                            {4, 1, square, EpilogueRole::m}});
  CHECK_FALSE(region.isPlain());
  CHECK_FALSE(region.isSum(0));
  CHECK((region.isSum(1) && region.isSum(2)));
}

TEST_CASE("a sum of the GEMM alone makes its region no plain one, and takes registers") {
  Projection p;
  p.contract();
  const int columns = reduce(p, p.c, "sum", "u", "bj");
  const Kernel kernel = p.builder.build({p.c, columns});
  const auto answer = contractionRegion(kernel);
  REQUIRE(answer);
  CHECK(answer->epilogue.empty());
  CHECK_FALSE(answer->isPlain());
  CHECK(answer->storesAccumulator);
  CHECK(epilogueRegisters(kernel, *answer) > 0);
}

TEST_CASE(
    "one sum or two take the registers of those who join them, more are joined by the epilogue's "
    "own threads") {
  const auto registersOf = [](int sums) {
    Projection p;
    p.contract();
    std::vector<ValueId> outputs = {p.c};
    for (int n = 0; n < sums; ++n)
      outputs.push_back(
          reduce(p, p.c, "sum", n % 2 ? "bj" : "u", n % 2 ? "u" : "bj", "sum" + std::to_string(n)));
    const Kernel kernel = p.builder.build(outputs);
    const auto answer = contractionRegion(kernel);
    REQUIRE(answer);
    return epilogueRegisters(kernel, *answer);
  };
  const int one = registersOf(1), two = registersOf(2), three = registersOf(3), ofSum = two - one;
  CHECK(three - two == ofSum - 16);  // 232 registers of a consumer and not 216
}

TEST_CASE("sums that are no part of a region say why") {
  const auto rejected = [](const std::string &kind, const std::string &letters,
                           const std::string &reduced, bool isFirst = false) {
    Projection p;
    p.contract();
    const int total = reduce(p, p.c, kind, letters, reduced);
    return rejectionOf(p.builder.build(isFirst ? std::vector<ValueId>{total, p.c}
                                               : std::vector<ValueId>{p.c, total}));
  };
  CHECK(rejected("sum", "u", "bj") == "");
  CHECK(rejected("sum", "bj", "u") == "");
  CHECK(rejected("max", "bj", "u") ==
        "'reduce' is of class normalization and no sum; an epilogue is element-wise");
  CHECK(rejected("sum", "bu", "j") ==
        "'reduce' to 'total' leaves not just the axes of one side of the GEMM");
  CHECK(rejected("sum", "", "bju") ==
        "'reduce' to 'total' leaves not just the axes of one side of the GEMM");
  CHECK(
      rejected("sum", "u", "bj", true) ==
      "'total', a sum, is the first output; that has to have the axes of the contraction's result");
  {
    Projection p;
    p.contract();
    const int total = reduce(p, p.c, "sum", "u", "bj"), y = p.map("sub", {p.c, total}, "y");
    CHECK(rejectionOf(p.builder.build({y, total})) ==
          "'sub' reads 'total', a sum over all tiles of the result");
    CHECK(rejectionOf(p.builder.build({y})) == "'reduce' to 'total' is not stored");
  }
  {
    Projection p;
    p.contract();
    const int total = reduce(p, p.x, "sum", "bj", "i");
    CHECK(rejectionOf(p.builder.build({p.c, total})) ==
          "'reduce' does not depend on the contraction's result");
  }
  {
    KernelBuilder builder("scores", projectionExtents);
    const int q = builder.input("q", "hji"), k = builder.input("k", "hui");
    const int c = builder.op("contract", OperatorClass::contraction, {q, k}, "c", "hju", "i");
    const int total = builder.op("reduce", OperatorClass::normalization, {c}, "total", "u", "hj");
    builder.last().attributes["kind"] = std::string("sum");
    CHECK(rejectionOf(builder.build({c, total})) ==
          "'reduce' to 'total' runs over the members of a batched GEMM");
  }
}

TEST_CASE("the form of a contraction with sums tells contiguous ones from others") {
  Projection p;
  p.contract();
  const int rows = reduce(p, p.c, "sum", "bj", "u");
  const Kernel kernel = p.builder.build({p.c, rows});
  Configuration one{.inputs = {rowMajor(3), rowMajor(2)},
                    .outputs = {rowMajor(3), rowMajor(2)},
                    .knobs = FmaGemmKnobs{}};
  CHECK_THAT(contractionForm(kernel, one), Catch::EndsWith(" vector,16"));
  one.outputs[1].order = {1, 0};
  CHECK_THAT(contractionForm(kernel, one), !Catch::Contains("vector"));
}

TEST_CASE("a local softmax ends an epilogue: its group, its sub-vectors, its outputs") {
  const samples::ScoreExtents extents{.b = 2, .h = 3, .j = 20, .k = 72, .p = 8, .length = 32};
  for (const bool startsWithKeys : {false, true}) {
    const Kernel kernel = samples::scoresLocalSoftmax(extents, DType::f16, startsWithKeys);
    const auto answer = contractionRegion(kernel);
    REQUIRE(answer);
    const ContractionRegion &region = *answer;
    const ValueId score = kernel.body[0].results[0];
    const AxisId subVectors = kernel.values[size_t(kernel.outputs[1])].axes[3];
    CHECK(region.softmax ==
          EpilogueSoftmax{.op = 1,
                          .value = score,
                          .length = 32,
                          .subVectorAxis = subVectors,
                          .role = startsWithKeys ? EpilogueRole::m : EpilogueRole::n,
                          .maxima = 1,
                          .sums = 2});
    CHECK_FALSE(region.isPlain());
    CHECK((region.isWhole(0) && !region.isWhole(1) && !region.isWhole(2) && !region.isSum(1)));
    CHECK(region.wholeOutputs(kernel) == 1);
    // Neighbouring rows are neighbours: [h, b, n, j] beside [h, b, j, k].
    Configuration one{.inputs = {rowMajor(4), rowMajor(4)},
                      .outputs = {rowMajor(4), {.order = {0, 1, 3, 2}}, {.order = {3, 0, 1, 2}}},
                      .knobs = FmaGemmKnobs{}};
    CHECK(subVectorStrides(kernel, one, region, 1) ==
          SubVectorStrides{.batch = 60, .row = 1, .subVector = 20});
    CHECK(subVectorStrides(kernel, one, region, 2) ==
          SubVectorStrides{.batch = 20, .row = 1, .subVector = 120});
    CHECK(softmaxRejection(kernel, one, region, !startsWithKeys).empty());
    CHECK(softmaxRejection(kernel, one, region, startsWithKeys) ==
          "'local_softmax' runs along an axis in which 'exponentials' is not contiguous");
    CHECK_THAT(contractionForm(kernel, one),
               Catch::EndsWith(" sub-vectors,60:1:20,16 sub-vectors,20:1:120,16"));
    // Members and rows are counted as C has them, whatever the operands do.
    Configuration apart = one;
    apart.inputs = {{.order = {2, 3, 1, 0}}, {.order = {2, 3, 1, 0}}};  // b before h
    CHECK(subVectorStrides(kernel, apart, region, 1) ==
          SubVectorStrides{.batch = 60, .row = 1, .subVector = 20});
    apart.outputs[1].order = {1, 0, 3, 2};
    CHECK_FALSE(subVectorStrides(kernel, apart, region, 1));
    one.outputs[2].order = {0, 3, 1, 2};  // the batch of h and b does not merge
    CHECK(softmaxRejection(kernel, one, region, !startsWithKeys) ==
          "'local_softmax' gives 'sums', which does not lie as the GEMM's axes do");
  }
  const Kernel kernel = samples::plainLocalSoftmax({.length = 24}, DType::f16);
  const Configuration one{.inputs = {rowMajor(4), rowMajor(4)},
                          .outputs = {rowMajor(4), rowMajor(4), rowMajor(4)},
                          .knobs = FmaGemmKnobs{}};
  CHECK(softmaxRejection(kernel, one, *contractionRegion(kernel), true) ==
        "'local_softmax' has sub-vectors of 24 elements; 16, 32 and 64 are taken behind a GEMM");
}

TEST_CASE("a dropout of exponentials may follow their local softmax, and nothing else") {
  const Kernel kernel = samples::droppedLocalSoftmax({}, DType::f16);
  const auto answer = contractionRegion(kernel);
  REQUIRE(answer);
  CHECK(answer->softmax->dropped == EpilogueSoftmax::Dropped{.op = 3, .output = 3});
  CHECK((answer->isWhole(0) && !answer->isWhole(2) && answer->isWhole(3)));
  CHECK(answer->wholeOutputs(kernel) == 2);
  CHECK(answer->elementwiseOps() == std::vector<OpId>{1, 3});
  const Kernel without = samples::causalLocalSoftmax({}, DType::f16);
  CHECK(epilogueRegisters(kernel, *answer) >
        epilogueRegisters(without, *contractionRegion(without)));
  const auto changed = [&](const auto &change) {
    Kernel other = kernel;
    change(other);
    return rejectionOf(other);
  };
  const std::string ofOthers =
      "'dropout' follows a local softmax; of its exponentials one may, if its result is stored";
  CHECK(changed([](Kernel &other) { other.outputs.pop_back(); }) == ofOthers);
  CHECK(changed([](Kernel &other) { other.body[3].operands = {other.outputs[1]}; }) == ofOthers);
  CHECK(changed([](Kernel &other) { other.body.push_back(other.body[3]); }) == ofOthers);
}

TEST_CASE("what a dropout keeps of exponentials may be stored in their place") {
  const Kernel kernel = samples::keptLocalSoftmax({}, DType::f16);
  const auto answer = contractionRegion(kernel);
  REQUIRE(answer);
  CHECK(answer->softmax->dropped == EpilogueSoftmax::Dropped{.op = 3, .output = 0});
  CHECK((answer->isWhole(0) && !answer->isWhole(1) && !answer->isWhole(2)));
  CHECK(answer->wholeOutputs(kernel) == 1);
  Kernel other = kernel;
  std::swap(other.outputs[0], other.outputs[1]);
  CHECK(rejectionOf(other) == "'local_softmax' gives 'exponentials', which is not stored");
  other = kernel;
  other.body[3].operands = {other.outputs[1]};
  CHECK(rejectionOf(other) == "'local_softmax' gives 'exponentials', which is not stored");
}

TEST_CASE("where a local softmax cannot end an epilogue") {
  const samples::ScoreExtents extents{.b = 2, .h = 3, .j = 20, .k = 72, .p = 8, .length = 32};
  const auto changed = [&](const auto &change) {
    Kernel kernel = samples::maskedLocalSoftmax(extents, DType::f16);
    change(kernel);
    return rejectionOf(kernel);
  };
  CHECK(changed([](Kernel &) {}).empty());
  CHECK(changed([](Kernel &kernel) { kernel.outputs.pop_back(); }) ==
        "'local_softmax' gives 'sums', which is not stored");
  CHECK(changed([](Kernel &kernel) { std::swap(kernel.outputs[0], kernel.outputs[2]); }) ==
        "'local_softmax' gives 'exponentials', which is not the first output");
  CHECK(changed([](Kernel &kernel) { kernel.outputs.push_back(kernel.body[0].results[0]); }) ==
        "'local_softmax' stands beside 'score', another output");
  CHECK(changed([](Kernel &kernel) {
          kernel.body.push_back({.kind = OpKind::relu,
                                 .operatorClass = OperatorClass::elementwise,
                                 .operands = {kernel.body.back().results[0]},
                                 .results = {0},
                                 .reducedAxes = {},
                                 .attributes = {},
                                 .expression = {}});
        }) == "'relu' follows a local softmax, which ends an epilogue");
  CHECK(changed([](Kernel &kernel) { kernel.body.back().operands = {kernel.inputs[2]}; }) ==
        "'local_softmax' does not depend on the contraction's result");
  // One key: nothing to divide.
  Kernel rows = samples::scoresLocalSoftmax({.b = 1, .h = 2, .j = 4, .k = 1, .p = 8}, DType::f16);
  CHECK(rejectionOf(rows) ==
        "'local_softmax' divides 'k', which is not all of one side of the GEMM");
  // One query of one head: k is all that C has, and one side of the GEMM.
  CHECK(rejectionOf(
            samples::scoresLocalSoftmax({.b = 1, .h = 1, .j = 1, .k = 200, .p = 8}, DType::f16))
            .empty());
}

TEST_CASE("a rotary embedding stands right behind a contraction, or behind masks of tokens") {
  const RotaryExtents extents{.b = 2, .j = 6, .g = 5, .p = 16, .i = 8};
  const Kernel kernel = rotatedProjection(extents, DType::f16,
                                          {.isReverse = true,
                                           .turned = 8,
                                           .begin = 1,
                                           .end = 4,
                                           .hasStarts = true,
                                           .hasResidual = true});
  const ContractionRegion region = contractionRegion(kernel).value();
  REQUIRE(region.rotary);
  const auto nameOfAxis = [&](AxisId axis) { return kernel.axes[size_t(axis)].name; };
  CHECK(nameOfAxis(region.rotary->pairs) == "p");
  CHECK(nameOfAxis(region.rotary->position) == "j");
  CHECK(nameOfAxis(region.rotary->among) == "g");
  CHECK(region.rotary->begin == 1);
  CHECK(region.rotary->end == 4);
  CHECK(region.rotary->extent == 16);
  CHECK(region.rotary->turned == 8);
  CHECK(region.rotary->style == RotaryStyle::halved);
  CHECK(region.rotary->isReverse);
  CHECK(region.epilogue == std::vector<OpId>{1, 2});
  CHECK(region.inputs.size() == 2);
  CHECK(contractionRegion(rotatedTokens(extents, DType::f16, {})).value().epilogue.size() == 3);
  CHECK(!contractionRegion(gemmBias({}, DType::f16)).value().rotary);
}

TEST_CASE("what keeps a rotary embedding from standing behind a contraction") {
  const std::map<char, int64_t> sizes{{'b', 2}, {'g', 3}, {'i', 8}, {'j', 6}, {'p', 16}};
  const auto rejected = [&](const auto &add) {
    KernelBuilder builder("turned", sizes);
    const int w = builder.input("w", "gpi"), x = builder.input("x", "bji"),
              bias = builder.input("bias", "gp");
    const int heads =
        builder.op("contract", OperatorClass::contraction, {w, x}, "heads", "bjgp", "i");
    builder.last().attributes = {{"spec", std::string("gpi,bji->bjgp")}};
    return rejectionOf(add(builder, heads, bias));
  };
  const auto turn = [](KernelBuilder &builder, int of, int position = 1) {
    const int turned = builder.op("rotary", OperatorClass::elementwise, {of}, "turned", "bjgp");
    describeRotary(builder, {}, 16, position, 4, DType::f16, false);
    return turned;
  };
  const auto map = [](KernelBuilder &builder, std::vector<ValueId> operands) {
    const int y = builder.op("add", OperatorClass::elementwise, std::move(operands), "y", "bjgp");
    builder.last().expression = Expression::parse("{0} + {1}");
    return y;
  };
  CHECK(rejected([&](KernelBuilder &builder, int heads, int bias) {
          return builder.build({turn(builder, map(builder, {heads, bias}))});
        }) == "'rotary' follows 'add'; partners are elements of what the contraction gives");
  CHECK(rejected([&](KernelBuilder &builder, int heads, int) {
          const int turned = turn(builder, heads);
          return builder.build({turned, heads});
        }) == "'rotary' rotates 'heads', which is stored as it is, too");
  CHECK(rejected([&](KernelBuilder &builder, int heads, int) {
          const int turned = turn(builder, heads);
          return builder.build({map(builder, {turned, heads})});
        }) == "'add' reads 'heads', which a rotary embedding has turned");
  CHECK(rejected([&](KernelBuilder &builder, int heads, int) {
          return builder.build({turn(builder, heads, 2)});
        }) == "'rotary' has positions on the side of the GEMM that its pairs are of");
  CHECK(rejected([&](KernelBuilder &builder, int heads, int bias) {
          return builder.build({map(builder, {turn(builder, heads), bias})});
        }).empty());
}
