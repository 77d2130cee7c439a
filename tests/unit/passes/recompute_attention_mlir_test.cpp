// Attention of differentiated graphs with recomputed scores: gradients stay what they are, saved
// tensors are listed anew, and what forbids it is named.
#include "ir/interpreter/Rounding.h"
#include "passes/Describe.h"
#include "passes/Passes.h"
#include "passes/Rewrites.h"
#include "passes/SavedTensors.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/samples/SampleGraphs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

using namespace weft;
using namespace weft::test;

namespace {

std::vector<std::string> savedOf(GraphOp graph) {
  std::vector<std::string> names;
  for (auto name : graph->getAttrOfType<mlir::ArrayAttr>(savedName).getAsRange<mlir::StringAttr>())
    names.push_back(name.getValue().str());
  return names;
}
bool holds(const std::vector<std::string> &names, const std::string &name) {
  return std::ranges::find(names, name) != names.end();
}

template <typename Op>
std::vector<Op> opsOf(GraphOp graph) {
  const auto ops = graph.getBody().front().getOps<Op>();
  return {ops.begin(), ops.end()};
}

const std::string attentionTypes = R"(
!bjp = tensor<2x5x4xf32, #weft.axes<b, j, p>>
!bkp = tensor<2x9x4xf32, #weft.axes<b, k, p>>
!bjk = tensor<2x5x9xf32, #weft.axes<b, j, k>>
!bkw = tensor<2x9x4xf32, #weft.axes<b, k, w>>
!bjw = tensor<2x5x4xf32, #weft.axes<b, j, w>>
)";

/// A differentiated attention from text, whose ops a test replaces one by one.
struct Trained {
  std::string forward =
      R"(%kept = weft.dropout %prob {p = 0.5, stream = 1} : !bjk
         %y = weft.contract "bjk,bkw->bjw" %kept, %v {scale = 2.0} : !bjk, !bkw -> !bjw)";
  std::string more;  ///< of the forward pass
  std::string dKept = R"(weft.contract "bjw,bkw->bjk" %d_y, %v {scale = 2.0} : !bjw, !bkw -> !bjk)";
  std::string dProb = "weft.dropout %d_kept {p = 0.5, stream = 1} : !bjk";
  std::string dScore = "weft.softmax_dx %d_prob, %prob over k : !bjk";
  std::string results = "%y", resultTypes = "!bjw";

  std::unique_ptr<Loaded> parsed() const {
    return parse(attentionTypes +
                 "weft.graph @g(%q: !bjp, %k: !bkp, %v: !bkw, %d_y: !bjw {weft.gradient_of "
                 "= \"y\"}) -> (" +
                 resultTypes +
                 R"(, !bjp {weft.gradient_of = "q"}, !bkp {weft.gradient_of = "k"})
  attributes {weft.saved = ["prob"]} {
  %score = weft.contract "bjp,bkp->bjk" %q, %k {scale = 0.5} : !bjp, !bkp -> !bjk
  %prob = weft.softmax %score over k : !bjk
  )" + forward + "\n  " +
                 more + "\n  %d_kept = " + dKept + "\n  %d_prob = " + dProb +
                 "\n  %d_score = " + dScore + R"(
  %d_q = weft.contract "bjk,bkp->bjp" %d_score, %k {scale = 0.5} : !bjk, !bkp -> !bjp
  %d_k = weft.contract "bjk,bjp->bkp" %d_score, %q {scale = 0.5} : !bjk, !bjp -> !bkp
  weft.return )" +
                 results + ", %d_q, %d_k : " + resultTypes + ", !bjp, !bkp\n}");
  }
};

std::string rejectionOf(const Trained &trained) {
  const auto loaded = trained.parsed();
  return recomputeAttentionRejection(opsOf<SoftmaxOp>(loaded->graph()).front());
}

