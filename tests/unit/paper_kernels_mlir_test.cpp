// The kernels of Table A.1 of "Data Movement Is All You Need" against those that the fusion rules find for the same layer,
// forward and backward; and that graphs of fused kernels compute what the ops alone do.
#include "passes/Describe.h"
#include "passes/Passes.h"
#include "passes/Rewrites.h"
#include "passes/configure/Family.h"
#include "tests/unit/PaperKernels.h"
#include "tests/unit/SampleGraphs.h"
#include "tests/unit/SamplePlans.h"

#include <fmt/format.h>

#include <random>

using namespace weft;
using namespace weft::test;

namespace {

std::unique_ptr<Loaded> trained(const std::string &name, const Dims &dims) {
  auto loaded = preset(name, dims);
  REQUIRE(mlir::succeeded(differentiate(loaded->graph(), {})));
  return loaded;
}

FuseOptions rules(FuseRules rules) {
  FuseOptions options;
  options.rules = rules;
  return options;
}

Members membersOf(GraphOp graph, const std::vector<int> &ops) {
  const Dataflow flow = describeGraph(graph).flow;
  Members members;
  for (int op : ops)
    members.insert(flow.tensors[static_cast<size_t>(flow.ops[static_cast<size_t>(op)].results.front())].name);
  return members;
}

/// What runs if every fused candidate is taken: those, and the other ops alone, without contractions.
std::multiset<Members> kernelsOf(GraphOp graph, const FusionResult &fusions) {
  const std::vector<mlir::Operation *> all = numberedOps(graph);
  std::multiset<Members> kernels;
  std::set<int> fused;
  for (const FusionCandidate &candidate : fusions.candidates)
    if (candidate.ops.size() > 1) {
      for (int op : candidate.ops)
        CHECK(fused.insert(op).second);
      kernels.insert(membersOf(graph, candidate.ops));
    }
  for (int op = 0; op < static_cast<int>(all.size()); ++op)
    if (!fused.count(op) && !mlir::isa<ContractOp>(all[static_cast<size_t>(op)]))
      kernels.insert(membersOf(graph, {op}));
  return kernels;
}

const FusionCandidate *candidateWith(GraphOp graph, const FusionResult &fusions, const Members &members) {
  for (const FusionCandidate &candidate : fusions.candidates)
    if (membersOf(graph, candidate.ops) == members)
      return &candidate;
  return nullptr;
}

Kernel kernelOf(GraphOp graph, const FusionCandidate &candidate) {
  const std::vector<mlir::Operation *> all = numberedOps(graph);
  std::vector<mlir::Operation *> ops;
  for (int op : candidate.ops)
    ops.push_back(all[static_cast<size_t>(op)]);
  return toKernel(ops, "");
}

const std::map<std::string, Dims> smallPresets = {
    {"paper-encoder", smallEncoder}, {"bert-base", smallEncoder}, {"gpt2", smallEncoder}, {"llama-3-8b", smallLlama}};

}  // namespace

TEST_CASE("rules paper: the fused kernels of a training step are those of Table A.1") {
  const auto loaded = trained("paper-encoder", {});
  std::multiset<Members> expected = {biasOfSecondLinear};
  for (const PaperKernel &kernel : tableA1)
    expected.insert(kernel.ops);
  CHECK(kernelsOf(loaded->graph(), proposeFusions(loaded->graph(), rules(FuseRules::paper))) == expected);
}

TEST_CASE("default rules: one candidate has exactly the ops of each kernel of Table A.1, and loops take it") {
  const auto loaded = trained("paper-encoder", {});
  const FusionResult fusions = proposeFusions(loaded->graph(), FuseOptions{});
  for (const PaperKernel &kernel : tableA1) {
    INFO(kernel.name);
    const FusionCandidate *candidate = candidateWith(loaded->graph(), fusions, kernel.ops);
    REQUIRE(candidate);
    CHECK_FALSE(configurationSpaces(kernelOf(loaded->graph(), *candidate), findDevice("h200")).empty());
  }
}

