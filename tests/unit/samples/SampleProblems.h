// Small selection problems, built op by op: every tensor runs over the axes j and i. And a price
// list that depends on nothing but a kernel's name and layouts, so that an exhaustive search can be
// written in a few lines.
#pragma once

#include "passes/select/Selection.h"
#include "tests/unit/samples/SampleKernels.h"

#include <algorithm>
#include <random>

namespace weft::samples {

class ProblemBuilder {
public:
  explicit ProblemBuilder(std::map<char, int64_t> extents = {{'j', 4}, {'i', 8}})
      : extents(std::move(extents)) {
    problem.name = "sample";
  }

  int argument(const std::string &name) {
    const int index = tensor(name);
    problem.tensors[static_cast<size_t>(index)].isArgument = true;
    return index;
  }

  /// One op with one result: relu of one operand, add of two.
  int op(const std::string &name, std::vector<int> inputs) {
    const int output = tensor(name);
    problem.ops.push_back(name);
    problem.opInputs.push_back(std::move(inputs));
    problem.opOutputs.push_back({output});
    return output;
  }

  void result(int index) { problem.tensors[static_cast<size_t>(index)].isResult = true; }

  /// A candidate for a set of ops; what leaves the set is its output.
  void candidate(const std::vector<int> &ops) {
    select::Candidate candidate;
    candidate.ops = ops;
    const auto isInside = [&](int op) {
      return std::find(ops.begin(), ops.end(), op) != ops.end();
    };
    std::set<int> produced, read, leaving;
    for (int op : ops) produced.insert(problem.opOutputs[static_cast<size_t>(op)][0]);
    for (int op : ops)
      for (int input : problem.opInputs[static_cast<size_t>(op)])
        if (!produced.contains(input)) read.insert(input);
    for (int output : produced) {
      bool leaves = problem.tensors[static_cast<size_t>(output)].isResult;
      for (size_t op = 0; op < problem.ops.size(); ++op)
        for (int input : problem.opInputs[op])
          leaves = leaves || (input == output && !isInside(static_cast<int>(op)));
      if (leaves) leaving.insert(output);
    }
    for (int op : ops)
      candidate.name += (candidate.name.empty() ? "" : "_") + problem.ops[static_cast<size_t>(op)];
    candidate.inputs.assign(read.begin(), read.end());
    candidate.outputs.assign(leaving.begin(), leaving.end());
    candidate.kernel = kernelOf(candidate);
    problem.candidates.push_back(candidate);
  }

  void everyOpAlone() {
    for (size_t op = 0; op < problem.ops.size(); ++op) candidate({static_cast<int>(op)});
  }

  select::Problem problem;

private:
  int tensor(const std::string &name) {
    select::Tensor tensor;
    tensor.name = name;
    for (char letter : letters())
      tensor.axes.push_back({std::string(1, letter), extents.at(letter)});
    problem.tensors.push_back(tensor);
    return static_cast<int>(problem.tensors.size()) - 1;
  }

  std::string letters() const {
    std::string all;
    for (auto it = extents.rbegin(); it != extents.rend(); ++it) all += it->first;
    return all;
  }

  Kernel kernelOf(const select::Candidate &candidate) const {
    KernelBuilder builder(candidate.name, extents);
    std::map<int, int> valueOf;
    for (int input : candidate.inputs)
      valueOf[input] = builder.input(problem.tensors[static_cast<size_t>(input)].name, letters());
    for (int op : candidate.ops) {
      std::vector<ValueId> operands;
      for (int input : problem.opInputs[static_cast<size_t>(op)])
        operands.push_back(valueOf.at(input));
      const int output = problem.opOutputs[static_cast<size_t>(op)][0];
      valueOf[output] =
          builder.op(operands.size() == 1 ? "relu" : "add", OperatorClass::elementwise, operands,
                     problem.tensors[static_cast<size_t>(output)].name, letters());
      builder.last().expression =
          Expression::parse(operands.size() == 1 ? "weft::relu({0})" : "{0} + {1}");
    }
    std::vector<ValueId> outputs;
    for (int output : candidate.outputs) outputs.push_back(valueOf.at(output));
    return builder.build(outputs);
  }

  std::map<char, int64_t> extents;
};

/// Prices drawn from a hash of the kernel's name and the orders of its operands: 1 to 3 us a
/// kernel, 0.6 to 1 us a transpose (so that two transposes never beat one).
class HashedPrices : public CostModel {
public:
  explicit HashedPrices(uint64_t seed) : seed(seed) {}

  Cost cost(const Kernel &kernel, const Configuration &configuration) const override {
    uint64_t hash = mix(seed, kernel.name);
    for (const auto *layouts : {&configuration.inputs, &configuration.outputs})
      for (const Layout &layout : *layouts)
        for (int dimension : layout.order) hash = mix(hash, std::to_string(dimension));
    const double unit = static_cast<double>(hash >> 11) / static_cast<double>(uint64_t(1) << 53);
    const bool isTranspose = kernel.body[0].kind == OpKind::identity;
    Cost cost;
    cost.seconds = (isTranspose ? 0.6 + 0.4 * unit : 1 + 2 * unit) * 1e-6;
    return cost;
  }
  const Device &device() const override { return findDevice("h200"); }
  PriceSource source() const override { return {.name = "hashed"}; }
  std::string identity() const override { return std::to_string(seed); }

private:
  static uint64_t mix(uint64_t hash, const std::string &text) {
    for (char c : text + "|")
      hash = (hash ^ static_cast<unsigned char>(c)) * 0x9E3779B97F4A7C15u, hash ^= hash >> 29;
    return hash;
  }
  uint64_t seed;
};

}  // namespace weft::samples
