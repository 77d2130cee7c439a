// Recognition: what unpacks, gathers or rotates, first and last op, then every op between them,
// then what these read, then the role of every axis.
#include "kernel/AttentionRegion.h"

#include "kernel/Attributes.h"
#include "kernel/RecentAnswers.h"
#include "kernel/Recognition.h"
#include "kernel/StridedBatchedGemm.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace weft {
namespace {

bool divides(const Expression &expression) {
  return std::ranges::any_of(expression.all(), [](const ExpressionNode &node) {
    return node.kind == ExpressionNode::Kind::binary && node.operation == ScalarOperator::divide;
  });
}

class AttentionRecognition {
public:
  explicit AttentionRecognition(const Kernel &kernel) : kernel(kernel) {}

  Expected<AttentionRegion, Reason> answer() {
    std::string rejection = findMoved();
    if (rejection.empty()) rejection = findContraction();
    if (rejection.empty()) rejection = findFold();
    for (int op = region.contraction + 1; rejection.empty() && op < region.fold; ++op)
      rejection = addScoreOp(op);
    if (rejection.empty()) rejection = checkFold();
    for (size_t input = 0; rejection.empty() && input < kernel.inputs.size(); ++input)
      rejection = addInput(input);
    if (rejection.empty()) rejection = findQueriesAndKeys();
    for (int axis = 0; rejection.empty() && axis < int(kernel.axes.size()); ++axis)
      rejection = addAxis(axis);
    if (rejection.empty() && region.headDim.empty())
      rejection = cannotStand(kernel.body[region.contraction],
                              "sums over no axis that queries and keys have in common");
    if (rejection.empty()) rejection = addPacked();
    if (rejection.empty()) rejection = addPaged();
    if (rejection.empty()) rejection = addRotated();
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
  size_t inputOf(ValueId value) const {
    return size_t(std::ranges::find(kernel.inputs, value) - kernel.inputs.begin());
  }

  /// Where tokens of an unpacked or packed tensor lie.
  struct Placement {
    ValueId inMemory = -1, offsets = -1;
    AxisId sequences = -1, positions = -1, tokens = -1;
  };
  /// Where positions of a tensor that pages are gathered to lie.
  struct Gathered {
    ValueId inMemory = -1, table = -1;
    AxisId sequences = -1, positions = -1;    ///< of what is gathered
    AxisId pages = -1, positionsInPage = -1;  ///< of what is in memory
  };
  AxisId axisOf(ValueId value, size_t dimension) const {
    return kernel.values[size_t(value)].axes.at(dimension);
  }

  /// Whether an op rotates elements in memory.
  bool isRotating(const BodyOp &op) const {
    return op.kind == OpKind::rotary && holds(kernel.inputs, op.operands[0]);
  }
  /// Ops that unpack inputs, gather their pages or turn them, wherever they stand; the contraction
  /// is the first other one. What is turned may be unpacked.
  std::string findMoved() {
    const auto isOther = [&](const BodyOp &op) {
      return op.kind != OpKind::unpack && op.kind != OpKind::gatherPages && !isRotating(op);
    };
    region.contraction = int(std::ranges::find_if(kernel.body, isOther) - kernel.body.begin());
    for (int index = 0; index < std::ssize(kernel.body); ++index) {
      const BodyOp &op = kernel.body[size_t(index)];
      if (isOther(op)) continue;
      for (const ValueId operand : op.operands)
        if (!holds(kernel.inputs, operand) &&
            !(op.kind == OpKind::unpack && operand == rotatedResult() && operand == op.operands[0]))
          return cannotStand(
              op, fmt::format("reads '{}', which the kernel computes", nameOfValue(operand)));
      if (isRotating(op)) {
        if (turning >= 0) return cannotStand(op, "rotates more than queries");
        turning = index;
        continue;
      }
      if (op.kind == OpKind::gatherPages) {
        const auto along = size_t(attributeOf(op, attribute::along).at(0)),
                   axis = size_t(attributeOf(op, attribute::axis));
        gathered[op.results[0]] = {.inMemory = op.operands[0],
                                   .table = op.operands[1],
                                   .sequences = axisOf(op.results[0], along),
                                   .positions = axisOf(op.results[0], axis),
                                   .pages = axisOf(op.operands[0], along),
                                   .positionsInPage = axisOf(op.operands[0], axis)};
        continue;
      }
      if (attributeOr(op, attribute::fill, 0) != 0)
        return cannotStand(op, "fills with another number than zero");
      const std::vector<int64_t> &into = attributeOf(op, attribute::into);
      const auto axis = size_t(attributeOf(op, attribute::axis));
      unpacked[op.results[0]] = {.inMemory = op.operands[0],
                                 .offsets = op.operands[1],
                                 .sequences = axisOf(op.results[0], size_t(into[0])),
                                 .positions = axisOf(op.results[0], size_t(into[1])),
                                 .tokens = axisOf(op.operands[0], axis)};
    }
    return "";
  }
  /// Of what an op packs.
  Placement placementOf(const BodyOp &op) const {
    const std::vector<int64_t> &axes = attributeOf(op, attribute::axes);
    return {.inMemory = op.results[0],
            .offsets = op.operands[1],
            .sequences = axisOf(op.operands[0], size_t(axes[0])),
            .positions = axisOf(op.operands[0], size_t(axes[1])),
            .tokens = axisOf(op.results[0], size_t(axes[0] - (axes[0] > axes[1] ? 1 : 0)))};
  }
  /// What a rotary op gives; -1 of none.
  ValueId rotatedResult() const {
    return turning < 0 ? ValueId() : kernel.body[turning].results[0];
  }
  bool isMoved(ValueId value) const {
    return unpacked.contains(value) || gathered.contains(value) || isRotated(value);
  }
  bool isRotated(ValueId value) const { return value >= 0 && value == rotatedResult(); }
  bool isRead(ValueId value) const { return holds(kernel.inputs, value) || isMoved(value); }
  /// The tensor in memory.
  ValueId stored(ValueId value) const {
    if (const auto found = gathered.find(value); found != gathered.end())
      return found->second.inMemory;
    if (const auto found = unpacked.find(value); found != unpacked.end())
      return stored(found->second.inMemory);
    return isRotated(value) ? kernel.body[turning].operands[0] : value;
  }

  std::string findContraction() {
    if (region.contraction == std::ssize(kernel.body) ||
        kernel.body[region.contraction].kind != OpKind::contract ||
        kernel.body[region.contraction].operands.size() != 2)
      return "the body does not open with a contraction of two operands";
    const BodyOp &op = kernel.body[region.contraction];
    for (const ValueId operand : op.operands)
      if (!isRead(operand))
        return cannotStand(
            op, fmt::format("reads '{}', which the kernel computes", nameOfValue(operand)));
    if (op.operands[0] == op.operands[1])
      return fmt::format("'{}' is both operands of the contraction", nameOfValue(op.operands[0]));
    if (const double *scale = findAttribute(op, attribute::scale)) region.scale = *scale;
    region.scores = region.folded = op.results[0];
    dependent.insert(region.scores);
    return "";
  }

  std::string findFold() {
    const auto isFold = [](const BodyOp &op) { return op.kind == OpKind::onlineSoftmaxContract; };
    const auto first = std::ranges::find_if(kernel.body, isFold);
    if (first == kernel.body.end())
      return fmt::format("no '{}' reads the scores", nameOf(OpKind::onlineSoftmaxContract));
    region.fold = int(first - kernel.body.begin());
    auto next = first + 1;
    for (; !unpacked.empty() && next != kernel.body.end() && next->kind == OpKind::pack; ++next) {
      const auto result = std::ranges::find(first->results, next->operands[0]);
      if (result == first->results.end() || !holds(kernel.inputs, next->operands[1]))
        return cannotStand(*next, "packs something else than the output and the sums of its rows");
      std::optional<Placement> &packed =
          result == first->results.begin() ? packedOutput : packedLogSums;
      if (packed)
        return cannotStand(*next, fmt::format("packs '{}' once more", nameOfValue(*result)));
      packed = placementOf(*next);
    }
    if (next != kernel.body.end())
      return cannotStand(*next,
                         fmt::format("follows '{}', which ends an attention", nameOf(first->kind)));
    return rejectionOfStored(kernel.body[region.contraction]);
  }

  std::string addScoreOp(OpId index) {
    const BodyOp &op = kernel.body[index];
    if (isMoved(op.results[0])) return "";
    if (std::string rejection = scoreOpRejection(op); !rejection.empty()) return rejection;
    if (std::ranges::none_of(op.operands,
                             [&](ValueId operand) { return dependent.contains(operand); }))
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
    v = op.operands[1];
    if (!isRead(v))
      return cannotStand(
          op, fmt::format("reads values '{}', which the kernel computes", nameOfValue(v)));
    for (const ValueId operand : kernel.body[region.contraction].operands)
      if (stored(operand) == stored(v))
        return cannotStand(
            op, fmt::format("reads values '{}', an operand of the contraction", nameOfValue(v)));
    region.v = stored(v);
    if (op.reducedAxes.size() != 1)
      return cannotStand(op, fmt::format("reduces {} axes; one is taken", op.reducedAxes.size()));
    region.keyAxis = op.reducedAxes[0];
    output = op.results[0];
    if (packedOutput || packedLogSums) {
      std::vector<ValueId> stored;
      for (const std::optional<Placement> *packed : {&packedOutput, &packedLogSums})
        if (*packed) stored.push_back((*packed)->inMemory);
      if (stored.size() != op.results.size() || kernel.outputs != stored)
        return cannotStand(op, "gives results that are not all packed, in their order");
      region.output = packedOutput->inMemory;
    } else if (kernel.outputs != op.results) {
      const auto isOther = [&](ValueId output) { return !holds(op.results, output); };
      const auto other = std::ranges::find_if(kernel.outputs, isOther);
      return other != kernel.outputs.end()
                 ? fmt::format("'{}' is stored; an attention stores what '{}' gives",
                               nameOfValue(*other), nameOf(op.kind))
                 : cannotStand(op, "gives results that are not all stored in their order");
    }
    if (!packedOutput) region.output = output;
    if (op.results.size() > 1)
      region.logSums = packedLogSums ? packedLogSums->inMemory : op.results[1];
    const std::optional<Dropout> dropout = dropoutOf(op);
    region.hasDropout = dropout && dropout->p > 0;
    region.readsTf32 = isTf32(kernel.body[region.contraction]) && isTf32(op);
    region.vInput = inputOf(region.v);
    return "";
  }

  /// An input of the score ops, if one of them reads it.
  std::string addInput(size_t input) {
    const ValueId value = kernel.inputs[input];
    const auto reader = std::ranges::find_if(
        region.scoreOps, [&](OpId op) { return holds(kernel.body[op].operands, value); });
    if (reader == region.scoreOps.end()) return "";
    const BodyOp &op = kernel.body[*reader];
    const std::vector<ValueId> &factors = kernel.body[region.contraction].operands;
    if (value == region.v ||
        std::ranges::any_of(factors, [&](ValueId factor) { return stored(factor) == value; }))
      return cannotStand(
          op, fmt::format("reads '{}', an operand of a contraction", nameOfValue(value)));
    for (const AxisId axis : kernel.values[size_t(value)].axes)
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
    q = op.operands[isInFirst ? 1 : 0];
    k = op.operands[isInFirst ? 0 : 1];
    region.q = stored(q), region.k = stored(k);
    region.qInput = inputOf(region.q), region.kInput = inputOf(region.k);
    return "";
  }

  /// Of a kernel that unpacks: all of its tensors lie packed, by the same offsets.
  std::string addPacked() {
    if (unpacked.empty()) return "";
    const BodyOp &first = *std::ranges::find(kernel.body, OpKind::unpack, &BodyOp::kind);
    if (unpacked.size() != 3 || !packedOutput || !unpacked.contains(q) || !unpacked.contains(k) ||
        !unpacked.contains(v))
      return cannotStand(first,
                         "unpacks some of queries, keys and values, and not all of them and "
                         "the output lie packed");
    const Placement &queries = unpacked.at(q), &keys = unpacked.at(k), &values = unpacked.at(v);
    for (const Placement &own : {keys, values, *packedOutput, packedLogSums.value_or(queries)})
      if (own.offsets != queries.offsets || own.sequences != queries.sequences)
        return cannotStand(first, "unpacks by other offsets than all other tensors");
    if (!holds(region.batch, queries.sequences) || !holds(region.queries, queries.positions) ||
        packedOutput->positions != queries.positions ||
        packedLogSums.value_or(queries).positions != queries.positions ||
        keys.positions != region.keyAxis || values.positions != region.keyAxis)
      return cannotStand(first, "unpacks along other axes than sequences and their positions");
    region.packed = PackedTokens{.input = inputOf(queries.offsets),
                                 .offsets = queries.offsets,
                                 .sequences = queries.sequences,
                                 .positions = queries.positions,
                                 .q = queries.tokens,
                                 .k = keys.tokens,
                                 .v = values.tokens,
                                 .output = packedOutput->tokens,
                                 .logSums = packedLogSums.value_or(Placement{}).tokens};
    return "";
  }

  /// Of a kernel that gathers pages: those of keys and of values, and of nothing else.
  std::string addPaged() {
    if (gathered.empty()) return "";
    const BodyOp &first = *std::ranges::find(kernel.body, OpKind::gatherPages, &BodyOp::kind);
    if (gathered.size() != 2 || !gathered.contains(k) || !gathered.contains(v))
      return cannotStand(first, "gathers others than keys and values, or one of them alone");
    const Gathered &keys = gathered.at(k), &values = gathered.at(v);
    if (keys.table != values.table)
      return cannotStand(first, "gathers keys and values by different tables");
    if (keys.sequences != values.sequences || !holds(region.batch, keys.sequences) ||
        keys.positions != region.keyAxis || values.positions != region.keyAxis)
      return cannotStand(first, "gathers along other axes than sequences and their keys");
    region.paged = PagedKeys{.input = inputOf(keys.table),
                             .table = keys.table,
                             .sequences = keys.sequences,
                             .kPages = keys.pages,
                             .vPages = values.pages,
                             .kPositions = keys.positionsInPage,
                             .vPositions = values.positionsInPage};
    return "";
  }

  /// Of a kernel that rotates: queries, whole heads of them, by their positions.
  std::string addRotated() {
    if (turning < 0) return "";
    const BodyOp &op = kernel.body[turning];
    const std::optional<RotatedPairs> pairs = rotatedPairs(kernel, turning);
    if (!pairs) return cannotStand(op, "has no expression of its pairs");
    const auto found = unpacked.find(q);
    if (!isRotated(found == unpacked.end() ? q : found->second.inMemory))
      return cannotStand(op,
                         fmt::format("rotates '{}'; an attention rotates queries, which it loads "
                                     "once, and nothing that each tile of queries loads",
                                     nameOfValue(op.operands[0])));
    if (pairs->among >= 0) return cannotStand(op, "rotates a part of the queries' heads");
    const auto isLong = [&](AxisId axis) { return kernel.axes[size_t(axis)].extent > 1; };
    if (!holds(region.headDim, pairs->pairs) ||
        std::ranges::count_if(region.headDim, isLong) > (isLong(pairs->pairs) ? 1 : 0))
      return cannotStand(op,
                         fmt::format("rotates pairs along '{}', which is not all that scores are "
                                     "summed over",
                                     kernel.axes[size_t(pairs->pairs)].name));
    const AxisId positions = region.packed ? region.packed->q : pairs->position;
    if (pairs->position != positions || (!region.packed && !holds(region.queries, positions)))
      return cannotStand(op, fmt::format("rotates by positions along '{}', which are not those of "
                                         "queries",
                                         kernel.axes[size_t(pairs->position)].name));
    region.turned = RotatedQueries{.pairs = *pairs};
    if (op.operands.size() == 1) return "";
    region.turned->starts = op.operands[1];
    region.turned->input = inputOf(op.operands[1]);
    // By sequences, or token by token where these are packed.
    for (const AxisId axis : kernel.values[size_t(op.operands[1])].axes)
      if (isLong(axis) && !holds(region.batch, axis) && !(region.packed && axis == positions))
        return cannotStand(op, fmt::format("reads starts along '{}', which is no axis of sequences",
                                           kernel.axes[size_t(axis)].name));
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
    const Tensor tensors[] = {tensor("queries", q), tensor("keys", k),
                              tensor("scores", region.scores), tensor("values", v),
                              tensor("output", output)};
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
      if (with.empty()) return "";  // of an input that nothing reads, of packed tokens or pages
      return fmt::format("axis '{}' has no role in an attention: it is of {} and not of {}",
                         kernel.axes[size_t(axis)].name, with, without);
    }
    return "";
  }

  const Kernel &kernel;
  AttentionRegion region;
  std::set<ValueId> dependent;                           ///< scores, and what is computed from them
  std::map<ValueId, Placement> unpacked;                 ///< by the value that ops unpack
  std::map<ValueId, Gathered> gathered;                  ///< by the value that ops gather pages to
  OpId turning = -1;                                     ///< in Kernel::body, a rotary op
  std::optional<Placement> packedOutput, packedLogSums;  ///< their tensors in memory
  ValueId q = -1, k = -1, v = -1, output = -1;           ///< with axes of sequences and positions
};

}  // namespace

const Expected<AttentionRegion, Reason> &attentionRegion(const Kernel &kernel) {
  thread_local RecentAnswers<Expected<AttentionRegion, Reason>> recent;
  return recent.of([&] { return AttentionRecognition(kernel).answer(); }, kernel);
}

bool isReadElsewhereAlone(const Kernel &kernel, std::span<const OpId> ops, ValueId value) {
  return std::ranges::none_of(ops, [&](OpId index) {
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
