// Recognition: first and last op, then every op between them, then what these read, then the role
// of every axis.
#include "kernel/AttentionRegion.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace weft {
namespace {

std::string cannotStand(const BodyOp &op, std::string_view why) {
  return fmt::format("'{}' {}", nameOf(op.kind), why);
}
bool divides(const Expression &expression) {
  return std::ranges::any_of(expression.all(), [](const ExpressionNode &node) {
    return node.kind == ExpressionNode::Kind::binary && node.operation == ScalarOperator::divide;
  });
}
template <typename List>
bool holds(const List &list, int value) {
  return std::ranges::find(list, value) != list.end();
}

class Recognition {
public:
  explicit Recognition(const Kernel &kernel) : kernel(kernel) {}

  AttentionRegionOrRejection answer() {
    std::string rejection = findContraction();
    if (rejection.empty()) rejection = findFold();
    for (size_t op = 1; rejection.empty() && op < region.fold; ++op) rejection = addScoreOp(op);
    if (rejection.empty()) rejection = checkFold();
    for (size_t input = 0; rejection.empty() && input < kernel.inputs.size(); ++input)
      rejection = addInput(input);
    if (rejection.empty()) rejection = findQueriesAndKeys();
    for (int axis = 0; rejection.empty() && axis < int(kernel.axes.size()); ++axis)
      rejection = addAxis(axis);
    if (rejection.empty() && region.headDim.empty())
      rejection = cannotStand(kernel.body[region.contraction],
                              "sums over no axis that queries and keys have in common");
    if (!rejection.empty()) return {.rejection = std::move(rejection)};
    return {.region = std::move(region)};
  }

private:
  const std::string &nameOfValue(int value) const { return kernel.values[size_t(value)].name; }
  bool runsAlong(int value, int axis) const {
    return holds(kernel.values[size_t(value)].axes, axis);
  }
  std::set<int> axesOf(int value) const {
    const std::vector<int> &axes = kernel.values[size_t(value)].axes;
    return {axes.begin(), axes.end()};
  }
  size_t inputOf(int value) const {
    return size_t(std::ranges::find(kernel.inputs, value) - kernel.inputs.begin());
  }

  std::string findContraction() {
    if (kernel.body.empty() || kernel.body.front().kind != OpKind::contract ||
        kernel.body.front().operands.size() != 2)
      return "the body does not open with a contraction of two operands";
    const BodyOp &op = kernel.body.front();
    for (const int operand : op.operands)
      if (!holds(kernel.inputs, operand))
        return cannotStand(
            op, fmt::format("reads '{}', which the kernel computes", nameOfValue(operand)));
    if (op.operands[0] == op.operands[1])
      return fmt::format("'{}' is both operands of the contraction", nameOfValue(op.operands[0]));
    if (const auto scale = op.attributes.find("scale"); scale != op.attributes.end())
      region.scale = std::get<double>(scale->second);
    region.scores = region.folded = op.results[0];
    dependent.insert(region.scores);
    return "";
  }

  std::string findFold() {
    const auto isFold = [](const BodyOp &op) { return op.kind == OpKind::onlineSoftmaxContract; };
    const auto first = std::ranges::find_if(kernel.body, isFold);
    if (first == kernel.body.end())
      return fmt::format("no '{}' reads the scores", nameOf(OpKind::onlineSoftmaxContract));
    if (first + 1 != kernel.body.end())
      return cannotStand(first[1],
                         fmt::format("follows '{}', which ends an attention", nameOf(first->kind)));
    region.fold = size_t(first - kernel.body.begin());
    return rejectionOfStored(kernel.body[region.contraction]);
  }

