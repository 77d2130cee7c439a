// Stages of a layer are found by structure: every contraction of every preset in the stage that its
// author means, in every variant, forward and backward, and the same whatever tensors are called.
#include "passes/account/Stages.h"
#include "runtime/system/Files.h"
#include "tests/support/NonEmpty.h"
#include "tests/support/TemporaryTestFolder.h"
#include "tools/driver/Compilation.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <set>

using namespace weft;
using namespace weft::driver;

namespace {

std::vector<Dataflow> flowsOf(const std::string &model, std::vector<std::string> dims, bool train,
                              const std::string &norms = "fused",
                              const std::string &optimizer = "") {
  ModelFlags flags;
  flags.model = model;
  flags.dims = std::move(dims);
  flags.train = train;
  flags.optimizer = optimizer;
  ChoiceFlags choices;
  choices.norms.text = norms;
  TargetFlags target;
  target.profile = "none";
  Compilation compilation(flags, choices, target);
  compilation.import();
  std::vector<Dataflow> flows;
  for (const ProposedVariant &variant : compilation.propose(Phase::import))
    flows.push_back(compilation.account(variant).flow);
  return flows;
}

/// Results of the contractions of each stage that are not made of several (stacked).
std::map<Stage, std::set<std::string>> contractionsOf(const Dataflow &flow,
                                                      const std::vector<Stage> &stages) {
  std::map<Stage, std::set<std::string>> found;
  for (size_t op = 0; op < flow.ops.size(); ++op)
    if (flow.ops[op].operatorClass == OperatorClass::contraction)
      found[stages[op]].insert(flow.tensors[size_t(flow.ops[op].results[0])].name);
  return found;
}

Stage stageOf(const Dataflow &flow, const std::string &result) {
  const std::vector<Stage> stages = stagesOf(flow);
  for (size_t op = 0; op < flow.ops.size(); ++op)
    for (const int tensor : flow.ops[op].results)
      if (flow.tensors[size_t(tensor)].name == result) return stages[op];
  FAIL("no op computes " << result);
  return Stage::other;
}

const std::vector<std::string> small{"b=2", "j=16", "h=2", "i=64", "u=128"};

}  // namespace

TEST_CASE(
    "contractions of an encoder layer are of attention, projections and feed-forward, in every "
    "variant") {
  for (const std::string norms : {"fused", "decomposed"}) {
    const std::vector<Dataflow> flows = flowsOf("bert-base", small, false, norms);
    REQUIRE(flows.size() > 2);
    for (const Dataflow &flow : flows) {
      const auto found = contractionsOf(flow, stagesOf(flow));
      CHECK(found.at(Stage::attention) == std::set<std::string>{"score", "weighted"});
      CHECK(found.at(Stage::feedForward) ==
            std::set<std::string>{"feed_forward_product", "hidden_product"});
      CHECK(found.at(Stage::projections).contains("attention_product"));
      CHECK(found.at(Stage::projections).size() >= 2);
      CHECK_FALSE(found.contains(Stage::other));
    }
  }
}

TEST_CASE("other ops are of the stage around them") {
  const std::vector<Dataflow> flows = flowsOf("bert-base", small, false);
  REQUIRE_FALSE(flows.empty());
  const Dataflow &flow = flows.front();
  CHECK(stageOf(flow, "active") == Stage::feedForward);
  CHECK(stageOf(flow, "hidden") == Stage::feedForward);
  CHECK(stageOf(flow, "norm1") == Stage::norms);
  CHECK(stageOf(flow, "norm2") == Stage::norms);
  CHECK(stageOf(flow, "residual1") == Stage::projections);
}

TEST_CASE("gated and pre-norm layers have the same stages") {
  const std::map<std::string, std::vector<std::string>> presets = {
      {"llama-3-8b", {"b=1", "j=16", "h=4", "g=2", "p=16", "i=64", "u=128"}}, {"gpt2", small}};
  for (const auto &[model, dims] : presets) {
    const std::vector<Dataflow> flows = flowsOf(model, dims, false);
    REQUIRE_FALSE(flows.empty());
    for (const Dataflow &flow : flows) {
      INFO(model);
      const auto found = contractionsOf(flow, stagesOf(flow));
      CHECK(found.at(Stage::attention).size() == 2);
      CHECK(found.at(Stage::feedForward).size() >= 2);  // gate and up may be stacked
      CHECK(found.at(Stage::projections).size() >= 2);
      CHECK_FALSE(found.contains(Stage::other));
    }
  }
}

TEST_CASE("gradients are of the stage of what they are gradients of") {
  const std::vector<Dataflow> flows = flowsOf("paper-encoder", small, true);
  REQUIRE_FALSE(flows.empty());
  for (const Dataflow &flow : flows) {
    const auto found = contractionsOf(flow, stagesOf(flow));
    // Two forward, and two gradients of each; the fused form computes scores again.
    const auto again = std::ranges::count(flow.ops, OpKind::softmaxFromLogSums, &FlowOp::kind);
    CHECK(found.at(Stage::attention).size() == 6 + size_t(again));
    CHECK(found.at(Stage::feedForward).size() == 6);  // of input and weight
    CHECK(found.at(Stage::feedForward).contains("d_w1"));
    CHECK(found.at(Stage::feedForward).contains("d_w2"));
    CHECK(found.at(Stage::projections).contains("d_wo"));
    CHECK_FALSE(found.contains(Stage::other));
  }
}

