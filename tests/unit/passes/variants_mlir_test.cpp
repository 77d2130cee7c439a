// Variants and plans compute what their graph computes, stay what they are through the text form,
// and stack as asked.
#include "codegen/families/transpose/TransposeKnobs.h"
#include "kernel/Error.h"
#include "passes/ConfigurationAttributes.h"
#include "passes/Describe.h"
#include "passes/Passes.h"
#include "passes/Rewrites.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/samples/SampleGraphs.h"
#include "tests/unit/samples/SamplePlans.h"

using namespace weft;
using namespace weft::test;

TEST_CASE("variants compute what the graph computes") {
  const std::map<std::string, Dims> sizes{
      {"paper-encoder", smallEncoder},
      {"gpt2", {{"b", 1}, {"j", 6}, {"h", 2}, {"p", 4}, {"i", 8}, {"u", 12}}},
      {"llama-3-8b", smallLlama}};
  const std::map<std::string, size_t> expected{
      {"paper-encoder", 8}, {"gpt2", 8}, {"llama-3-8b", 16}};
  for (const auto &[name, dims] : sizes) {
    INFO(name);
    const auto loaded = preset(name, dims);
    VariantOptions options;
    options.subVectors = {4};  // of 6: the last sub-vector is short
    const std::vector<Variant> variants = proposeVariants(*loaded->module, options);
    CHECK(variants.size() == expected.at(name));
    CHECK(variants.front().rewrites.empty());
    std::set<std::vector<Rewrite>> distinct;
    for (const Variant &variant : nonEmpty(variants)) {
      CHECK(distinct.insert(variant.rewrites).second);
      requireSame(loaded->graph(), graphOf(*variant.module));
    }
  }
}

TEST_CASE("what is more variants than are admitted is stacked alike or left out, and counted") {
  const auto loaded = preset("paper-encoder", smallEncoder);
  const std::vector<Variant> all = proposeVariants(*loaded->module, {});
  REQUIRE(all.size() == 8);
  CHECK(all.front().leftOut == 0);
  for (int64_t most = 0; most <= 8; ++most) {
    VariantOptions options;
    options.most = most;
    const std::vector<Variant> some = proposeVariants(*loaded->module, options);
    CHECK(some.size() == size_t(std::max<int64_t>(1, most)));
    CHECK(some.front().rewrites.empty());
    CHECK(some.front().leftOut + int64_t(some.size()) == int64_t(all.size()));
  }
}