  std::string addScoreOp(size_t index) {
    const BodyOp &op = kernel.body[index];
    if (std::string rejection = scoreOpRejection(op); !rejection.empty()) return rejection;
    if (std::ranges::none_of(op.operands, [&](int operand) { return dependent.contains(operand); }))
      return cannotStand(op, "does not depend on the scores");
    for (size_t n = 0; n < op.operands.size(); ++n)
      if (op.expression.readsElsewhere(int(n)) && !holds(kernel.inputs, op.operands[n]))
        return cannotStand(op, fmt::format("reads '{}', which the kernel computes, at other "
                                           "coordinates than the element's",
                                           nameOfValue(op.operands[n])));
    if (axesOf(op.results[0]) != axesOf(region.scores))
      return cannotStand(op, fmt::format("gives '{}' over other axes than the scores '{}'",
                                         nameOfValue(op.results[0]), nameOfValue(region.scores)));
    region.folded = op.results[0];
    dependent.insert(region.folded);
    region.scoreOps.push_back(index);
    return rejectionOfStored(op);
  }

  std::string rejectionOfStored(const BodyOp &op) const {
    if (!holds(kernel.outputs, op.results[0])) return "";
    return cannotStand(
        op, fmt::format("gives '{}', scores, which are stored", nameOfValue(op.results[0])));
  }

  std::string checkFold() {
    const BodyOp &op = kernel.body[region.fold];
    if (op.operands[0] != region.folded)
      return cannotStand(op, fmt::format("reads '{}' as scores, where '{}' comes last",
                                         nameOfValue(op.operands[0]), nameOfValue(region.folded)));
    region.v = op.operands[1];
    if (!holds(kernel.inputs, region.v))
      return cannotStand(
          op, fmt::format("reads values '{}', which the kernel computes", nameOfValue(region.v)));
    if (holds(kernel.body[region.contraction].operands, region.v))
      return cannotStand(op, fmt::format("reads values '{}', an operand of the contraction",
                                         nameOfValue(region.v)));
    if (op.reducedAxes.size() != 1)
      return cannotStand(op, fmt::format("reduces {} axes; one is taken", op.reducedAxes.size()));
    region.keyAxis = op.reducedAxes[0];
    if (kernel.outputs != op.results) {
      const auto isOther = [&](int output) { return !holds(op.results, output); };
      const auto other = std::ranges::find_if(kernel.outputs, isOther);
      return other != kernel.outputs.end()
                 ? fmt::format("'{}' is stored; an attention stores what '{}' gives",
                               nameOfValue(*other), nameOf(op.kind))
                 : cannotStand(op, "gives results that are not all stored in their order");
    }
    region.output = op.results[0];
    if (op.results.size() > 1) region.logSums = op.results[1];
    const std::optional<Dropout> dropout = dropoutOf(op);
    region.hasDropout = dropout && dropout->p > 0;
    region.vInput = inputOf(region.v);
    return "";
  }

  /// An input of the score ops, if one of them reads it.
  std::string addInput(size_t input) {
    const int value = kernel.inputs[input];
    const auto reader = std::ranges::find_if(
        region.scoreOps, [&](size_t op) { return holds(kernel.body[op].operands, value); });
    if (reader == region.scoreOps.end()) return "";
    const BodyOp &op = kernel.body[*reader];
    if (value == region.v || holds(kernel.body[region.contraction].operands, value))
      return cannotStand(
          op, fmt::format("reads '{}', an operand of a contraction", nameOfValue(value)));
    for (const int axis : kernel.values[size_t(value)].axes)
      if (!runsAlong(region.scores, axis) && !isReadElsewhereAlone(kernel, region.scoreOps, value))
        return cannotStand(op, fmt::format("reads '{}' along '{}', which the scores lack",
                                           nameOfValue(value), kernel.axes[size_t(axis)].name));
    region.inputs.push_back({.input = input, .value = value});
    return "";
  }

