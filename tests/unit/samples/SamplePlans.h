// Legal plans for tests, if not good ones: every op in one kernel, everything row-major.
#pragma once

#include "codegen/families/gemm_fma/FmaGemmKnobs.h"
#include "codegen/families/loop/LoopKnobs.h"
#include "passes/Passes.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <set>
#include <vector>

namespace weft::test {

/// Row-major, knobs of the kernel's class.
inline Configuration rowMajorConfiguration(const select::Problem &problem,
                                           const select::Candidate &candidate) {
  Configuration configuration;
  for (int tensor : candidate.inputs)
    configuration.inputs.push_back(rowMajor(problem.tensors[tensor].axes.size()));
  for (int tensor : candidate.outputs)
    configuration.outputs.push_back(rowMajor(problem.tensors[tensor].axes.size()));
  const int last = static_cast<int>(candidate.kernel.axes.size()) - 1;
  if (candidate.kernel.operatorClass() == OperatorClass::contraction)
    configuration.knobs = FmaGemmKnobs{};
  else configuration.knobs = LoopKnobs{.vectorAxis = last, .vectorWidth = 2, .laneAxis = last};
  return configuration;
}

/// Covers all ops: again and again the first candidate, in the order given, whose inputs are there
/// and whose ops are not done.
inline select::SelectionResult planInOrder(const select::Problem &problem,
                                           const std::vector<int> &order) {
  std::set<int> done, live;
  for (size_t tensor = 0; tensor < problem.tensors.size(); ++tensor)
    if (problem.tensors[tensor].isArgument) live.insert(static_cast<int>(tensor));
  const auto ready = [&](const select::Candidate &candidate) {
    return std::all_of(candidate.inputs.begin(), candidate.inputs.end(),
                       [&](int t) { return live.count(t); }) &&
           std::none_of(candidate.ops.begin(), candidate.ops.end(),
                        [&](int op) { return done.count(op); });
  };
  select::SelectionResult plan;
  while (done.size() < problem.ops.size()) {
    const auto next = std::find_if(order.begin(), order.end(),
                                   [&](int c) { return ready(problem.candidates[c]); });
    REQUIRE(next != order.end());
    const select::Candidate &candidate = problem.candidates[*next];
    select::Step step;
    step.candidate = *next;
    step.configuration = rowMajorConfiguration(problem, candidate);
    done.insert(candidate.ops.begin(), candidate.ops.end());
    live.insert(candidate.outputs.begin(), candidate.outputs.end());
    plan.steps.push_back(std::move(step));
  }
  return plan;
}

/// Candidate numbers, those with most ops first.
inline std::vector<int> largestFirst(const select::Problem &problem) {
  std::vector<int> order(problem.candidates.size());
  for (size_t index = 0; index < order.size(); ++index) order[index] = static_cast<int>(index);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return problem.candidates[a].ops.size() > problem.candidates[b].ops.size();
  });
  return order;
}

}  // namespace weft::test
