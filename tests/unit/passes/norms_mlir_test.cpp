// Norms as sums of rows and their application: the same values as the whole norm, on every type and
// axis; how much a large mean costs; which norms stay whole; what the steps fuse with.
#include "passes/Describe.h"
#include "passes/Passes.h"
#include "passes/Rewrites.h"
#include "passes/configure/Families.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/samples/SampleGraphs.h"
#include "tools/driver/ScaledGraph.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

using namespace weft;
using namespace weft::test;

namespace {

struct Rows {
  int64_t b, j, i;
};

/// One norm over i, which is the middle axis where it is not the last.
std::string normText(bool isRms, const std::string &type, const Rows &rows, bool isLast) {
  const std::string axes = isLast ? "b, j, i" : "b, i, j";
  const std::string x = fmt::format("tensor<{}x{}x{}x{}, #weft.axes<{}>>", rows.b,
                                    isLast ? rows.j : rows.i, isLast ? rows.i : rows.j, type, axes);
  const std::string g = fmt::format("tensor<{}x{}, #weft.axes<i>>", rows.i, type);
  const std::string norm = isRms ? "weft.rms_norm %x, %gamma over i {epsilon = 1.0e-3} : !x, !g"
                                 : "weft.layer_norm %x, %gamma, %beta over i : !x, !g, !g";
  return fmt::format(
      "!x = {}\n!g = {}\nweft.graph @norm(%x: !x, %gamma: !g, %beta: !g) -> !x {{\n  %y = {} -> "
      "!x\n  weft.return %y : !x\n}}",
      x, g, norm);
}

std::vector<TensorValue> evaluated(GraphOp graph, const std::vector<TensorValue> &arguments,
                                   const InterpreterOptions &options) {
  const auto result = interpret(graph, arguments, options);
  REQUIRE(mlir::succeeded(result));
  return *result;
}

}  // namespace

TEST_CASE("a decomposed norm computes what the norm computes") {
  for (const bool isRms : {false, true})
    for (const char *type : {"f16", "bf16", "f32"})
      for (const Rows &rows : {Rows{2, 3, 40}, {1, 1, 1}, {3, 7, 33}, {1, 5, 129}})
        for (const bool isLast : {true, false}) {
          const std::string text = normText(isRms, type, rows, isLast);
          INFO(text);
          const auto whole = parse(text), steps = parse(text);
          const std::vector<FusionRecord> records = decomposeNorms(steps->graph());
          REQUIRE(records.size() == 1);
          CHECK(records[0].accepted);
          CHECK(records[0].opNames == std::vector<std::string>{"y"});
          std::vector<std::string> made;
          for (mlir::Operation &op : steps->graph().getBody().front().without_terminator())
            made.push_back(writtenName(op.getResult(0)));
          made.pop_back();  // y itself
          std::vector<std::string> named = records[0].steps;
          std::ranges::sort(made), std::ranges::sort(named);
          CHECK(named == made);
          CHECK_FALSE(hasDecomposableNorm(steps->graph()));
          requireSame(whole->graph(), steps->graph(), uint64_t(rows.i));
          // As kernels would: arithmetic in fp32, and every result of the steps rounded to its
          // type.
          const std::vector<TensorValue> arguments = randomArguments(whole->graph(), 3);
          const InterpreterOptions stored{.precision = Precision::f32, .roundToStorage = true};
          const double unit = type == std::string("f32")   ? 0x1p-20
                              : type == std::string("f16") ? 0x1p-9
                                                           : 0x1p-6;
          const auto expected = evaluated(whole->graph(), arguments, stored),
                     actual = evaluated(steps->graph(), arguments, stored);
          CHECK(distance(actual[0], expected[0], unit, unit) <= 1.0);
        }
}

