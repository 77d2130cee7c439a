// Backward passes of fused attentions: which kernels are one, the role of every axis and tensor,
// and every rejection.
#include "kernel/AttentionBackwardRegion.h"
#include "kernel/ContractionRegion.h"
#include "tests/unit/samples/SampleAttentionBackwards.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <functional>

using namespace weft;
using namespace weft::samples;

namespace {

constexpr AttentionExtents sample{.b = 2, .h = 3, .g = 4, .j = 6, .k = 10, .p = 8, .w = 5};
// Axes of the samples, in the order of their letters.
constexpr int b = 0, g = 1, h = 2, j = 3, k = 4, p = 5, w = 6;

AttentionBackwardRegion regionOf(const Kernel &kernel) {
  const Expected<AttentionBackwardRegion, Reason> answer = attentionBackwardRegion(kernel);
  INFO(reasonOf(answer));
  REQUIRE(answer);
  CHECK(reasonOf(answer).empty());
  return *answer;
}

std::string rejectionOf(const Kernel &kernel) {
  const Expected<AttentionBackwardRegion, Reason> answer = attentionBackwardRegion(kernel);
  CHECK(answer.has_value() == reasonOf(answer).empty());
  return reasonOf(answer);
}

std::string nameOf(const Kernel &kernel, ValueId value) {
  return kernel.values.at(size_t(value)).name;
}

/// A body with one place to break: what tests need of it by name.
struct Parts {
  FusedAttentionBackward body{"backward", sample, DType::f16};
  int y = -1, kept = -1, dKept = -1, dScores = -1;
  int elements() {
    y = kept = body.probability(body.scores());
    dKept = body.dKept();
    return dScores = body.dSoftmax(dKept, y);
  }
  Kernel build() {
    const int ofV = body.dV(kept), ofQ = body.dQ(dScores);
    return body.build({ofQ, body.dK(dScores), ofV});
  }
};

}  // namespace

TEST_CASE("the backward pass of an attention: what every tensor, op and axis is") {
  const Kernel kernel = plainBackward(sample, DType::f16);
  const AttentionBackwardRegion region = regionOf(kernel);
  CHECK(nameOf(kernel, region.q) == "q");
  CHECK(nameOf(kernel, region.k) == "keys");
  CHECK(nameOf(kernel, region.v) == "v");
  CHECK(nameOf(kernel, region.dOutput) == "d_output");
  CHECK(nameOf(kernel, region.logSums) == "log_sums");
  CHECK(nameOf(kernel, region.scores) == "scores");
  CHECK(nameOf(kernel, region.dKept) == "d_kept");
  CHECK(nameOf(kernel, region.kept) == "y");
  CHECK(nameOf(kernel, region.dScores) == "d_s");
  CHECK(nameOf(kernel, region.dQ) == "d_q");
  CHECK(nameOf(kernel, region.dK) == "d_k");
  CHECK(nameOf(kernel, region.dV) == "d_v");
  CHECK(region.scoresContraction == 0);
  CHECK(region.probability == 1);
  CHECK(region.dKeptContraction == 2);
  CHECK(region.scoreOps.empty());
  CHECK(region.elementOps == std::vector<OpId>{1, 3, 4});
  CHECK(region.dVContraction == 5);
  CHECK(region.dQContraction == 6);
  CHECK(region.dKContraction == 7);
  CHECK(region.scoresScale == 0.125);
  CHECK(region.dKeptScale == 1);
  CHECK(region.dVScale == 1);
  CHECK(region.dQScale == 0.125);
  CHECK(region.dKScale == 0.125);
  CHECK_FALSE(region.hasDropout);
  CHECK(region.inputs == std::vector<ScoreInput>{{4, 4}, {5, 5}});
  CHECK(region.keyAxis == k);
  CHECK(region.headDim == std::vector<AxisId>{p});
  CHECK(region.valueDim == std::vector<AxisId>{w});
  // The heads of a group are axes of queries.
  CHECK(region.queries == std::vector<AxisId>{g, j});
  CHECK(region.batch == std::vector<AxisId>{b, h});
}

