// Fused attentions: which kernels are one, the role of every axis, what score ops read, and every
// rejection.
#include "kernel/AttentionRegion.h"
#include "kernel/ContractionRegion.h"
#include "kernel/CoordinateExpressions.h"
#include "tests/unit/samples/SampleAttentions.h"
#include "tests/unit/samples/SampleKernels.h"

#include <catch2/catch.hpp>

using namespace weft;
using namespace weft::samples;

namespace {

const std::map<char, int64_t> attentionExtents = {{'b', 2}, {'h', 3}, {'g', 4}, {'j', 6}, {'k', 10},
                                                  {'p', 8}, {'w', 5}, {'o', 1}, {'r', 7}};

/// Scores of q and k, to be continued. What score ops read must be added before the first op.
struct Attention {
  KernelBuilder builder{"attention", attentionExtents};
  std::string lettersOfScores, lettersOfOutput;
  char key = 'k';
  ValueId q = -1, k = -1, v = -1;
  int scores = -1, output = -1, logSums = -1;

  explicit Attention(const std::string &ofQ = "bhjp", const std::string &ofK = "bhkp",
                     const std::string &ofV = "bhkw", std::string ofScores = "bhjk",
                     std::string ofOutput = "bhjw")
      : lettersOfScores(std::move(ofScores)), lettersOfOutput(std::move(ofOutput)) {
    q = builder.input("q", ofQ);
    k = builder.input("k", ofK);
    v = builder.input("v", ofV);
  }
  int input(const std::string &name, const std::string &letters, DType type = DType::f16) {
    return builder.input(name, letters, type);
  }
  int contract(bool isKeysFirst = false, const std::string &reduced = "p") {
    scores = builder.op("contract", OperatorClass::contraction,
                        isKeysFirst ? std::vector<ValueId>{k, q} : std::vector<ValueId>{q, k},
                        "scores", lettersOfScores, reduced);
    builder.last().attributes["scale"] = 0.125;
    return scores;
  }
  int map(const std::string &name, std::vector<ValueId> operands, const std::string &result,
          const std::string &expression) {
    const ValueId value =
        builder.op(name, OperatorClass::elementwise, std::move(operands), result, lettersOfScores);
    builder.last().expression = Expression::parse(expression);
    return value;
  }
  /// Along the dimensions of queries and keys of "bhjk".
  int mask(MaskShape shape, std::vector<ValueId> operands, const std::string &result) {
    const ValueId value = builder.op("mask", OperatorClass::elementwise, std::move(operands),
                                     result, lettersOfScores);
    shape.query = 2, shape.key = 3;
    builder.last().expression = maskExpression(shape);
    return value;
  }
  int fold(int of) {
    output = builder.op("online_softmax_contract", OperatorClass::contraction, {of, v}, "output",
                        lettersOfOutput, std::string(1, key));
    return output;
  }
  int foldWithLogSums(int of) {
    fold(of);
    std::string letters = lettersOfScores;
    std::erase(letters, key);
    logSums = builder.also("log_sums", letters, DType::f32);
    return logSums;
  }
  AxisId axis(char letter) const {
    return int(std::distance(attentionExtents.begin(), attentionExtents.find(letter)));
  }
};

AttentionRegion regionOf(const Kernel &kernel) {
  const Expected<AttentionRegion, Reason> answer = attentionRegion(kernel);
  INFO(reasonOf(answer));
  REQUIRE(answer);
  CHECK(reasonOf(answer).empty());
  return *answer;
}

std::string rejectionOf(const Kernel &kernel) {
  const Expected<AttentionRegion, Reason> answer = attentionRegion(kernel);
  CHECK(answer.has_value() == reasonOf(answer).empty());
  return reasonOf(answer);
}

}  // namespace

