// Concatenations of what a plan computes: where they are views, where they are copies, and that the whole plan computes the
// same either way.
#include "ir/Interpreter.h"
#include "ir/Weft.h"
#include "passes/Describe.h"
#include "runtime/TensorLayout.h"
#include "tests/unit/PlanEvaluation.h"
#include "tools/driver/Compilation.h"
#include "tools/driver/Planning.h"

#include <catch2/catch.hpp>

using namespace weft;
using namespace weft::driver;

namespace {

const std::string stacked = "stack-q_product-k_product-v_product+stack-dX-wq-wk-wv+stack-dW-wq-wk-wv";

/// A training step of a small encoder with stacked projections, forward and backward.
struct Step {
  Step(const std::string &length, const std::vector<std::string> &pins, int parts = 1)
      : compilation({.model = "paper-encoder", .train = true, .dims = {"b=2", "h=2", "p=4", "i=8", "u=12", length}}, choicesOf(pins), {}) {
    compilation.import();
    const Selected selected = compilation.select(compilation.propose(Phase::import));
    planned = planOf(compilation, selected.best(), selected.path(), parts);
  }

  static ChoiceFlags choicesOf(const std::vector<std::string> &pins) {
    ChoiceFlags choices;
    choices.attention = "unfused";
    choices.variant = stacked;
    choices.pins = pins;
    return choices;
  }

  const runtime::PlanTensor &tensor(const std::string &name) const {
    return *std::ranges::find(planned.plan.tensors, name, &runtime::PlanTensor::logical);
  }
  const runtime::PlanKernel &joining() const {
    return *std::ranges::find_if(planned.plan.kernels, [](const auto &kernel) { return kernel.name.starts_with("concat"); });
  }
  bool isView() const { return joining().family == "view"; }

  Compilation compilation;
  PlannedKernels planned;
};

/// The plan's results against the interpreter's, in fp64 both.
void checkResults(const Step &step, bool latestFirst) {
  GraphOp graph = *step.compilation.graph().getOps<GraphOp>().begin();
  const DescribedOps described = describeGraph(graph);
  const auto nameOf = [&](mlir::Value value) {
    return described.flow.tensors[size_t(std::ranges::find(described.tensors, value) - described.tensors.begin())].name;
  };
  constexpr uint64_t seed = 5;
  const std::vector<TensorValue> arguments = randomArguments(graph, seed);
  test::PlanEvaluation evaluation(step.planned, seed);
  for (size_t n = 0; n < arguments.size(); ++n)
    for (const runtime::PlanTensor &tensor : step.planned.plan.tensors)
      if (tensor.logical == nameOf(graph.getBody().getArgument(unsigned(n))) && (tensor.role == "argument" || tensor.role == "parameter"))
        evaluation.write(tensor, arguments[n].elements);
  evaluation.run(latestFirst);
  const auto expected = interpret(graph, arguments, {.seed = seed, .step = 0});
  REQUIRE(mlir::succeeded(expected));
  mlir::Operation *terminator = graph.getBody().front().getTerminator();
  for (size_t n = 0; n < expected->size(); ++n) {
    const std::string name = nameOf(terminator->getOperand(unsigned(n)));
    const auto result = std::ranges::find_if(step.planned.plan.tensors, [&](const auto &one) { return one.logical == name && one.role == "result"; });
    INFO(name);
    REQUIRE(result != step.planned.plan.tensors.end());
    CHECK(distance({(*expected)[n].shape, evaluation.read(*result)}, (*expected)[n], 1e-9, 1e-9) <= 1.0);
  }
}

/// Every element of the whole belongs to one part.
void checkTiling(const Step &step) {
  const runtime::PlanTensor &whole = step.tensor("d_q_d_k_d_v");
  std::multiset<int64_t> places;
  for (const char *name : {"d_q", "d_k", "d_v"}) {
    const runtime::PlanTensor &part = step.tensor(name);
    CHECK(part.buffer == whole.buffer);
    CHECK(part.offset * 2 % 16 == 0);
    for (int64_t a = 0; a < part.extents[0]; ++a)
      for (int64_t b = 0; b < part.extents[1]; ++b)
        for (int64_t c = 0; c < part.extents[2]; ++c)
          for (int64_t d = 0; d < part.extents[3]; ++d)
            places.insert(part.offset + a * part.strides[0] + b * part.strides[1] + c * part.strides[2] + d * part.strides[3]);
  }
  CHECK(places.size() == size_t(whole.bytes / 2));
  CHECK(std::set<int64_t>(places.begin(), places.end()).size() == places.size());
  CHECK(*places.begin() == 0);
  CHECK(*places.rbegin() == whole.bytes / 2 - 1);
}

bool hasNote(const Step &step, const std::string &text) {
  return std::ranges::any_of(step.planned.plan.notes, [&](const std::string &note) { return note.find(text) != std::string::npos; });
}

}  // namespace

TEST_CASE("gradients are computed where their stack has them, with gaps") {
  const Step step("j=16", {"d_q_d_k_d_v=phbj"});
  REQUIRE(step.isView());
  CHECK(step.joining().bytesMoved == 0);
  CHECK(step.joining().bytesNecessary == 0);
  CHECK(step.joining().seconds == 0);
  CHECK(step.tensor("d_q").strides == std::vector<int64_t>{6 * 2 * 16, 2 * 16, 16, 1});
  CHECK(step.tensor("d_q").offset == 0);
  CHECK(step.tensor("d_k").offset == 2 * 2 * 16);
  CHECK(step.tensor("d_v").offset == 2 * 2 * 2 * 16);
  CHECK(runtime::spanBytes(step.tensor("d_q")) > runtime::logicalBytes(step.tensor("d_q")));
  checkTiling(step);
  REQUIRE_NOTHROW(runtime::verify(step.planned.plan, "plan.json"));
  checkResults(step, false);
  checkResults(step, true);
}

TEST_CASE("gradients whose runs are no whole lines are copied into their stack") {
  const Step step("j=13", {"d_q_d_k_d_v=phbj"});
  REQUIRE_FALSE(step.isView());
  CHECK(step.tensor("d_q").buffer != step.tensor("d_q_d_k_d_v").buffer);
  CHECK(runtime::spanBytes(step.tensor("d_q")) == runtime::logicalBytes(step.tensor("d_q")));
  CHECK(hasNote(step, "V005 parts-not-whole-lines"));
  checkResults(step, false);
  checkResults(step, true);
}

TEST_CASE("whatever layouts selection takes, the plan computes what the graph does") {
  const auto [length, parts] = GENERATE(std::pair("j=16", 1), std::pair("j=32", 1), std::pair("j=12", 1), std::pair("j=16", 2));
  const Step step(length, {}, parts);
  INFO(length << ", parts " << parts << ", " << (step.isView() ? "view" : "copy"));
  if (step.isView()) checkTiling(step);
  REQUIRE_NOTHROW(runtime::verify(step.planned.plan, "plan.json"));
  checkResults(step, false);
  checkResults(step, true);
}
