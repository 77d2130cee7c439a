// A whole plan of a compilation, evaluated (PlanEvaluation.h), against the interpreter's evaluation
// of the imported graph, in fp64 both.
#pragma once

#include "ir/Weft.h"
#include "ir/interpreter/Interpreter.h"
#include "passes/Describe.h"
#include "tests/unit/samples/PlanEvaluation.h"
#include "tools/driver/Compilation.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>

namespace weft::test {

/// What a graph calls a value.
inline const std::string &nameIn(const DescribedOps &described, mlir::Value value) {
  const auto place = std::ranges::find(described.tensors, value) - described.tensors.begin();
  return described.flow.tensors[size_t(place)].name;
}

/// The plan's results against the interpreter's. Means of squares, which optimizers keep, are not
/// negative.
inline void checkResults(const driver::Compilation &compilation, const PlannedKernels &planned,
                         bool latestFirst) {
  GraphOp graph = *compilation.graph().getOps<GraphOp>().begin();
  const DescribedOps described = describeGraph(graph);
  const auto nameOf = [&](mlir::Value value) { return nameIn(described, value); };
  constexpr uint64_t seed = 5;
  const std::vector<TensorValue> arguments = randomArguments(graph, seed);
  PlanEvaluation evaluation(planned, seed);
  for (size_t n = 0; n < arguments.size(); ++n)
    for (const PlanTensor &tensor : planned.plan.tensors)
      if (tensor.logical == nameOf(graph.getBody().getArgument(unsigned(n))) &&
          (isGiven(tensor.role)))
        evaluation.write(tensor, arguments[n].elements);
  evaluation.run(latestFirst);
  const auto expected = interpret(graph, arguments, {.seed = seed, .step = 0});
  REQUIRE(mlir::succeeded(expected));
  REQUIRE(!expected->empty());
  mlir::Operation *terminator = graph.getBody().front().getTerminator();
  for (size_t n = 0; n < expected->size(); ++n) {
    const std::string name = nameOf(terminator->getOperand(unsigned(n)));
    const auto result = std::ranges::find_if(planned.plan.tensors, [&](const auto &one) {
      return one.logical == name && one.role == TensorRole::result;
    });
    INFO(name);
    REQUIRE(result != planned.plan.tensors.end());
    CHECK(distance({(*expected)[n].shape, evaluation.read(*result)}, (*expected)[n], 1e-9, 1e-9) <=
          1.0);
  }
}

}  // namespace weft::test
