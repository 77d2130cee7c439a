// Recognition: the probability and what leads to it, then the contractions by what they read, then
// every op between them, then the role of every axis.
#include "kernel/AttentionBackwardRegion.h"

#include "kernel/Attributes.h"
#include "kernel/RecentAnswers.h"
#include "kernel/Recognition.h"
#include "kernel/StridedBatchedGemm.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <ranges>
#include <set>
#include <utility>

namespace weft {
namespace {

double scaleOf(const BodyOp &op) { return attributeOr(op, attribute::scale, 1); }

class AttentionBackwardRecognition {
public:
  explicit AttentionBackwardRecognition(const Kernel &kernel) : kernel(kernel) {}

  Expected<AttentionBackwardRegion, Reason> answer() {
    std::string rejection = findMoved();
    if (rejection.empty()) rejection = findProbability();
    if (rejection.empty()) rejection = sortContractions();
    if (rejection.empty()) rejection = findScores();
    if (rejection.empty()) rejection = findOperands();
    for (int op = 0; rejection.empty() && op < std::ssize(kernel.body); ++op)
      if (kernel.body[op].kind != OpKind::contract && !isMoving(kernel.body[op]))
        rejection = addElementOp(op);
    for (const OpId op : ofElements)
      if (rejection.empty()) rejection = addGradient(op);
    if (rejection.empty()) rejection = checkGradients();
    if (rejection.empty()) rejection = checkOutputs();
    for (size_t input = 0; rejection.empty() && input < kernel.inputs.size(); ++input)
      rejection = addInput(input);
    for (int axis = 0; rejection.empty() && axis < int(kernel.axes.size()); ++axis)
      rejection = addAxis(axis);
    if (rejection.empty() && region.headDim.empty())
      rejection = cannotStand(kernel.body[region.scoresContraction],
                              "sums over no axis that queries and keys have in common");
    if (rejection.empty()) rejection = addPacked();
    if (!rejection.empty()) return rejected(std::move(rejection));
    return std::move(region);
  }

private:
  const std::string &nameOfValue(ValueId value) const { return kernel.values[size_t(value)].name; }
  bool runsAlong(ValueId value, AxisId axis) const {
    return holds(kernel.values[size_t(value)].axes, axis);
  }
  std::set<AxisId> axesOf(ValueId value) const {
    const std::vector<AxisId> &axes = kernel.values[size_t(value)].axes;
    return {axes.begin(), axes.end()};
  }
  bool isInput(ValueId value) const { return holds(kernel.inputs, value); }
  bool isRead(ValueId value) const { return isInput(value) || unpacked.contains(value); }
  static bool isMoving(const BodyOp &op) {
    return op.kind == OpKind::unpack || op.kind == OpKind::pack;
  }

  /// Where tokens of an unpacked or packed tensor lie.
  struct Placement {
    ValueId inMemory = -1, offsets = -1;
    AxisId sequences = -1, positions = -1, tokens = -1;
  };
  AxisId axisOf(ValueId value, size_t dimension) const {
    return kernel.values[size_t(value)].axes.at(dimension);
  }
  ValueId stored(ValueId value) const {
    for (const std::map<ValueId, Placement> *moved : {&unpacked, &packed})
      if (const auto found = moved->find(value); found != moved->end())
        return found->second.inMemory;
    return value;
  }

  /// Ops that unpack inputs, and those that pack what others give.
  std::string findMoved() {
    for (const BodyOp &op : kernel.body) {
      if (!isMoving(op)) continue;
      if (!isInput(op.operands[1]))
        return cannotStand(op, fmt::format("reads offsets '{}', which the kernel computes",
                                           nameOfValue(op.operands[1])));
      if (op.kind == OpKind::pack) {
        const std::vector<int64_t> &axes = attributeOf(op, attribute::axes);
        packed[op.operands[0]] = {
            .inMemory = op.results[0],
            .offsets = op.operands[1],
            .sequences = axisOf(op.operands[0], size_t(axes[0])),
            .positions = axisOf(op.operands[0], size_t(axes[1])),
            .tokens = axisOf(op.results[0], size_t(axes[0] - (axes[0] > axes[1] ? 1 : 0)))};
        continue;
      }
      if (!isInput(op.operands[0]))
        return cannotStand(
            op, fmt::format("reads '{}', which the kernel computes", nameOfValue(op.operands[0])));
      if (attributeOr(op, attribute::fill, 0) != 0)
        return cannotStand(op, "fills with another number than zero");
      const std::vector<int64_t> &into = attributeOf(op, attribute::into);
      unpacked[op.results[0]] = {
          .inMemory = op.operands[0],
          .offsets = op.operands[1],
          .sequences = axisOf(op.results[0], size_t(into[0])),
          .positions = axisOf(op.results[0], size_t(into[1])),
          .tokens = axisOf(op.operands[0], size_t(attributeOf(op, attribute::axis)))};
    }
    return "";
  }

