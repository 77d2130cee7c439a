// Dataflow graphs by axis letters, and what was proposed for them: for tests of fusion.
#pragma once

#include "passes/fuse/Fusion.h"

#include <algorithm>

namespace weft::samples {

/// Graphs by axis letters; every axis has the extent of its letter.
class FlowBuilder {
public:
  explicit FlowBuilder(std::map<char, int64_t> extents) : extents(std::move(extents)) {}

  int argument(const std::string &name, const std::string &letters) {
    return tensor(name, letters, -1);
  }

  int contract(const std::string &name, int a, const std::string &lettersA, int b,
               const std::string &lettersB, const std::string &letters) {
    const int result =
        op("contract", OperatorClass::contraction, {{a, lettersA}, {b, lettersB}}, name, letters);
    flow.ops.back().attributes["spec"] = lettersA + "," + lettersB + "->" + letters;
    return result;
  }
  /// Softmax of scores along what the result lacks, then the contraction with v.
  int fold(const std::string &name, int scores, const std::string &lettersOfScores, int v,
           const std::string &lettersOfV, const std::string &letters) {
    const int result = op("online_softmax_contract", OperatorClass::contraction,
                          {{scores, lettersOfScores}, {v, lettersOfV}}, name, letters);
    flow.ops.back().attributes["spec"] = lettersOfScores + "," + lettersOfV + "->" + letters;
    return result;
  }
  int map(const std::string &op, const std::string &name,
          const std::vector<std::pair<int, std::string>> &operands, const std::string &letters) {
    const int result = this->op(op, OperatorClass::elementwise, operands, name, letters);
    flow.ops.back().expression = Expression::parse(op == "mul" ? "{0} * {1}" : "{0}");
    return result;
  }
  /// Reduces the last axis of what it reads.
  int norm(const std::string &name, int x, const std::string &letters) {
    const int result = op("softmax", OperatorClass::normalization, {{x, letters}}, name, letters);
    flow.ops.back().reduced = {static_cast<int>(letters.size()) - 1};
    flow.ops.back().independent.pop_back();
    return result;
  }
  /// Accumulators the axes that the result lacks.
  int sum(const std::string &name, int x, const std::string &own, const std::string &letters) {
    const int result = op("reduce", OperatorClass::normalization, {{x, own}}, name, letters);
    flow.ops.back().attributes["kind"] = std::string("sum");
    return result;
  }
  Dataflow build(const std::vector<int> &leaving) {
    for (int tensor : leaving) flow.tensors[tensor].leaves = true;
    return flow;
  }
  Dataflow flow;

private:
  int tensor(const std::string &name, const std::string &letters, int producer) {
    FlowTensor added{
        .name = name, .dtype = DType::f16, .axes = {}, .producer = producer, .consumers = {}};
    for (char letter : letters) added.axes.push_back({std::string(1, letter), extents.at(letter)});
    flow.tensors.push_back(added);
    return static_cast<int>(flow.tensors.size()) - 1;
  }
  int op(const std::string &name, OperatorClass operatorClass,
         const std::vector<std::pair<int, std::string>> &operands, const std::string &result,
         const std::string &letters) {
    const int number = static_cast<int>(flow.ops.size());
    std::string axes = letters;
    for (const auto &[operand, own] : operands)
      for (char letter : own)
        if (axes.find(letter) == std::string::npos) axes += letter;
    const auto mapped = [&](const std::string &own) {
      std::vector<int> local;
      for (char letter : own) local.push_back(static_cast<int>(axes.find(letter)));
      return local;
    };
    FlowOp added;
    added.kind = opKindNamed(name).value();
    added.label = result;
    added.operatorClass = operatorClass;
    added.resultAxes = {mapped(letters)};
    added.independent = mapped(letters);
    added.reduced = mapped(axes.substr(letters.size()));
    added.number = number;
    for (const auto &[operand, own] : operands) {
      added.operands.push_back(operand);
      added.operandAxes.push_back(mapped(own));
      std::vector<int> &consumers = flow.tensors[operand].consumers;
      if (consumers.empty() || consumers.back() != number) consumers.push_back(number);
    }
    added.results = {tensor(result, letters, number)};
    flow.ops.push_back(added);
    return flow.ops.back().results.front();
  }

  std::map<char, int64_t> extents;
};

/// Fused candidates that hold an op.
inline std::vector<std::vector<int>> candidatesWith(const FusionResult &result, int op) {
  std::vector<std::vector<int>> found;
  for (const FusionCandidate &candidate : result.candidates)
    if (candidate.ops.size() > 1 && std::ranges::find(candidate.ops, op) != candidate.ops.end())
      found.push_back(candidate.ops);
  return found;
}

/// What became of a set of ops.
inline std::string verdict(const FusionResult &result, const std::vector<int> &ops) {
  for (const FusionRecord &record : result.records)
    if (record.ops == ops) return describe(record);
  return "no record";
}

}  // namespace weft::samples