TEST_CASE("attention alone: scores are folded as they are, keys may be more than queries") {
  for (const bool isKeysFirst : {false, true}) {
    Attention a;
    a.fold(a.contract(isKeysFirst));
    const AttentionRegion region = regionOf(a.builder.build({a.output}));
    CHECK(region.contraction == 0);
    CHECK(region.fold == 1);
    CHECK(region.scoreOps.empty());
    CHECK(std::vector{region.q, region.k, region.v} == std::vector<ValueId>{a.q, a.k, a.v});
    CHECK(std::vector{region.qInput, region.kInput, region.vInput} == std::vector<size_t>{0, 1, 2});
    CHECK(region.scores == a.scores);
    CHECK(region.folded == a.scores);
    CHECK(region.output == a.output);
    CHECK(region.logSums == -1);
    CHECK(region.scale == 0.125);
    CHECK(region.inputs.empty());
    CHECK(region.keyAxis == a.axis('k'));
    CHECK(region.headDim == std::vector<AxisId>{a.axis('p')});
    CHECK(region.valueDim == std::vector<AxisId>{a.axis('w')});
    CHECK(region.queries == std::vector<AxisId>{a.axis('j')});
    CHECK(region.batch == std::vector<AxisId>{a.axis('b'), a.axis('h')});
  }
}

TEST_CASE("a fold may drop probabilities") {
  const auto dropped = [](double p, int64_t stream) {
    Attention a;
    a.fold(a.contract());
    a.builder.last().attributes = {{"p", p}, {"stream", stream}};
    return a.builder.build({a.output});
  };
  CHECK(regionOf(dropped(0.1, 3)).hasDropout);
  CHECK_FALSE(regionOf(dropped(0, 3)).hasDropout);
  CHECK(dropoutOf(dropped(0.1, 3).body.back()) == Dropout{.p = 0.1, .stream = 3});
  Attention plain;
  plain.fold(plain.contract());
  const Kernel kernel = plain.builder.build({plain.output});
  CHECK_FALSE(regionOf(kernel).hasDropout);
  CHECK(dropoutOf(kernel.body.back()) == std::nullopt);
  // Which stream it draws from is an argument; that it draws, and how much, is text.
  CHECK(canonicalText(dropped(0.1, 3)) == canonicalText(dropped(0.1, 4)));
  CHECK(canonicalText(dropped(0.1, 3)) != canonicalText(dropped(0.2, 3)));
  CHECK(canonicalText(dropped(0.1, 3)) != canonicalText(kernel));
}

TEST_CASE("masks, biases and a soft cap stand between scores and softmax") {
  Attention a;
  const int lengths = a.input("lengths", "b", DType::i32), slopes = a.input("slopes", "h"),
            bias = a.input("bias", "hkj"), cap = a.input("cap", "");
  a.contract();
  const int small = a.map("div", {a.scores, cap}, "small", "{0} / {1}");
  const int squashed = a.map("tanh", {small}, "squashed", "weft::tanh({0})");
  const int capped = a.map("mul", {squashed, cap}, "capped", "{0} * {1}");
  const int sloped = a.map("mul", {capped, slopes}, "sloped", "{0} * {1}");
  const int biased = a.map("add", {sloped, bias}, "biased", "{0} + {1}");
  const int causal = a.mask({.kind = MaskShape::Kind::causal, .shift = 4}, {biased}, "causal");
  const int padded = a.mask({.kind = MaskShape::Kind::padding}, {causal, lengths}, "padded");
  a.foldWithLogSums(padded);
  const AttentionRegion region = regionOf(a.builder.build({a.output, a.logSums}));
  CHECK(region.scoreOps == std::vector<OpId>{1, 2, 3, 4, 5, 6, 7});
  CHECK(region.fold == 8);
  CHECK(region.scores == a.scores);
  CHECK(region.folded == padded);
  CHECK(region.logSums == a.logSums);
  CHECK(region.inputs == std::vector<ScoreInput>{{3, lengths}, {4, slopes}, {5, bias}, {6, cap}});
}

TEST_CASE("one score may be read by two ops") {
  Attention a;
  a.contract();
  const int gate = a.map("sigmoid", {a.scores}, "gate", "weft::sigmoid({0})");
  const int gated = a.map("mul", {a.scores, gate}, "gated", "{0} * {1}");
  a.fold(gated);
  CHECK(regionOf(a.builder.build({a.output})).scoreOps == std::vector<OpId>{1, 2});
}