TEST_CASE("score ops and their derivatives, masks and dropout stand between") {
  const Dropout dropout{.p = 0.1, .stream = 3};
  {
    const Kernel kernel = causalBackward(sample, DType::bf16, dropout);
    const AttentionBackwardRegion region = regionOf(kernel);
    CHECK(region.hasDropout);
    CHECK(nameOf(kernel, region.kept) == "kept");
    CHECK(nameOf(kernel, region.dScores) == "d_scores");
    REQUIRE(region.scoreOps.size() == 1);
    CHECK(nameOf(kernel, kernel.body[region.scoreOps[0]].results[0]) == "masked");
    CHECK(region.elementOps.size() == 7);
  }
  CHECK_FALSE(regionOf(plainBackward(sample, DType::f16, Dropout{.p = 0, .stream = 3})).hasDropout);
  {
    const Kernel kernel = cappedBackward(sample, DType::f16);
    const AttentionBackwardRegion region = regionOf(kernel);
    CHECK(region.scoreOps.size() == 4);
    CHECK(region.elementOps.size() == 11);
    CHECK(nameOf(kernel, region.dScores) == "d_scores");
  }
  {
    const Kernel kernel = biasedBackward(sample, DType::f16);
    const AttentionBackwardRegion region = regionOf(kernel);
    REQUIRE(region.inputs.size() == 3);
    CHECK(nameOf(kernel, region.inputs[2].value) == "bias");
  }
  CHECK(regionOf(paddedBackward(sample, DType::f16)).scoreOps.size() == 1);
  CHECK(regionOf(windowBackward(sample, DType::f16, 3, 2)).scoreOps.size() == 1);
}

TEST_CASE("neither names nor the order of ops and operands matter") {
  // Keys run along h, queries along k, the head dimension is j, the value dimension b, batch p.
  KernelBuilder builder("backward", {{'b', 5}, {'h', 10}, {'j', 8}, {'k', 6}, {'p', 2}, {'w', 3}});
  const int rowSums = builder.input("row_sums", "kp", DType::f32), v = builder.input("x1", "bph"),
            dOutput = builder.input("x2", "kbp"), k = builder.input("x3", "jph"),
            logSums = builder.input("log_sums", "pk", DType::f32), q = builder.input("x4", "pkj");
  const auto contract = [&](std::vector<ValueId> operands, const char *letters,
                            const char *reduced) {
    return builder.op("contract", OperatorClass::contraction, std::move(operands),
                      std::string("c") + letters + reduced, letters, reduced);
  };
  const auto map = [&](const char *name, const char *spelling, std::vector<ValueId> operands,
                       DType type = DType::f32) {
    const ValueId value =
        builder.op(name, OperatorClass::elementwise, operands,
                   std::string("e") + std::to_string(operands[0]), "pkh", "", type);
    builder.last().expression = Expression::parse(spelling);
    return value;
  };
  const int dKept = contract({v, dOutput}, "pkh", "b");
  const int centred = map("sub", "{0} - {1}", {dKept, rowSums});
  const int scores = contract({k, q}, "pkh", "j");
  const int y =
      map("softmax_from_log_sums", "{1} == weft::negativeInfinity ? 0.0f : weft::exp({0} - {1})",
          {scores, logSums});
  const int dS = map("mul", "{0} * {1}", {y, centred});
  const int dScores = map("cast", "{0}", {dS}, DType::f16);
  const int dK = contract({q, dScores}, "jph", "k");
  const int kept = builder.op("cast", OperatorClass::elementwise, {y}, "kept", "pkh");
  builder.last().expression = Expression::parse("{0}");
  const int dV = contract({dOutput, kept}, "hpb", "k");
  const int dQ = contract({dScores, k}, "kpj", "h");
  const Kernel kernel = builder.build({dV, dQ, dK});
  const AttentionBackwardRegion region = regionOf(kernel);
  CHECK(std::vector{region.q, region.k, region.v, region.dOutput} ==
        std::vector<ValueId>{q, k, v, dOutput});
  CHECK(std::vector{region.scores, region.dKept, region.kept, region.dScores} ==
        std::vector<ValueId>{scores, dKept, kept, dScores});
  CHECK(std::vector{region.dQ, region.dK, region.dV} == std::vector<ValueId>{dQ, dK, dV});
  CHECK(region.inputs == std::vector<ScoreInput>{{0, rowSums}, {4, logSums}});
  CHECK(region.scoresScale == 1);
  const auto letters = [&](const std::vector<AxisId> &axes) {
    std::string text;
    for (const AxisId axis : axes) text += kernel.axes[size_t(axis)].name;
    return text;
  };
  CHECK(kernel.axes[size_t(region.keyAxis)].name == "h");
  CHECK(letters(region.headDim) == "j");
  CHECK(letters(region.valueDim) == "b");
  CHECK(letters(region.queries) == "k");
  CHECK(letters(region.batch) == "p");
}

