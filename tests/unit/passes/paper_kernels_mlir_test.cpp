// The kernels of Table A.1 of "Data Movement Is All You Need" against those that the fusion rules
// find for the same layer, forward and backward; and that graphs of fused kernels compute what the
// ops alone do.
#include "passes/Describe.h"
#include "passes/Passes.h"
#include "passes/Rewrites.h"
#include "passes/configure/Family.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/samples/PaperKernels.h"
#include "tests/unit/samples/SampleGraphs.h"
#include "tests/unit/samples/SamplePlans.h"

#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <random>
#include <sstream>

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
    members.insert(
        flow.tensors[static_cast<size_t>(flow.ops[static_cast<size_t>(op)].results.front())].name);
  return members;
}

/// What runs if every fused candidate is taken: those, and the other ops alone, without
/// contractions.
std::multiset<Members> kernelsOf(GraphOp graph, const FusionResult &fusions) {
  const std::vector<mlir::Operation *> all = numberedOps(graph);
  std::multiset<Members> kernels;
  std::set<int> fused;
  for (const FusionCandidate &candidate : nonEmpty(fusions.candidates))
    if (candidate.ops.size() > 1) {
      for (int op : nonEmpty(candidate.ops)) CHECK(fused.insert(op).second);
      kernels.insert(membersOf(graph, candidate.ops));
    }
  for (int op = 0; op < static_cast<int>(all.size()); ++op)
    if (!fused.count(op) && !mlir::isa<ContractOp>(all[static_cast<size_t>(op)]))
      kernels.insert(membersOf(graph, {op}));
  return kernels;
}

const FusionCandidate *candidateWith(GraphOp graph, const FusionResult &fusions,
                                     const Members &members) {
  for (const FusionCandidate &candidate : fusions.candidates)
    if (membersOf(graph, candidate.ops) == members) return &candidate;
  return nullptr;
}

Kernel kernelOf(GraphOp graph, const FusionCandidate &candidate) {
  const std::vector<mlir::Operation *> all = numberedOps(graph);
  std::vector<mlir::Operation *> ops;
  for (int op : candidate.ops) ops.push_back(all[static_cast<size_t>(op)]);
  return toKernel(ops, "");
}

Members allOf(const PaperKernel &kernel) {
  Members all = kernel.ops;
  all.insert(kernel.others.begin(), kernel.others.end());
  return all;
}

Members commonOf(const Members &a, const Members &b) {
  Members common;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(),
                        std::inserter(common, common.end()));
  return common;
}

/// The cells of one line of a CSV file; quoted ones may hold commas.
std::vector<std::string> cellsOf(const std::string &line) {
  std::vector<std::string> cells(1);
  bool isQuoted = false;
  for (const char c : line) {
    if (c == '"') isQuoted = !isQuoted;
    else if (c == ',' && !isQuoted) cells.emplace_back();
    else cells.back() += c;
  }
  return cells;
}

/// Rows of Table A.1 that the paper runs as one kernel.
struct Bracket {
  std::string name;
  Members results;
  double torchMicroseconds = 0, microseconds = 0,
         speedup = 0;  ///< the last two as they are printed
};

/// In the table's order; `named`: all results that its rows name. Kernels of one name do not follow
/// each other.
std::vector<Bracket> bracketsOfTable(Members &named) {
  std::ifstream file(WEFT_SOURCE_DIR "/bench/weftbench/table_a1.csv");
  std::vector<Bracket> brackets;
  std::vector<std::string> header;
  std::string before;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    std::vector<std::string> cells = cellsOf(line);
    if (header.empty()) {
      header = std::move(cells);
      continue;
    }
    const auto cell = [&](std::string_view column) {
      return cells.at(
          static_cast<size_t>(std::find(header.begin(), header.end(), column) - header.begin()));
    };
    std::istringstream results(cell("result"));
    const Members computed{std::istream_iterator<std::string>(results), {}};
    named.insert(computed.begin(), computed.end());
    const std::string kernel = cell("kernel");
    if (!kernel.empty() && kernel != before)
      brackets.push_back({.name = kernel,
                          .results = {},
                          .microseconds = std::stod(cell("ours_us")),
                          .speedup = std::stod(cell("speedup"))});
    before = kernel;
    if (kernel.empty()) continue;
    brackets.back().results.insert(computed.begin(), computed.end());
    brackets.back().torchMicroseconds += std::stod(cell("torch_us"));
  }
  return brackets;
}

const std::map<std::string, Dims> smallPresets = {{"paper-encoder", smallEncoder},
                                                  {"bert-base", smallEncoder},
                                                  {"gpt2", smallEncoder},
                                                  {"llama-3-8b", smallLlama}};

}  // namespace

TEST_CASE("rules paper: the fused kernels of a training step are those of Table A.1") {
  const auto loaded = trained("paper-encoder", {});
  std::multiset<Members> expected;
  for (const PaperKernel &kernel : tableA1) {
    expected.insert(kernel.ops);
    for (const std::string &op : kernel.others) expected.insert({op});
  }
  CHECK(kernelsOf(loaded->graph(), proposeFusions(loaded->graph(), rules(FuseRules::paper))) ==
        expected);
}

TEST_CASE("the kernels are the brackets of Table A.1, whose speedups are sums over them") {
  const auto loaded = trained("paper-encoder", {});
  Members named, ours;  // results that the table names; ops by their first results
  const std::vector<Bracket> brackets = bracketsOfTable(named);
  for (const FlowOp &op : describeGraph(loaded->graph()).flow.ops)
    ours.merge(membersOf(loaded->graph(), {op.number}));
  REQUIRE(brackets.size() == tableA1.size());
  for (size_t index = 0; index < brackets.size(); ++index) {
    const Bracket &bracket = brackets[index];
    INFO(index << ' ' << bracket.name);
    CHECK(bracket.name == tableA1[index].name);
    CHECK(commonOf(bracket.results, ours) == commonOf(allOf(tableA1[index]), named));
    CHECK(bracket.torchMicroseconds / bracket.microseconds ==
          Approx(bracket.speedup).margin(0.016));  // of rounded times
  }
}

