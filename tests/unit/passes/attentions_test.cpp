// Proposals of fused attentions on plain dataflow graphs: which sets, which reasons, and that
// neither epilogues, prologues nor loop kernels hold what folds the scores.
#include "kernel/AttentionRegion.h"
#include "kernel/CoordinateExpressions.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/samples/SampleFlows.h"

#include <catch2/catch.hpp>

using namespace weft;
using namespace weft::samples;
using weft::test::nonEmpty;

namespace {

using Sets = std::vector<std::vector<int>>;

FuseOptions takingAll() {
  FuseOptions options;
  options.epilogueRejection = options.prologueRejection =
      options.attentionRejection = [](const Kernel &) { return std::string(); };
  return options;
}

/// Projections of queries and of the output around scores with a bias and a cap: ops 1 to 4 are the
/// attention.
struct Layer {
  FlowBuilder graph{{{'b', 2}, {'h', 4}, {'j', 64}, {'k', 96}, {'p', 16}, {'w', 16}, {'i', 64}}};
  int x = graph.argument("x", "bji"), wq = graph.argument("wq", "ihp"),
      k = graph.argument("k", "bhkp"), v = graph.argument("v", "bhkw"),
      position = graph.argument("position", "hjk"), wo = graph.argument("wo", "hwi"),
      rest = graph.argument("rest", "bji");
  int q = graph.contract("q", x, "bji", wq, "ihp", "bhjp");                                // 0
  int scores = graph.contract("scores", q, "bhjp", k, "bhkp", "bhjk");                     // 1
  int biased = graph.map("add", "biased", {{scores, "bhjk"}, {position, "hjk"}}, "bhjk");  // 2
  int capped = graph.map("tanh", "capped", {{biased, "bhjk"}}, "bhjk");                    // 3
  int context = graph.fold("context", capped, "bhjk", v, "bhkw", "bhjw");                  // 4
  int y = graph.contract("y", context, "bhjw", wo, "hwi", "bji");                          // 5
  int sum = graph.map("residual", "sum", {{y, "bji"}, {rest, "bji"}}, "bji");              // 6
};

}  // namespace

TEST_CASE("the contraction, what follows it and the fold are one candidate, named attention") {
  Layer layer;
  const Dataflow flow = layer.graph.build({layer.sum});
  std::vector<Kernel> asked;
  FuseOptions options = takingAll();
  options.attentionRejection = [&](const Kernel &kernel) {
    asked.push_back(kernel);
    return std::string();
  };
  const FusionResult result = proposeFusions(flow, options);
  CHECK(candidatesWith(result, 4) == Sets{{1, 2, 3, 4}});
  CHECK(verdict(result, {1, 2, 3, 4}) == "accepted");
  REQUIRE(asked.size() == 1);
  CHECK(asked[0].name == "attention_add_tanh");
  CHECK(attentionRegion(asked[0]));
  // Scores, biased and capped scores are neither written nor read.
  for (const FusionRecord &record : nonEmpty(result.records))
    if (record.ops == std::vector{1, 2, 3, 4})
      CHECK(record.savedBytes == 3 * 2 * 2 * 4 * 64 * 96 * 2);
  // All else as without.
  CHECK(candidatesWith(result, 5) == Sets{{5, 6}});
  CHECK(candidatesWith(result, 1) == Sets{{1, 2}, {1, 2, 3}, {1, 2, 3, 4}});
  CHECK(verdict(result, {3, 4}) == "F027 attention-region (context)");
  CHECK(verdict(result, {4, 5}) == "F027 attention-region (context)");
}

namespace {

/// Queries and keys that are turned in front of scores: ops 0 and 1, and 2 to 4 the attention.
struct RotatedLayer {
  FlowBuilder graph{{{'b', 2}, {'h', 4}, {'j', 64}, {'k', 96}, {'p', 16}, {'w', 16}}};
  int q = graph.argument("q", "bhjp"), k = graph.argument("k", "bhkp"),
      v = graph.argument("v", "bhkw");
  int qTurned = turned("q_turned", q, "bhjp");
  int kTurned = turned("k_turned", k, "bhkp");
  int scores = graph.contract("scores", qTurned, "bhjp", kTurned, "bhkp", "bhjk");
  int capped = graph.map("tanh", "capped", {{scores, "bhjk"}}, "bhjk");
  int context = graph.fold("context", capped, "bhjk", v, "bhkw", "bhjw");

  int turned(const std::string &name, int of, const std::string &letters) {
    const int result = graph.map("rotary", name, {{of, letters}}, letters);
    graph.flow.ops.back().attributes = {{"dim", int64_t(3)}, {"position", int64_t(2)}};
    graph.flow.ops.back().expression =
        rotaryExpression({.dimension = 3, .position = 2, .rank = 4, .extent = 16, .turned = 16});
    return result;
  }
};

}  // namespace

