// Stages of a layer by structure; see Stages.h.
#include "passes/account/Stages.h"

#include "kernel/WordTable.h"

#include <algorithm>
#include <set>

namespace weft {
namespace {

constexpr WordTable<Stage, 8> stageWords{{{Stage::attention, "attention"},
                                          {Stage::projections, "projections"},
                                          {Stage::feedForward, "feed-forward"},
                                          {Stage::norms, "norms"},
                                          {Stage::embedding, "embedding"},
                                          {Stage::headAndLoss, "head and loss"},
                                          {Stage::optimizer, "optimizer"},
                                          {Stage::other, "other"}}};

class Finder {
public:
  explicit Finder(const Dataflow &flow) : flow(flow), stages(flow.ops.size()) {}

  std::vector<Stage> take() {
    findNamed();
    findContractions();
    findWeightGradients();
    findNormalizations();
    findOthers();
    std::vector<Stage> result;
    for (const std::optional<Stage> &stage : stages) result.push_back(stage.value_or(Stage::other));
    return result;
  }

private:
  const FlowOp &op(int index) const { return flow.ops[size_t(index)]; }
  const FlowTensor &tensor(int index) const { return flow.tensors[size_t(index)]; }
  bool isContraction(int index) const {
    return op(index).operatorClass == OperatorClass::contraction;
  }
  /// Ops that a walk passes: each element follows from elements of the operands.
  bool isPassed(int index) const {
    return op(index).operatorClass == OperatorClass::elementwise ||
           op(index).operatorClass == OperatorClass::movement;
  }
  bool isWeight(int index) const { return tensor(index).isParameter || tensor(index).isUpdated; }
  bool readsParameter(int index) const {
    return std::ranges::any_of(op(index).operands, [&](int operand) { return isWeight(operand); });
  }

  /// An axis that both operands and the result have.
  bool hasBatchAxis(int index) const {
    const FlowOp &contraction = op(index);
    if (contraction.operandAxes.size() != 2) return false;
    const std::vector<int> &a = contraction.operandAxes[0], &b = contraction.operandAxes[1],
                           &c = contraction.resultAxes.at(0);
    return std::ranges::any_of(a, [&](int axis) {
      return std::ranges::count(b, axis) > 0 && std::ranges::count(c, axis) > 0;
    });
  }

  /// Ops that read what the op computes, with nothing but passed ops between; `before`: whose
  /// results it reads so.
  std::vector<int> reached(int from, bool before) const {
    std::vector<int> found, open{from};
    std::set<int> seen{from};
    while (!open.empty()) {
      const int current = open.back();
      open.pop_back();
      std::vector<int> next;
      if (before) {
        for (const int operand : op(current).operands)
          if (tensor(operand).producer >= 0) next.push_back(tensor(operand).producer);
      } else {
        for (const int result : op(current).results)
          next.insert(next.end(), tensor(result).consumers.begin(), tensor(result).consumers.end());
      }
      for (const int other : next) {
        if (!seen.insert(other).second) continue;
        if (isPassed(other)) open.push_back(other);
        else found.push_back(other);
      }
    }
    return found;
  }

  bool meets(int index, bool before, Stage stage) const {
    return std::ranges::any_of(reached(index, before),
                               [&](int other) { return stages[size_t(other)] == stage; });
  }

  /// Ops whose kind says what they are for, and what computes new parameters.
  void findNamed() {
    for (size_t index = 0; index < flow.ops.size(); ++index) {
      const OpKind kind = flow.ops[index].kind;
      if (kind == OpKind::gather || kind == OpKind::scatterAdd) stages[index] = Stage::embedding;
      if (kind == OpKind::crossEntropy || kind == OpKind::crossEntropyDx)
        stages[index] = Stage::headAndLoss;
    }
    findGradientCheck();
    findOptimizer();
  }

  /// Back from a scalar that the update returns (passes/differentiate/GradientCheck.h): what
  /// nothing else reads, up to the gradients, which the update reads, too.
  void findGradientCheck() {
    const auto isOfUpdate = [&](const FlowOp &one) {
      return flow.entryPoints.size() > size_t(one.entry) &&
             flow.entryPoints[size_t(one.entry)] == EntryPointKind::update;
    };
    for (size_t index = flow.ops.size(); index-- > 0;) {
      const FlowOp &one = flow.ops[index];
      if (!isOfUpdate(one) || isContraction(int(index)) || one.kind == OpKind::unscale ||
          one.results.size() != 1)
        continue;
      const FlowTensor &result = tensor(one.results.front());
      const bool isCheck = result.leaves && result.axes.empty();
      if (isCheck || (!result.leaves && !result.consumers.empty() &&
                      std::ranges::all_of(result.consumers, [&](int consumer) {
                        return stages[size_t(consumer)] == Stage::optimizer;
                      })))
        stages[index] = Stage::optimizer;
    }
  }

  /// Element-wise ops that follow from a whole tensor that is updated, and those whose results only
  /// such ops read; none whose result another op reads.
  void findOptimizer() {
    std::vector<bool> follows(flow.ops.size());
    for (size_t index = 0; index < flow.ops.size(); ++index) {
      const FlowOp &one = flow.ops[index];
      follows[index] = one.operatorClass == OperatorClass::elementwise &&
                       std::ranges::any_of(one.operands, [&](int operand) {
                         const FlowTensor &read = tensor(operand);
                         return read.producer >= 0
                                    ? follows[size_t(read.producer)]
                                    : read.isUpdated &&
                                          read.axes.size() == tensor(one.results.at(0)).axes.size();
                       });
    }
    for (size_t index = flow.ops.size(); index-- > 0;) {
      bool isRead = false, isReadByOthers = false;
      for (const int result : flow.ops[index].results)
        for (const int consumer : tensor(result).consumers)
          (stages[size_t(consumer)] == Stage::optimizer ? isRead : isReadByOthers) = true;
      const bool mayBe =
          flow.ops[index].operatorClass == OperatorClass::elementwise && !isReadByOthers;
      if (mayBe && (follows[index] || isRead)) stages[index] = Stage::optimizer;
    }
  }