  std::string findProbability() {
    const auto isProbability = [](const BodyOp &op) {
      return op.kind == OpKind::softmaxFromLogSums;
    };
    const auto count = std::ranges::count_if(kernel.body, isProbability);
    if (count != 1)
      return fmt::format("{} '{}' in the body; one computes the probabilities of a backward pass",
                         count == 0 ? "no" : std::to_string(count),
                         nameOf(OpKind::softmaxFromLogSums));
    const auto found = std::ranges::find_if(kernel.body, isProbability);
    region.probability = int(found - kernel.body.begin());
    region.logSums = found->operands[1];
    if (!isRead(region.logSums))
      return cannotStand(*found, fmt::format("reads log sums '{}', which the kernel computes",
                                             nameOfValue(region.logSums)));
    // Backwards through the body, which is in topological order: what the operand is computed from.
    ofScore = {found->operands[0]};
    for (int op = region.probability; op-- > 0;)
      if (const BodyOp &body = kernel.body[op];
          body.kind != OpKind::contract && std::ranges::any_of(body.results, [&](ValueId value) {
            return ofScore.contains(value);
          })) {
        region.scoreOps.insert(region.scoreOps.begin(), op);
        ofScore.insert(body.operands.begin(), body.operands.end());
      }
    return "";
  }

  /// By how many of their operands are inputs: both, or one.
  std::string sortContractions() {
    for (int index = 0; index < std::ssize(kernel.body); ++index) {
      const BodyOp &op = kernel.body[index];
      if (op.kind != OpKind::contract) continue;
      if (op.operands.size() != 2)
        return cannotStand(
            op, fmt::format("has {} operands; those of an attention have two", op.operands.size()));
      const std::ptrdiff_t inputs =
          std::ranges::count_if(op.operands, [&](ValueId operand) { return isRead(operand); });
      if (inputs == 0)
        return cannotStand(op,
                           fmt::format("reads '{}' and '{}', which the kernel both computes",
                                       nameOfValue(op.operands[0]), nameOfValue(op.operands[1])));
      if (inputs == 2 && op.operands[0] == op.operands[1])
        return fmt::format("'{}' is both operands of a contraction", nameOfValue(op.operands[0]));
      (inputs == 2 ? ofInputs : ofElements).push_back(index);
    }
    if (ofInputs.size() != 2)
      return fmt::format(
          "{} contractions of inputs; a backward pass has two, the scores and what "
          "d_output and values give",
          ofInputs.size());
    return "";
  }