TEST_CASE("embeddings, the head with its loss, and the optimizer are stages") {
  const std::vector<Dataflow> flows =
      flowsOf("masked-token", {"b=2", "j=16"}, true, "fused", "adamw");
  for (const Dataflow &flow : test::nonEmpty(flows)) {
    const std::vector<Stage> stages = stagesOf(flow);
    const auto found = contractionsOf(flow, stages);
    CHECK(found.at(Stage::headAndLoss).contains("logits_product"));
    CHECK(found.at(Stage::headAndLoss).size() == 3);  // and the gradients of its operands
    CHECK_FALSE(found.contains(Stage::other));
    std::set<std::string> kinds;
    int updated = 0;
    for (size_t op = 0; op < flow.ops.size(); ++op) {
      if (stages[op] == Stage::embedding) kinds.insert(std::string(nameOf(flow.ops[op].kind)));
      for (const int result : test::nonEmpty(flow.ops[op].results)) {
        const std::string &name = flow.tensors[size_t(result)].name;
        INFO(name);
        if (!name.ends_with("_next") && !name.ends_with("gradient_sums") &&
            !name.ends_with("gradients_sum") && name != "gradient_check")
          continue;
        ++updated;
        CHECK(stages[op] == Stage::optimizer);
      }
    }
    CHECK(kinds.contains("gather"));
    CHECK(kinds.contains("scatter_add"));
    CHECK(updated > 0);
  }
}

TEST_CASE("gradients behind the head's are of what they are gradients of") {
  const test::TemporaryTestFolder folder;
  const std::string path = (folder / "mlp.mlir").string();
  runtime::writeFile(path, R"(
!bi = tensor<6x8xf32, #weft.axes<b, i>>
!ui = tensor<16x8xf32, #weft.axes<u, i>>
!bu = tensor<6x16xf32, #weft.axes<b, u>>
!iu = tensor<8x16xf32, #weft.axes<i, u>>
!vi = tensor<32x8xf32, #weft.axes<v, i>>
!bv = tensor<6x32xf32, #weft.axes<b, v>>
!b = tensor<6xi32, #weft.axes<b>>
!bf = tensor<6xf32, #weft.axes<b>>
module {
  weft.graph @mlp(%x: !bi, %w1: !ui {weft.parameter}, %w2: !iu {weft.parameter},
                  %wv: !vi {weft.parameter}, %labels: !b) -> !bf {
    %h = weft.contract "ui,bi->bu" %w1, %x : !ui, !bi -> !bu
    %a = weft.relu %h : !bu
    %f = weft.contract "iu,bu->bi" %w2, %a : !iu, !bu -> !bi
    %logits = weft.contract "vi,bi->bv" %wv, %f : !vi, !bi -> !bv
    %loss, %sums = weft.cross_entropy %logits, %labels over v : !bv, !b -> !bf, !bf
    weft.return %loss : !bf
  }
})");
  for (const Dataflow &flow : test::nonEmpty(flowsOf(path, {}, true))) {
    const auto found = contractionsOf(flow, stagesOf(flow));
    CHECK(found.at(Stage::headAndLoss) == std::set<std::string>{"logits", "d_f", "d_wv"});
    CHECK(found.at(Stage::feedForward).size() == 6);
    CHECK_FALSE(found.contains(Stage::other));
  }
}

TEST_CASE("names mean nothing") {
  std::vector<Dataflow> flows = flowsOf("bert-base", small, false);
  REQUIRE_FALSE(flows.empty());
  for (Dataflow &flow : flows) {
    const std::vector<Stage> before = stagesOf(flow);
    int number = 0;
    for (FlowTensor &tensor : flow.tensors) {
      tensor.name = "t" + std::to_string(++number);
      for (Axis &axis : tensor.axes) axis.name = "a";
    }
    for (FlowOp &op : flow.ops) op.label = "o";
    CHECK(stagesOf(flow) == before);
  }
}

TEST_CASE("a kernel is of the stage of its contraction, attention first") {
  const std::vector<Dataflow> flows = flowsOf("bert-base", small, false);
  REQUIRE_FALSE(flows.empty());
  const Dataflow &flow = flows.front();
  const std::vector<Stage> stages = stagesOf(flow);
  std::vector<int> norm, gemm, attention;
  for (size_t op = 0; op < flow.ops.size(); ++op) {
    if (stages[op] == Stage::norms) norm = {int(op)};
    if (flow.ops[op].operatorClass != OperatorClass::contraction) continue;
    (stages[op] == Stage::attention ? attention : gemm) = {int(op)};
  }
  CHECK(stageOfKernel(flow, stages, {norm[0], gemm[0]}) == stages[size_t(gemm[0])]);
  CHECK(stageOfKernel(flow, stages, {gemm[0], attention[0]}) == Stage::attention);
  CHECK(stageOfKernel(flow, stages, norm) == Stage::norms);
  CHECK(stageOfKernel(flow, stages, {}) == Stage::other);
}