TEST_CASE("the heads of a group are axes of queries, in any order of dimensions") {
  Attention a("pgbjh", "phbk", "whbk", "hgbjk", "whgbj");
  a.fold(a.contract());
  const AttentionRegion region = regionOf(a.builder.build({a.output}));
  CHECK(region.batch == std::vector<AxisId>{a.axis('b'), a.axis('h')});
  CHECK(region.queries == std::vector<AxisId>{a.axis('g'), a.axis('j')});
  CHECK(region.headDim == std::vector<AxisId>{a.axis('p')});
  CHECK(region.valueDim == std::vector<AxisId>{a.axis('w')});
}

TEST_CASE("nothing depends on names: other axes have the same roles") {
  // Keys run along h, queries along k, the head dimension is j, the batch p.
  Attention a("pkj", "phj", "phw", "pkh", "pkw");
  a.key = 'h';
  a.fold(a.contract(false, "j"));
  const AttentionRegion region = regionOf(a.builder.build({a.output}));
  CHECK(region.keyAxis == a.axis('h'));
  CHECK(region.queries == std::vector<AxisId>{a.axis('k')});
  CHECK(region.headDim == std::vector<AxisId>{a.axis('j')});
  CHECK(region.batch == std::vector<AxisId>{a.axis('p')});
}

TEST_CASE("axes of one element have roles, and several axes may be summed over") {
  Attention a("bojpr", "bokpr", "bokw", "bojk", "bojw");
  a.fold(a.contract(false, "pr"));
  const AttentionRegion region = regionOf(a.builder.build({a.output}));
  CHECK(region.batch == std::vector<AxisId>{a.axis('b'), a.axis('o')});
  CHECK(region.headDim == std::vector<AxisId>{a.axis('p'), a.axis('r')});
}

TEST_CASE("operands stand in any place among the inputs") {
  KernelBuilder builder("attention", attentionExtents);
  const int v = builder.input("v", "bkw"), bias = builder.input("bias", "jk"),
            k = builder.input("k", "bkp"), q = builder.input("q", "bjp");
  const int scores =
      builder.op("contract", OperatorClass::contraction, {q, k}, "scores", "bjk", "p");
  const int biased = builder.op("add", OperatorClass::elementwise, {scores, bias}, "biased", "bjk");
  builder.last().expression = Expression::parse("{0} + {1}");
  const int output = builder.op("online_softmax_contract", OperatorClass::contraction, {biased, v},
                                "output", "bjw", "k");
  const AttentionRegion region = regionOf(builder.build({output}));
  CHECK(std::vector{region.qInput, region.kInput, region.vInput} == std::vector<size_t>{3, 2, 0});
  CHECK(region.inputs == std::vector<ScoreInput>{{1, bias}});
  CHECK(region.scale == 1);
}

TEST_CASE("a fused attention is no GEMM with an epilogue, and says why") {
  Attention a;
  a.fold(a.contract());
  CHECK(reasonOf(contractionRegion(a.builder.build({a.output}))) ==
        "'online_softmax_contract' is of class contraction; an epilogue is element-wise");
  KernelBuilder alone("fold", attentionExtents);
  const int scores = alone.input("scores", "bjk"), v = alone.input("v", "bkw");
  const int output = alone.op("online_softmax_contract", OperatorClass::contraction, {scores, v},
                              "output", "bjw", "k");
  CHECK(reasonOf(contractionRegion(alone.build({output}))) ==
        "the body does not open with a contraction of two operands");
}