/// Attentions of different letters, between whose scores and output stands something.
const std::map<std::string, std::string> attentions = {{"masked and dropped", R"(
!q = tensor<2x3x5x4xf32, #weft.axes<b, h, j, p>>
!k = tensor<2x3x9x4xf32, #weft.axes<b, h, k, p>>
!v = tensor<2x3x9x6xf32, #weft.axes<b, h, k, w>>
!s = tensor<2x3x5x9xf32, #weft.axes<b, h, j, k>>
!y = tensor<2x3x5x6xf32, #weft.axes<b, h, j, w>>
weft.graph @g(%q: !q, %k: !k, %v: !v) -> !y {
  %score = weft.contract "bhjp,bhkp->bhjk" %q, %k {scale = 0.5} : !q, !k -> !s
  %masked = weft.mask causal %score {query = j, key = k} : !s
  %prob = weft.softmax %masked over k : !s
  %kept = weft.dropout %prob {p = 0.25, stream = 1} : !s
  %y = weft.contract "bhjk,bhkw->bhjw" %kept, %v {scale = 2.0} : !s, !v -> !y
  weft.return %y : !y
})"},
                                                       {"of groups, capped", R"(
!q = tensor<2x5x2x3x4xf32, #weft.axes<b, j, g, r, p>>
!k = tensor<2x9x2x4xf32, #weft.axes<b, k, g, p>>
!v = tensor<2x9x2x6xf32, #weft.axes<b, k, g, w>>
!s = tensor<2x2x3x5x9xf32, #weft.axes<b, g, r, j, k>>
!y = tensor<2x5x2x3x6xf32, #weft.axes<b, j, g, r, w>>
weft.graph @g(%q: !q, %k: !k, %v: !v) -> !y {
  %score = weft.contract "bkgp,bjgrp->bgrjk" %k, %q {scale = 0.5} : !k, !q -> !s
  %bounded = weft.tanh %score : !s
  %capped = weft.scale %bounded {factor = 3.0} : !s
  %prob = weft.softmax %capped over k : !s
  %y = weft.contract "bkgw,bgrjk->bjgrw" %v, %prob : !v, !s -> !y
  weft.return %y : !y
})"}};

/// Of the gradients of a graph, by the name of whose they are.
std::map<std::string, TensorValue> gradientsOf(GraphOp graph) {
  const auto results = interpret(graph, randomArguments(graph, 7), {});
  REQUIRE(mlir::succeeded(results));
  std::map<std::string, TensorValue> gradients;
  auto returned = mlir::cast<ReturnOp>(graph.getBody().front().getTerminator());
  for (size_t result = 0; result < results->size(); ++result)
    gradients[writtenName(returned->getOperand(unsigned(result)))] = (*results)[result];
  return gradients;
}

/// Returns what contractions give that nothing reads; how many there are.
size_t returnUnread(GraphOp graph) {
  auto returned = mlir::cast<ReturnOp>(graph.getBody().front().getTerminator());
  std::vector<mlir::Value> results(returned->operand_begin(), returned->operand_end());
  const size_t before = results.size();
  for (ContractOp contraction : opsOf<ContractOp>(graph))
    if (contraction->use_empty()) results.push_back(contraction.getResult());
  returned->setOperands(results);
  mlir::OpBuilder builder(returned);
  graph.setFunctionType(builder.getFunctionType(graph.getFunctionType().getInputs(),
                                                mlir::TypeRange(mlir::ValueRange(results))));
  std::vector<mlir::Attribute> attributes(results.size(), builder.getDictionaryAttr({}));
  graph.setResAttrsAttr(builder.getArrayAttr(attributes));
  return results.size() - before;
}

}  // namespace

TEST_CASE("gradients that nobody asked for are added, for the kernel that gives all three") {
  const std::vector<std::vector<std::string>> wanted = {
      {"q"}, {"k"}, {"q", "k"}, {"v", "q"}, {"k", "v"}, {"q", "k", "v"}, {"v"}};
  for (const auto &[kind, text] : attentions) {
    const auto all = parse(text);
    REQUIRE(mlir::succeeded(differentiate(all->graph(), {})));
    const std::map<std::string, TensorValue> expected = gradientsOf(all->graph());
    for (const std::vector<std::string> &names : wanted) {
      INFO(kind << ", " << fmt::format("{}", fmt::join(names, " ")));
      const auto stored = parse(text), again = parse(text);
      for (Loaded *one : {stored.get(), again.get()})
        REQUIRE(mlir::succeeded(differentiate(one->graph(), {.withRespectTo = names})));
      const size_t missing = 3 - names.size();
      CHECK(recomputeAttention(opsOf<SoftmaxOp>(again->graph()).front(), true) == int(missing));
      requireSame(stored->graph(), again->graph());
      CHECK(returnUnread(again->graph()) == missing);
      const std::map<std::string, TensorValue> found = gradientsOf(again->graph());
      CHECK(found.size() == 1 + names.size() + missing);
      for (const auto &[name, gradient] : found) {
        INFO(name);
        REQUIRE(expected.contains(name));
        CHECK(distance(gradient, expected.at(name), 1e-9, 1e-9) <= 1.0);
      }
    }
  }
}