TEST_CASE("a backward pass is no GEMM with an epilogue and no attention") {
  const Kernel kernel = plainBackward(sample, DType::f16);
  CHECK(reasonOf(contractionRegion(kernel)) != "");
  CHECK(reasonOf(attentionRegion(kernel)) == "no 'online_softmax_contract' reads the scores");
  CHECK(
      rejectionOf(plainAttention(sample, DType::f16)) ==
      "no 'softmax_from_log_sums' in the body; one computes the probabilities of a backward pass");
}

TEST_CASE("probabilities that are none of one softmax say why") {
  {
    Parts parts;
    parts.elements();
    parts.kept = parts.body.map("softmax_from_log_sums", "weft::exp({0} - {1})",
                                {parts.y, parts.body.logSums}, "again");
    CHECK(rejectionOf(parts.build()) ==
          "2 'softmax_from_log_sums' in the body; one computes the probabilities of a backward "
          "pass");
  }
  {
    Parts parts;
    const int dKept = parts.body.dKept(), scores = parts.body.scores();
    const int both = parts.body.map("add", "{0} + {1}", {scores, dKept}, "both");
    parts.y = parts.kept = parts.body.probability(both);
    parts.dScores = parts.body.dSoftmax(dKept, parts.y);
    CHECK(rejectionOf(parts.build()) ==
          "'softmax_from_log_sums' is computed from both contractions of inputs; scores are one of "
          "them");
  }
  {
    Parts parts;
    const int x = parts.body.input("x", "bhgjk", DType::f16);
    parts.y = parts.kept = parts.body.probability(x);
    parts.body.scores();
    parts.dScores = parts.body.dSoftmax(parts.body.dKept(), parts.y);
    CHECK(rejectionOf(parts.build()) ==
          "'softmax_from_log_sums' is computed from no contraction of inputs");
  }
  {
    Parts parts;
    parts.body.logSums = parts.body.input("few", "bhg", DType::f32);
    parts.elements();
    CHECK(rejectionOf(parts.build()) ==
          "'softmax_from_log_sums' runs along 2 axes of the scores 'scores'; one is taken");
  }
  {
    Parts parts;
    const int scores = parts.body.scores();
    parts.body.logSums = parts.body.map("tanh", "weft::tanh({0})", {scores}, "own");
    parts.y = parts.kept = parts.body.probability(scores);
    parts.dScores = parts.body.dSoftmax(parts.body.dKept(), parts.y);
    CHECK(rejectionOf(parts.build()) ==
          "'softmax_from_log_sums' reads log sums 'own', which the kernel computes");
  }
}

TEST_CASE("contractions that are too few, too many or read something else say why") {
  {
    Parts parts;
    parts.elements();
    const int ofV = parts.body.dV(parts.kept);
    CHECK(rejectionOf(parts.body.build({parts.body.dK(parts.dScores), ofV})) ==
          "no contraction with 'keys' gives d_q");
  }
  {
    Parts parts;
    parts.elements();
    parts.body.contract(parts.body.q, "bhgjp", parts.body.keys, "bhkp", "again", "bhgjk");
    CHECK(rejectionOf(parts.build()) ==
          "3 contractions of inputs; a backward pass has two, the scores and what d_output and "
          "values give");
  }
  {
    Parts parts;
    parts.elements();
    const int other =
        parts.body.contract(parts.dScores, "bhgjk", parts.body.v, "bhkw", "other", "bhgjw");
    const int ofV = parts.body.dV(parts.kept);
    CHECK(rejectionOf(parts.body.build({other, parts.body.dK(parts.dScores), ofV})) ==
          "'contract' reads 'v', which is neither queries, keys nor d_output");
  }
  {
    Parts parts;
    parts.elements();
    const int first = parts.body.dQ(parts.dScores);
    const int second =
        parts.body.contract(parts.dScores, "bhgjk", parts.body.keys, "bhkp", "second", "bhgjp");
    CHECK(rejectionOf(parts.body.build({first, second})) ==
          "'contract' reads 'keys', as the contraction that gives d_q 'd_q' does");
  }
  {
    Parts parts;
    parts.elements();
    const int ofV = parts.body.dV(parts.kept), ofQ = parts.body.dQ(parts.dScores);
    CHECK(rejectionOf(parts.body.build({ofQ, parts.body.dK(parts.y), ofV})) ==
          "'contract' reads 'y' of the scores, where another contraction reads 'd_s'");
  }
  {
    Parts parts;
    parts.elements();
    parts.kept = parts.dScores;
    CHECK(rejectionOf(parts.build()) == "'d_s' is the operand of all three gradients");
  }
  {
    Parts parts;
    parts.elements();
    const int square = parts.body.contract(parts.dScores, "bhgjk", parts.y, "bhgjk", "square", "b");
    CHECK(rejectionOf(parts.body.build({square})) ==
          "'contract' reads 'd_s' and 'y', which the kernel both computes");
  }
}

