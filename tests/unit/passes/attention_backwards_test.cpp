// Proposals of backward passes of fused attentions on plain dataflow graphs: which sets, and which
// reasons.
#include "kernel/AttentionBackwardRegion.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/samples/SampleFlows.h"

#include <catch2/catch.hpp>

#include <functional>

using namespace weft;
using namespace weft::samples;
using weft::test::nonEmpty;

namespace {

using Sets = std::vector<std::vector<int>>;

FuseOptions takingAll() {
  FuseOptions options;
  options.epilogueRejection = options.prologueRejection = options.attentionRejection =
      options.attentionBackwardRejection = [](const Kernel &) { return std::string(); };
  return options;
}

/// The backward pass between two projections: d_output comes of one, d_q goes into another. Ops 1
/// to 10 but the row sums are the attention.
struct Layer {
  FlowBuilder graph{{{'b', 2}, {'h', 4}, {'j', 64}, {'k', 96}, {'p', 16}, {'w', 16}, {'i', 64}}};
  int dY = graph.argument("d_y", "bji"), wo = graph.argument("wo", "hwi"),
      wq = graph.argument("wq", "ihp"), output = graph.argument("output", "bhjw"),
      logSums = graph.argument("log_sums", "bhj"), q = graph.argument("q", "bhjp"),
      k = graph.argument("k", "bhkp"), v = graph.argument("v", "bhkw");
  int dOutput = graph.contract("d_output", dY, "bji", wo, "hwi", "bhjw");  // 0
  int scores = graph.contract("scores", q, "bhjp", k, "bhkp", "bhjk");     // 1
  int capped = graph.map("tanh", "capped", {{scores, "bhjk"}}, "bhjk");    // 2
  int prob = graph.map("softmax_from_log_sums", "prob", {{capped, "bhjk"}, {logSums, "bhj"}},
                       "bhjk");                                                              // 3
  int dV = graph.contract("d_v", prob, "bhjk", dOutput, "bhjw", "bhkw");                     // 4
  int dKept = graph.contract("d_kept", dOutput, "bhjw", v, "bhkw", "bhjk");                  // 5
  int terms = graph.map("mul", "terms", {{dOutput, "bhjw"}, {output, "bhjw"}}, "bhjw");      // 6
  int rowSums = graph.sum("row_sums", terms, "bhjw", "bhj");                                 // 7
  int centered = graph.map("sub", "centered", {{dKept, "bhjk"}, {rowSums, "bhj"}}, "bhjk");  // 8
  int dCapped = graph.map("mul", "d_capped", {{centered, "bhjk"}, {prob, "bhjk"}}, "bhjk");  // 9
  int dScores =
      graph.map("tanh_dx", "d_scores", {{dCapped, "bhjk"}, {capped, "bhjk"}}, "bhjk");  // 10
  int dK = graph.contract("d_k", dScores, "bhjk", q, "bhjp", "bhkp");                   // 11
  int dQ = graph.contract("d_q", dScores, "bhjk", k, "bhkp", "bhjp");                   // 12
  int dX = graph.contract("d_x", dQ, "bhjp", wq, "ihp", "bji");                         // 13
  std::vector<int> results = {dV, dK, dX};
};

const std::vector<int> whole = {1, 2, 3, 4, 5, 8, 9, 10, 11, 12};

std::string verdictOf(const std::function<void(Layer &)> &change,
                      const FuseOptions &options = takingAll()) {
  Layer layer;
  change(layer);
  return verdict(proposeFusions(layer.graph.build(layer.results), options), whole);
}

}  // namespace