namespace {

const std::map<std::string, Dims> fusable{
    {"llama-3-8b", smallLlama},
    {"bert-base", smallEncoder},
    {"paper-encoder", smallEncoder},  // drops probabilities
    {"attention", {{"b", 2}, {"h", 3}, {"j", 5}, {"k", 9}, {"p", 4}, {"w", 5}}}};

template <typename Op>
size_t countOf(GraphOp graph) {
  const auto ops = graph.getBody().front().getOps<Op>();
  return size_t(std::distance(ops.begin(), ops.end()));
}

bool isFused(const Variant &variant) {
  return std::ranges::count(variant.rewrites, Rewrite::Kind::fuseAttention, &Rewrite::kind) > 0;
}

std::string unsupportedOf(mlir::ModuleOp module, const VariantOptions &options) {
  try {
    proposeVariants(module, options);
  } catch (const Error &error) {
    CHECK(error.kind == ErrorKind::unsupported);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("attention has a fused form where the target has a kernel for it") {
  for (const auto &[name, dims] : fusable) {
    INFO(name);
    const auto loaded = preset(name, dims);
    VariantOptions options;
    options.subVectors = {4};
    const size_t without = proposeVariants(*loaded->module, options).size();
    options.canFuseAttention = true;
    const std::vector<Variant> variants = proposeVariants(*loaded->module, options);
    // Rotary embeddings stay apart in a stack beside a fused attention alone.
    const size_t apart = name == "llama-3-8b" ? 2 : 0;
    CHECK(variants.size() == without / 2 * 3 + apart);
    CHECK(size_t(std::ranges::count_if(variants, isFused)) == without / 2 + apart);
    for (const Variant &variant : nonEmpty(variants)) {
      INFO(variantName(variant.rewrites));
      GraphOp graph = graphOf(*variant.module);
      CHECK(countOf<OnlineSoftmaxContractOp>(graph) == size_t(isFused(variant)));
      if (isFused(variant)) {
        CHECK(countOf<SoftmaxOp>(graph) + countOf<LocalSoftmaxOp>(graph) +
                  countOf<SubvectorContractOp>(graph) ==
              0);
      }
      requireSame(loaded->graph(), graph);
    }
    options.attention = AttentionChoice::fused;
    const std::vector<Variant> fused = proposeVariants(*loaded->module, options);
    CHECK(fused.size() == without / 2 + apart);
    CHECK(std::ranges::all_of(nonEmpty(fused), isFused));
  }
}

TEST_CASE("queries and keys are turned in the stack, whose values stay, if a GEMM may turn them") {
  for (const bool isTrained : {false, true}) {
    const auto loaded = preset("llama-3-8b", smallLlama);
    if (isTrained) REQUIRE(mlir::succeeded(differentiate(loaded->graph(), {})));
    VariantOptions options;
    options.subVectors = {4};
    const auto isRotated = [](const Variant &variant) {
      return std::ranges::count(variant.rewrites, Rewrite{Rewrite::Kind::rotateInStack, "q-k-v"}) >
             0;
    };
    CHECK(std::ranges::none_of(nonEmpty(proposeVariants(*loaded->module, options)), isRotated));
    options.canRotateBehindGemm = true;
    size_t count = 0;
    for (const Variant &variant : nonEmpty(proposeVariants(*loaded->module, options))) {
      if (!isRotated(variant)) continue;
      ++count;
      INFO(variantName(variant.rewrites));
      GraphOp graph = graphOf(*variant.module);
      size_t inStack = 0;
      for (RotaryOp rotary : nonEmpty(graph.getBody().front().getOps<RotaryOp>())) {
        if (!rotary.getAmong()) continue;
        ++inStack;
        CHECK(mlir::isa<ContractOp>(rotary.getX().getDefiningOp()));
        CHECK(rotary.getX().hasOneUse());
        CHECK(rotary.getBegin() == 0u);
      }
      CHECK(inStack == 1);
      requireSame(loaded->graph(), graph);
    }
    CHECK(count >= 2);
  }
}

TEST_CASE("queries and keys of one stack are turned apart where an attention may rotate queries") {
  for (const bool isTrained : {false, true})
    for (const bool canFuse : {false, true}) {
      const auto loaded = preset("llama-3-8b", smallLlama);
      if (isTrained) REQUIRE(mlir::succeeded(differentiate(loaded->graph(), {})));
      VariantOptions options;
      options.subVectors = {4};
      options.canFuseAttention = canFuse;
      size_t count = 0;
      for (const Variant &variant : nonEmpty(proposeVariants(*loaded->module, options))) {
        if (std::ranges::count(variant.rewrites, Rewrite{Rewrite::Kind::rotateApart, "q-k-v"}) == 0)
          continue;
        ++count;
        INFO(variantName(variant.rewrites));
        CHECK(std::ranges::count(variant.rewrites, Rewrite{Rewrite::Kind::fuseAttention}) == 1);
        GraphOp graph = graphOf(*variant.module);
        CHECK(countOf<RotaryOp>(graph) == 2);
        // Scores read what is turned, and that is cut of the stack: no axis is split behind a cut.
        for (RotaryOp rotary : nonEmpty(graph.getBody().front().getOps<RotaryOp>())) {
          CHECK(mlir::isa<ContractOp>(*rotary.getResult().user_begin()));
          CHECK(mlir::isa<SliceOp>(rotary.getX().getDefiningOp()));
        }
        requireSame(loaded->graph(), graph);
      }
      // Gates and what they gate are stacked beside it, or not.
      CHECK(count == (canFuse && !isTrained ? 2 : 0));
    }
}

TEST_CASE("every op that a rewrite makes says which, and no other op does") {
  const auto loaded = preset("paper-encoder", smallEncoder);
  VariantOptions options;
  options.subVectors = {4};
  options.canFuseAttention = true;
  options.norms = NormChoice::automatic;
  std::set<std::string> all;
  for (const Variant &variant : nonEmpty(proposeVariants(*loaded->module, options))) {
    INFO(variantName(variant.rewrites));
    GraphOp graph = graphOf(*variant.module);
    const std::vector<mlir::Operation *> ops = numberedOps(graph);
    REQUIRE(variant.rewritesOfOp.size() == ops.size());
    std::set<std::string> made;
    for (size_t op = 0; op < ops.size(); ++op) {
      const std::vector<Rewrite> &rewrites = variant.rewritesOfOp[op];
      const std::string rewrite = rewrites.empty() ? "" : variantName(rewrites);
      if (mlir::isa<OnlineSoftmaxContractOp>(ops[op])) CHECK(rewrite == "fuse-attention");
      if (mlir::isa<LocalSoftmaxOp, GlobalScalingOp>(ops[op]))
        CHECK_THAT(rewrite, Catch::Contains("compose-softmax-4"));
      if (mlir::isa<ReluOp>(ops[op])) CHECK(rewrite.empty());
      if (!rewrite.empty()) made.insert(rewrite);
    }
    const std::vector<std::string> rewrites = textsOf(variant.rewrites);
    CHECK(made == std::set<std::string>(rewrites.begin(), rewrites.end()));
    all.merge(made);
  }
  CHECK(all.contains("stack-q_product-k_product-v_product"));
  CHECK(all.size() > 4);
}

TEST_CASE("a variant that is fused counts as one more form of attention") {
  const auto loaded = preset("llama-3-8b", smallLlama);
  VariantOptions options;
  options.canFuseAttention = true;
  const std::vector<Variant> all = proposeVariants(*loaded->module, options);
  for (int64_t most : {1, 5, 12, 23, 24}) {
    options.most = most;
    const std::vector<Variant> some = proposeVariants(*loaded->module, options);
    CHECK(int64_t(some.size()) <= most);
    CHECK(some.front().leftOut + int64_t(some.size()) == int64_t(all.size()));
  }
}

TEST_CASE("a trained attention has a fused form, whose backward pass computes scores again") {
  for (const auto &[name, dims] : fusable) {
    INFO(name);
    const auto loaded = preset(name, dims);
    REQUIRE(mlir::succeeded(differentiate(loaded->graph(), {})));
    VariantOptions options;
    options.subVectors = {4};
    const std::vector<Variant> without = proposeVariants(*loaded->module, options);
    CHECK(std::ranges::none_of(nonEmpty(without), isFused));
    options.canFuseAttention = true;
    const std::vector<Variant> variants = proposeVariants(*loaded->module, options);
    CHECK(variants.size() > without.size());
    CHECK(variants.size() < without.size() * 2);
    std::set<std::vector<Rewrite>> distinct;
    for (const Variant &variant : nonEmpty(variants)) {
      INFO(variantName(variant.rewrites));
      CHECK(distinct.insert(variant.rewrites).second);
      CHECK(variant.unfused.empty());
      GraphOp graph = graphOf(*variant.module);
      CHECK(countOf<OnlineSoftmaxContractOp>(graph) == size_t(isFused(variant)));
      CHECK(countOf<SoftmaxFromLogSumsOp>(graph) == size_t(isFused(variant)));
      if (isFused(variant)) CHECK(countOf<SoftmaxOp>(graph) + countOf<SoftmaxDxOp>(graph) == 0);
      requireSame(loaded->graph(), graph);
    }
    options.attention = AttentionChoice::fused;
    CHECK(std::ranges::all_of(nonEmpty(proposeVariants(*loaded->module, options)), isFused));
  }
}

TEST_CASE(
    "a recomposed attention computes the same, trained or not, in sub-vectors of any length") {
  for (const auto &[name, dims] : fusable)
    for (const bool isTrained : {false, true}) {
      INFO(name << (isTrained ? ", trained" : ""));
      const auto loaded = preset(name, dims);
      if (isTrained) REQUIRE(mlir::succeeded(differentiate(loaded->graph(), {})));
      const std::vector<Variant> variants =
          proposeVariants(*loaded->module, {.attention = AttentionChoice::recomposed,
                                            .stacking = StackingChoice::separate,
                                            .subVectors = {4, 2}});
      std::set<std::string> names;
      for (const Variant &variant : nonEmpty(variants)) {
        GraphOp graph = graphOf(*variant.module);
        CHECK(countOf<SoftmaxOp>(graph) == 0);
        CHECK(countOf<LocalSoftmaxOp>(graph) == 1);
        CHECK(countOf<GlobalScalingOp>(graph) == (isTrained ? 2 : 1));
        names.insert(variantName(variant.rewrites));
        requireSame(loaded->graph(), graph);
      }
      CHECK(names.contains("recompose-softmax-4"));
      CHECK(names.contains("recompose-softmax-2"));
    }
}

TEST_CASE("gradients of projections are stacked whole beside a fused attention, or not at all") {
  const auto loaded = preset("bert-base", smallEncoder);
  REQUIRE(mlir::succeeded(differentiate(loaded->graph(), {})));
  std::set<std::string> stackings;
  for (const Variant &variant :
       nonEmpty(proposeVariants(*loaded->module, {.subVectors = {4}, .canFuseAttention = true})))
    if (isFused(variant))
      for (const Rewrite &rewrite : variant.rewrites)
        if (rewrite.kind == Rewrite::Kind::stackInputGradients ||
            rewrite.kind == Rewrite::Kind::stackWeightGradients)
          stackings.insert(text(rewrite));
  CHECK(stackings == std::set<std::string>{"stack-dX-wq-wk-wv", "stack-dW-wq-wk-wv"});
}

TEST_CASE(
    "a fused attention that lacks gradients has a variant with all of them, and others none") {
  const auto variantsOf = [](const std::vector<std::string> &wanted, bool canFuseBackward) {
    const auto loaded = preset("paper-encoder", fusable.at("paper-encoder"));
    REQUIRE(mlir::succeeded(differentiate(loaded->graph(), {.withRespectTo = wanted})));
    VariantOptions options;
    options.subVectors = {4};
    options.canFuseAttention = true, options.canFuseAttentionBackward = canFuseBackward;
    std::vector<Variant> variants = proposeVariants(*loaded->module, options);
    std::set<std::vector<Rewrite>> distinct;
    for (const Variant &variant : nonEmpty(variants)) {
      CHECK(distinct.insert(variant.rewrites).second);
      requireSame(loaded->graph(), graphOf(*variant.module));
    }
    return distinct;
  };
  const auto countWith = [](const std::set<std::vector<Rewrite>> &variants, Rewrite::Kind kind) {
    return std::ranges::count_if(variants, [&](const std::vector<Rewrite> &rewrites) {
      return std::ranges::count(rewrites, kind, &Rewrite::kind) > 0;
    });
  };
  const std::set<std::vector<Rewrite>> some = variantsOf({"wq"}, true);
  const ptrdiff_t fused = countWith(some, Rewrite::Kind::fuseAttention);
  CHECK(fused > 0);
  CHECK(2 * countWith(some, Rewrite::Kind::allGradients) == fused);
  CHECK(countWith(variantsOf({"wq"}, false), Rewrite::Kind::allGradients) == 0);
  CHECK(countWith(variantsOf({}, true), Rewrite::Kind::allGradients) == 0);
  // Of values alone the softmax's derivative is none of those that there are.
  CHECK(countWith(variantsOf({"wv"}, true), Rewrite::Kind::allGradients) > 0);
}

TEST_CASE("no family and no known form forbid a fused attention by name") {
  const auto plain = preset("llama-3-8b", smallLlama);
  CHECK_THAT(unsupportedOf(*plain->module, {.attention = AttentionChoice::fused}),
             Catch::StartsWith("--attention fused: no kernel family of the target takes a fused "
                               "attention; the nearest alternative is --attention auto"));
}

TEST_CASE("what reads dropped probabilities beside their contraction forbids a fused attention") {
  const auto rejection = [](const std::string &ops, const std::string &results,
                            const std::string &types) {
    const auto loaded = parse(R"(
!jk = tensor<5x9xf32, #weft.axes<j, k>>
!kw = tensor<9x4xf32, #weft.axes<k, w>>
!jw = tensor<5x4xf32, #weft.axes<j, w>>
weft.graph @g(%x: !jk, %v: !kw) -> ()" +
                              types +
                              R"() {
  %prob = weft.softmax %x over k : !jk
  %kept = weft.dropout %prob {p = 0.5, stream = 1} : !jk
)" + ops + "  weft.return " + results +
                              " : " + types + "\n}");
    return unsupportedOf(*loaded->module,
                         {.attention = AttentionChoice::fused, .canFuseAttention = true});
  };
  const std::string y = "  %y = weft.contract \"jk,kw->jw\" %kept, %v : !jk, !kw -> !jw\n";
  CHECK(rejection(y, "%y", "!jw") == "");
  CHECK_THAT(rejection(y, "%y, %kept", "!jw, !jk"),
             Catch::StartsWith("--attention fused: softmax 'prob' is in no fused attention: the "
                               "graph returns 'kept'; "));
  CHECK_THAT(rejection(y + "  %r = weft.relu %kept : !jk\n", "%y, %r", "!jw, !jk"),
             Catch::Contains(": relu 'r' reads 'kept', too"));
  CHECK_THAT(rejection(y + "  %r = weft.relu %prob : !jk\n", "%y, %r", "!jw, !jk"),
             Catch::Contains(": relu 'r' reads it, too"));
  CHECK_THAT(rejection("  %again = weft.dropout %kept {p = 0.5, stream = 2} : !jk\n"
                       "  %y = weft.contract \"jk,kw->jw\" %again, %v : !jk, !kw -> !jw\n",
                       "%y", "!jw"),
             Catch::Contains(": dropout 'again' reads 'kept', which is dropped already"));
  CHECK_THAT(rejection("  %r = weft.relu %kept : !jk\n", "%r", "!jk"),
             Catch::Contains(": relu 'r' reads 'kept', which is no contraction"));
}

TEST_CASE("norms are decomposed beside a fused attention, and beside another one") {
  for (const char *name : {"bert-base", "paper-encoder"}) {
    INFO(name);
    const auto loaded = preset(name, smallEncoder);
    size_t fused = 0, others = 0;
    for (const Variant &variant : nonEmpty(proposeVariants(
             *loaded->module,
             {.norms = NormChoice::automatic, .subVectors = {4}, .canFuseAttention = true}))) {
      if (std::ranges::count(variant.rewrites, Rewrite::Kind::decomposeNorms, &Rewrite::kind) == 0)
        continue;
      (isFused(variant) ? fused : others) += 1;
      requireSame(loaded->graph(), graphOf(*variant.module));
    }
    CHECK(fused > 0);
    CHECK(others > 0);
  }
}

TEST_CASE("one softmax is fused beside another one that is not") {
  const auto loaded = parse(R"(
!bjk = tensor<2x5x9xf32, #weft.axes<b, j, k>>
!bkw = tensor<2x9x4xf32, #weft.axes<b, k, w>>
!bjw = tensor<2x5x4xf32, #weft.axes<b, j, w>>
weft.graph @two(%x: !bjk, %v: !bkw) -> (!bjw, !bjw, !bjk) {
  %p = weft.softmax %x over k : !bjk
  %y = weft.contract "bjk,bkw->bjw" %p, %v : !bjk, !bkw -> !bjw
  %kept = weft.softmax %x over k : !bjk
  %z = weft.contract "bjk,bkw->bjw" %kept, %v : !bjk, !bkw -> !bjw
  weft.return %y, %z, %kept : !bjw, !bjw, !bjk
})");
  const std::vector<Variant> variants = proposeVariants(
      *loaded->module, {.attention = AttentionChoice::fused, .canFuseAttention = true});
  REQUIRE(variants.size() == 1);
  CHECK(variantName(variants.front().rewrites) == "fuse-attention");
  CHECK(variants.front().unfused ==
        std::vector<std::string>{"softmax 'kept' is in no fused attention: the graph returns it"});
  GraphOp graph = graphOf(*variants.front().module);
  CHECK(countOf<SoftmaxOp>(graph) == 1);
  CHECK(countOf<OnlineSoftmaxContractOp>(graph) == 1);
  requireSame(loaded->graph(), graph);
}

TEST_CASE("a graph without a softmax has one form of attention, whatever is asked for") {
  const auto loaded = parse(R"(
!j = tensor<5xf32, #weft.axes<j>>
weft.graph @plain(%x: !j) -> !j {
  %y = weft.relu %x : !j
  weft.return %y : !j
})");
  for (const auto &[name, attention] : nonEmpty(spellings<AttentionChoice>)) {
    INFO(name);
    CHECK(proposeVariants(*loaded->module, {.attention = attention}).size() == 1);
  }
}

TEST_CASE("gradients of stacked projections are those of separate ones") {
  const auto loaded = preset("paper-encoder", smallEncoder);
  REQUIRE(mlir::succeeded(differentiate(loaded->graph(), {})));
  const auto contractions = [](GraphOp graph) {
    const auto ops = graph.getBody().front().getOps<ContractOp>();
    return std::distance(ops.begin(), ops.end());
  };
  const auto before = contractions(loaded->graph());
  const std::vector<Variant> variants =
      proposeVariants(*loaded->module, {.attention = AttentionChoice::unfused});
  CHECK(variants.size() ==
        4 + 2 * 6);  // beside all and beside none stacked forward: two or three for dX, dW or both
  std::set<std::vector<Rewrite>> distinct;
  for (const Variant &variant : nonEmpty(variants)) {
    INFO(variantName(variant.rewrites));
    CHECK(distinct.insert(variant.rewrites).second);
    requireSame(loaded->graph(), graphOf(*variant.module));
    const std::vector<mlir::Operation *> ops = numberedOps(graphOf(*variant.module));
    REQUIRE(variant.rewritesOfOp.size() == ops.size());
    std::set<std::string> stacked;
    for (size_t op = 0; op < ops.size(); ++op)
      if (mlir::isa<ContractOp>(ops[op]) && !variant.rewritesOfOp[op].empty())
        stacked.insert(variantName(variant.rewritesOfOp[op]));
    const std::vector<std::string> rewrites = textsOf(variant.rewrites);
    CHECK(stacked == std::set<std::string>(rewrites.begin(), rewrites.end()));
  }
  const auto find = [&](const std::vector<std::string> &rewrites) {
    const auto found = std::find_if(variants.begin(), variants.end(), [&](const Variant &variant) {
      return textsOf(variant.rewrites) == rewrites;
    });
    REQUIRE(found != variants.end());
    return graphOf(*found->module);
  };
  CHECK(contractions(find({"stack-dX-wq-wk"})) == before - 1);
  GraphOp both = find({"stack-dX-wq-wk-wv", "stack-dW-wq-wk-wv"});
  CHECK(contractions(both) == before - 4);
  const auto concats = both.getBody().front().getOps<ConcatOp>();
  CHECK(std::distance(concats.begin(), concats.end()) ==
        2);  // of the weights, and of the gradients for both products
  CHECK(proposeVariants(*loaded->module,
                        {.attention = AttentionChoice::unfused, .stacking = StackingChoice::three})
            .size() == 1);
  CHECK(proposeVariants(*loaded->module, {.attention = AttentionChoice::unfused,
                                          .stacking = StackingChoice::separate})
            .size() == 1);
}

TEST_CASE("gradients of grouped heads are stacked as those of one axis of heads") {
  const auto loaded = preset("llama-3-8b", smallLlama);
  REQUIRE(mlir::succeeded(differentiate(loaded->graph(), {})));
  const std::vector<Variant> variants =
      proposeVariants(*loaded->module, {.attention = AttentionChoice::unfused});
  const auto contractions = [](GraphOp graph) {
    const auto ops = graph.getBody().front().getOps<ContractOp>();
    return std::distance(ops.begin(), ops.end());
  };
  for (const std::vector<std::string> &rewrites : {std::vector<std::string>{"stack-dX-wq-wk-wv"},
                                                   {"stack-dW-wq-wk-wv"},
                                                   {"stack-dX-wq-wk"},
                                                   {"stack-dX-wq-wk-wv", "stack-dW-wq-wk-wv"}}) {
    INFO(fmt::format("{}", fmt::join(rewrites, "+")));
    const auto found = std::ranges::find_if(
        variants, [&](const Variant &variant) { return textsOf(variant.rewrites) == rewrites; });
    REQUIRE(found != variants.end());
    const bool isPair = rewrites.front() == "stack-dX-wq-wk";
    CHECK(contractions(graphOf(*found->module)) ==
          contractions(loaded->graph()) - (isPair ? 1 : 2 * int64_t(rewrites.size())));
    requireSame(loaded->graph(), graphOf(*found->module));
  }
}

TEST_CASE("queries and keys of one stacked product are turned as one") {
  const int64_t groups = GENERATE(4, 2, 1);  // of one head each, of two, and of all four
  Dims dims = smallLlama;
  dims["g"] = groups;
  const auto loaded = preset("llama-3-8b", dims);
  const auto rotaries = [](GraphOp graph) {
    const auto ops = graph.getBody().front().getOps<RotaryOp>();
    return std::distance(ops.begin(), ops.end());
  };
  CHECK(rotaries(loaded->graph()) == 2);
  size_t stacked = 0;
  for (const Variant &variant : nonEmpty(proposeVariants(*loaded->module, {}))) {
    const std::vector<std::string> texts = textsOf(variant.rewrites);
    if (std::ranges::find(texts, "stack-q-k-v") == texts.end()) continue;
    ++stacked;
    CHECK(rotaries(graphOf(*variant.module)) == 1);
    requireSame(loaded->graph(), graphOf(*variant.module));
  }
  CHECK(stacked > 0);
}

TEST_CASE("what is stacked along the elements of a head turns apart") {
  Dims dims = smallLlama;
  dims["g"] = dims["h"],
  dims["w"] = 6;  // of values only; products can be stacked along these alone
  const auto loaded = preset("llama-3-8b", dims);
  size_t stacked = 0;
  for (const Variant &variant : nonEmpty(proposeVariants(*loaded->module, {}))) {
    const std::vector<std::string> texts = textsOf(variant.rewrites);
    stacked += size_t(std::ranges::count(texts, "stack-q-k-v"));
    requireSame(loaded->graph(), graphOf(*variant.module));
  }
  CHECK(stacked > 0);
}

TEST_CASE("groups of projections are stacked together in the backward pass") {
  const auto loaded =
      preset("transformer-decoder", {{"b", 2}, {"j", 5}, {"h", 2}, {"p", 4}, {"i", 8}, {"u", 12}});
  REQUIRE(mlir::succeeded(differentiate(loaded->graph(), {})));
  const std::vector<std::string> together = {"stack-dX-wq-wk-wv", "stack-dW-wq-wk-wv",
                                             "stack-dX-cross_wk-cross_wv",
                                             "stack-dW-cross_wk-cross_wv"};
  const std::vector<Variant> variants =
      proposeVariants(*loaded->module, {.attention = AttentionChoice::unfused});
  const auto found = std::ranges::find_if(
      variants, [&](const Variant &variant) { return textsOf(variant.rewrites) == together; });
  REQUIRE(found != variants.end());
  requireSame(loaded->graph(), graphOf(*found->module));
}

TEST_CASE(
    "gradients of stacked projections are those of separate ones where a projection is a result, "
    "too") {
  // The products of the weights' gradients then stand right behind the stacked one, which replaces
  // them.
  const auto loaded = parse(R"(
!bji = tensor<2x3x8xf32, #weft.axes<b, j, i>>
!phi = tensor<4x2x8xf32, #weft.axes<p, h, i>>
!phbj = tensor<4x2x2x3xf32, #weft.axes<p, h, b, j>>
weft.graph @returned(%x: !bji, %wq: !phi {weft.parameter}, %wk: !phi {weft.parameter},
                     %wv: !phi {weft.parameter}) -> (!phbj, !phbj, !phbj) {
  %q = weft.contract "phi,bji->phbj" %wq, %x : !phi, !bji -> !phbj
  %k = weft.contract "phi,bji->phbj" %wk, %x : !phi, !bji -> !phbj
  %v = weft.contract "phi,bji->phbj" %wv, %x : !phi, !bji -> !phbj
  %qr = weft.relu %q : !phbj
  %kr = weft.relu %k : !phbj
  %vr = weft.relu %v : !phbj
  %qk = weft.mul %qr, %kr : !phbj
  %qkv = weft.mul %qk, %vr : !phbj
  weft.return %qkv, %q, %v : !phbj, !phbj, !phbj
})");
  REQUIRE(mlir::succeeded(differentiate(loaded->graph(), {})));
  const std::vector<Variant> variants = proposeVariants(*loaded->module, {});
  size_t stacked = 0;
  for (const Variant &variant : nonEmpty(variants)) {
    INFO(variantName(variant.rewrites));
    stacked +=
        std::ranges::count(variant.rewrites, Rewrite::Kind::stackWeightGradients, &Rewrite::kind);
    requireSame(loaded->graph(), graphOf(*variant.module));
  }
  CHECK(stacked > 0);
}

TEST_CASE("projections by one weight have their gradients apart") {
  for (const std::string result :
       {"%both", "%a"}) {  // the second leaves one of the projections without a gradient
    INFO(result);
    const auto loaded = parse(R"(
!ji = tensor<3x8xf32, #weft.axes<j, i>>
!ui = tensor<6x8xf32, #weft.axes<u, i>>
!ju = tensor<3x6xf32, #weft.axes<j, u>>
weft.graph @shared(%x: !ji, %w: !ui {weft.parameter}) -> !ju {
  %p = weft.contract "ui,ji->ju" %w, %x : !ui, !ji -> !ju
  %q = weft.contract "ui,ji->ju" %w, %x : !ui, !ji -> !ju
  %a = weft.relu %p : !ju
  %b = weft.gelu %q : !ju
  %both = weft.mul %a, %b : !ju
  weft.return )" + result + R"( : !ju
})");
    REQUIRE(mlir::succeeded(differentiate(loaded->graph(), {})));
    const std::vector<Variant> variants = proposeVariants(*loaded->module, {});
    CHECK(variants.size() > 1);
    for (const Variant &variant : variants) requireSame(loaded->graph(), graphOf(*variant.module));
  }
}

TEST_CASE("a result has its name in every variant") {
  for (const char *name : {"paper-encoder", "paper-attention"}) {
    INFO(name);
    const auto loaded = preset(name, {{"b", 2}, {"j", 3}, {"h", 2}, {"p", 4}, {"i", 8}});
    REQUIRE(mlir::succeeded(differentiate(loaded->graph(), {})));
    const auto resultNames = [](GraphOp graph) {
      std::vector<std::string> names;
      for (mlir::Value result : graph.getBody().front().getTerminator()->getOperands())
        names.push_back(writtenName(result));
      return names;
    };
    const std::vector<std::string> expected = resultNames(loaded->graph());
    const std::vector<Variant> variants =
        proposeVariants(*loaded->module, {.attention = AttentionChoice::unfused});
    CHECK(variants.size() > 4);
    for (const Variant &variant : nonEmpty(variants)) {
      INFO(variantName(variant.rewrites));
      CHECK(resultNames(graphOf(*variant.module)) == expected);
    }
  }
}

TEST_CASE("saved tensors that cost little to compute again are offered as recomputed") {
  const std::map<std::string, Dims> sizes{{"bert-base", smallEncoder}, {"llama-3-8b", smallLlama}};
  for (const auto &[name, dims] : sizes) {
    INFO(name);
    const auto loaded = preset(name, dims);
    CHECK(findRecomputations(loaded->graph()).empty());  // no backward pass
    REQUIRE(mlir::succeeded(differentiate(loaded->graph(), {})));
    const std::vector<Recomputation> found = findRecomputations(loaded->graph());
    REQUIRE(!found.empty());
    const std::vector<Variant> variants = proposeVariants(
        *loaded->module,
        {.attention = AttentionChoice::unfused, .stacking = StackingChoice::separate});
    const size_t offered = std::min<size_t>(found.size(), 3);
    REQUIRE(variants.size() == 1 + offered + (offered > 1));
    std::set<std::vector<Rewrite>> distinct;
    for (const Variant &variant : nonEmpty(variants)) {
      INFO(variantName(variant.rewrites));
      CHECK(distinct.insert(variant.rewrites).second);
      requireSame(loaded->graph(), graphOf(*variant.module));
      const auto saved = graphOf(*variant.module)->getAttrOfType<mlir::ArrayAttr>("weft.saved");
      for (mlir::Attribute tensor : nonEmpty(saved))
        CHECK(std::ranges::count(variant.rewrites,
                                 Rewrite{Rewrite::Kind::recompute,
                                         mlir::cast<mlir::StringAttr>(tensor).str()}) == 0);
    }
    CHECK(variants.back().rewrites.size() == offered);
    CHECK(proposeVariants(*loaded->module, {.attention = AttentionChoice::unfused,
                                            .stacking = StackingChoice::separate,
                                            .recompute = RecomputeChoice::none})
              .size() == 1);
  }
}

namespace {

std::unique_ptr<Loaded> layersOf(int layers, bool isTrained = true,
                                 const std::string &model = "bert-base") {
  auto loaded = std::make_unique<Loaded>();
  models::Request request;
  request.model = model;
  request.dims = model == "llama-3-8b" ? smallLlama : smallEncoder;
  request.dtype = DType::f32;
  request.layers = layers;
  loaded->module = models::build(request, loaded->context).module;
  if (isTrained) REQUIRE(mlir::succeeded(differentiate(loaded->graph(), {})));
  return loaded;
}

/// The names of the results of all ops of a kind.
template <typename Op>
std::vector<std::string> namesOfOps(GraphOp graph) {
  std::vector<std::string> names;
  for (Op op : graph.getBody().front().getOps<Op>()) names.push_back(writtenName(op->getResult(0)));
  return names;
}

template <typename Op>
bool hasNamed(GraphOp graph, const std::string &name) {
  const std::vector<std::string> names = namesOfOps<Op>(graph);
  return std::ranges::count(names, name) > 0;
}

}  // namespace

TEST_CASE("an attention has the form that is asked of it in every variant") {
  for (const bool isTrained : {false, true}) {
    const std::unique_ptr<Loaded> two = layersOf(2, isTrained);
    const std::vector<std::string> softmaxes = namesOfOps<SoftmaxOp>(two->graph());
    REQUIRE(softmaxes.size() == 2);
    VariantOptions options{.stacking = StackingChoice::separate,
                           .recompute = RecomputeChoice::none,
                           .attentionAt = {{softmaxes[1], AttentionChoice::unfused}},
                           .subVectors = {4},
                           .canFuseAttention = true};
    const size_t forms = proposeVariants(*two->module, options).size();
    size_t fused = 0;
    for (const Variant &variant : nonEmpty(proposeVariants(*two->module, options))) {
      GraphOp graph = graphOf(*variant.module);
      INFO(variantName(variant.rewrites));
      CHECK(hasNamed<SoftmaxOp>(graph, softmaxes[1]));
      fused += countOf<OnlineSoftmaxContractOp>(graph);
      requireSame(two->graph(), graph);
    }
    CHECK(fused == 1);
    options.attentionAt = {{softmaxes[1], AttentionChoice::fused}};
    const std::vector<Variant> pinned = proposeVariants(*two->module, options);
    CHECK(pinned.size() == forms);
    CHECK(variantName(pinned.front().rewrites) == "fuse-attention+for-" + softmaxes[1]);
    for (const Variant &variant : nonEmpty(pinned)) {
      CHECK_FALSE(hasNamed<SoftmaxOp>(graphOf(*variant.module), softmaxes[1]));
      requireSame(two->graph(), graphOf(*variant.module));
    }
    // A name without its layer is that of both, and one with it goes first.
    options.attentionAt = {{withoutLayers(softmaxes[0]), AttentionChoice::decomposed},
                           {softmaxes[1], AttentionChoice::unfused}};
    const std::vector<Variant> both = proposeVariants(*two->module, options);
    REQUIRE(both.size() == 1);
    CHECK(countOf<LocalSoftmaxOp>(graphOf(*both.front().module)) == 1);
    CHECK(hasNamed<SoftmaxOp>(graphOf(*both.front().module), softmaxes[1]));
    options.attentionAt = {{"elsewhere", AttentionChoice::unfused}};
    CHECK(proposeVariants(*two->module, options).size() == forms);
  }
}

TEST_CASE("projections are stacked as is asked of them, forward and backward") {
  for (const bool isTrained : {false, true}) {
    const std::unique_ptr<Loaded> two = layersOf(2, isTrained);
    VariantOptions options{.attention = AttentionChoice::unfused,
                           .stacking = StackingChoice::separate,
                           .recompute = RecomputeChoice::none,
                           .stackingAt = {{"layer2_q_product", StackingChoice::three}}};
    const std::vector<Variant> variants = proposeVariants(*two->module, options);
    REQUIRE(variants.size() == 1);
    GraphOp graph = graphOf(*variants.front().module);
    CHECK(hasNamed<ContractOp>(graph, "layer1_q_product"));
    CHECK_FALSE(hasNamed<ContractOp>(graph, "layer2_q_product"));
    CHECK(countOf<ContractOp>(two->graph()) - countOf<ContractOp>(graph) == (isTrained ? 6 : 2));
    requireSame(two->graph(), graph);
    options.stacking = StackingChoice::automatic;
    options.stackingAt = {{"layer2_v_product", StackingChoice::separate}};
    size_t stacked = 0;
    for (const Variant &variant : nonEmpty(proposeVariants(*two->module, options))) {
      CHECK(hasNamed<ContractOp>(graphOf(*variant.module), "layer2_q_product"));
      stacked += !hasNamed<ContractOp>(graphOf(*variant.module), "layer1_q_product");
      requireSame(two->graph(), graphOf(*variant.module));
    }
    CHECK(stacked > 0);
    options.stackingAt = {{"layer1_attention_product", StackingChoice::two}};
    CHECK(unsupportedOf(*two->module, options).find("is stacked with no other") !=
          std::string::npos);
  }
}

TEST_CASE("a norm has the form that is asked of it in every variant") {
  const std::unique_ptr<Loaded> two = layersOf(2, false, "llama-3-8b");
  const std::vector<std::string> norms = namesOfOps<RmsNormOp>(two->graph());
  REQUIRE(norms.size() == 4);
  VariantOptions options{.attention = AttentionChoice::unfused,
                         .norms = NormChoice::automatic,
                         .stacking = StackingChoice::separate,
                         .normsAt = {{norms[3], NormChoice::deferred}}};
  for (const Variant &variant : nonEmpty(proposeVariants(*two->module, options))) {
    CHECK_FALSE(hasNamed<RmsNormOp>(graphOf(*variant.module), norms[3]));
    requireSame(two->graph(), graphOf(*variant.module));
  }
  options.norms = NormChoice::decomposed;
  options.normsAt = {{norms[1], NormChoice::fused}, {norms[3], NormChoice::deferred}};
  const std::vector<Variant> variants = proposeVariants(*two->module, options);
  REQUIRE(variants.size() == 1);
  CHECK(namesOfOps<RmsNormOp>(graphOf(*variants.front().module)) ==
        std::vector<std::string>{norms[1]});
  CHECK(variantName(variants.front().rewrites) == "decompose-norms+defer-norms+for-" + norms[3]);
  requireSame(two->graph(), graphOf(*variants.front().module));
  // The backward pass reads what a whole norm leaves.
  const std::unique_ptr<Loaded> trained = layersOf(2, true, "llama-3-8b");
  CHECK(unsupportedOf(*trained->module, options).find("nearest is --norms") != std::string::npos);
}

TEST_CASE("layers that repeat are rewritten alike in training, in as many ways at any number") {
  const VariantOptions options{.subVectors = {4}, .canFuseAttention = true};
  const std::unique_ptr<Loaded> four = layersOf(4);
  const std::vector<Variant> variants = proposeVariants(*four->module, options);
  CHECK(variants.size() == proposeVariants(*layersOf(6)->module, options).size());
  std::map<Rewrite::Kind, int> counts;
  for (const Variant &variant : variants) {
    INFO(variantName(variant.rewrites));
    CHECK(variant.leftOut == 0);
    requireSame(four->graph(), graphOf(*variant.module));
    for (const Rewrite::Kind kind :
         {Rewrite::Kind::stack, Rewrite::Kind::stackInputGradients,
          Rewrite::Kind::stackWeightGradients, Rewrite::Kind::recompute}) {
      const auto count = std::ranges::count(variant.rewrites, kind, &Rewrite::kind);
      CHECK(count % 4 == 0);
      counts[kind] += count > 0;
    }
  }
  CHECK(counts[Rewrite::Kind::stack] > 3);
  CHECK(counts[Rewrite::Kind::stackInputGradients] > 3);
  CHECK(counts[Rewrite::Kind::stackWeightGradients] > 3);
  CHECK(counts[Rewrite::Kind::recompute] > 0);
}

TEST_CASE("what the forward pass stores anyway is not offered as recomputed") {
  const auto loaded = preset("paper-encoder", smallEncoder);
  REQUIRE(mlir::succeeded(differentiate(loaded->graph(), {})));
  CHECK(findRecomputations(loaded->graph()).empty());  // products read active_kept; the sums before
                                                       // norms are as large as what they add
}

TEST_CASE("stacking options choose how many projections share a GEMM") {
  const auto loaded = preset("paper-encoder", smallEncoder);
  const auto contractions = [](mlir::ModuleOp module) {
    const auto ops = graphOf(module).getBody().front().getOps<ContractOp>();
    return std::distance(ops.begin(), ops.end());
  };
  const auto before = contractions(*loaded->module);
  const auto with = [&](StackingChoice stacking) {
    VariantOptions options;
    options.stacking = stacking;
    options.attention = AttentionChoice::unfused;
    return proposeVariants(*loaded->module, options);
  };
  CHECK(with(StackingChoice::separate).size() == 1);
  REQUIRE(with(StackingChoice::two).size() == 2);
  CHECK(contractions(*with(StackingChoice::two).front().module) == before - 1);
  REQUIRE(with(StackingChoice::three).size() == 1);
  CHECK(contractions(*with(StackingChoice::three).front().module) == before - 2);
  CHECK(with(StackingChoice::three).front().rewrites.size() == 1);
}

TEST_CASE("packed parameters are parameters, and biases are added before slicing") {
  const auto loaded = preset("paper-encoder", smallEncoder);
  VariantOptions options;
  options.stacking = StackingChoice::three;
  options.attention = AttentionChoice::unfused;
  const std::vector<Variant> variants = proposeVariants(*loaded->module, options);
  GraphOp graph = graphOf(*variants.front().module);
  const select::Problem problem =
      toProblem(graph, variants.front().rewrites, proposeFusions(graph, FuseOptions{}));
  int packed = 0;
  for (const select::Candidate &candidate : nonEmpty(problem.candidates))
    if (candidate.proposal.by == select::Proposal::By::packing) {
      ++packed;
      CHECK(candidate.kernel.operatorClass() == OperatorClass::movement);
      CHECK(problem.tensors[candidate.outputs.front()].isParameter);
    }
  CHECK(packed == 2);  // weights and biases
  const auto biases = graph.getBody().front().getOps<BiasOp>();
  const auto original = loaded->graph().getBody().front().getOps<BiasOp>();
  CHECK(std::distance(biases.begin(), biases.end()) ==
        std::distance(original.begin(), original.end()) - 2);
}

namespace {

std::string print(mlir::Operation *op) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  op->print(stream);
  return text;
}

}  // namespace

TEST_CASE("a plan written into the graph computes the same, reads back, and keeps its kernels") {
  for (const char *name : {"paper-encoder", "llama-3-8b"}) {
    INFO(name);
    Dims dims = smallEncoder;
    if (std::string(name) == "llama-3-8b") dims = smallLlama;
    const auto loaded = preset(name, dims);
    const select::Problem problem =
        toProblem(loaded->graph(), {}, proposeFusions(loaded->graph(), FuseOptions{}));
    select::SelectionResult plan = planInOrder(problem, largestFirst(problem));
    const int result = problem.candidates[plan.steps.back().candidate].outputs.front();
    select::Step transpose;
    transpose.tensor = result;
    transpose.configuration = {.inputs = {rowMajor(3)},
                               .outputs = {Layout{.order = {2, 0, 1}}},
                               .knobs = TransposeKnobs{}};
    plan.steps.push_back(transpose);

    const auto module = materialize(*loaded->module, problem, plan);
    GraphOp graph = graphOf(*module);
    requireSame(loaded->graph(), graph);
    const std::vector<mlir::Operation *> kernels = numberedOps(graph);
    REQUIRE(kernels.size() == plan.steps.size());
    for (size_t index = 0; index < kernels.size(); ++index) {
      auto op = mlir::cast<KernelOp>(kernels[index]);
      INFO(op.getName().str());
      CHECK(configurationOf(op) == plan.steps[index].configuration);
      CHECK(isTranspose(op) == (plan.steps[index].candidate < 0));
      if (plan.steps[index].candidate < 0) continue;
      const Kernel &kernel = problem.candidates[plan.steps[index].candidate].kernel;
      CHECK(canonicalText(toKernel({op}, "")) == canonicalText(kernel));
      CHECK(toKernel({op}, "").axes == kernel.axes);
    }
    const std::string text = print(*module);
    const auto again = mlir::parseSourceString<mlir::ModuleOp>(text, &loaded->context);
    REQUIRE(again);
    CHECK(print(*again) == text);
    const std::vector<mlir::Operation *> readBack = numberedOps(graphOf(*again));
    CHECK(isTranspose(mlir::cast<KernelOp>(readBack.back())));
    requireSame(loaded->graph(), graphOf(*again));
  }
}