  /// The operand that has the axis of keys is the keys.
  std::string findQueriesAndKeys() {
    const BodyOp &op = kernel.body[region.contraction];
    const bool isInFirst = runsAlong(op.operands[0], region.keyAxis),
               isInSecond = runsAlong(op.operands[1], region.keyAxis);
    const std::string &name = kernel.axes[size_t(region.keyAxis)].name;
    if (isInFirst && isInSecond)
      return fmt::format("the softmax runs along '{}', which both '{}' and '{}' have", name,
                         nameOfValue(op.operands[0]), nameOfValue(op.operands[1]));
    if (!isInFirst && !isInSecond)
      return fmt::format("the softmax runs along '{}', which neither '{}' nor '{}' has", name,
                         nameOfValue(op.operands[0]), nameOfValue(op.operands[1]));
    region.q = op.operands[isInFirst ? 1 : 0];
    region.k = op.operands[isInFirst ? 0 : 1];
    region.qInput = inputOf(region.q), region.kInput = inputOf(region.k);
    return "";
  }

  std::string addAxis(int axis) {
    struct Tensor {
      std::string_view name;
      int value;
      bool has;
    };
    const auto tensor = [&](std::string_view name, int value) {
      return Tensor{name, value, runsAlong(value, axis)};
    };
    const Tensor tensors[] = {tensor("queries", region.q), tensor("keys", region.k),
                              tensor("scores", region.scores), tensor("values", region.v),
                              tensor("output", region.output)};
    const auto isOf = [&](bool queries, bool keys, bool scores, bool values, bool output) {
      const bool wanted[] = {queries, keys, scores, values, output};
      return std::ranges::equal(tensors, wanted, {}, &Tensor::has);
    };
    if (isOf(true, true, true, true, true)) region.batch.push_back(axis);
    else if (isOf(true, false, true, false, true)) region.queries.push_back(axis);
    else if (isOf(true, true, false, false, false)) region.headDim.push_back(axis);
    else if (isOf(false, false, false, true, true)) region.valueDim.push_back(axis);
    else if (axis != region.keyAxis || !isOf(false, true, true, true, false)) {
      std::string with, without;
      for (const Tensor &one : tensors) {
        std::string &list = one.has ? with : without;
        list +=
            fmt::format("{}{} '{}'", list.empty() ? "" : ", ", one.name, nameOfValue(one.value));
      }
      if (with.empty()) return "";  // of an input that nothing reads
      return fmt::format("axis '{}' has no role in an attention: it is of {} and not of {}",
                         kernel.axes[size_t(axis)].name, with, without);
    }
    return "";
  }

  const Kernel &kernel;
  AttentionRegion region;
  std::set<int> dependent;  ///< scores, and what is computed from them
};

}  // namespace

AttentionRegionOrRejection attentionRegion(const Kernel &kernel) {
  return Recognition(kernel).answer();
}

bool isReadElsewhereAlone(const Kernel &kernel, std::span<const size_t> ops, int value) {
  return std::ranges::none_of(ops, [&](size_t index) {
    const BodyOp &op = kernel.body[index];
    return std::ranges::any_of(op.expression.all(), [&](const ExpressionNode &node) {
      return node.kind == ExpressionNode::Kind::operand && node.children.empty() &&
             op.operands[size_t(node.index)] == value;
    });
  });
}

std::string scoreOpRejection(const BodyOp &op) {
  if (op.operatorClass != OperatorClass::elementwise)
    return cannotStand(op, fmt::format("is of class {}; ops between scores and softmax are "
                                       "element-wise",
                                       nameOf(op.operatorClass)));
  if (op.results.size() != 1) return cannotStand(op, "has several results");
  if (op.kind == OpKind::dropout)
    return cannotStand(op, "draws; the scores of an attention kernel are not dropped");
  if (op.expression.empty()) return cannotStand(op, "is no function of single elements");
  if (op.kind == OpKind::mask && op.expression.readsElsewhere(1) && divides(op.expression))
    return cannotStand(op, "reads a table of blocks, at other coordinates than the element's");
  if (op.expression.readsElsewhere(0))
    return cannotStand(op, "reads at other coordinates than the element's");
  return "";
}

}  // namespace weft