TEST_CASE("gradients of presets with recomputed attention are those of stored probabilities") {
  const std::map<std::string, Dims> sizes{
      {"paper-encoder", smallEncoder},
      {"bert-base", smallEncoder},
      {"gpt2", {{"b", 1}, {"j", 6}, {"h", 2}, {"p", 4}, {"i", 8}, {"u", 12}}},
      {"bloom-560m", {{"b", 1}, {"j", 6}, {"h", 2}, {"p", 4}, {"i", 8}, {"u", 12}}},
      {"llama-3-8b", smallLlama},
      {"transformer-decoder", {{"b", 2}, {"j", 5}, {"h", 2}, {"p", 4}, {"i", 8}, {"u", 12}}}};
  for (const auto &[name, dims] : sizes) {
    INFO(name);
    const auto loaded = preset(name, dims), again = preset(name, dims);
    const size_t count = opsOf<SoftmaxOp>(loaded->graph()).size();
    for (Loaded *one : {loaded.get(), again.get()})
      REQUIRE(mlir::succeeded(differentiate(one->graph(), {})));
    CHECK(recomputeAttentions(again->graph()) == int(count));
    CHECK(opsOf<SoftmaxOp>(again->graph()).empty());
    CHECK(opsOf<SoftmaxDxOp>(again->graph()).empty());
    CHECK(opsOf<ConstantOp>(again->graph()).size() == opsOf<ConstantOp>(loaded->graph()).size());
    CHECK(opsOf<SoftmaxFromLogSumsOp>(again->graph()).size() == count);
    for (OnlineSoftmaxContractOp fold : nonEmpty(opsOf<OnlineSoftmaxContractOp>(again->graph())))
      CHECK(fold.getLogSums().size() == 1);
    requireSame(loaded->graph(), again->graph());
  }
}

TEST_CASE("rounded to f16 and bf16, recomputed gradients are about as exact as stored ones") {
  for (const std::string type : {"f16", "bf16"}) {
    INFO(type);
    std::string text = R"(
!q = tensor<2x3x24x8xT, #weft.axes<b, h, j, p>>
!k = tensor<2x3x40x8xT, #weft.axes<b, h, k, p>>
!v = tensor<2x3x40x8xT, #weft.axes<b, h, k, w>>
!s = tensor<2x3x24x40xT, #weft.axes<b, h, j, k>>
!y = tensor<2x3x24x8xT, #weft.axes<b, h, j, w>>
weft.graph @g(%q: !q, %k: !k, %v: !v) -> !y {
  %score = weft.contract "bhjp,bhkp->bhjk" %q, %k {scale = 0.5} : !q, !k -> !s
  %masked = weft.mask causal %score {query = j, key = k} : !s
  %prob = weft.softmax %masked over k : !s
  %kept = weft.dropout %prob {p = 0.25, stream = 1} : !s
  %y = weft.contract "bhjk,bhkw->bhjw" %kept, %v : !s, !v -> !y
  weft.return %y : !y
})";
    for (size_t at; (at = text.find("xT,")) != std::string::npos;) text.replace(at + 1, 1, type);
    const auto stored = parse(text), again = parse(text);
    for (Loaded *one : {stored.get(), again.get()})
      REQUIRE(mlir::succeeded(differentiate(one->graph(), {})));
    REQUIRE(recomputeAttentions(again->graph()) == 1);
    std::vector<TensorValue> arguments = randomArguments(stored->graph(), 3);
    for (TensorValue &argument : arguments)
      for (double &element : argument.elements)
        element = reference::roundTo(type == "f16" ? DType::f16 : DType::bf16, element);
    const InterpreterOptions rounding{.precision = Precision::f32, .roundToStorage = true};
    const auto exact = interpret(stored->graph(), arguments, {});
    const auto left = interpret(stored->graph(), arguments, rounding),
               right = interpret(again->graph(), arguments, rounding);
    REQUIRE((mlir::succeeded(exact) && mlir::succeeded(left) && mlir::succeeded(right)));
    const double unit = type == "f16" ? std::ldexp(1.0, -11) : std::ldexp(1.0, -8);
    REQUIRE(exact->size() == 4);
    for (size_t result = 0; result < exact->size(); ++result) {
      const auto errorOf = [&](const TensorValue &value) {
        double squares = 0, all = 0;
        for (size_t at = 0; at < value.elements.size(); ++at) {
          const double wanted = (*exact)[result].elements[at];
          squares += (value.elements[at] - wanted) * (value.elements[at] - wanted);
          all += wanted * wanted;
        }
        return std::sqrt(squares / all);
      };
      const double before = errorOf((*left)[result]), after = errorOf((*right)[result]);
      INFO(result << ": " << before << ", recomputed " << after);
      CHECK(before < 4 * unit);
      CHECK(after < 1.5 * before);
    }
  }
}

