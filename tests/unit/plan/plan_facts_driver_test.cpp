// What is said first of a plan: facts from plan and report, worked out by hand, and lines that keep
// within their screen whatever the plan.
#include "codegen/families/loop/LoopKnobs.h"
#include "codegen/families/transpose/TransposeKnobs.h"
#include "codegen/families/view/ViewKnobs.h"
#include "kernel/Device.h"
#include "kernel/Error.h"
#include "kernel/TextWidth.h"
#include "passes/configure/CostModel.h"
#include "tests/support/NonEmpty.h"
#include "tools/driver/EstimateError.h"
#include "tools/driver/FirstLines.h"
#include "tools/driver/PlanFacts.h"

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <functional>
#include <sstream>

using namespace weft;
using weft::test::nonEmpty;
using namespace weft::driver;

using nlohmann::json;

namespace {

PlanTensor tensor(const std::string &name, int64_t bytes, int buffer,
                  TensorRole role = TensorRole::temporary) {
  return {.name = name,
          .logical = name,
          .dtype = DType::f16,
          .axes = {"b", "j"},
          .extents = {2, bytes / 4},
          .order = {0, 1},
          .strides = {bytes / 4, 1},
          .role = role,
          .buffer = buffer,
          .bytes = bytes};
}

PlanKernel kernel(const std::string &name, const std::string &op, std::vector<int> inputs,
                  int output, double microseconds, bool measured = true) {
  PlanKernel kernel;
  kernel.name = name;
  kernel.label = name.substr(0, name.find("__"));
  kernel.family = op == "slice" ? viewFamily : loopFamily;
  kernel.source = op == "slice" ? "" : "kernels/" + name + ".cu";
  kernel.ops = {parsePlanOp("%1 = " + op + " %0").value()};
  kernel.inputs = std::move(inputs);
  kernel.outputs = {output};
  kernel.seconds = op == "slice" ? 0 : microseconds * 1e-6;
  kernel.measured = measured;
  kernel.key = name;
  if (op != "slice") kernel.textHash = "text of " + name;
  kernel.bound = Bound::memory;
  kernel.knobs = op == "slice" ? PlanKnobs{ViewKnobs{}} : PlanKnobs{LoopKnobs{}};
  return kernel;
}

runtime::VerificationRecord agreement(const PlanKernel &kernel) {
  return {.hash = runtime::recordHashOf(kernel),
          .gpu = "NVIDIA H200",
          .points = 64,
          .kernel = kernel.name};
}

/// Records of this machine's store, and no others.
runtime::BelievedRecords recorded(const std::vector<runtime::VerificationRecord> &records) {
  return {{}, runtime::merged({}, {.records = records, .isWhole = true})};
}

const runtime::BelievedRecords none({}, {});

std::vector<std::string> warningTexts(const Plan &plan, const json &report,
                                      const runtime::BelievedRecords &records) {
  return textsOf(warningsOf(plan, report, records));
}

/// x -> contract -> y -> view -> s -> layer_norm -> z: one kernel each; y is read through a view.
Plan chain() {
  Plan plan;
  plan.model = "chain";
  plan.device = "h200";
  plan.target = "sm_90a";
  plan.dtype = DType::f16;
  plan.costModel = {.name = "shipped profile", .details = "h200, 9 measurements"};
  plan.dims = {{"b", 2}, {"j", 4}};
  plan.entryPoints = {{EntryPointKind::forward, {0, 1, 2}}};
  plan.tensors = {tensor("x", 4'000'000, 0, TensorRole::argument), tensor("y", 8'000'000, 1),
                  tensor("s", 6'000'000, 1), tensor("z", 4'000'000, 2, TensorRole::result)};
  plan.kernels = {kernel("gemm__b_j", "contract", {0}, 1, 30),
                  kernel("slice__b_j", "slice", {1}, 2, 0),
                  kernel("norm__b_j", "layer_norm", {2}, 3, 10)};
  plan.predictedSeconds = 40e-6;
  plan.lowerBoundSeconds = 36e-6;
  return plan;
}

/// Ops 0 contract, 1 slice, 2 layer_norm; no plan fuses the first and the last.
json report() {
  return {
      {"kernelOps", {{"gemm__b_j", {0}}, {"slice__b_j", {1}}, {"norm__b_j", {2}}}},
      {"stages", {{"gemm__b_j", "projections"}, {"norm__b_j", "norms"}, {"slice__b_j", "other"}}},
      {"fusionPrices", {{{"ops", {0, 2}}, {"fused", false}, {"lossOfOther", nullptr}}}},
      {"fusions",
       {{{"ops", {0, 1, 2}}, {"accepted", false}, {"code", "F060"}, {"reason", "movement-op"}},
        {{"ops", {0, 2}}, {"accepted", false}, {"code", "F024"}, {"reason", "no-epilogue"}},
        {{"ops", {0, 2}}, {"accepted", true}, {"code", ""}, {"reason", ""}}}},
      {"rooflineSeconds", 20e-6},
      {"variants",
       {{{"name", "a"},
         {"statistics",
          {{"configurations", 60}, {"legalConfigurations", 1000.0}, {"measured", 60}}}},
        {{"name", "b"},
         {"statistics",
          {{"configurations", 40}, {"legalConfigurations", 500.0}, {"measured", 30}}}}}}};
}

std::vector<std::string> linesOf(const std::string &text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

bool hasLine(const std::string &text, const std::string &part) {
  return std::ranges::any_of(
      linesOf(text), [&](const std::string &line) { return line.find(part) != std::string::npos; });
}

}  // namespace

TEST_CASE("a kernel goes by its label, which may hold what parts a name") {
  Plan plan = chain();
  CHECK(largestUnfused(plan, report()).value().writer == "gemm");
  plan.kernels[0].label = "my__gemm";
  CHECK(largestUnfused(plan, report()).value().writer == "my__gemm");
  plan.kernels[0].label.clear();  // as in plans from before labels
  CHECK(largestUnfused(plan, report()).value().writer == "gemm__b_j");
}

TEST_CASE("coverage is of all variants, and says it when nothing was measured") {
  const Coverage coverage = coverageOf(report()).value();
  CHECK(coverage.offered == 100);
  CHECK(coverage.measured == 90);
  CHECK(coverage.legal == 1500);
  CHECK(describe(coverage) == "100 of 1,500 legal configurations offered, 90 measured");
  CHECK(describe({.legal = 10, .offered = 5, .measured = 5}) ==
        "5 of 10 legal configurations offered, all measured");
  CHECK(describe({.legal = 1e9, .offered = 5, .measured = 0}) ==
        "5 of 1.0e+09 legal configurations offered, none measured");
  CHECK_FALSE(coverageOf(json::object()));
}

TEST_CASE("chunks and repeats are one row, other kernels are not") {
  Plan plan = chain();
  for (const int64_t start : {0, 8}) {
    PlanKernel one = kernel(fmt::format("score__h_b__h{}", start), "contract", {0}, 1, 5);
    one.chunk =
        PlanChunk{.region = 0, .axis = "h", .start = start, .size = 8, .whole = "score__h_b"};
    plan.kernels.push_back(one);
  }
  plan.kernels.push_back(kernel("norm__b_j_2", "layer_norm", {2}, 3, 10));
  plan.kernels.back().key = "norm__b_j";  // the same text in another layer
  const std::vector<FoldedKernel> folded = foldedKernels(plan);
  REQUIRE(folded.size() == 3);  // the view is none
  CHECK(folded[0].kernels == std::vector<int>{0});
  CHECK(folded[1].kernels == std::vector<int>{2, 5});
  CHECK(folded[1].seconds == Approx(20e-6));
  CHECK(folded[2].name == "score__h_b");
  CHECK(folded[2].kernels == std::vector<int>{3, 4});
  CHECK(mostChunks(plan) == 2);
  CHECK(mostChunks(chain()) == 1);
  plan.kernels.back().seconds = 11e-6;  // the same text at another price is another row
  CHECK(foldedKernels(plan).size() == 4);
}

TEST_CASE(
    "the loss not fused is what two kernels exchange, through views, with the code of the smallest "
    "rejected attempt") {
  const UnfusedLoss loss = largestUnfused(chain(), report()).value();
  CHECK(loss.tensor == "y");
  CHECK(loss.writer == "gemm");
  CHECK(loss.reader == "norm");
  CHECK(loss.bytes ==
        6'000'000 + 8'000'000);  // the view is read, all of y is written, and nobody else needs it
  CHECK(loss.seconds == Approx(14e6 / findDevice("h200").copyBandwidth));
  CHECK(loss.code == "F024");
  json given = report();
  SECTION("a loss that prints as zero is none") {
    Plan plan = chain();
    plan.tensors[1].bytes = plan.tensors[2].bytes = 4000;
    CHECK_FALSE(largestUnfused(plan, given));
  }
  SECTION("what is read elsewhere is written anyway") {
    Plan plan = chain();
    plan.kernels.push_back(kernel("other__b_j", "relu", {1}, 3, 1));
    CHECK(largestUnfused(plan, given).value().bytes == 6'000'000);
  }
  SECTION("what an update in place leaves as it was is read by any kernel") {
    Plan plan = chain();
    plan.tensors[1].buffer = plan.tensors[2].buffer = plan.tensors[0].buffer;
    CHECK_FALSE(largestUnfused(plan, given));
    plan.tensors[0].role = TensorRole::temporary;  // which one kernel would not store
    CHECK(largestUnfused(plan, given));
  }
  SECTION("what selection could have fused, and did not for the price, is no loss") {
    given["fusionPrices"][0]["lossOfOther"] = 2e-6;
    CHECK_FALSE(largestUnfused(chain(), given));
  }
  SECTION("a kernel that waits for its measurement has no code") {
    given["fusionPrices"][0]["whyNone"] = "there are none";
    CHECK(largestUnfused(chain(), given).value().code.empty());
  }
  SECTION("two contractions count as attention alone") {
    Plan plan = chain();
    plan.kernels[2].ops = {parsePlanOp("%2 = contract %1").value()};
    CHECK_FALSE(largestUnfused(plan, given));
    given["stages"] = {{"gemm__b_j", "attention"}, {"norm__b_j", "attention"}};
    CHECK(largestUnfused(plan, given));
  }
}

TEST_CASE(
    "layouts to ask for: what would save first, else the costliest alternative where no transposes "
    "are") {
  Plan plan = chain();
  json layouts = {
      {"y", {{"prices", {{{"layout", "bj"}, {"loss", 0.0}}, {{"layout", "jb"}, {"loss", 3e-6}}}}}},
      {"s", {{"prices", {{{"layout", "bj"}, {"loss", 0.0}}, {{"layout", "jb"}, {"loss", 0.0}}}}}}};
  CHECK(layoutQuestions(plan, json::object()).empty());
  REQUIRE(layoutQuestions(plan, layouts).size() == 1);
  CHECK(layoutQuestions(plan, layouts)[0].tensor == "y");
  CHECK(layoutQuestions(plan, layouts)[0].others == std::vector<std::string>{"jb"});
  plan.kernels[2].family = transposeFamily;
  CHECK(layoutQuestions(plan, layouts).empty());
  layouts["s"]["prices"] = {{{"layout", "bj"}, {"loss", 7e-8}}, {{"layout", "jb"}, {"loss", 0.0}}};
  CHECK(layoutQuestions(plan, layouts).empty());  // less than 0.2% is not worth a line
  layouts["s"]["prices"][0]["loss"] = 2e-6;
  REQUIRE(layoutQuestions(plan, layouts).size() == 1);
  CHECK(layoutQuestions(plan, layouts)[0].tensor == "s");
  plan.kernels[2].family = loopFamily;
  CHECK(layoutQuestions(plan, layouts).size() == 2);
}

TEST_CASE(
    "the costliest layout: what would save first, else transposes, else what another layout "
    "costs") {
  Plan plan = chain();
  json given = report();
  CHECK(costliestLayout(plan, given).text.empty());
  const auto with = [&](double seconds, int64_t more = 0) {
    given["layoutChange"] = {{"tensor", "y"},
                             {"layout", "bj"},
                             {"other", "jb"},
                             {"graphSeconds", seconds},
                             {"workspaceBytes", plan.workspaceBytes + more}};
    return costliestLayout(plan, given).text;
  };
  CHECK(with(3e-6).starts_with("y lies as bj; jb would cost +3.00 us of graph time"));
  CHECK(with(3e-6, 1'000'000)
            .starts_with(
                "y lies as bj; jb would cost +3.00 us of graph time in a workspace of 1.00 MB"));
  plan.kernels[2].family = transposeFamily;
  CHECK(with(3e-6) == "1 transpose between layouts: 10.0 us, 25.0% of the time");
  CHECK(with(-2e-6).starts_with("y lies as bj; jb would save 2.00 us of graph time"));
}

TEST_CASE(
    "the memory trade names the fastest plan that takes less, and a faster one that takes more") {
  Plan plan = chain();
  plan.workspaceBytes = 60'000'000;
  json given = report();
  CHECK(memoryTrade(plan, given).text.ends_with("no plan in chunks was weighed"));
  const auto priced = [](int chunks, double microseconds, int64_t bytes, bool chosen) {
    return json{{"chunks", chunks},
                {"seconds", microseconds * 1e-6},
                {"workspace", bytes},
                {"chosen", chosen}};
  };
  given["chunks"] = {priced(1, 38, 90'000'000, false), priced(2, 40, 60'000'000, true),
                     priced(4, 45, 40'000'000, false), priced(8, 60, 30'000'000, false)};
  CHECK(memoryTrade(plan, given).text ==
        "workspace 60.0 MB; 90.0 MB takes -2.00 us of graph time (--chunks 1); 40.0 MB takes +5.00 "
        "us (--chunks "
        "4)");
}

TEST_CASE("estimates, edits, missing plans and unverified texts are warnings") {
  Plan plan = chain();
  CHECK(warningTexts(plan, report(),
                     recorded({agreement(plan.kernels[0]), agreement(plan.kernels[2])}))
            .empty());
  plan.kernels[2].measured = false;
  plan.notes = {
      {.kind = NoteKind::build, .text = "cubins: skipped, no NVRTC"},
      {.kind = NoteKind::copy, .text = "slice__b_j is a copy: why", .code = "V001"},
      {.kind = NoteKind::copy, .text = "slice__b_j_2 is a copy: why", .code = "V001"},
      {.kind = NoteKind::packing, .text = "parameter w is a copy: V002 x: stale, changes nothing"}};
  json given = report();
  given["variants"].push_back({{"name", "c"}, {"noPlan", "too large"}});
  const std::vector<std::string> warnings =
      warningTexts(plan, given, recorded({agreement(plan.kernels[0])}));
  REQUIRE(warnings.size() == 5);
  CHECK(warnings[1] == fmt::format("1 of 2 kernels estimated, typical error {:.0f}% of f16 kernels "
                                   "profiled on h200 (weft profile DIR)",
                                   100 * typicalEstimateError.kernel));
  CHECK(warnings[0] == "cubins: skipped, no NVRTC");
  CHECK(warnings[2] == "variant c has no plan: too large");
  CHECK(warnings[3] ==
        "2 kernels are there to move a part of a tensor, which could be no view [V001]");
  CHECK(warnings[4] == "1 of 2 kernels never verified on a GPU (weft verify DIR)");
}

TEST_CASE("the summary says why there are no cubins once, whatever the words") {
  Plan plan = chain();
  plan.notes = {
      {.kind = NoteKind::build, .text = "no compiler is there"},
      {.kind = NoteKind::serialized, .text = "cubins: a kernel is slower than its price"}};
  const std::string text = summaryText(plan, report(), none, {}, "out");
  CHECK(hasLine(text, "wrote out (no compiler is there)"));
  CHECK_FALSE(hasLine(text, "! no compiler is there"));
  CHECK(hasLine(text, "! cubins: a kernel is slower than its price"));
}

TEST_CASE("a search that its limits cut short is a warning, with what was left out and a remedy") {
  const Plan plan = chain();
  json given = report();
  given["searchLimits"] = {{"reached", false}, {"leftOut", json::array()}};
  const auto said = [&] { return warningTexts(plan, given, none).front(); };
  CHECK(said().find("--search-memory") == std::string::npos);
  given["searchLimits"] = {{"reached", true}, {"leftOut", {"7 variants were left out"}}};
  CHECK(said() ==
        "a faster plan may be left out (--search-memory by default): 7 variants were left out");
  given["searchLimits"]["leftOut"].push_back("layers");
  given["request"] = {{"choices", {{"searchMemory", "3M"}}}};
  CHECK(said() ==
        "a faster plan may be left out (--search-memory 3M): 7 variants were left out, and 1 more "
        "cut");
  CHECK(hasLine(summaryText(plan, given, none, {}, "out"),
                "! a faster plan may be left out (--search-memory 3M)"));
}

TEST_CASE("line ends and control characters in names stay within their line") {
  Plan plan = chain();
  plan.model = "evil\n! forged\x1b[31m";
  const std::string text = summaryText(plan, report(), none, {}, "out\n! forged");
  CHECK(hasLine(text, "evil\\n! forged\\x1b[31m"));
  CHECK(hasLine(text, "wrote out\\n! forged"));
  for (const std::string &line : nonEmpty(linesOf(text))) CHECK_FALSE(line.starts_with("! forged"));
}

TEST_CASE("one kernel is one kernel") {
  Plan plan = chain();
  plan.kernels.resize(1);
  plan.entryPoints = {{EntryPointKind::forward, {0}}};
  const std::string text = summaryText(plan, report(), none, {}, "out");
  CHECK(hasLine(text, "1 of 1 kernel measured"));
  CHECK(hasLine(text, "1 of 1 kernel never verified"));
  plan.kernels[0].measured = false;
  CHECK(hasLine(summaryText(plan, report(), none, {}, "out"), "1 kernel estimated by the"));
}

TEST_CASE("the error of an estimate is said of the kernels alone of which it is known") {
  const auto warning = [](const Plan &plan) {
    const std::vector<std::string> warnings = warningTexts(plan, report(), none);
    return nonEmpty(warnings).front();
  };
  Plan plan = chain();
  plan.kernels[0].measured = false;
  CHECK(warning(plan).find("typical error") != std::string::npos);
  for (const auto &change :
       std::vector<std::function<void(Plan &)>>{[](Plan &other) { other.device = "a100"; },
                                                [](Plan &other) { other.dtype = DType::f32; }}) {
    Plan other = plan;
    change(other);
    CHECK(warning(other).find("error unknown") != std::string::npos);
    CHECK(warning(other).find("typical error") == std::string::npos);
    const bool isOfSheet = other.device != "h200";
    CHECK((warning(other).find("a100 is known by its data sheet alone") != std::string::npos) ==
          isOfSheet);
  }
}

TEST_CASE("a plan that is larger than its GPU says so, with both sizes") {
  Plan plan = chain();
  plan.tensors[0] = tensor("x", 200'000'000'000, 0, TensorRole::argument);
  const std::vector<std::string> warnings = warningTexts(plan, report(), none);
  CHECK(nonEmpty(warnings).front() ==
        "takes 200 GB (parameters, arguments, results, workspace); h200 has 141 GB");
  plan.device = "a100";
  CHECK(warningTexts(plan, report(), none).front().find("a100 has 80.0 GB") != std::string::npos);
}

TEST_CASE("records of an older verifier and failures are neither verified nor never verified") {
  Plan plan = chain();
  runtime::VerificationRecord old = agreement(plan.kernels[0]),
                              failure = agreement(plan.kernels[2]);
  old.verifier = runtime::verifierVersion - 1;
  failure.verdict = GENERATE(runtime::Verdict::fails, runtime::Verdict::planFails);
  const runtime::BelievedRecords records = recorded({old, failure});
  CHECK(warningTexts(plan, report(), records) ==
        std::vector<std::string>{
            "1 of 2 kernels FAILED when last verified on a GPU (weft verify DIR)",
            "1 of 2 kernels verified by an older verifier alone (weft verify DIR)"});
  CHECK(hasLine(headLines(plan, report(), records, 100), "; 0 verified, 1 by an older verifier"));
  const json head = headJson(plan, report(), records);
  CHECK(head["verifiedKernels"] == 0);
  CHECK(head["olderVerifiedKernels"] == 1);
  CHECK(head["failedKernels"] == 1);
}

TEST_CASE("an edited kernel is not verified, whatever is recorded of the text that it had") {
  Plan plan = chain();
  plan.kernels[0].edited = true;
  const Evidence evidence =
      evidenceOf(plan, recorded({agreement(plan.kernels[0]), agreement(plan.kernels[2])}));
  CHECK(evidence.verified == 1);
  CHECK(evidence.edited == 1);
}

TEST_CASE("first lines keep within their screen, whatever the plan") {
  Plan plan = chain();
  json given = report();
  INFO(summaryText(plan, given, none, {}, "out"));
  CHECK(hasLine(summaryText(plan, given, none, {}, "out"), "shape        b=2, j=4"));
  given["model"]["part"] = "layer";  // axes of a written graph mean what its author says
  CHECK(hasLine(summaryText(plan, given, none, {}, "out"), "shape        batch b=2, sequence j=4"));
  CHECK(hasLine(summaryText(plan, given, none, {}, "out"),
                "  by kernel: best weft could choose 36.0 us (10.0% less), roofline 20.0 us"));
  CHECK(
      hasLine(summaryText(plan, given, none, {}, "out"), "where        projections 75% norms 25%"));
  CHECK(hasLine(summaryText(plan, given, none, {}, "out"), "[F024]"));
  plan.model = std::string(120, 'm');
  plan.costModel = {.name = "profile " + std::string(150, 'p'), .details = "h200, 3 measurements"};
  for (int axis = 0; axis < 26; ++axis)
    plan.dims[std::string(1, char('a' + axis))] = 1'000'000 + axis;
  plan.tensors[1].logical = std::string(90, 't');
  for (int count = 0; count < 40; ++count)
    given["variants"].push_back({{"name", std::string(60, 'v')}, {"noPlan", std::string(90, 'r')}});
  plan.kernels[0].measured = false;
  for (const size_t columns : {size_t(80), size_t(100)})
    for (const std::string &line : nonEmpty(linesOf(headLines(plan, given, none, columns))))
      CHECK(textColumns(line) <= columns);
  const std::string text = summaryText(plan, given, none, {}, "out");
  CHECK(linesOf(text).size() <= summaryLines);
  for (const std::string &line : nonEmpty(linesOf(text)))
    CHECK(textColumns(line) <= summaryColumns);
  CHECK(hasLine(text, "more: weft explain DIR --all"));
  CHECK(hasLine(text, "1 of 2 kernels estimated"));
  CHECK(hasLine(text, "[F024]"));  // the figure and the code are never cut
  CHECK(hasLine(text, "wrote out"));
}

TEST_CASE("the form of an attention says which backward passes are no kernel, or store scores") {
  const auto kernelOf = [](const std::string &name, OpKind kind, size_t contractions,
                           size_t outputs) {
    PlanKernel made = kernel(name, "contract", {0}, 1, 30);
    made.ops = {{.kind = kind}};
    made.ops.resize(1 + contractions, {.kind = OpKind::contract});
    made.outputs.resize(outputs, 1);
    return made;
  };
  const auto fused = [&](const std::string &name, size_t outputs = 3) {
    return kernelOf(name, OpKind::softmaxFromLogSums, 5, outputs);
  };
  const auto unfused = [&](const std::string &name) {
    return kernelOf(name, OpKind::softmaxFromLogSums, 1, 1);  // behind the contraction of scores
  };
  const auto formOf = [&](const std::vector<PlanKernel> &backwards) {
    Plan plan;
    plan.kernels = {kernelOf("attention__b_j", OpKind::onlineSoftmaxContract, 1, 1)};
    plan.kernels.insert(plan.kernels.end(), backwards.begin(), backwards.end());
    return attentionForm(plan);
  };
  CHECK(formOf({}) == "fused attention");
  CHECK(formOf({fused("a__b_j")}) == "fused attention");
  CHECK(formOf({unfused("a__b_j")}) == "fused attention, backward pass unfused");
  CHECK(formOf({unfused("a__b_j"), fused("b__b_j"), unfused("c__b_j")}) ==
        "fused attention, 2 of 3 backward passes unfused");
  CHECK(formOf({fused("a__b_j", 4), fused("b__b_j")}) ==
        "fused attention, gradient of scores stored for a bias");
  PlanKernel first = unfused("a__b_j__b0"), second = unfused("a__b_j__b8");
  first.chunk = PlanChunk{.axis = "b", .start = 0, .whole = "a__b_j"};
  second.chunk = PlanChunk{.axis = "b", .start = 8, .whole = "a__b_j"};
  CHECK(formOf({first, second, fused("b__b_j")}) ==
        "fused attention, 1 of 2 backward passes unfused");
}

TEST_CASE("kernels are alike in two layers by what they are, not by their names") {
  PlanKernel a = kernel("layer1_norm__b_j", "layer_norm", {2}, 3, 10), b = a;
  b.name = "layer2_norm__b_j";
  CHECK_FALSE(areAlikeInLayers(a, b));
  a.layer = 1, b.layer = 2, a.name = "first", b.name = "second";
  CHECK(areAlikeInLayers(a, b));
  b.layer = 1;
  CHECK_FALSE(areAlikeInLayers(a, b));  // two of one layer
  b.layer = 2, b.key = "another text";
  CHECK_FALSE(areAlikeInLayers(a, b));
  b.key = a.key, b.configuration = "tile 256";
  CHECK_FALSE(areAlikeInLayers(a, b));
}

TEST_CASE("a kernel is found by its name, its label, or how its name begins") {
  Plan plan;
  const auto add = [&](const std::string &name) {
    plan.kernels.push_back(kernel(name, "contract", {0}, 1, 30));
  };
  for (const char *name : {"attention__h_b_j", "attention_projection_bias__b_j", "norm",
                           "norm__b_j", "layer1_gelu__b_j", "layer2_gelu__b_j"})
    add(name);
  for (const int start : {0, 8}) {
    add("score__h_b_j_k__h" + std::to_string(start));
    plan.kernels.back().chunk = PlanChunk{.axis = "h", .start = start, .whole = "score__h_b_j_k"};
  }
  const auto found = [&](const std::string &name) { return findKernel(plan, name).name; };
  CHECK(found("norm") == "norm");
  CHECK(found("norm__b") == "norm__b_j");
  CHECK(found("attention") == "attention__h_b_j");  // a label, which begins another name as well
  CHECK(found("attention_p") == "attention_projection_bias__b_j");
  CHECK(found("layer2_gelu") == "layer2_gelu__b_j");
  CHECK(found("score__h_b_j_k__h8") == "score__h_b_j_k__h8");
  const auto rejection = [&](const std::string &name) {
    try {
      findKernel(plan, name);
    } catch (const Error &error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK_THAT(rejection("gelu"), Catch::Contains("no kernel 'gelu'"));  // names alone are of none
  for (PlanKernel &one : plan.kernels)
    if (one.name.starts_with("layer")) one.layer = one.name.starts_with("layer1") ? 1 : 2;
  CHECK(rejection("gelu") ==
        "kernel 'gelu' may mean 2 kernels: layer1_gelu__b_j, layer2_gelu__b_j");
  for (const char *chunks : {"score", "score__h_b_j_k"})  // the label, and the whole's name
    CHECK_THAT(rejection(chunks),
               Catch::EndsWith("2 kernels: score__h_b_j_k__h0, score__h_b_j_k__h8"));
  CHECK_THAT(rejection("att"), Catch::Contains("may mean 2 kernels: attention__h_b_j, "));
  CHECK_THAT(rejection("gelo__b_j"), Catch::StartsWith("no kernel 'gelo__b_j'"));
  for (int each = 0; each < 20; ++each) add("many_" + std::to_string(each));
  CHECK_THAT(rejection("many"), Catch::EndsWith("many_11, and 8 more"));
}