  std::string findScores() {
    const auto isOfScore = [&](OpId op) { return ofScore.contains(kernel.body[op].results[0]); };
    const BodyOp &probability = kernel.body[region.probability];
    if (isOfScore(ofInputs[0]) == isOfScore(ofInputs[1]))
      return cannotStand(probability, isOfScore(ofInputs[0])
                                          ? "is computed from both contractions of inputs; scores "
                                            "are one of them"
                                          : "is computed from no contraction of inputs");
    std::tie(region.scoresContraction, region.dKeptContraction) =
        isOfScore(ofInputs[0]) ? std::pair(ofInputs[0], ofInputs[1])
                               : std::pair(ofInputs[1], ofInputs[0]);
    const BodyOp &scores = kernel.body[region.scoresContraction],
                 &dKept = kernel.body[region.dKeptContraction];
    region.scores = scores.results[0], region.dKept = dKept.results[0];
    region.scoresScale = scaleOf(scores), region.dKeptScale = scaleOf(dKept);
    region.readsTf32 = std::ranges::all_of(
        kernel.body, [](const BodyOp &op) { return op.kind != OpKind::contract || isTf32(op); });
    dependent = {region.scores, region.dKept};
    if (axesOf(region.dKept) != axesOf(region.scores))
      return cannotStand(dKept, fmt::format("gives '{}' over other axes than the scores '{}'",
                                            nameOfValue(region.dKept), nameOfValue(region.scores)));
    std::vector<AxisId> softmax;
    for (const AxisId axis : axesOf(region.scores))
      if (!runsAlong(region.logSums, axis)) softmax.push_back(axis);
    if (softmax.size() != 1)
      return cannotStand(probability, fmt::format("runs along {} axes of the scores '{}'; one is "
                                                  "taken",
                                                  softmax.size(), nameOfValue(region.scores)));
    region.keyAxis = softmax[0];
    return "";
  }

  /// Of both contractions of inputs, the operand that has the axis of keys comes second.
  std::string findOperands() {
    for (const auto &[index, other, ofKeys] :
         {std::tuple(region.scoresContraction, &region.q, &region.k),
          std::tuple(region.dKeptContraction, &region.dOutput, &region.v)}) {
      const BodyOp &op = kernel.body[index];
      const bool isInFirst = runsAlong(op.operands[0], region.keyAxis);
      if (isInFirst == runsAlong(op.operands[1], region.keyAxis))
        return fmt::format("the softmax runs along '{}', which {} '{}' {} '{}' {}",
                           kernel.axes[size_t(region.keyAxis)].name, isInFirst ? "both" : "neither",
                           nameOfValue(op.operands[0]), isInFirst ? "and" : "nor",
                           nameOfValue(op.operands[1]), isInFirst ? "have" : "has");
      *other = op.operands[isInFirst ? 1 : 0], *ofKeys = op.operands[isInFirst ? 0 : 1];
    }
    for (const ValueId value : kernel.body[region.dKeptContraction].operands)
      if (holds(kernel.body[region.scoresContraction].operands, value))
        return fmt::format("'{}' is an operand of both contractions of inputs", nameOfValue(value));
    return "";
  }

  std::string addElementOp(OpId index) {
    const BodyOp &op = kernel.body[index];
    const bool isScoreOp = holds(region.scoreOps, index);
    if (!isScoreOp && op.operatorClass != OperatorClass::elementwise)
      return cannotStand(op, fmt::format("is of class {}; ops between the contractions are "
                                         "element-wise",
                                         nameOf(op.operatorClass)));
    if (isScoreOp || op.kind != OpKind::dropout)
      if (std::string rejection = scoreOpRejection(op); !rejection.empty()) return rejection;
    if (std::ranges::none_of(op.operands,
                             [&](ValueId operand) { return dependent.contains(operand); }))
      return cannotStand(op, fmt::format("depends on neither '{}' nor '{}'",
                                         nameOfValue(region.scores), nameOfValue(region.dKept)));
    for (size_t n = 0; n < op.operands.size(); ++n)
      if (op.expression.readsElsewhere(int(n)) && !isInput(op.operands[n]))
        return cannotStand(op, fmt::format("reads '{}', which the kernel computes, at other "
                                           "coordinates than the element's",
                                           nameOfValue(op.operands[n])));
    if (axesOf(op.results[0]) != axesOf(region.scores))
      return cannotStand(op, fmt::format("gives '{}' over other axes than the scores '{}'",
                                         nameOfValue(op.results[0]), nameOfValue(region.scores)));
    if (const std::optional<Dropout> dropout = dropoutOf(op); dropout && dropout->p > 0)
      region.hasDropout = true;
    dependent.insert(op.results[0]);
    region.elementOps.push_back(index);
    return "";
  }