TEST_CASE(
    "a mean of many deviations costs the variance as much as the specification says, and "
    "layer_norm nothing") {
  constexpr int64_t count = 513;
  const std::string text = normText(false, "f32", {1, 4, count}, true);
  const auto whole = parse(text), steps = parse(text);
  decomposeNorms(steps->graph());
  std::vector<TensorValue> arguments = randomArguments(whole->graph(), 5);
  std::fill(arguments[1].elements.begin(), arguments[1].elements.end(), 1.0);
  std::fill(arguments[2].elements.begin(), arguments[2].elements.end(), 0.0);
  const std::vector<double> means = {0, 10, 100, 4096};  // deviations of about 1
  for (size_t n = 0; n < arguments[0].elements.size(); ++n)
    arguments[0].elements[n] = double(float(arguments[0].elements[n] + means[n / size_t(count)]));
  const auto exact = evaluated(whole->graph(), arguments, {});
  const auto wholeResult = evaluated(whole->graph(), arguments, {.precision = Precision::f32});
  const auto result = evaluated(steps->graph(), arguments, {.precision = Precision::f32});
  requireSame(whole->graph(), steps->graph());  // in fp64
  for (size_t row = 0; row < means.size(); ++row) {
    INFO(means[row]);
    double error = 0, wholeError = 0, magnitude = 0;
    for (size_t n = row * size_t(count); n < (row + 1) * size_t(count); ++n) {
      REQUIRE(std::isfinite(result[0].elements[n]));
      error = std::max(error, std::abs(result[0].elements[n] - exact[0].elements[n]));
      wholeError =
          std::max(wholeError, std::abs(wholeResult[0].elements[n] - exact[0].elements[n]));
      magnitude = std::max(magnitude, std::abs(exact[0].elements[n]));
    }
    // Accumulators of the interpreter are sequential, which is the worst that sums may do: some
    // sqrt(count) roundings.
    const double ofVariance = 0x1p-22 * (1 + means[row] * means[row]);
    CHECK(wholeError < 0x1p-20 * (1 + means[row]) * magnitude);
    if (means[row] < 1000) CHECK(error < (8 * ofVariance + 0x1p-20 * (1 + means[row])) * magnitude);
    else CHECK(error > 100 * wholeError);  // honest: nothing of it is right
  }
}

TEST_CASE("norms whose statistics are read stay whole, with the reason") {
  const auto loaded = parse(types + R"(
weft.graph @g(%x: !bji, %gamma: !i, %beta: !i) -> (!bji, !bj) {
  %y, %mean, %rstd = weft.layer_norm %x, %gamma, %beta over i : !bji, !i, !i -> !bji, !bj, !bj
  %z, %unread = weft.rms_norm %y, %gamma over i : !bji, !i -> !bji, !bj
  weft.return %z, %mean : !bji, !bj
})");
  const std::vector<FusionRecord> records = decomposeNorms(loaded->graph());
  REQUIRE(records.size() == 2);
  CHECK(describe(records[0]) == "N010 statistics-are-read (mean)");
  CHECK(records[0].ops == std::vector{0});
  CHECK(records[1].accepted);
  CHECK_FALSE(hasDecomposableNorm(loaded->graph()));
}

TEST_CASE(
    "variants: whole by default, decomposed where asked for, both beside none and all stacked") {
  for (const char *name : {"gpt2", "llama-3-8b"}) {
    INFO(name);
    const auto loaded =
        preset(name, name == std::string("gpt2")
                         ? Dims{{"b", 1}, {"j", 6}, {"h", 2}, {"p", 4}, {"i", 8}, {"u", 12}}
                         : smallLlama);
    const auto proposed = [&](NormChoice norms) {
      return proposeVariants(*loaded->module,
                             {.attention = AttentionChoice::unfused, .norms = norms});
    };
    const auto isDecomposed = [](const Variant &variant) {
      return std::ranges::count(variant.rewrites, Rewrite::Kind::decomposeNorms, &Rewrite::kind) ==
             1;
    };
    const std::vector<Variant> fused = proposed(NormChoice::fused),
                               decomposed = proposed(NormChoice::decomposed),
                               both = proposed(NormChoice::automatic);
    CHECK(std::ranges::none_of(fused, isDecomposed));
    CHECK(std::ranges::all_of(decomposed, isDecomposed));
    CHECK(decomposed.size() == fused.size());
    const bool isDeferrable = name == std::string("llama-3-8b");  // the other has layer norms
    CHECK(both.size() == fused.size() + (isDeferrable ? 4 : 2));
    CHECK(std::ranges::count_if(both, isDecomposed) == 2);
    for (const Variant &variant : nonEmpty(proposed(NormChoice::deferred))) {
      CHECK(std::ranges::count(variant.rewrites, Rewrite::Kind::deferNorms, &Rewrite::kind) ==
            (isDeferrable ? 1 : 0));
      requireSame(loaded->graph(), graphOf(*variant.module));
      REQUIRE(variant.norms.size() == 2);
      CHECK(describe(variant.norms[0]) ==
            (isDeferrable ? "N020 factor-stays-before (nothing computes its operand)"
                          : "N020 factor-stays-before (a layer norm takes the mean away, too)"));
      CHECK(variant.norms[1].accepted == isDeferrable);
    }
    CHECK(both.front().rewrites.empty());
    for (const Variant &variant : nonEmpty(decomposed)) {
      requireSame(loaded->graph(), graphOf(*variant.module));
      CHECK(variant.norms.size() == 2);
    }
  }
}