TEST_CASE("a rotary op that makes the queries is one candidate more; that of keys stays apart") {
  RotatedLayer layer;
  std::vector<Kernel> asked;
  FuseOptions options = takingAll();
  options.attentionRejection = [&](const Kernel &kernel) {
    asked.push_back(kernel);
    return std::string();
  };
  const FusionResult result = proposeFusions(layer.graph.build({layer.context}), options);
  CHECK(candidatesWith(result, 4) == Sets{{2, 3, 4}, {0, 2, 3, 4}});
  REQUIRE(asked.size() == 2);
  CHECK_FALSE(attentionRegion(asked[0]).value().turned);
  CHECK(attentionRegion(asked[1]).value().turned);
  CHECK(asked[1].name == "attention_rotary_tanh");
  for (const FusionRecord &record : nonEmpty(result.records))
    if (record.ops == std::vector{0, 2, 3, 4})
      CHECK(record.savedBytes == 2 * 2 * 2 * 4 * 64 * 96 * 2 + 2 * 2 * 4 * 64 * 16 * 2);
}

TEST_CASE("queries that something else reads turned, or that no family turns, are stored") {
  RotatedLayer read;
  const int other = read.graph.map("relu", "other", {{read.qTurned, "bhjp"}}, "bhjp");
  const FusionResult result = proposeFusions(read.graph.build({read.context, other}), takingAll());
  CHECK(verdict(result, {0, 2, 3, 4}) ==
        "F027 attention-region ('other' reads 'q_turned' as well)");
  CHECK(candidatesWith(result, 4) == Sets{{2, 3, 4}});
  RotatedLayer saved;
  CHECK(verdict(proposeFusions(saved.graph.build({saved.context, saved.qTurned}), takingAll()),
                {0, 2, 3, 4}) == "F027 attention-region ('q_turned' is a result of the graph)");
  RotatedLayer wide;
  FuseOptions options = takingAll();
  options.attentionRejection = [](const Kernel &kernel) {
    return std::string(attentionRegion(kernel).value().turned ? "some: it turns nothing" : "");
  };
  CHECK(verdict(proposeFusions(wide.graph.build({wide.context}), options), {0, 2, 3, 4}) ==
        "F028 attention-off (some: it turns nothing)");
}

TEST_CASE("without a target, or where no family takes it, there is no candidate") {
  Layer layer;
  const Dataflow flow = layer.graph.build({layer.sum});
  FuseOptions options = takingAll();
  options.attentionRejection = {};
  CHECK(candidatesWith(proposeFusions(flow, options), 4).empty());
  CHECK(verdict(proposeFusions(flow, options), {1, 2, 3, 4}) == "no record");
  options.attentionRejection = [](const Kernel &) { return std::string("some: too wide"); };
  CHECK(candidatesWith(proposeFusions(flow, options), 4).empty());
  CHECK(verdict(proposeFusions(flow, options), {1, 2, 3, 4}) ==
        "F028 attention-off (some: too wide)");
}

TEST_CASE("rules and options hold for attentions") {
  Layer layer;
  const Dataflow flow = layer.graph.build({layer.sum});
  FuseOptions paper = takingAll();
  paper.rules = FuseRules::paper;
  CHECK(candidatesWith(proposeFusions(flow, paper), 4).empty());
  CHECK(verdict(proposeFusions(flow, paper), {3, 4}) == "F020 contraction (context)");
  FuseOptions apart = takingAll();
  apart.forbidden = {{1, 4}};
  CHECK(candidatesWith(proposeFusions(flow, apart), 4).empty());
  CHECK(verdict(proposeFusions(flow, apart), {1, 2, 3, 4}) == "F050 forbidden-by-option (1,4)");
  FuseOptions none = takingAll();
  none.rules = FuseRules::none;
  CHECK(candidatesWith(proposeFusions(flow, none), 4).empty());
  none.forced = {{1, 4}};
  CHECK(candidatesWith(proposeFusions(flow, none), 4) == Sets{{1, 2, 3, 4}});
  FuseOptions small = takingAll();
  small.maxOps = 3;
  CHECK(verdict(proposeFusions(flow, small), {1, 2, 3, 4}) == "F070 candidate-bound (3 ops)");
}

TEST_CASE("scores that another op reads, or that are a result, forbid it") {
  for (const int returned : {0, 1, 2}) {
    Layer layer;
    const int of = std::vector{layer.scores, layer.biased, layer.capped}[size_t(returned)];
    const std::string name = std::vector<std::string>{"scores", "biased", "capped"}[returned];
    CHECK(verdict(proposeFusions(layer.graph.build({layer.sum, of}), takingAll()), {1, 2, 3, 4}) ==
          "F027 attention-region ('" + name + "' is a result of the graph)");
  }
  for (const int read : {0, 1, 2}) {
    Layer layer;
    const int of = std::vector{layer.scores, layer.biased, layer.capped}[size_t(read)];
    const std::string name = std::vector<std::string>{"scores", "biased", "capped"}[read];
    const int other = layer.graph.map("relu", "other", {{of, "bhjk"}}, "bhjk");
    const FusionResult result = proposeFusions(layer.graph.build({layer.sum, other}), takingAll());
    CHECK(verdict(result, {1, 2, 3, 4}) ==
          "F027 attention-region ('other' reads '" + name + "' as well)");
    CHECK(candidatesWith(result, 4).empty());
  }
}