  /// A contraction of an element-wise op's result. Its other operand says what it gives.
  std::string addGradient(OpId index) {
    const BodyOp &op = kernel.body[index];
    const size_t ofElements = isRead(op.operands[0]) ? 1 : 0;
    const ValueId elements = op.operands[ofElements], input = op.operands[1 - ofElements];
    struct Gradient {
      std::string_view name;
      ValueId input;
      OpId *contraction;
      ValueId *result, *elements;
      double *scale;
    };
    for (const Gradient &gradient : {Gradient{"d_v", region.dOutput, &region.dVContraction,
                                              &region.dV, &region.kept, &region.dVScale},
                                     Gradient{"d_q", region.k, &region.dQContraction, &region.dQ,
                                              &region.dScores, &region.dQScale},
                                     Gradient{"d_k", region.q, &region.dKContraction, &region.dK,
                                              &region.dScores, &region.dKScale}}) {
      if (input != gradient.input) continue;
      if (*gradient.result >= 0)
        return cannotStand(
            op, fmt::format("reads '{}', as the contraction that gives {} '{}' does",
                            nameOfValue(input), gradient.name, nameOfValue(*gradient.result)));
      if (*gradient.elements >= 0 && *gradient.elements != elements)
        return cannotStand(op, fmt::format("reads '{}' of the scores, where another contraction "
                                           "reads '{}'",
                                           nameOfValue(elements), nameOfValue(*gradient.elements)));
      if (axesOf(elements) != axesOf(region.scores))
        return cannotStand(
            op, fmt::format("reads '{}', which is no gradient of scores", nameOfValue(elements)));
      *gradient.contraction = index, *gradient.result = op.results[0];
      *gradient.elements = elements, *gradient.scale = scaleOf(op);
      return "";
    }
    return cannotStand(op, fmt::format("reads '{}', which is neither queries, keys nor d_output",
                                       nameOfValue(input)));
  }

  std::string checkGradients() const {
    for (const auto &[result, name, from] : {std::tuple(region.dV, "d_v", region.dOutput),
                                             {region.dQ, "d_q", region.k},
                                             {region.dK, "d_k", region.q}})
      if (result < 0)
        return fmt::format("no contraction with '{}' gives {}", nameOfValue(from), name);
    if (region.kept == region.dScores)
      return fmt::format("'{}' is the operand of all three gradients", nameOfValue(region.kept));
    return "";
  }

  /// Element-wise results that are zero wherever the probability is, as masked tiles leave them.
  std::set<ValueId> vanishing() const {
    using Kind = ExpressionNode::Kind;
    using enum ScalarOperator;
    std::set<ValueId> found = {kernel.body[region.probability].results[0]};
    for (const OpId index : region.elementOps) {
      const BodyOp &op = kernel.body[index];
      const std::function<bool(int)> vanishes = [&](int at) {
        const ExpressionNode &node = op.expression[at];
        const auto child = [&](size_t n) { return vanishes(node.children[n]); };
        switch (node.kind) {
          case Kind::operand:
            return node.children.empty() && found.contains(op.operands[size_t(node.index)]);
          case Kind::literal: return node.value == 0;
          case Kind::unary: return node.operation == negate && child(0);
          case Kind::binary:
            return node.operation == multiply ? child(0) || child(1)
                   : node.operation == divide
                       ? child(0)
                       : (node.operation == add || node.operation == subtract) && child(0) &&
                             child(1);
          case Kind::select: return child(1) && child(2);
          default: return false;
        }
      };
      const bool isDropped = op.kind == OpKind::dropout && found.contains(op.operands[0]);
      if (isDropped || (op.kind != OpKind::dropout && index != region.probability &&
                        vanishes(op.expression.root())))
        found.insert(op.results[0]);
    }
    return found;
  }
  /// Whether a value is d_scores, or a gradient of scores in front of it: that of a bias which is
  /// added behind what bends scores.
  bool isGradientOfScores(ValueId value) const {
    if (value == region.dScores) return true;
    std::set<ValueId> leads = {region.dScores};
    for (const OpId index : std::views::reverse(region.elementOps))
      if (leads.contains(kernel.body[index].results[0]))
        leads.insert(kernel.body[index].operands.begin(), kernel.body[index].operands.end());
    const bool isBehindProbability = std::ranges::any_of(region.elementOps, [&](OpId index) {
      const BodyOp &op = kernel.body[index];
      return op.results[0] == value && index != region.probability &&
             !holds(region.scoreOps, index);
    });
    return isBehindProbability && value != region.kept && leads.contains(value) &&
           vanishing().contains(value);
  }

