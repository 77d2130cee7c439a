// What a framework that runs op by op keeps of an encoder, with a fused attention: counted by hand.
// And which chunks it makes plans run in.
#include "passes/Passes.h"
#include "passes/decide/ChunkChoice.h"
#include "passes/decide/FrameworkMemory.h"
#include "tests/unit/samples/SampleGraphs.h"
#include "tools/driver/Compilation.h"

#include <catch2/catch.hpp>

using namespace weft;
using namespace weft::driver;
using decision::frameworkBytes, decision::frameworkWorkspaceBytes;

namespace {

select::Problem problemOf(const std::string &model, std::vector<std::string> dims,
                          const std::string &stacking, const std::string &attention = "unfused",
                          const std::string &norms = "fused") {
  ModelFlags flags;
  flags.model = model;
  flags.dims = std::move(dims);
  ChoiceFlags choices;
  choices.stacking.text = stacking;
  choices.attention.text = attention;
  choices.norms.text = norms;
  TargetFlags target;
  target.profile = "none";
  Compilation compilation(flags, choices, target);
  compilation.import(Phase::import);
  return compilation.problems(compilation.propose(Phase::import)).front();
}

}  // namespace

TEST_CASE("scores and what is made of them are not stored") {
  // BERT-base, 8 x 512: units of 8 * 512 * 768 * 2 bytes. While GELU runs: the residual, its
  // operand and its result of 4 units each.
  const double unit = 8.0 * 512 * 768 * 2;
  const select::Problem separate = problemOf("bert-base", {"b=8", "j=512"}, "separate");
  CHECK(double(frameworkBytes(separate)) ==
        Approx(9 * unit).epsilon(0.002));  // and the statistics of layer norm
  CHECK(double(frameworkWorkspaceBytes(separate)) == Approx(8 * unit).epsilon(0.002));
  // Slices of a stacked projection are views.
  CHECK(frameworkBytes(problemOf("bert-base", {"b=8", "j=512"}, "three")) ==
        frameworkBytes(separate));
}

TEST_CASE("neither are they where the softmax is decomposed, masked or followed by dropout") {
  const double unit = 4096.0 * 1024 * 2;
  for (const char *attention : {"unfused", "decomposed"}) {
    INFO(attention);
    CHECK(double(frameworkBytes(problemOf("bert-large", {"b=1", "j=4096"}, "separate",
                                          attention))) == Approx(9 * unit).epsilon(0.01));
    // Dropout and its operand beside the residual.
    CHECK(double(frameworkBytes(problemOf("paper-encoder", {"b=1", "j=4096"}, "separate",
                                          attention))) == Approx(9 * unit).epsilon(0.01));
    CHECK(double(frameworkBytes(problemOf("gpt2", {"b=1", "j=4096"}, "separate", attention))) <
          10 * 4096.0 * 768 * 2 * 1.01);
  }
}

TEST_CASE("neither are they where attention is a fold over its keys") {
  for (const char *model : {"bert-base", "gpt2"}) {
    INFO(model);
    const auto loaded = test::preset(model, {{"b", 1}, {"j", 512}});
    const auto bytes = [&](AttentionChoice attention) {
      const std::vector<Variant> variants = proposeVariants(
          *loaded->module,
          {.attention = attention, .stacking = StackingChoice::separate, .canFuseAttention = true});
      REQUIRE(variants.size() == 1);
      GraphOp graph = test::graphOf(*variants.front().module);
      return frameworkBytes(
          toProblem(graph, variants.front().rewrites, proposeFusions(graph, FuseOptions{})));
    };
    CHECK(bytes(AttentionChoice::fused) == bytes(AttentionChoice::unfused));
  }
}

TEST_CASE("a norm stores its result, in one piece or decomposed") {
  const std::pair<const char *, const char *> cases[] = {{"bert-base", "decomposed"},
                                                         {"gpt2", "decomposed"},
                                                         {"llama-3-8b", "decomposed"},
                                                         {"llama-3-8b", "deferred"}};
  for (const auto &[model, norms] : cases) {
    INFO(model << " " << norms);
    const double whole = double(frameworkBytes(problemOf(model, {"b=1", "j=512"}, "separate")));
    CHECK(double(frameworkBytes(problemOf(model, {"b=1", "j=512"}, "separate", "unfused",
                                          norms))) == Approx(whole).epsilon(0.002));
  }
}

TEST_CASE("a longer sequence takes no more for each of its positions") {
  const auto bytes = [](const std::string &length) {
    return double(frameworkBytes(problemOf("bert-large", {"b=1", "j=" + length}, "separate")));
  };
  CHECK(bytes("4096") == Approx(8 * bytes("512")).epsilon(0.001));
}

TEST_CASE("the fastest plan within the limit is taken, if it is not slower than the trade allows") {
  const auto chosen = [](std::vector<decision::PricedChunking> priced, double freeBytes,
                         double trade = 0.25) {
    return priced[preferred(priced, freeBytes, trade)].chunks;
  };
  const decision::PricedChunking whole{
      .chunks = 1, .seconds = 100e-6, .workspaceBytes = 400'000'000, .isMeasured = true},
      two{.chunks = 2, .seconds = 104e-6, .workspaceBytes = 220'000'000, .isMeasured = true},
      four{.chunks = 4, .seconds = 110e-6, .workspaceBytes = 130'000'000, .isMeasured = true},
      eight{.chunks = 8, .seconds = 108e-6, .workspaceBytes = 90'000'000, .isMeasured = true},
      sixteen{.chunks = 16, .seconds = 150e-6, .workspaceBytes = 60'000'000, .isMeasured = true};
  const std::vector<decision::PricedChunking> all = {whole, two, four, eight, sixteen};
  CHECK(chosen(all, 500e6) == 1);
  CHECK(chosen(all, 250e6) == 2);
  CHECK(chosen(all, 150e6) == 8);  // faster than four
  CHECK(chosen(all, 70e6) ==
        8);  // sixteen fit, half as slow again: the smallest of those that are offered
  for (const double freeBytes : {500e6, 250e6, 150e6, 70e6})
    CHECK(chosen(all, freeBytes, 0) == 1);  // no time is given for memory
  CHECK(chosen(all, 250e6, 0.03) == 1);
  CHECK(chosen(all, 250e6, 0.05) == 2);
  CHECK(chosen(all, 70e6, 0.5) == 16);
  decision::PricedChunking fastest = two;
  fastest.seconds = 95e-6;
  CHECK(chosen({whole, fastest, four}, 500e6, 0) == 2);  // in chunks the fastest
  decision::PricedChunking modelled = two;
  modelled.seconds = 90e-6, modelled.isMeasured = false;
  CHECK(chosen({whole, modelled, four}, 250e6) == 4);  // no match for what is measured
  CHECK(chosen({modelled}, 250e6) == 2);
}