TEST_CASE("bodies that are no attention say why") {
  CHECK(rejectionOf(reluKernel({{'i', 4}}, "i")) ==
        "the body does not open with a contraction of two operands");
  CHECK(rejectionOf(contractKernel({{'i', 4}, {'k', 4}, {'n', 4}}, "ik", "kn", "in")) ==
        "no 'online_softmax_contract' reads the scores");
  {
    Attention a;
    a.fold(a.contract());
    const int behind =
        a.builder.op("relu", OperatorClass::elementwise, {a.output}, "behind", a.lettersOfOutput);
    CHECK(rejectionOf(a.builder.build({behind})) ==
          "'relu' follows 'online_softmax_contract', which ends an attention");
  }
  {
    KernelBuilder builder("attention", attentionExtents);
    const int x = builder.input("x", "bjp"), v = builder.input("v", "bjw");
    const int scores =
        builder.op("contract", OperatorClass::contraction, {x, x}, "scores", "bj", "p");
    const int output = builder.op("online_softmax_contract", OperatorClass::contraction,
                                  {scores, v}, "output", "bw", "j");
    CHECK(rejectionOf(builder.build({output})) == "'x' is both operands of the contraction");
  }
}

TEST_CASE("queries may be turned in front of the scores, by positions from anywhere") {
  const AttentionExtents e{.b = 2, .h = 3, .g = 2, .j = 6, .k = 10, .p = 16, .w = 8};
  const Kernel kernel = rotatedAttention(e, DType::f16, {.isHalved = false, .turned = 8}, true);
  const AttentionRegion region = regionOf(kernel);
  REQUIRE(region.turned);
  CHECK(region.contraction == 1);
  CHECK(region.turned->pairs.op == 0);
  CHECK(region.turned->starts == -1);
  CHECK(region.turned->pairs.turned == 8);
  CHECK(region.turned->pairs.style == RotaryStyle::interleaved);
  CHECK(region.turned->pairs.pairs == region.headDim.at(0));
  CHECK(region.queries.back() == region.turned->pairs.position);
  // The tensor in memory is the one that is not turned yet.
  CHECK(region.q == kernel.inputs[0]);
  CHECK(region.qInput == 0);
  CHECK(region.scoreOps == std::vector<OpId>{2});
  CHECK(region.inputs.empty());
  // The words that a mask reads, too.
  const AttentionRegion cached = regionOf(rotatedCachedAttention(e, DType::f16, {}));
  REQUIRE(cached.turned);
  CHECK(cached.turned->input == 3);
  CHECK(cached.inputs == std::vector<ScoreInput>{{3, cached.turned->starts}});
  AttentionExtents tokens = e;
  tokens.k = tokens.j, tokens.tokens = 12;
  const Kernel packed = rotatedPackedAttention(tokens, DType::f16, {}, true);
  const AttentionRegion ofTokens = regionOf(packed);
  REQUIRE(ofTokens.turned);
  REQUIRE(ofTokens.packed);
  CHECK(ofTokens.turned->pairs.position == ofTokens.packed->q);
  CHECK(packed.values[size_t(ofTokens.turned->starts)].name == "token_starts");
  CHECK_FALSE(regionOf(causalAttention(e, DType::f16)).turned);
}