TEST_CASE("what else is stored, or reads a gradient, is named") {
  {
    Parts parts;
    parts.elements();
    const int ofV = parts.body.dV(parts.kept), ofQ = parts.body.dQ(parts.dScores);
    const int ofK = parts.body.dK(parts.dScores);
    CHECK(rejectionOf(parts.body.build({ofQ, ofK, ofV, parts.y})) ==
          "'y' is stored; a backward pass stores d_q, d_k, d_v and one gradient of scores, as "
          "'d_s', alone");
    const auto region = attentionBackwardRegion(parts.body.build({ofQ, ofK, ofV, parts.dScores}));
    REQUIRE(region);
    CHECK(region->storedScores >= 0);
    CHECK(attentionBackwardRegion(parts.body.build({ofQ, ofK, ofV}))->storedScores == -1);
    CHECK(rejectionOf(parts.body.build({ofQ, ofK})) == "'d_v' is not stored");
  }
  {
    Parts parts;
    parts.elements();
    const int ofV = parts.body.dV(parts.kept), ofQ = parts.body.dQ(parts.dScores);
    const int ofK = parts.body.dK(parts.dScores);
    const int more = parts.body.contract(ofQ, "bhgjp", parts.body.keys, "bhkp", "more", "bhgjk");
    const int behind = parts.body.map("relu", "weft::relu({0})", {more}, "behind");
    CHECK(rejectionOf(parts.body.build({behind, ofK, ofV})) ==
          "'relu' depends on neither 'scores' nor 'd_kept'");
  }
}

TEST_CASE("ops that stand between no contractions of a backward pass say why") {
  {
    // Of scores nothing is dropped.
    Parts parts;
    const int dropped = parts.body.dropped(parts.body.scores(), {.p = 0.5}, "dropped");
    parts.y = parts.kept = parts.body.probability(dropped);
    parts.dScores = parts.body.dSoftmax(parts.body.dKept(), parts.y);
    CHECK(rejectionOf(parts.build()) ==
          "'dropout' draws; the scores of an attention kernel are not dropped");
  }
  {
    Parts parts;
    parts.elements();
    parts.dScores = parts.body.map("add", "{0} + {1}[[0], [2], [1], [3], [4] % 4]",
                                   {parts.dScores, parts.y}, "moved");
    CHECK(rejectionOf(parts.build()) ==
          "'add' reads 'y', which the kernel computes, at other coordinates than the element's");
  }
  {
    Parts parts;
    parts.elements();
    parts.dScores = parts.body.map("softmax_dx", "{0}", {parts.dScores}, "d");
    parts.body.last().operatorClass = OperatorClass::normalization;
    CHECK(rejectionOf(parts.build()) ==
          "'softmax_dx' is of class normalization; ops between the contractions are element-wise");
  }
  {
    Parts parts;
    parts.elements();
    parts.dScores = parts.body.map("add", "{0} + {1}", {parts.dScores, parts.body.q}, "sum");
    CHECK(rejectionOf(parts.build()) == "'add' reads 'q', an operand of a contraction");
  }
  {
    Parts parts;
    const int wide = parts.body.input("wide", "jp", DType::f16);
    parts.elements();
    parts.dScores = parts.body.map("add", "{0} + {1}", {parts.dScores, wide}, "sum");
    CHECK(rejectionOf(parts.build()) == "'add' reads 'wide' along 'p', which the scores lack");
  }
}