TEST_CASE("the output and one number a row are saved instead of probabilities") {
  const auto loaded = preset("paper-encoder", smallEncoder);
  REQUIRE(mlir::succeeded(differentiate(loaded->graph(), {})));
  const std::vector<std::string> before = savedOf(loaded->graph());
  CHECK((holds(before, "probability") && holds(before, "kept")));
  recomputeAttention(opsOf<SoftmaxOp>(loaded->graph()).front());
  const std::vector<std::string> after = savedOf(loaded->graph());
  CHECK_FALSE((holds(after, "probability") || holds(after, "kept") || holds(after, "score")));
  for (const char *name : {"q", "k", "v", "weighted", "weighted_log_sums"})
    CHECK(holds(after, name));
}

TEST_CASE("what another rewrite computes again of probabilities is recomputed with them") {
  const auto loaded = preset("paper-encoder", smallEncoder),
             again = preset("paper-encoder", smallEncoder);
  for (Loaded *one : {loaded.get(), again.get()})
    REQUIRE(mlir::succeeded(differentiate(one->graph(), {.recompute = {"kept"}})));
  CHECK(recomputeAttentions(again->graph()) == 1);
  CHECK(opsOf<DropoutOp>(again->graph()).size() + 1 == opsOf<DropoutOp>(loaded->graph()).size());
  requireSame(loaded->graph(), again->graph());
}

TEST_CASE("gradients of values alone need no derivative of the softmax") {
  const auto loaded = preset("attention", {{"b", 2}, {"h", 3}, {"j", 5}, {"k", 9}, {"p", 4}}),
             again = preset("attention", {{"b", 2}, {"h", 3}, {"j", 5}, {"k", 9}, {"p", 4}});
  for (Loaded *one : {loaded.get(), again.get()})
    REQUIRE(mlir::succeeded(differentiate(one->graph(), {.withRespectTo = {"v"}})));
  CHECK(recomputeAttentions(again->graph()) == 1);
  CHECK(opsOf<ReduceOp>(again->graph()).empty());
  requireSame(loaded->graph(), again->graph());
}

TEST_CASE("where scores have no derivative no op of the missing gradients is left") {
  const std::string text = attentionTypes + R"(
weft.graph @g(%q: !bjp, %k: !bkp, %v: !bkw, %mask: !bjk) -> !bjw {
  %product = weft.contract "bjp,bkp->bjk" %q, %k {scale = 0.5} : !bjp, !bkp -> !bjk
  %score = weft.relu_dx %product, %mask : !bjk
  %capped = weft.tanh %score : !bjk
  %prob = weft.softmax %capped over k : !bjk
  %kept = weft.dropout %prob {p = 0.5, stream = 1} : !bjk
  %y = weft.contract "bjk,bkw->bjw" %kept, %v : !bjk, !bkw -> !bjw
  weft.return %y : !bjw
})";
  const auto without = parse(text), with = parse(text);
  for (Loaded *one : {without.get(), with.get()})
    REQUIRE(mlir::succeeded(differentiate(one->graph(), {.withRespectTo = {"v"}})));
  CHECK(recomputeAttention(opsOf<SoftmaxOp>(without->graph()).front(), false) == 0);
  CHECK(recomputeAttention(opsOf<SoftmaxOp>(with->graph()).front(), true) == 0);
  CHECK(opsOf<SoftmaxDxOp>(with->graph()).empty());
  const auto kindsOf = [](GraphOp graph) {
    std::vector<std::string> kinds;
    for (mlir::Operation &op : graph.getBody().front())
      kinds.push_back(op.getName().getStringRef().str());
    return kinds;
  };
  CHECK(kindsOf(with->graph()) == kindsOf(without->graph()));
}