TEST_CASE("what an attention does not turn says why") {
  struct Turn {
    std::string of = "q", position = "j", starts = "";
    RotaryForm form = {};
    bool isStored = false, isRead = true;
  };
  const auto rejectionOfRotation = [](const Turn &turn) {
    Attention a;
    const bool isOfKeys = turn.of == "k";
    const std::string letters = isOfKeys ? "bhkp" : "bhjp";
    std::vector<ValueId> operands = {isOfKeys ? a.k : a.q};
    if (!turn.starts.empty()) operands.push_back(a.input("starts", turn.starts, DType::i32));
    const int turned =
        a.builder.op("rotary", OperatorClass::elementwise, operands, "turned", letters);
    describeRotary(a.builder, turn.form, 8, int(letters.find(turn.position)), 4, DType::f16, false);
    if (turn.isRead) (isOfKeys ? a.k : a.q) = turned;
    a.fold(a.contract());
    std::vector<ValueId> stored = {a.output};
    if (turn.isStored) stored.insert(stored.begin(), turned);
    return rejectionOf(a.builder.build(stored));
  };
  CHECK(rejectionOfRotation({}) == "");
  CHECK(rejectionOfRotation({.starts = "b", .form = {.hasStarts = true}}) == "");
  CHECK(rejectionOfRotation({.of = "k", .position = "k"}) ==
        "'rotary' rotates 'k'; an attention rotates queries, which it loads once, and nothing that "
        "each tile of queries loads");
  CHECK(rejectionOfRotation({.isRead = false})
            .starts_with("'rotary' rotates 'q'; an attention rotates"));
  CHECK(rejectionOfRotation({.isStored = true}) ==
        "'turned' is stored; an attention stores what 'online_softmax_contract' gives");
  CHECK(rejectionOfRotation({.position = "h"}) ==
        "'rotary' rotates by positions along 'h', which are not those of queries");
  CHECK(rejectionOfRotation({.form = {.begin = 0, .end = 2}}) ==
        "'rotary' rotates a part of the queries' heads");
  CHECK(rejectionOfRotation({.starts = "j", .form = {.hasStarts = true}}) ==
        "'rotary' reads starts along 'j', which is no axis of sequences");
  {
    Attention a;
    for (ValueId *tensor : {&a.q, &a.k}) {
      *tensor =
          a.builder.op("rotary", OperatorClass::elementwise, {*tensor},
                       tensor == &a.q ? "q_turned" : "k_turned", tensor == &a.q ? "bhjp" : "bhkp");
      describeRotary(a.builder, {}, 8, 2, 4, DType::f16, false);
    }
    a.fold(a.contract());
    CHECK(rejectionOf(a.builder.build({a.output})) == "'rotary' rotates more than queries");
  }
  {
    // Pairs along one of two axes that scores are summed over.
    Attention a("bhjpr", "bhkpr", "bhkw");
    a.q = a.builder.op("rotary", OperatorClass::elementwise, {a.q}, "turned", "bhjpr");
    describeRotary(a.builder, {}, 7, 2, 5, DType::f16, false);
    a.fold(a.contract(false, "pr"));
    CHECK(rejectionOf(a.builder.build({a.output})) ==
          "'rotary' rotates pairs along 'r', which is not all that scores are summed over");
  }
}

TEST_CASE("score ops that no attention takes say why") {
  const auto rejectionWith = [](const auto &scoreOp) {
    Attention a;
    const int table = a.input("table", "jk");
    a.contract();
    a.fold(scoreOp(a, table));
    return rejectionOf(a.builder.build({a.output}));
  };
  CHECK(rejectionWith([](Attention &a, int) {
          return a.builder.op("softmax", OperatorClass::normalization, {a.scores}, "prob", "bhjk",
                              "k");
        }) ==
        "'softmax' is of class normalization; ops between scores and softmax are "
        "element-wise");
  CHECK(rejectionWith([](Attention &a, int) {
          return a.builder.op("dropout", OperatorClass::elementwise, {a.scores}, "kept", "bhjk");
        }) == "'dropout' draws; the scores of an attention kernel are not dropped");
  CHECK(rejectionWith([](Attention &a, int) {
          return a.builder.op("relu", OperatorClass::elementwise, {a.scores}, "some", "bhjk");
        }) == "'relu' is no function of single elements");
  CHECK(rejectionWith([](Attention &a, int) {
          const int turned =
              a.builder.op("rotary", OperatorClass::elementwise, {a.scores}, "turned", "bhjk");
          a.builder.last().expression = rotaryExpression(
              {.dimension = 3, .position = 2, .rank = 4, .extent = attentionExtents.at('k')});
          return turned;
        }) == "'rotary' reads at other coordinates than the element's");
  CHECK(rejectionWith([](Attention &a, int table) {
          return a.mask({.kind = MaskShape::Kind::block, .size = 2}, {a.scores, table}, "masked");
        }) == "'mask' reads a table of blocks, at other coordinates than the element's");
  CHECK(rejectionWith([](Attention &a, int table) {
          const int other =
              a.builder.op("tanh", OperatorClass::elementwise, {table}, "other", "jk");
          a.builder.last().expression = Expression::parse("weft::tanh({0})");
          return a.map("add", {a.scores, other}, "sum", "{0} + {1}");
        }) == "'tanh' does not depend on the scores");
}