  void findContractions() {
    std::vector<int> weighted;
    for (size_t index = 0; index < flow.ops.size(); ++index) {
      if (!isContraction(int(index))) continue;
      if (readsParameter(int(index))) weighted.push_back(int(index));
      else if (hasBatchAxis(int(index))) stages[index] = Stage::attention;
    }
    // By the loss alone: a gradient behind the head's is not the head's.
    const auto ofHead = [&](int index) {
      return meets(index, true, Stage::headAndLoss) || meets(index, false, Stage::headAndLoss);
    };
    std::vector<int> heads, rest;
    for (const int index : weighted)
      if (ofHead(index)) heads.push_back(index);
    for (const int index : heads) stages[size_t(index)] = Stage::headAndLoss;
    for (const int index : weighted)
      if (stages[size_t(index)]) continue;
      else if (meets(index, true, Stage::attention) || meets(index, false, Stage::attention))
        stages[size_t(index)] = Stage::projections;
      else rest.push_back(index);
    const std::set<int> candidates(rest.begin(), rest.end());
    for (const int index : rest)
      for (const bool before : {true, false})
        for (const int other : reached(index, before))
          if (candidates.contains(other)) stages[size_t(index)] = Stage::feedForward;
    for (const int index : rest)
      if (!stages[size_t(index)]) stages[size_t(index)] = Stage::other;
  }

  /// What a tensor is a view of, or the tensor itself.
  std::set<int> originsOf(int index) const {
    const int producer = tensor(index).producer;
    if (producer < 0 || op(producer).operatorClass != OperatorClass::movement) return {index};
    std::set<int> origins;
    for (const int operand : op(producer).operands) origins.merge(originsOf(operand));
    return origins;
  }

  void findWeightGradients() {
    std::vector<std::pair<std::set<int>, Stage>>
        readers;  // what contractions with a parameter read
    for (size_t index = 0; index < flow.ops.size(); ++index)
      if (isContraction(int(index)) && readsParameter(int(index)))
        for (const int operand : op(int(index)).operands)
          if (!isWeight(operand)) readers.emplace_back(originsOf(operand), *stages[index]);
    for (size_t index = 0; index < flow.ops.size(); ++index) {
      if (!isContraction(int(index)) || stages[index]) continue;
      std::set<int> read;
      for (const int operand : op(int(index)).operands) read.merge(originsOf(operand));
      const auto shares = [&](const auto &reader) {
        return std::ranges::any_of(reader.first, [&](int one) { return read.contains(one); });
      };
      const auto reader = std::ranges::find_if(readers, shares);
      stages[index] = reader == readers.end() ? Stage::other : reader->second;
    }
  }

  /// Whether the reduced axes are there in the first result: a row goes in and a row comes out.
  bool keepsReducedAxes(int index) const {
    const FlowOp &reducing = op(index);
    return !reducing.reduced.empty() && std::ranges::all_of(reducing.reduced, [&](int axis) {
      return std::ranges::count(reducing.resultAxes.at(0), axis) > 0;
    });
  }

  void findNormalizations() {
    for (size_t index = 0; index < flow.ops.size(); ++index)
      if (op(int(index)).operatorClass == OperatorClass::normalization &&
          (meets(int(index), true, Stage::attention) || meets(int(index), false, Stage::attention)))
        stages[index] = Stage::attention;
    for (size_t index = 0; index < flow.ops.size(); ++index)
      if (op(int(index)).operatorClass == OperatorClass::normalization && !stages[index] &&
          keepsReducedAxes(int(index)))
        stages[index] = Stage::norms;
  }

  Stage stageOfProducer(int index) const {
    std::optional<Stage> found;
    for (const int operand : op(index).operands)
      if (const int producer = tensor(operand).producer;
          producer >= 0 && stages[size_t(producer)]) {
        if (isContraction(producer)) return *stages[size_t(producer)];
        if (!found || *found == Stage::norms || *found == Stage::other)
          found = stages[size_t(producer)];
      }
    return found.value_or(Stage::other);
  }

  void findOthers() {
    for (size_t index = 0; index < flow.ops.size(); ++index) {  // in topological order
      if (stages[index]) continue;
      if (meets(int(index), true, Stage::attention) && meets(int(index), false, Stage::attention))
        stages[index] = Stage::attention;
      else stages[index] = stageOfProducer(int(index));
    }
  }

  const Dataflow &flow;
  std::vector<std::optional<Stage>> stages;
};

}  // namespace

std::string_view nameOf(Stage stage) { return wordOf(stageWords, stage); }

std::optional<Stage> stageNamed(std::string_view name) { return valueNamed(stageWords, name); }

std::vector<Stage> stagesOf(const Dataflow &flow) { return Finder(flow).take(); }

Stage stageOfKernel(const Dataflow &flow, const std::vector<Stage> &stages,
                    const std::vector<int> &ops) {
  for (const OperatorClass wanted : {OperatorClass::contraction, OperatorClass::normalization}) {
    std::optional<Stage> found;
    for (const int op : ops) {
      if (flow.ops[size_t(op)].operatorClass != wanted) continue;
      if (!found || stages[size_t(op)] == Stage::attention) found = stages[size_t(op)];
    }
    if (found) return *found;
  }
  return ops.empty() ? Stage::other : stages[size_t(ops.front())];
}

}  // namespace weft