TEST_CASE("default rules: what stacking leaves of a paper kernel is one candidate in every variant") {
  const auto loaded = trained("paper-encoder", smallEncoder);
  size_t stacked = 0;
  for (const Variant &variant : proposeVariants(*loaded->module, {.attention = "unfused"})) {
    INFO(fmt::format("{}", fmt::join(variant.rewrites, "+")));
    GraphOp graph = graphOf(*variant.module);
    const FusionResult fusions = proposeFusions(graph, FuseOptions{});
    Members present;  // computed; parts of a stacked result are slices
    const Dataflow flow = describeGraph(graph).flow;
    for (const FlowOp &op : flow.ops)
      if (op.operatorClass != OperatorClass::movement)
        present.insert(flow.tensors[static_cast<size_t>(op.results.front())].name);
    for (const PaperKernel &kernel : tableA1) {
      INFO(kernel.name);
      Members left;
      std::set_intersection(kernel.ops.begin(), kernel.ops.end(), present.begin(), present.end(), std::inserter(left, left.end()));
      stacked += left.size() < kernel.ops.size();
      if (left.size() < 2)
        continue;
      const FusionCandidate *candidate = candidateWith(graph, fusions, left);
      REQUIRE(candidate);
      CHECK_FALSE(configurationSpaces(kernelOf(graph, *candidate), findDevice("h200")).empty());
    }
  }
  CHECK(stacked > 0);  // the variants differ in what is left
}

TEST_CASE("independent sums over one iteration space fuse by default, and the record says what that saves") {
  const auto loaded = trained("paper-encoder", {});
  const FusionResult fusions = proposeFusions(loaded->graph(), FuseOptions{});
  const FusionCandidate *biases = candidateWith(loaded->graph(), fusions, {"d_bv", "d_bk", "d_bq"});
  REQUIRE(biases);
  CHECK(biases->pattern == "launch-merging");
  const auto record = std::find_if(fusions.records.begin(), fusions.records.end(),
                                   [&](const FusionRecord &one) { return one.ops == biases->ops; });
  REQUIRE(record != fusions.records.end());
  CHECK(record->accepted);
  CHECK(record->savedBytes == 0);
}

TEST_CASE("no candidate of any preset belongs to both passes, and no bound cuts the search") {
  for (const auto &[name, dims] : smallPresets) {
    INFO(name);
    const auto loaded = trained(name, dims);
    std::set<int> backward;
    const std::vector<FlowOp> all = describeGraph(loaded->graph()).flow.ops;
    for (const FlowOp &op : all)
      if (op.entry > 0)
        backward.insert(op.number);
    CHECK(backward.size() > 0);
    CHECK(backward.size() < all.size());
    for (FuseRules kind : {FuseRules::paper, FuseRules::standard}) {
      const FusionResult fusions = proposeFusions(loaded->graph(), rules(kind));
      for (const FusionCandidate &candidate : fusions.candidates) {
        const auto isBackward = [&](int op) { return backward.contains(op); };
        CHECK(std::all_of(candidate.ops.begin(), candidate.ops.end(), isBackward) ==
              std::any_of(candidate.ops.begin(), candidate.ops.end(), isBackward));
      }
      for (const FusionRecord &record : fusions.records)
        CHECK(record.code != reasons::candidateBound.code);
    }
  }
}

TEST_CASE("a training step of fused kernels computes what its ops alone do") {
  for (const auto &[name, dims] : smallPresets)
    for (FuseRules kind : {FuseRules::paper, FuseRules::standard}) {
      INFO(name << (kind == FuseRules::paper ? ", paper" : ", default"));
      const auto loaded = trained(name, dims);
      const select::Problem problem = toProblem(loaded->graph(), {}, proposeFusions(loaded->graph(), rules(kind)));
      std::vector<int> order = largestFirst(problem);
      if (kind == FuseRules::paper) {
        // The groups of the partition, all of them, and the other ops alone.
        std::set<int> fused;
        std::erase_if(order, [&](int candidate) {
          const std::vector<int> &ops = problem.candidates[static_cast<size_t>(candidate)].ops;
          if (ops.size() > 1)
            fused.insert(ops.begin(), ops.end());
          return ops.size() == 1 && fused.count(ops.front()) != 0;
        });
      }
      std::mt19937 random(11);
      for (int cover = 0; cover < (kind == FuseRules::paper ? 1 : 4); ++cover) {
        const auto module = materialize(*loaded->module, problem, planInOrder(problem, order));
        requireSame(loaded->graph(), graphOf(*module));
        std::shuffle(order.begin(), order.end(), random);
      }
    }
}
