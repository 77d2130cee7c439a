// Selection at full size: the forward encoder layer of "Data Movement Is All You Need" (B=8, L=512,
// I=1024), written down op by op. Checks what holds whatever the prices are; prints what it took.
#include "codegen/families/loop/LoopKnobs.h"
#include "passes/configure/Family.h"
#include "passes/select/Selection.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/samples/SampleKernels.h"

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <iostream>

using namespace weft;
using weft::test::nonEmpty;
using namespace weft::samples;
using select::Problem;

namespace {

const std::map<char, int64_t> extents = {{'b', 8},  {'j', 512}, {'k', 512},  {'h', 16},
                                         {'p', 64}, {'w', 64},  {'i', 1024}, {'u', 4096}};

/// One use of a tensor: its name and the letters it has in this op.
struct Use {
  std::string tensor, letters;
};
struct Line {
  std::string op;
  std::vector<Use> inputs;
  Use output;
};

const std::vector<Line> lines = {
    {"contract", {{"wq", "phi"}, {"x", "bji"}}, {"q", "phbj"}},
    {"contract", {{"wk", "phi"}, {"x", "bji"}}, {"key", "phbj"}},
    {"contract", {{"wv", "whi"}, {"x", "bji"}}, {"v", "whbj"}},
    {"bias", {{"q", "phbj"}, {"bq", "ph"}}, {"qb", "phbj"}},
    {"bias", {{"key", "phbj"}, {"bk", "ph"}}, {"kb", "phbj"}},
    {"bias", {{"v", "whbj"}, {"bv", "wh"}}, {"vb", "whbj"}},
    {"contract", {{"kb", "phbk"}, {"qb", "phbj"}}, {"score", "hbjk"}},
    {"softmax", {{"score", "hbjk"}}, {"prob", "hbjk"}},
    {"dropout", {{"prob", "hbjk"}}, {"kept", "hbjk"}},
    {"contract", {{"vb", "whbk"}, {"kept", "hbjk"}}, {"context", "whbj"}},
    {"contract", {{"wo", "whi"}, {"context", "whbj"}}, {"projected", "bji"}},
    {"bias", {{"projected", "bji"}, {"bo", "i"}}, {"s1", "bji"}},
    {"dropout", {{"s1", "bji"}}, {"s2", "bji"}},
    {"residual", {{"s2", "bji"}, {"x", "bji"}}, {"s3", "bji"}},
    {"layer_norm", {{"s3", "bji"}, {"g1", "i"}, {"b1", "i"}}, {"n1", "bji"}},
    {"contract", {{"w1", "ui"}, {"n1", "bji"}}, {"f1", "bju"}},
    {"bias", {{"f1", "bju"}, {"bu", "u"}}, {"f2", "bju"}},
    {"relu", {{"f2", "bju"}}, {"f3", "bju"}},
    {"dropout", {{"f3", "bju"}}, {"f4", "bju"}},
    {"contract", {{"w2", "iu"}, {"f4", "bju"}}, {"e1", "bji"}},
    {"bias", {{"e1", "bji"}, {"bi", "i"}}, {"e2", "bji"}},
    {"dropout", {{"e2", "bji"}}, {"e3", "bji"}},
    {"residual", {{"e3", "bji"}, {"n1", "bji"}}, {"e4", "bji"}},
    {"layer_norm", {{"e4", "bji"}, {"g2", "i"}, {"b2", "i"}}, {"y", "bji"}},
};

const std::vector<std::vector<int>> fusedSets = {
    {7, 8},           {11, 12},     {12, 13},     {13, 14},        {11, 12, 13}, {12, 13, 14},
    {11, 12, 13, 14}, {16, 17},     {17, 18},     {16, 17, 18},    {20, 21},     {21, 22},
    {22, 23},         {20, 21, 22}, {21, 22, 23}, {20, 21, 22, 23}};

class EncoderBuilder {
public:
  Problem build() {
    problem.name = "paper-encoder";
    for (const Line &line : lines) {
      std::vector<int> inputs;
      for (const Use &use : line.inputs) inputs.push_back(tensor(use));
      problem.ops.push_back(line.op);
      problem.opInputs.push_back(inputs);
      problem.opOutputs.push_back({tensor(line.output)});
    }
    std::set<int> produced;
    for (const auto &outputs : problem.opOutputs) produced.insert(outputs[0]);
    for (int t = 0; t < static_cast<int>(problem.tensors.size()); ++t) {
      auto &facts = problem.tensors[static_cast<size_t>(t)];
      facts.isArgument = !produced.contains(t);
      facts.isParameter = facts.isArgument && facts.name != "x";
      facts.isResult = facts.name == "y";
    }
    for (int op = 0; op < static_cast<int>(lines.size()); ++op) candidate({op});
    for (const std::vector<int> &set : fusedSets) candidate(set);
    return problem;
  }

private:
  int tensor(const Use &use) {
    const auto found = numbers.find(use.tensor);
    if (found != numbers.end()) return found->second;
    select::Tensor fresh;
    fresh.name = use.tensor;
    for (char letter : use.letters)
      fresh.axes.push_back({std::string(1, letter), extents.at(letter)});
    problem.tensors.push_back(fresh);
    return numbers[use.tensor] = static_cast<int>(problem.tensors.size()) - 1;
  }