  std::string checkOutputs() {
    const std::array results = {region.dQ, region.dK, region.dV};
    for (const ValueId output : kernel.outputs)
      if (region.storedScores < 0 && isGradientOfScores(output)) region.storedScores = output;
      else if (std::ranges::none_of(results,
                                    [&](ValueId result) { return stored(result) == output; }))
        return fmt::format(
            "'{}' is stored; a backward pass stores d_q, d_k, d_v and one gradient of "
            "scores, as '{}', alone",
            nameOfValue(output), nameOfValue(region.dScores));
    for (const ValueId result : results) {
      if (!holds(kernel.outputs, stored(result)))
        return fmt::format("'{}' is not stored", nameOfValue(result));
      for (const BodyOp &op : kernel.body)
        if (holds(op.operands, result) && !isMoving(op))
          return cannotStand(
              op, fmt::format("reads '{}', a result of a backward pass", nameOfValue(result)));
    }
    return "";
  }

  /// Of a kernel that unpacks or packs: all operands of contractions and all gradients are packed,
  /// by the same offsets, and of other tensors those of rows may be. Then the region names what is
  /// in memory.
  std::string addPacked() {
    if (unpacked.empty() && packed.empty()) return "";
    const BodyOp &first = *std::ranges::find_if(kernel.body, isMoving);
    for (const ValueId value : {region.q, region.k, region.v, region.dOutput, region.logSums})
      if (!unpacked.contains(value))
        return cannotStand(
            first, fmt::format("stands in the kernel, and '{}' is not packed", nameOfValue(value)));
    for (const ValueId value : {region.dQ, region.dK, region.dV})
      if (!packed.contains(value))
        return cannotStand(
            first, fmt::format("stands in the kernel, and '{}' is not packed", nameOfValue(value)));
    if (packed.size() != 3) return cannotStand(first, "packs something else than gradients");
    const Placement &queries = unpacked.at(region.q);
    if (!holds(region.batch, queries.sequences) || !holds(region.queries, queries.positions))
      return cannotStand(first, "unpacks along other axes than sequences and their positions");
    const auto liesAlike = [&](const Placement &own, AxisId positions) {
      return own.offsets == queries.offsets && own.sequences == queries.sequences &&
             own.positions == positions;
    };
    for (const auto &[placement, positions] : {std::pair(&unpacked.at(region.k), region.keyAxis),
                                               {&unpacked.at(region.v), region.keyAxis},
                                               {&unpacked.at(region.dOutput), queries.positions},
                                               {&packed.at(region.dQ), queries.positions},
                                               {&packed.at(region.dK), region.keyAxis},
                                               {&packed.at(region.dV), region.keyAxis}})
      if (!liesAlike(*placement, positions))
        return cannotStand(first,
                           "unpacks by other offsets than all other tensors, or along "
                           "other axes");
    PackedGradients own{
        .input = size_t(std::ranges::find(kernel.inputs, queries.offsets) - kernel.inputs.begin()),
        .offsets = queries.offsets,
        .sequences = queries.sequences,
        .positions = queries.positions,
        .q = queries.tokens,
        .k = unpacked.at(region.k).tokens,
        .v = unpacked.at(region.v).tokens,
        .dOutput = unpacked.at(region.dOutput).tokens,
        .dQ = packed.at(region.dQ).tokens,
        .dK = packed.at(region.dK).tokens,
        .dV = packed.at(region.dV).tokens};
    const auto addRow = [&](ValueId value) {
      const Placement &placement = unpacked.at(value);
      own.rows.push_back({.read = value, .stored = placement.inMemory, .tokens = placement.tokens});
    };
    addRow(region.logSums);
    for (const auto &[value, placement] : unpacked) {
      if (value == region.logSums || value == region.q || value == region.k || value == region.v ||
          value == region.dOutput)
        continue;
      if (!liesAlike(placement, queries.positions) ||
          kernel.values[size_t(value)].dtype != DType::f32 ||
          std::ranges::any_of(axesOf(value), [&](AxisId axis) {
            return !holds(region.batch, axis) && !holds(region.queries, axis);
          }))
        return cannotStand(first, fmt::format("gives '{}', which is neither an operand of a "
                                              "contraction nor of rows, in f32",
                                              nameOfValue(value)));
      addRow(value);
    }
    for (ValueId *value : {&region.q, &region.k, &region.v, &region.dOutput, &region.logSums,
                           &region.dQ, &region.dK, &region.dV})
      *value = stored(*value);
    region.packed = std::move(own);
    return "";
  }