TEST_CASE("five contractions and what lies between them are one candidate, by its name") {
  Layer layer;
  const Dataflow flow = layer.graph.build(layer.results);
  std::vector<Kernel> asked;
  FuseOptions options = takingAll();
  options.attentionBackwardRejection = [&](const Kernel &kernel) {
    asked.push_back(kernel);
    return std::string();
  };
  const FusionResult result = proposeFusions(flow, options);
  CHECK(verdict(result, whole) == "accepted");
  const Sets with = candidatesWith(result, 11);
  CHECK(std::ranges::count(with, whole) == 1);
  REQUIRE(asked.size() == 1);
  CHECK(asked[0].name == "attention_backward_tanh");
  const auto region = attentionBackwardRegion(asked[0]);
  REQUIRE(region);
  CHECK(asked[0].values[size_t(region->dScores)].name == "d_scores");
  CHECK(asked[0].values[size_t(region->logSums)].name == "log_sums");
  // Scores, capped scores, probabilities and all gradients between are neither written nor read.
  const int64_t scoreBytes = 2 * 4 * 64 * 96 * 2;
  for (const FusionRecord &record : nonEmpty(result.records))
    if (record.ops == whole) CHECK(record.savedBytes > 7 * 2 * scoreBytes);
}

TEST_CASE("each op of a backward pass is a candidate by itself, too") {
  Layer layer;
  const FusionResult result = proposeFusions(layer.graph.build(layer.results), takingAll());
  for (const int op : whole)
    CHECK(std::ranges::any_of(nonEmpty(result.candidates), [&](const FusionCandidate &candidate) {
      return candidate.ops == std::vector{op};
    }));
  CHECK(verdict(result, {1, 2, 3}) == "accepted");  // scores with probabilities as an epilogue
}

TEST_CASE("without a target, or where no family takes it, there is no backward pass in one") {
  const auto nothing = [](Layer &) {};
  FuseOptions options = takingAll();
  options.attentionBackwardRejection = {};
  CHECK(verdictOf(nothing, options) == "no record");
  options.attentionBackwardRejection = [](const Kernel &) { return std::string("some: too wide"); };
  CHECK(verdictOf(nothing, options) == "F033 attention-backward-off (some: too wide)");
}

TEST_CASE("rules and options hold for backward passes, with twice the ops of others") {
  const auto nothing = [](Layer &) {};
  FuseOptions paper = takingAll();
  paper.rules = FuseRules::paper;
  CHECK(verdictOf(nothing, paper) == "no record");
  FuseOptions apart = takingAll();
  apart.forbidden = {{1, 4}};
  CHECK(verdictOf(nothing, apart) == "F050 forbidden-by-option (1,4)");
  FuseOptions small = takingAll();
  small.maxOps = 5;
  CHECK(verdictOf(nothing, small) == "accepted");
  small.maxOps = 4;
  CHECK(verdictOf(nothing, small) == "F070 candidate-bound (8 ops)");
}

TEST_CASE("what lies between and is read or returned elsewhere forbids it by name") {
  CHECK(verdictOf([](Layer &layer) { layer.results.push_back(layer.prob); }) ==
        "F032 attention-backward-region ('prob' is a result of the graph)");
  CHECK(verdictOf([](Layer &layer) { layer.results.push_back(layer.scores); }) ==
        "F032 attention-backward-region ('scores' is a result of the graph)");
  CHECK(verdictOf([](Layer &layer) {
          layer.results.push_back(layer.graph.sum("d_bias", layer.centered, "bhjk", "jk"));
        }) == "F032 attention-backward-region ('d_bias' reads 'centered' as well)");
  CHECK(verdictOf([](Layer &layer) {
          layer.results.push_back(layer.dScores);
          layer.results.push_back(layer.graph.sum("d_bias", layer.dCapped, "bhjk", "jk"));
        }) == "F032 attention-backward-region ('d_bias' reads 'd_capped' as well)");
}