TEST_CASE("score ops read inputs at coordinates that they compute") {
  Attention a;
  // 'r' stands for distances, which the scores lack; segments are read at keys and at queries.
  const int table = a.input("table", "hr"), segments = a.input("segments", "bk", DType::i32);
  a.contract();
  const int biased = a.builder.op("relative_bias", OperatorClass::elementwise, {a.scores, table},
                                  "biased", "bhjk");
  a.builder.compute(relativeBiasExpression(
      {.along = {1}, .query = 2, .key = 3, .shift = 4, .distance = 3, .distances = 7}));
  const int seen =
      a.mask({.kind = MaskShape::Kind::document, .shift = 4}, {biased, segments}, "seen");
  a.fold(seen);
  const AttentionRegion region = regionOf(a.builder.build({a.output}));
  CHECK(region.scoreOps.size() == 2);
  CHECK(region.inputs == std::vector<ScoreInput>{{3, table}, {4, segments}});
  CHECK(region.keyAxis == a.axis('k'));
}

TEST_CASE("a table along an axis that the scores lack is read at computed coordinates alone") {
  Attention a;
  const int table = a.input("table", "hr");
  a.contract();
  const int sum = a.builder.op("add", OperatorClass::elementwise, {a.scores, table}, "sum", "bhjk");
  a.builder.last().expression = Expression::parse("{0} + {1}");
  a.fold(sum);
  CHECK(rejectionOf(a.builder.build({a.output})) ==
        "'add' reads 'table' along 'r', which the scores lack");
}

TEST_CASE("scores themselves are read at the element's coordinates alone") {
  Attention a;
  const int bias = a.input("bias", "bhjk");
  a.contract();
  const int moved = a.map("add", {bias, a.scores}, "moved", "{0} + {1}[[0], [1], [2], [3] % 4]");
  a.fold(moved);
  CHECK(rejectionOf(a.builder.build({a.output})) ==
        "'add' reads 'scores', which the kernel computes, at other coordinates than the element's");
}

TEST_CASE("a score op over other axes, and one that reads an operand of a contraction, say why") {
  {
    Attention a;
    const int wide = a.input("wide", "bhjkr");
    a.contract();
    const int sum =
        a.builder.op("add", OperatorClass::elementwise, {wide, a.scores}, "sum", "bhjkr");
    a.builder.last().expression = Expression::parse("{0} + {1}");
    a.lettersOfOutput = "bhjwr";
    a.fold(sum);
    CHECK(rejectionOf(a.builder.build({a.output})) ==
          "'add' gives 'sum' over other axes than the scores 'scores'");
  }
  {
    Attention a;
    a.contract();
    a.fold(a.map("add", {a.scores, a.q}, "sum", "{0} + {1}"));
    CHECK(rejectionOf(a.builder.build({a.output})) ==
          "'add' reads 'q', an operand of a contraction");
  }
  {
    Attention a;
    const int wide = a.input("wide", "jr");
    a.contract();
    a.fold(a.map("add", {a.scores, wide}, "sum", "{0} + {1}"));
    CHECK(rejectionOf(a.builder.build({a.output})) ==
          "'add' reads 'wide' along 'r', which the scores lack");
  }
}