  /// An input of the element-wise ops, if one of them reads it.
  std::string addInput(size_t input) {
    const ValueId value = kernel.inputs[input];
    const auto reader = std::ranges::find_if(
        region.elementOps, [&](OpId op) { return holds(kernel.body[op].operands, value); });
    if (reader == region.elementOps.end()) return "";
    const BodyOp &op = kernel.body[*reader];
    if (holds(std::array{region.q, region.k, region.v, region.dOutput}, value))
      return cannotStand(
          op, fmt::format("reads '{}', an operand of a contraction", nameOfValue(value)));
    for (const AxisId axis : kernel.values[size_t(value)].axes)
      if (!runsAlong(region.scores, axis) &&
          !isReadElsewhereAlone(kernel, region.elementOps, value))
        return cannotStand(op, fmt::format("reads '{}' along '{}', which the scores lack",
                                           nameOfValue(value), kernel.axes[size_t(axis)].name));
    region.inputs.push_back({.input = input, .value = value});
    return "";
  }

  std::string addAxis(AxisId axis) {
    struct Tensor {
      std::string_view name;
      ValueId value;
      bool has;
    };
    const auto tensor = [&](std::string_view name, ValueId value) {
      return Tensor{name, value, runsAlong(value, axis)};
    };
    const std::array tensors = {tensor("queries", region.q),     tensor("keys", region.k),
                                tensor("values", region.v),      tensor("d_output", region.dOutput),
                                tensor("scores", region.scores), tensor("d_q", region.dQ),
                                tensor("d_k", region.dK),        tensor("d_v", region.dV)};
    const auto isOf = [&](const std::set<std::string_view> &names) {
      return std::ranges::all_of(
          tensors, [&](const Tensor &one) { return one.has == names.contains(one.name); });
    };
    if (std::ranges::all_of(tensors, &Tensor::has)) region.batch.push_back(axis);
    else if (isOf({"queries", "d_output", "scores", "d_q"})) region.queries.push_back(axis);
    else if (isOf({"queries", "keys", "d_q", "d_k"})) region.headDim.push_back(axis);
    else if (isOf({"values", "d_output", "d_v"})) region.valueDim.push_back(axis);
    else if (axis != region.keyAxis || !isOf({"keys", "values", "scores", "d_k", "d_v"})) {
      std::string with, without;
      for (const Tensor &one : tensors) {
        std::string &list = one.has ? with : without;
        list +=
            fmt::format("{}{} '{}'", list.empty() ? "" : ", ", one.name, nameOfValue(one.value));
      }
      if (with.empty()) return "";  // of an input of element-wise ops, or of one that nothing reads
      return fmt::format("axis '{}' has no role in an attention: it is of {} and not of {}",
                         kernel.axes[size_t(axis)].name, with, without);
    }
    return "";
  }

  const Kernel &kernel;
  AttentionBackwardRegion region;
  std::map<ValueId, Placement> unpacked;   ///< by the value that ops unpack
  std::map<ValueId, Placement> packed;     ///< by the value that ops pack
  std::vector<OpId> ofInputs, ofElements;  ///< contractions
  std::set<ValueId> ofScore;    ///< what the probability is computed from, back to contractions
  std::set<ValueId> dependent;  ///< scores, dKept, and what is computed from them
};

}  // namespace

const Expected<AttentionBackwardRegion, Reason> &attentionBackwardRegion(const Kernel &kernel) {
  thread_local RecentAnswers<Expected<AttentionBackwardRegion, Reason>> recent;
  return recent.of([&] { return AttentionBackwardRecognition(kernel).answer(); }, kernel);
}

}  // namespace weft