  void candidate(const std::vector<int> &ops) {
    select::Candidate result;
    result.ops = ops;
    std::string letters;
    for (int op : ops) {
      result.name += (result.name.empty() ? "" : "_") + lines[static_cast<size_t>(op)].op;
      for (const Use &use : lines[static_cast<size_t>(op)].inputs) letters += use.letters;
    }
    std::map<char, int64_t> used;
    for (char letter : letters) used[letter] = extents.at(letter);
    KernelBuilder builder(result.name, used);
    std::map<std::string, int> valueOf;
    std::set<std::string> inside;
    for (int op : ops) inside.insert(lines[static_cast<size_t>(op)].output.tensor);
    for (int op : ops)
      for (const Use &use : lines[static_cast<size_t>(op)].inputs) {
        if (inside.contains(use.tensor) || valueOf.contains(use.tensor)) continue;
        valueOf[use.tensor] = builder.input(use.tensor, use.letters);
        result.inputs.push_back(numbers.at(use.tensor));
      }
    for (int op : ops) addOp(builder, lines[static_cast<size_t>(op)], valueOf);
    result.outputs = {numbers.at(lines[static_cast<size_t>(ops.back())].output.tensor)};
    result.kernel =
        builder.build({valueOf.at(lines[static_cast<size_t>(ops.back())].output.tensor)});
    problem.candidates.push_back(result);
  }

  static void addOp(KernelBuilder &builder, const Line &line, std::map<std::string, int> &valueOf) {
    std::vector<ValueId> operands;
    for (const Use &use : line.inputs) operands.push_back(valueOf.at(use.tensor));
    std::string reduced;
    OperatorClass operatorClass = OperatorClass::elementwise;
    if (line.op == "softmax" || line.op == "layer_norm") {
      operatorClass = OperatorClass::normalization;
      reduced = line.output.letters.back();
    } else if (line.op == "contract") {
      operatorClass = OperatorClass::contraction;
      for (char letter : line.inputs[0].letters)
        if (line.output.letters.find(letter) == std::string::npos) reduced += letter;
    }
    valueOf[line.output.tensor] = builder.op(line.op, operatorClass, operands, line.output.tensor,
                                             line.output.letters, reduced);
    double points = 2;
    for (char letter : line.output.letters + (line.op == "contract" ? reduced : ""))
      points *= static_cast<double>(extents.at(letter));
    builder.last().flop = points;
  }

  Problem problem;
  std::map<std::string, int> numbers;
};

}  // namespace

TEST_CASE("an encoder layer: many configurations, fused kernels, a plan near its bound") {
  const Problem problem = EncoderBuilder().build();
  const auto model = analyticCostModel(findDevice("h200"));
  const select::Selection selection = select::select(problem, *model, {});
  const select::SelectionResult &best = selection.best();
  const select::Statistics &statistics = selection.statistics();
  std::cout << fmt::format(
      "{} configurations of {} kernels, {} states, {} edges, {} dominated, {} beyond the beam, "
      "{:.3f} s; plan "
      "{:.1f} us of {} steps, bound {:.1f} us\n",
      statistics.configurations, statistics.kernels, statistics.states, statistics.edges,
      statistics.dominated, statistics.beamCut, statistics.seconds, best.seconds * 1e6,
      best.steps.size(), best.lowerBound * 1e6);
  for (const select::Step &step : best.steps) {
    if (step.candidate < 0) {
      std::cout << fmt::format("  transpose {}\n",
                               problem.tensors[static_cast<size_t>(step.tensor)].name);
      continue;
    }
    const Kernel &kernel = problem.candidates[static_cast<size_t>(step.candidate)].kernel;
    std::string layouts;
    for (size_t i = 0; i < kernel.inputs.size(); ++i)
      layouts += " " + print(step.configuration.inputs[i], kernel, kernel.values[kernel.inputs[i]]);
    layouts +=
        " -> " + print(step.configuration.outputs[0], kernel, kernel.values[kernel.outputs[0]]);
    std::cout << fmt::format("  {:42} {:8.2f} us {} | {} | runner-up {} +{:.2f} us\n", kernel.name,
                             step.cost.seconds * 1e6, layouts,
                             describe(kernel, step.configuration.knobs), step.runnerUp,
                             step.runnerUpLoss * 1e6);
  }
  CHECK(statistics.configurations >= 2000);
  CHECK(best.lowerBound <= best.seconds);
  CHECK(best.seconds < 1.2 * best.lowerBound);
  // Memory-bound chains are worth fusing on any device.
  const auto isChosen = [&](const std::string &name) {
    return std::any_of(best.steps.begin(), best.steps.end(), [&](const select::Step &step) {
      return step.candidate >= 0 &&
             problem.candidates[static_cast<size_t>(step.candidate)].name == name;
    });
  };
  CHECK(isChosen("bias_dropout_residual_layer_norm"));
  CHECK(isChosen("bias_relu_dropout"));
  CHECK(isChosen("softmax_dropout"));
  // Wide loads, neighbouring threads along the vectors; a warp for each short row.
  for (const select::Step &step : nonEmpty(best.steps)) {
    if (step.candidate < 0) continue;
    const std::string &name = problem.candidates[static_cast<size_t>(step.candidate)].name;
    if (name != "bias_relu_dropout" && name != "softmax_dropout" &&
        name != "bias_dropout_residual_layer_norm")
      continue;
    const auto &knobs = step.configuration.knobs.get<LoopKnobs>();
    CHECK(knobs.vectorWidth >= 8);
    CHECK(knobs.laneAxis == knobs.vectorAxis);
    if (name != "bias_relu_dropout") CHECK(knobs.reduction == ReductionMapping::warp);
  }
}