TEST_CASE("scores that are stored, and results that are not, say why") {
  {
    Attention a;
    a.fold(a.contract());
    CHECK(rejectionOf(a.builder.build({a.scores, a.output})) ==
          "'contract' gives 'scores', scores, which are stored");
  }
  {
    Attention a;
    a.contract();
    const int capped = a.map("tanh", {a.scores}, "capped", "weft::tanh({0})");
    a.fold(capped);
    CHECK(rejectionOf(a.builder.build({capped, a.output})) ==
          "'tanh' gives 'capped', scores, which are stored");
  }
  {
    Attention a;
    a.contract();
    a.map("tanh", {a.scores}, "capped", "weft::tanh({0})");
    a.fold(a.scores);
    CHECK(rejectionOf(a.builder.build({a.output})) ==
          "'online_softmax_contract' reads 'scores' as scores, where 'capped' comes last");
  }
  {
    Attention a;
    a.foldWithLogSums(a.contract());
    CHECK(rejectionOf(a.builder.build({a.logSums, a.output})) ==
          "'online_softmax_contract' gives results that are not all stored in their order");
  }
  {
    Attention a;
    a.foldWithLogSums(a.contract());
    CHECK(rejectionOf(a.builder.build({a.output})) ==
          "'online_softmax_contract' gives results that are not all stored in their order");
  }
}

TEST_CASE("axes without a role say which tensors have them") {
  {
    KernelBuilder builder("attention", attentionExtents);
    const int q = builder.input("q", "bhjp"), k = builder.input("k", "bhkp"),
              v = builder.input("v", "bkw");
    const int scores =
        builder.op("contract", OperatorClass::contraction, {q, k}, "scores", "bhjk", "p");
    const int output = builder.op("online_softmax_contract", OperatorClass::contraction,
                                  {scores, v}, "output", "bhjw", "k");
    CHECK(rejectionOf(builder.build({output})) ==
          "axis 'h' has no role in an attention: it is of queries 'q', keys 'k', scores 'scores', "
          "output 'output' and not of values 'v'");
  }
  {
    Attention a("bhjkp", "bhkp", "bhkw");
    a.fold(a.contract());
    CHECK(rejectionOf(a.builder.build({a.output})) ==
          "the softmax runs along 'k', which both 'q' and 'k' have");
  }
  {
    Attention a("bhjp", "bhrp", "bhkw");
    a.fold(a.contract());
    CHECK(rejectionOf(a.builder.build({a.output})) ==
          "the softmax runs along 'k', which neither 'q' nor 'k' has");
  }
  {
    Attention a("bhj", "bhk", "bhkw");
    a.fold(a.contract(false, ""));
    CHECK(rejectionOf(a.builder.build({a.output})) ==
          "'contract' sums over no axis that queries and keys have in common");
  }
}

TEST_CASE("values that the contraction reads, too, and operands that the kernel computes") {
  {
    KernelBuilder builder("attention", attentionExtents);
    const int q = builder.input("q", "bjp"), k = builder.input("k", "bkp");
    const int scores =
        builder.op("contract", OperatorClass::contraction, {q, k}, "scores", "bjk", "p");
    const int output = builder.op("online_softmax_contract", OperatorClass::contraction,
                                  {scores, k}, "output", "bjp", "k");
    CHECK(rejectionOf(builder.build({output})) ==
          "'online_softmax_contract' reads values 'k', an operand of the contraction");
  }
  {
    Attention a;
    a.contract();
    const int behind = a.map("tanh", {a.scores}, "behind", "weft::tanh({0})");
    a.v = a.scores;
    a.fold(behind);
    CHECK(rejectionOf(a.builder.build({a.output})) ==
          "'online_softmax_contract' reads values 'scores', which the kernel computes");
  }
  {
    KernelBuilder builder("attention", attentionExtents);
    const int x = builder.input("x", "bjp"), k = builder.input("k", "bkp"),
              v = builder.input("v", "bkw");
    const int q = builder.op("tanh", OperatorClass::elementwise, {x}, "q", "bjp");
    const int scores =
        builder.op("contract", OperatorClass::contraction, {q, k}, "scores", "bjk", "p");
    const int output = builder.op("online_softmax_contract", OperatorClass::contraction,
                                  {scores, v}, "output", "bjw", "k");
    CHECK(rejectionOf(builder.build({output})) ==
          "the body does not open with a contraction of two operands");
  }
}