TEST_CASE("a gradient of scores is one result more where something reads it") {
  for (const auto &[isReturned, isCapped] :
       {std::pair(false, false), {true, false}, {false, true}, {true, true}}) {
    Layer layer;
    const int gradient = isCapped ? layer.dCapped : layer.dScores;
    layer.results.push_back(isReturned ? gradient
                                       : layer.graph.sum("d_bias", gradient, "bhjk", "jk"));
    std::vector<Kernel> asked;
    FuseOptions options = takingAll();
    options.attentionBackwardRejection = [&](const Kernel &kernel) {
      asked.push_back(kernel);
      return std::string();
    };
    CHECK(verdict(proposeFusions(layer.graph.build(layer.results), options), whole) == "accepted");
    REQUIRE(asked.size() == 1);
    CHECK(asked[0].outputs.size() == 4);
    const ValueId stored = attentionBackwardRegion(asked[0]).value().storedScores;
    REQUIRE(stored >= 0);
    CHECK(asked[0].values[size_t(stored)].name == (isCapped ? "d_capped" : "d_scores"));
  }
}

TEST_CASE("a backward pass of some gradients alone, or of another form, has its reason") {
  FlowBuilder graph({{'b', 2}, {'j', 64}, {'k', 96}, {'p', 16}, {'w', 16}});
  const int q = graph.argument("q", "bjp"), k = graph.argument("k", "bkp"),
            dOutput = graph.argument("d_output", "bjw"), logSums = graph.argument("log_sums", "bj");
  const int scores = graph.contract("scores", q, "bjp", k, "bkp", "bjk");  // 0
  const int prob = graph.map("softmax_from_log_sums", "prob", {{scores, "bjk"}, {logSums, "bj"}},
                             "bjk");                                         // 1
  const int dV = graph.contract("d_v", prob, "bjk", dOutput, "bjw", "bkw");  // 2
  std::vector<std::string> verdicts;
  for (const FusionRecord &record :
       nonEmpty(proposeFusions(graph.build({dV}), takingAll()).records))
    if (record.code == "F032") verdicts.push_back(describe(record));
  REQUIRE(verdicts.size() == 1);
  CHECK_THAT(verdicts[0],
             Catch::StartsWith("F032 attention-backward-region (1 contractions of inputs"));
}

TEST_CASE("of several contractions that lead to scores each is tried, the others are read") {
  FlowBuilder graph({{'b', 2}, {'j', 6}, {'k', 8}, {'p', 4}, {'w', 4}});
  const int q = graph.argument("q", "bjp"), k = graph.argument("k", "bkp"),
            r = graph.argument("r", "jkp"), v = graph.argument("v", "bkw"),
            dOutput = graph.argument("d_output", "bjw"), logSums = graph.argument("log_sums", "bj"),
            rowSums = graph.argument("row_sums", "bj");
  const int content = graph.contract("content", q, "bjp", k, "bkp", "bjk");               // 0
  const int position = graph.contract("position", q, "bjp", r, "jkp", "bjk");             // 1
  const int sum = graph.map("add", "sum", {{content, "bjk"}, {position, "bjk"}}, "bjk");  // 2
  const int prob =
      graph.map("softmax_from_log_sums", "prob", {{sum, "bjk"}, {logSums, "bj"}}, "bjk");       // 3
  const int dV = graph.contract("d_v", prob, "bjk", dOutput, "bjw", "bkw");                     // 4
  const int dKept = graph.contract("d_kept", dOutput, "bjw", v, "bkw", "bjk");                  // 5
  const int centered = graph.map("sub", "centered", {{dKept, "bjk"}, {rowSums, "bj"}}, "bjk");  // 6
  const int dSum = graph.map("mul", "d_sum", {{centered, "bjk"}, {prob, "bjk"}}, "bjk");        // 7
  const int dQ = graph.contract("d_q", dSum, "bjk", k, "bkp", "bjp");                           // 8
  const int dK = graph.contract("d_k", dSum, "bjk", q, "bjp", "bkp");                           // 9
  const FusionResult result = proposeFusions(graph.build({dV, dQ, dK}), takingAll());
  CHECK(verdict(result, {0, 2, 3, 4, 5, 6, 7, 8, 9}) == "accepted");
  CHECK_THAT(verdict(result, {1, 2, 3, 4, 5, 6, 7, 8, 9}),
             Catch::StartsWith("F032 attention-backward-region ("));
}