TEST_CASE(
    "a factor of rows is deferred behind contractions that sum along the rows, and nowhere else") {
  const auto deferred = [](const std::string &body) {
    const std::string head = R"(
!bji = tensor<2x3x33xf16, #weft.axes<b, j, i>>
!i = tensor<33xf16, #weft.axes<i>>
!ui = tensor<7x33xf16, #weft.axes<u, i>>
!ubj = tensor<7x2x3xf16, #weft.axes<u, b, j>>
!bjk = tensor<2x3x3xf16, #weft.axes<b, j, k>>
weft.graph @g(%a: !bji, %gamma: !i, %w: !ui, %v: !ui)";
    const auto whole = parse(head + body), steps = parse(head + body);
    const std::vector<FusionRecord> records = decomposeNorms(steps->graph(), NormSteps::deferred);
    REQUIRE(records.size() == 1);
    REQUIRE(mlir::succeeded(mlir::verify(steps->graph())));
    requireSame(whole->graph(), steps->graph());
    const std::vector<TensorValue> arguments = randomArguments(whole->graph(), 3);
    const InterpreterOptions stored{.precision = Precision::f32, .roundToStorage = true};
    const auto expected = evaluated(whole->graph(), arguments, stored),
               actual = evaluated(steps->graph(), arguments, stored);
    REQUIRE(!expected.empty());
    for (size_t n = 0; n < expected.size(); ++n)
      CHECK(distance(actual[n], expected[n], 0x1p-8, 0x1p-8) <= 1.0);
    return describe(records[0]);
  };
  const std::string norm =
      "  %x = weft.relu %a : !bji\n  %y = weft.rms_norm %x, %gamma over i {epsilon = 1.0e-4} : "
      "!bji, !i\n";
  CHECK(deferred(") -> (!ubj, !ubj) {\n" + norm + R"(
  %p = weft.contract "ui,bji->ubj" %w, %y {scale = 0.5} : !ui, !bji -> !ubj
  %q = weft.contract "bji,ui->ubj" %y, %v : !bji, !ui -> !ubj
  %r = weft.silu %q : !ubj
  weft.return %p, %r : !ubj, !ubj
})") == "accepted");
  CHECK(deferred(") -> (!ubj, !bji) {\n" + norm + R"(
  %p = weft.contract "ui,bji->ubj" %w, %y : !ui, !bji -> !ubj
  weft.return %p, %y : !ubj, !bji
})") == "N020 factor-stays-before (it is read by no contraction alone)");
  CHECK(deferred(") -> !bjk {\n" + norm + R"(
  %p = weft.contract "bji,bki->bjk" %y, %y : !bji, !bji -> !bjk
  weft.return %p : !bjk
})") == "N020 factor-stays-before (it is read by no contraction alone)");
  CHECK(deferred(") -> tensor<7x2x33xf16, #weft.axes<u, b, i>> {\n" + norm + R"(
  %ones = weft.constant dense<1.0> : tensor<7x3xf16, #weft.axes<u, j>>
  %p = weft.contract "uj,bji->ubi" %ones, %y : tensor<7x3xf16, #weft.axes<u, j>>, !bji
      -> tensor<7x2x33xf16, #weft.axes<u, b, i>>
  weft.return %p : tensor<7x2x33xf16, #weft.axes<u, b, i>>
})") == "N020 factor-stays-before ('p' sums along other axes than its rows)");
}

TEST_CASE("in training the backward pass reads statistics: nothing is decomposed") {
  const auto loaded = preset("paper-encoder", smallEncoder);
  REQUIRE(mlir::succeeded(differentiate(loaded->graph(), {})));
  const size_t fused = proposeVariants(*loaded->module, {}).size();
  CHECK(proposeVariants(*loaded->module, {.norms = NormChoice::automatic}).size() == fused);
  for (const Variant &variant :
       nonEmpty(proposeVariants(*loaded->module, {.norms = NormChoice::decomposed}))) {
    CHECK(std::ranges::count(variant.rewrites, Rewrite::Kind::decomposeNorms, &Rewrite::kind) == 0);
    REQUIRE(variant.norms.size() == 2);
    CHECK_THAT(describe(variant.norms[0]), Catch::StartsWith("N010 statistics-are-read"));
  }
}