namespace {

/// Keys of five pages of two positions through tables of two sequences.
struct PagedAttention {
  KernelBuilder builder{"attention",
                        {{'b', 2},
                         {'e', 5},
                         {'f', 7},
                         {'h', 3},
                         {'j', 6},
                         {'k', 10},
                         {'n', 7},
                         {'o', 2},
                         {'p', 8},
                         {'s', 2},
                         {'w', 5}}};
  int q = builder.input("q", "bhjp"), k = builder.input("k", "fhop"),
      v = builder.input("v", "nhsw"), table = builder.input("table", "be", DType::i32),
      other = builder.input("other", "be", DType::i32);

  int gathered(int pages, int by, const std::string &result, const std::string &letters) {
    const int value =
        builder.op("gather_pages", OperatorClass::movement, {pages, by}, result, letters);
    builder.last().attributes = {{"axis", int64_t(2)}, {"along", std::vector<int64_t>{0}}};
    return value;
  }
  Kernel attention(int keys, int values) {
    const int scores =
        builder.op("contract", OperatorClass::contraction, {q, keys}, "scores", "bhjk", "p");
    return builder.build({builder.op("online_softmax_contract", OperatorClass::contraction,
                                     {scores, values}, "output", "bhjw", "k")});
  }
};

}  // namespace

TEST_CASE("keys and values in pages are those that one table lists") {
  PagedAttention a;
  const int keys = a.gathered(a.k, a.table, "keys", "bhkp"),
            values = a.gathered(a.v, a.table, "values", "bhkw");
  const AttentionRegion region = regionOf(a.attention(keys, values));
  CHECK(region.k == a.k);
  CHECK(region.v == a.v);
  CHECK(region.contraction == 2);
  REQUIRE(region.paged);
  CHECK(region.paged->table == a.table);
  CHECK(region.paged->input == 3);
  const auto axis = [](char letter) { return int(std::string("befhjknopsw").find(letter)); };
  CHECK(*region.paged == PagedKeys{.input = 3,
                                   .table = a.table,
                                   .sequences = axis('b'),
                                   .kPages = axis('f'),
                                   .vPages = axis('n'),
                                   .kPositions = axis('o'),
                                   .vPositions = axis('s')});
  CHECK(region.keyAxis == axis('k'));
  CHECK(region.batch == std::vector<AxisId>{axis('b'), axis('h')});
}

TEST_CASE("pages of keys alone, and of two tables, are no fused attention") {
  {
    PagedAttention a;
    const int values = a.builder.input("values", "bhkw");
    const int keys = a.gathered(a.k, a.table, "keys", "bhkp");
    CHECK(rejectionOf(a.attention(keys, values)) ==
          "'gather_pages' gathers others than keys and values, or one of them alone");
  }
  {
    PagedAttention a;
    const int keys = a.gathered(a.k, a.table, "keys", "bhkp"),
              values = a.gathered(a.v, a.other, "values", "bhkw");
    CHECK(rejectionOf(a.attention(keys, values)) ==
          "'gather_pages' gathers keys and values by different tables");
  }
}

TEST_CASE("packed tokens: output and logarithms of sums are both packed, or neither is") {
  const AttentionExtents e{.b = 2, .h = 3, .g = 2, .j = 6, .k = 6, .p = 8, .w = 5, .tokens = 12};
  const Kernel kernel = packedAttention(e, DType::f16, true, false, std::nullopt, true);
  const Expected<AttentionRegion, Reason> region = attentionRegion(kernel);
  INFO(reasonOf(region));
  REQUIRE(region);
  REQUIRE(region->packed);
  CHECK(kernel.values[size_t(region->output)].name == "output_packed");
  CHECK(kernel.values[size_t(region->logSums)].name == "log_sums_packed");
  CHECK(kernel.axes[size_t(region->packed->logSums)].name == "y");
  Kernel half = kernel;  // the sums are stored as they are
  half.outputs[1] = half.body.back().operands[0];
  half.body.pop_back();
  CHECK(reasonOf(attentionRegion(half)) ==
        "'online_softmax_contract' gives results that are not all packed, in their order");
}