TEST_CASE("what makes the scores is named where it is no contraction") {
  FlowBuilder graph({{'b', 2}, {'j', 6}, {'k', 8}, {'w', 4}});
  const int scores = graph.argument("scores", "bjk"), v = graph.argument("v", "bkw");
  const int given = graph.fold("given", scores, "bjk", v, "bkw", "bjw");   // 0
  const int prob = graph.norm("prob", scores, "bjk");                      // 1
  const int scaled = graph.map("tanh", "scaled", {{prob, "bjk"}}, "bjk");  // 2
  const int twice = graph.fold("twice", scaled, "bjk", v, "bkw", "bjw");   // 3
  const FusionResult result = proposeFusions(graph.build({given, twice}), takingAll());
  CHECK(verdict(result, {0}) == "F027 attention-region ('scores', an argument, holds the scores)");
  CHECK(verdict(result, {1, 3}) ==
        "F027 attention-region ('softmax' gives 'prob', from which the scores are computed)");
  CHECK(candidatesWith(result, 0).empty());
  CHECK(candidatesWith(result, 3).empty());
}

TEST_CASE("of several contractions that lead to the scores each is tried, the others are read") {
  FlowBuilder graph({{'b', 2}, {'j', 6}, {'k', 8}, {'p', 4}, {'w', 4}});
  const int q = graph.argument("q", "bjp"), k = graph.argument("k", "bkp"),
            r = graph.argument("r", "jkp"), v = graph.argument("v", "bkw");
  const int content = graph.contract("content", q, "bjp", k, "bkp", "bjk");              // 0
  const int position = graph.contract("position", q, "bjp", r, "jkp", "bjk");            // 1
  const int shifted = graph.map("tanh", "shifted", {{position, "bjk"}}, "bjk");          // 2
  const int sum = graph.map("add", "sum", {{content, "bjk"}, {shifted, "bjk"}}, "bjk");  // 3
  const int context = graph.fold("context", sum, "bjk", v, "bkw", "bjw");                // 4
  const FusionResult result = proposeFusions(graph.build({context}), takingAll());
  CHECK(candidatesWith(result, 4) == Sets{{0, 3, 4}});
  CHECK_THAT(verdict(result, {1, 2, 3, 4}),
             Catch::StartsWith("F027 attention-region (axis 'b' has no role in an attention: it "
                               "is of queries 'q', scores 'position', values 'v', output "
                               "'context' and not of keys 'r')"));
}

TEST_CASE("a gate that reads the score twice is inside, a path that leaves the set is not") {
  FlowBuilder graph({{'b', 2}, {'j', 6}, {'k', 8}, {'p', 4}, {'w', 4}});
  const int q = graph.argument("q", "bjp"), k = graph.argument("k", "bkp"),
            v = graph.argument("v", "bkw");
  const int scores = graph.contract("scores", q, "bjp", k, "bkp", "bjk");                // 0
  const int gate = graph.map("sigmoid", "gate", {{scores, "bjk"}}, "bjk");               // 1
  const int gated = graph.map("mul", "gated", {{scores, "bjk"}, {gate, "bjk"}}, "bjk");  // 2
  const int context = graph.fold("context", gated, "bjk", v, "bkw", "bjw");              // 3
  CHECK(candidatesWith(proposeFusions(graph.build({context}), takingAll()), 3) ==
        Sets{{0, 1, 2, 3}});
  const int other = graph.contract("other", q, "bjp", k, "bkp", "bjk");                       // 4
  const int prob = graph.norm("prob", other, "bjk");                                          // 5
  const int weighted = graph.map("mul", "weighted", {{other, "bjk"}, {prob, "bjk"}}, "bjk");  // 6
  const int last = graph.fold("last", weighted, "bjk", v, "bkw", "bjw");                      // 7
  const FusionResult result = proposeFusions(graph.build({context, last}), takingAll());
  CHECK(verdict(result, {4, 6, 7}) == "F030 would-create-cycle (prob)");
  CHECK(candidatesWith(result, 7).empty());
}

TEST_CASE("ops on scores that no attention takes give their reason") {
  FlowBuilder graph({{'b', 2}, {'j', 6}, {'k', 8}, {'p', 4}, {'w', 4}});
  const int q = graph.argument("q", "bjp"), k = graph.argument("k", "bkp"),
            v = graph.argument("v", "bkw");
  const int scores = graph.contract("scores", q, "bjp", k, "bkp", "bjk");   // 0
  const int kept = graph.map("dropout", "kept", {{scores, "bjk"}}, "bjk");  // 1
  graph.flow.ops.back().expression = {};
  const int context = graph.fold("context", kept, "bjk", v, "bkw", "bjw");  // 2
  CHECK(verdict(proposeFusions(graph.build({context}), takingAll()), {0, 1, 2}) ==
        "F027 attention-region ('dropout' draws; the scores of an attention kernel are not "
        "dropped)");
}