TEST_CASE("a graph that is made small divides sums by what a row has then") {
  const auto loaded =
      preset("gpt2", {{"b", 1}, {"j", 64}, {"h", 4}, {"p", 64}, {"i", 256}, {"u", 512}});
  decomposeNorms(loaded->graph());
  std::string text;
  llvm::raw_string_ostream(text) << *loaded->module;
  const driver::Scaling scaling(
      {{"b", 1}, {"j", 64}, {"k", 64}, {"w", 64}, {"h", 4}, {"p", 64}, {"i", 256}, {"u", 512}},
      {{"i", 48}, {"u", 80}});
  const auto small = parse(driver::scaledGraph(text, scaling).ops);
  int norms = 0;
  small->graph().walk([&](NormalizeOp norm) {
    const auto type = mlir::cast<mlir::RankedTensorType>(norm.getX().getType());
    CHECK(type.getDimSize(2) == 48);
    CHECK(int64_t(norm.getCount()) == 48);
    ++norms;
  });
  CHECK(norms == 2);
}

TEST_CASE(
    "behind a projection the sums are its epilogue on sm_90a, and the norm is applied where the "
    "next one loads it") {
  const std::string head = R"(
!bji = tensor<2x64x128xbf16, #weft.axes<b, j, i>>
!bju = tensor<2x64x256xbf16, #weft.axes<b, j, u>>
!i = tensor<128xbf16, #weft.axes<i>>
!ui = tensor<256x128xbf16, #weft.axes<u, i>>
weft.graph @g(%h: !bju, %rest: !bji, %w: !ui {weft.parameter},
              %bias: !i {weft.parameter}, %v: !ui {weft.parameter},
              %gamma: !i {weft.parameter},
              %beta: !i {weft.parameter}) -> (!bji, !bju) {
  %gemm = weft.contract "bju,ui->bji" %h, %w : !bju, !ui -> !bji
  %biased = weft.bias %gemm, %bias along (i) : !bji, !i
  %x = weft.residual %biased, %rest : !bji
)",
                    end = R"(
  %next = weft.contract "bji,ui->bju" %y, %v : !bji, !ui -> !bju
  weft.return %x, %next : !bji, !bju
})";
  struct Form {
    bool isRms, isDeferred;
    std::string withSums, applied, alone;
  };
  const Form forms[] = {{false, false, "gemm biased x y_sum y_wide y_square y_squares",
                         "y_normal y_scaled y next", "biased x y_sum y_wide y_square y_squares"},
                        {true, false, "gemm biased x y_wide y_square y_squares", "y_normal y next",
                         "biased x y_wide y_square y_squares"},
                        {true, true, "gemm biased x y_wide y_square y_squares y_gained",
                         "next_raw next", "biased x y_wide y_square y_squares y_gained"}};
  for (const auto &[isRms, isDeferred, withSums, applied, alone] : forms) {
    const auto loaded =
        parse(head +
              (isRms ? "  %y = weft.rms_norm %x, %gamma over i : !bji, !i"
                     : "  %y = weft.layer_norm %x, %gamma, %beta over i : !bji, !i, !i") +
              end);
    decomposeNorms(loaded->graph(), isDeferred ? NormSteps::deferred : NormSteps::decomposed);
    std::vector<std::string> names;
    for (mlir::Operation *op : numberedOps(loaded->graph()))
      if (op->getNumResults() > 0) names.push_back(writtenName(op->getResult(0)));
    const auto candidatesOn = [&](const char *device) {
      FuseOptions options;
      options.epilogueRejection = epilogueRejections(findDevice(device));
      options.prologueRejection = prologueRejections(findDevice(device));
      std::vector<std::string> sets;
      for (const FusionCandidate &candidate : proposeFusions(loaded->graph(), options).candidates) {
        std::string text;
        for (const int op : candidate.ops) text += (text.empty() ? "" : " ") + names[size_t(op)];
        sets.push_back(text);
      }
      return sets;
    };
    const std::vector<std::string> sm90 = candidatesOn("h200"), sm80 = candidatesOn("a100");
    INFO(fmt::format("{}", fmt::join(sm90, "\n")));
    CHECK(std::ranges::count(sm90, withSums) == 1);
    CHECK(std::ranges::count(sm90, applied) == 1);
    CHECK(std::ranges::count(sm80, withSums) == 0);  // no sums there: they stand in a loop kernel
    CHECK(std::ranges::count(sm80, alone) == 1);
    CHECK(std::ranges::count(sm80, applied) == 1);
  }
}