TEST_CASE("the one bracket that is not one kernel of ours is of two iteration spaces") {
  const auto loaded = trained("paper-encoder", {});
  std::map<std::string, int> numberOf;
  const DescribedOps described = describeGraph(loaded->graph());
  for (const FlowOp &op : described.flow.ops)
    numberOf[described.flow.tensors[static_cast<size_t>(op.results.front())].name] = op.number;
  std::vector<std::string> apart;
  for (const PaperKernel &kernel : tableA1) {
    if (kernel.others.empty()) continue;
    apart.push_back(kernel.name);
    std::vector<int> bracket;
    for (const std::string &op : allOf(kernel)) bracket.push_back(numberOf.at(op));
    std::sort(bracket.begin(), bracket.end());
    const FusionResult paper = proposeFusions(loaded->graph(), rules(FuseRules::paper));
    const auto record = std::find_if(paper.records.begin(), paper.records.end(),
                                     [&](const FusionRecord &one) { return one.ops == bracket; });
    REQUIRE(record != paper.records.end());
    CHECK(record->code == reasons::reductionAxisMismatch.code);
    CHECK_FALSE(candidateWith(loaded->graph(), proposeFusions(loaded->graph(), FuseOptions{}),
                              allOf(kernel)));
    const auto square = trained("paper-encoder", {{"u", 1024}});  // i has as many
    CHECK(candidateWith(square->graph(), proposeFusions(square->graph(), rules(FuseRules::paper)),
                        allOf(kernel)));
  }
  CHECK(apart == std::vector<std::string>{"BDRB"});
}

TEST_CASE(
    "default rules: one candidate has exactly the ops of each kernel of Table A.1, and loops take "
    "it") {
  const auto loaded = trained("paper-encoder", {});
  const FusionResult fusions = proposeFusions(loaded->graph(), FuseOptions{});
  for (const PaperKernel &kernel : tableA1) {
    INFO(kernel.name);
    const FusionCandidate *candidate = candidateWith(loaded->graph(), fusions, kernel.ops);
    REQUIRE(candidate);
    CHECK_FALSE(
        configurationSpaces(kernelOf(loaded->graph(), *candidate), findDevice("h200")).empty());
  }
}

TEST_CASE(
    "default rules: what stacking leaves of a paper kernel is one candidate in every variant") {
  const auto loaded = trained("paper-encoder", smallEncoder);
  size_t stacked = 0;
  for (const Variant &variant :
       nonEmpty(proposeVariants(*loaded->module, {.attention = AttentionChoice::unfused}))) {
    INFO(variantName(variant.rewrites));
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
      std::set_intersection(kernel.ops.begin(), kernel.ops.end(), present.begin(), present.end(),
                            std::inserter(left, left.end()));
      stacked += left.size() < kernel.ops.size();
      if (left.size() < 2) continue;
      const FusionCandidate *candidate = candidateWith(graph, fusions, left);
      REQUIRE(candidate);
      CHECK_FALSE(configurationSpaces(kernelOf(graph, *candidate), findDevice("h200")).empty());
    }
  }
  CHECK(stacked > 0);  // the variants differ in what is left
}

TEST_CASE(
    "independent sums over one iteration space fuse by default, and the record says what that "
    "saves") {
  const auto loaded = trained("paper-encoder", {});
  const FusionResult fusions = proposeFusions(loaded->graph(), FuseOptions{});
  const FusionCandidate *biases = candidateWith(loaded->graph(), fusions, {"d_bv", "d_bk", "d_bq"});
  REQUIRE(biases);
  CHECK(biases->patterns == FusionPatterns{.launchMerging = true});
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
      if (op.entry > 0) backward.insert(op.number);
    CHECK(backward.size() > 0);
    CHECK(backward.size() < all.size());
    for (FuseRules kind : {FuseRules::paper, FuseRules::standard}) {
      const FusionResult fusions = proposeFusions(loaded->graph(), rules(kind));
      for (const FusionCandidate &candidate : nonEmpty(fusions.candidates)) {
        const auto isBackward = [&](int op) { return backward.contains(op); };
        CHECK(std::all_of(candidate.ops.begin(), candidate.ops.end(), isBackward) ==
              std::any_of(candidate.ops.begin(), candidate.ops.end(), isBackward));
      }
      for (const FusionRecord &record : nonEmpty(fusions.records))
        CHECK(record.code != reasons::candidateBound.code);
    }
  }
}

TEST_CASE("a training step of fused kernels computes what its ops alone do") {
  for (const auto &[name, dims] : smallPresets)
    for (FuseRules kind : {FuseRules::paper, FuseRules::standard}) {
      INFO(name << (kind == FuseRules::paper ? ", paper" : ", default"));
      const auto loaded = trained(name, dims);
      const select::Problem problem =
          toProblem(loaded->graph(), {}, proposeFusions(loaded->graph(), rules(kind)));
      std::vector<int> order = largestFirst(problem);
      if (kind == FuseRules::paper) {
        // The groups of the partition, all of them, and the other ops alone.
        std::set<int> fused;
        std::erase_if(order, [&](int candidate) {
          const std::vector<int> &ops = problem.candidates[static_cast<size_t>(candidate)].ops;
          if (ops.size() > 1) fused.insert(ops.begin(), ops.end());
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