TEST_CASE("a derivative is element-wise where it is that of the one contraction") {
  const auto loaded = Trained{}.parsed(), again = Trained{}.parsed();
  CHECK(recomputeAttentions(again->graph()) == 1);
  CHECK(savedOf(again->graph()) == std::vector<std::string>{"y_log_sums", "y"});
  requireSame(loaded->graph(), again->graph());
  // Letters and the order of operands are any.
  Trained renamed;
  renamed.dKept = R"(weft.contract "xaz,xyz->xya" %v, %d_y {scale = 2.0} : !bkw, !bjw -> !bjk)";
  CHECK(rejectionOf(renamed) == "");
}

TEST_CASE("a softmax_dx of another gradient keeps probabilities stored") {
  const std::string otherwise =
      "softmax_dx 'd_score' reads no gradient that comes of contract 'y' alone";
  Trained otherScale;
  otherScale.dKept = R"(weft.contract "bjw,bkw->bjk" %d_y, %v : !bjw, !bkw -> !bjk)";
  CHECK(rejectionOf(otherScale) == otherwise);
  Trained otherValues;
  otherValues.dKept = R"(weft.contract "bjw,bkw->bjk" %d_y, %k {scale = 2.0} : !bjw, !bkp -> !bjk)";
  CHECK(rejectionOf(otherValues) == otherwise);
  for (const std::string dropout : {"{p = 0.5, stream = 2}", "{p = 0.25, stream = 1}"}) {
    Trained otherMask;
    otherMask.dProb = "weft.dropout %d_kept " + dropout + " : !bjk";
    CHECK(rejectionOf(otherMask) == otherwise);
  }
  Trained unmasked;
  unmasked.dProb = "weft.identity %d_kept : !bjk";
  CHECK(rejectionOf(unmasked) == otherwise);
  unmasked.dScore = "weft.softmax_dx %d_kept, %prob over k : !bjk";
  CHECK(rejectionOf(unmasked) == otherwise);
  Trained sum;
  sum.dProb = "weft.add %d_kept, %d_kept : !bjk";
  CHECK(rejectionOf(sum) == otherwise);
  Trained given;
  given.dScore = "weft.softmax_dx %prob, %prob over k : !bjk";
  CHECK(rejectionOf(given) == otherwise);
  Trained otherAxis;
  otherAxis.dScore = "weft.softmax_dx %d_prob, %prob over j : !bjk";
  CHECK(rejectionOf(otherAxis) == otherwise);
}

TEST_CASE("what else forward does with probabilities keeps them stored, by name") {
  Trained returned;
  returned.results = "%y, %prob", returned.resultTypes = "!bjw, !bjk";
  CHECK(rejectionOf(returned) == "the graph returns it");
  Trained kept;
  kept.results = "%y, %kept", kept.resultTypes = "!bjw, !bjk";
  CHECK(rejectionOf(kept) == "the graph returns 'kept'");
  Trained read;
  read.more = "%r = weft.relu %prob : !bjk";
  read.results = "%y, %r", read.resultTypes = "!bjw, !bjk";
  CHECK(rejectionOf(read) == "relu 'r' reads it, too");
  const auto plain = preset("bert-base", smallEncoder);
  CHECK(recomputeAttentionRejection(opsOf<SoftmaxOp>(plain->graph()).front()) ==
        "the graph has no backward pass");
}

TEST_CASE("scores that no contraction makes are not computed again") {
  const auto loaded = parse(attentionTypes + R"(
weft.graph @g(%score: !bjk, %v: !bkw) -> !bjw {
  %prob = weft.softmax %score over k : !bjk
  %y = weft.contract "bjk,bkw->bjw" %prob, %v : !bjk, !bkw -> !bjw
  weft.return %y : !bjw
})");
  REQUIRE(mlir::succeeded(differentiate(loaded->graph(), {})));
  CHECK(recomputeAttentionRejection(opsOf<SoftmaxOp>(loaded->graph()).front()) ==
        "no contraction and element-wise ops behind it make its scores");
}