TEST_CASE("axes without a role say which tensors have them") {
  {
    Parts parts;
    parts.elements();
    const int ofV =
        parts.body.contract(parts.kept, "bhgjk", parts.body.dOutput, "bhgjw", "d_v", "bhgkw");
    const int ofQ = parts.body.dQ(parts.dScores);
    CHECK(rejectionOf(parts.body.build({ofQ, parts.body.dK(parts.dScores), ofV})) ==
          "axis 'g' has no role in an attention: it is of queries 'q', d_output 'd_output', scores "
          "'scores', d_q 'd_q', d_v 'd_v' and not of keys 'keys', values 'v', d_k 'd_k'");
  }
  {
    Parts parts;
    parts.body.v = parts.body.input("single", "bhw", DType::f16);
    parts.y = parts.kept = parts.body.probability(parts.body.scores());
    const int dKept =
        parts.body.contract(parts.body.dOutput, "bhgjw", parts.body.v, "bhw", "d_kept", "bhgj");
    parts.dScores = parts.body.dSoftmax(parts.y, parts.y);
    parts.body.map("mul", "{0} * {1}", {parts.y, dKept}, "other");
    CHECK(rejectionOf(parts.build()) ==
          "'contract' gives 'd_kept' over other axes than the scores 'scores'");
  }
}

TEST_CASE("packed tokens: the region names what is in memory") {
  const AttentionExtents e{.b = 2, .h = 3, .g = 4, .j = 6, .k = 6, .p = 8, .w = 5, .tokens = 12};
  const Kernel kernel = packedBackward(e, DType::f16, true, true);
  const AttentionBackwardRegion region = regionOf(kernel);
  REQUIRE(region.packed);
  const PackedGradients &packed = *region.packed;
  CHECK(nameOf(kernel, packed.offsets) == "offsets");
  CHECK(kernel.inputs.at(packed.input) == packed.offsets);
  CHECK(nameOf(kernel, region.q) == "q");
  CHECK(nameOf(kernel, region.dOutput) == "d_output");
  CHECK(nameOf(kernel, region.logSums) == "log_sums");
  CHECK(nameOf(kernel, region.dQ) == "d_q_packed");
  CHECK(nameOf(kernel, region.dK) == "d_k_packed");
  CHECK(nameOf(kernel, region.dV) == "d_v_packed");
  CHECK(packed.sequences == b);
  CHECK(packed.positions == j);
  REQUIRE(packed.rows.size() == 2);
  CHECK(nameOf(kernel, packed.rows[0].read) == "log_sums_padded");
  CHECK(nameOf(kernel, packed.rows[0].stored) == "log_sums");
  CHECK(nameOf(kernel, packed.rows[1].stored) == "row_sums");
  // Of what element-wise ops read, the lengths alone are not packed.
  REQUIRE(region.inputs.size() == 1);
  CHECK(nameOf(kernel, region.inputs[0].value) == "lengths");
  const auto axisNameOf = [&](AxisId axis) { return kernel.axes[size_t(axis)].name; };
  CHECK(axisNameOf(packed.q) == "s");
  CHECK(axisNameOf(packed.k) == "t");
  CHECK(axisNameOf(packed.v) == "u");
  CHECK(axisNameOf(packed.dOutput) == "y");
  CHECK(axisNameOf(packed.dQ) == "q");
}

TEST_CASE("a backward pass over tokens that are not all packed says why") {
  const AttentionExtents e{.b = 2, .h = 3, .g = 4, .j = 6, .k = 6, .p = 8, .w = 5, .tokens = 12};
  const auto changed = [&](OpKind kind, size_t number,
                           const std::function<void(BodyOp &)> &change) {
    Kernel kernel = packedBackward(e, DType::f16, true);
    for (BodyOp &op : kernel.body)
      if (op.kind == kind && number-- == 0) change(op);
    return rejectionOf(kernel);
  };
  CHECK(changed(OpKind::unpack, 1, [](BodyOp &op) { op.attributes["fill"] = 1.0; }) ==
        "'unpack' fills with another number than zero");
  // Keys whose positions lie along the axis of sequences.
  CHECK(changed(OpKind::unpack, 1, [](BodyOp &op) {
          op.attributes["into"] = std::vector<int64_t>{2, 0};
        }) == "'unpack' unpacks by other offsets than all other tensors, or along other axes");
  // A gradient that is stored as it is.
  Kernel kernel = packedBackward(e, DType::f16, true);
  const auto pack = std::ranges::find(kernel.body, OpKind::pack, &BodyOp::kind);
  std::ranges::replace(kernel.outputs, pack->results[0], pack->operands[0]);
  kernel.body.erase(pack);
  CHECK(rejectionOf(kernel) == "'unpack' stands in the kernel, and 'd_v' is not packed");
}
