// Recognition: the computed operand first, then every op before the contraction in order, then what
// they read.
#include "kernel/ContractionPrologue.h"

#include "kernel/Attributes.h"
#include "kernel/Recognition.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace weft {
namespace {

constexpr int64_t vectorElements =
    8;  // neighbours along k or along the outer axis that kernels take together

bool isGlobalScaling(const BodyOp &op) { return op.kind == OpKind::globalScaling; }

class PrologueRecognition {
public:
  PrologueRecognition(const Kernel &kernel, OpId contraction)
      : kernel(kernel),
        op(kernel.body[contraction]),
        values(*contractionValues(kernel)),
        groups(contractionGroups(kernel, values)) {
    prologue.contraction = contraction;
  }

  Expected<std::optional<ContractionPrologue>, Reason> answer() {
    std::string rejection = findOperand();
    for (int before = 0; rejection.empty() && before < prologue.contraction; ++before)
      rejection = addOp(kernel.body[before]);
    if (rejection.empty()) rejection = checkReaders();
    for (size_t input = 0; rejection.empty() && input < kernel.inputs.size(); ++input)
      rejection = addInput(input);
    if (!rejection.empty()) return rejected(std::move(rejection));
    return std::move(prologue);
  }

private:
  const std::string &nameOfValue(ValueId value) const { return kernel.values[size_t(value)].name; }

  std::string findOperand() {
    const bool transformsA = !holds(kernel.inputs, op.operands[0]),
               transformsB = !holds(kernel.inputs, op.operands[1]);
    if (transformsA && transformsB)
      return fmt::format(
          "'{}' and '{}', both operands of the contraction, are computed; one may be",
          nameOfValue(op.operands[0]), nameOfValue(op.operands[1]));
    if (!transformsA && !transformsB)
      return cannotStand(kernel.body[0],
                         "stands before the contraction and makes none of its operands");
    prologue.isOfA = transformsA;
    prologue.made = op.operands[transformsA ? 0 : 1];
    prologue.read = values[transformsA ? 0 : 1];
    prologue.input =
        size_t(std::ranges::find(kernel.inputs, prologue.read) - kernel.inputs.begin());
    operandAxes = longAxes(prologue.made);
    if (holds(op.operands, prologue.read))
      return fmt::format("'{}' is an operand of the contraction, and the other one is made of it",
                         nameOfValue(prologue.read));
    const DType type = kernel.values[size_t(prologue.made)].dtype;
    if (type != DType::f16 && type != DType::bf16)
      return fmt::format("'{}' is {}; operands of f16 and bf16 are transformed on load",
                         nameOfValue(prologue.made), nameOf(type));
    return "";
  }

  std::string addOp(const BodyOp &before) {
    if (std::string rejection = prologueRejection(before); !rejection.empty()) return rejection;
    const ValueId result = before.results[0];
    if (longAxes(result) != operandAxes)
      return cannotStand(before,
                         fmt::format("gives '{}' over other axes than the contraction's operand",
                                     nameOfValue(result)));
    const auto isInPrologue = [&](ValueId value) {
      return value == prologue.read || holds(made, value);
    };
    if (std::ranges::none_of(before.operands, isInPrologue))
      return cannotStand(before,
                         fmt::format("does not depend on '{}', of which the operand is made",
                                     nameOfValue(prologue.read)));
    if (isGlobalScaling(before) && !isInPrologue(before.operands[0]))
      return cannotStand(before, "scales by the operand");
    if (holds(kernel.outputs, result))
      return cannotStand(before, fmt::format("gives '{}', which is stored", nameOfValue(result)));
    made.insert(result);
    return "";
  }

  /// What is made is read on the way to the operand, and the operand by the contraction, and by
  /// nobody else.
  std::string checkReaders() const {
    for (const ValueId value : made) {
      bool isRead = false;
      for (int reader = 0; reader < std::ssize(kernel.body); ++reader) {
        if (!holds(kernel.body[reader].operands, value)) continue;
        isRead = true;
        const bool isContraction = reader == prologue.contraction;
        if (reader > prologue.contraction || (value == prologue.made) != isContraction)
          return cannotStand(kernel.body[reader],
                             fmt::format("reads '{}', which stays on the way into the contraction",
                                         nameOfValue(value)));
      }
      if (!isRead)
        return fmt::format("'{}' stands before the contraction and is not read",
                           nameOfValue(value));
    }
    return "";
  }

  std::string addInput(size_t input) {
    const ValueId value = kernel.inputs[input];
    const BodyOp *reader = nullptr;
    for (int before = 0; before < prologue.contraction && !reader; ++before)
      if (holds(kernel.body[before].operands, value)) reader = &kernel.body[before];
    if (!reader || value == prologue.read) return reader ? checkRead(*reader) : "";
    const std::string reads = fmt::format("reads '{}'", nameOfValue(value));
    for (int after = prologue.contraction; after < std::ssize(kernel.body); ++after)
      if (holds(kernel.body[after].operands, value))
        return cannotStand(*reader, reads + ", which is read behind it, too");
    if (const DType type = kernel.values[size_t(value)].dtype;
        type != DType::f32 && type != DType::f16 && type != DType::bf16)
      return cannotStand(*reader,
                         fmt::format("{} of {}; f32, f16 and bf16 are taken", reads, nameOf(type)));
    PrologueInput added{.input = input, .value = value};
    std::set<AxisId> axes = longAxes(value);
    if (isGlobalScaling(*reader)) {
      const auto dimension = size_t(attributeOf(*reader, attribute::axis));
      const AxisId scaled = kernel.values[size_t(reader->operands[0])].axes[dimension];
      if (groups[kGroup] != std::vector{scaled} || readers(value) != 1)
        return cannotStand(*reader, fmt::format("{} along parts of '{}', which is not all of k",
                                                reads, kernel.axes[size_t(scaled)].name));
      added.subVector = attributeOf(*reader, attribute::tile);
      added.subVectorAxis = kernel.values[size_t(value)].axes[dimension];
      axes.erase(added.subVectorAxis);
    }
    const ContractionGroup outer = prologue.isOfA ? mGroup : nGroup;
    const auto take = [&](ContractionGroup group, bool &isOver) {
      const std::vector<AxisId> &own = groups[group];
      const auto present =
          std::ranges::count_if(own, [&](AxisId axis) { return axes.contains(axis); });
      for (const AxisId axis : own) axes.erase(axis);
      isOver = present > 0;
      return present == 0 || present == std::ssize(own);
    };
    if (!take(batchGroup, added.isOverBatch) || !take(outer, added.isOverOuter) ||
        !take(kGroup, added.isOverK))
      return cannotStand(*reader,
                         reads + " along some axes of those that are one axis of the GEMM");
    if (!axes.empty())
      return cannotStand(*reader, fmt::format("{} along '{}', which the operand lacks", reads,
                                              kernel.axes[size_t(*axes.begin())].name));
    if (added.isOverOuter && added.isOverK)
      return cannotStand(
          *reader, fmt::format("{}, a second tensor along rows and k of the operand; '{}' is one",
                               reads, nameOfValue(prologue.read)));
    prologue.inputs.push_back(added);
    return "";
  }

  std::string checkRead(const BodyOp &reader) const {
    const DType type = kernel.values[size_t(prologue.read)].dtype;
    for (int after = prologue.contraction; after < std::ssize(kernel.body); ++after)
      if (holds(kernel.body[after].operands, prologue.read))
        return cannotStand(
            kernel.body[after],
            fmt::format("reads '{}', of which the operand is made", nameOfValue(prologue.read)));
    if (isGlobalScaling(reader) && reader.operands[1] == prologue.read)
      return cannotStand(reader, "scales by the operand");
    if (type == DType::f32 || type == DType::f16 || type == DType::bf16 || isFloat8(type))
      return "";
    return cannotStand(reader,
                       fmt::format("reads '{}' of {}; floats of 8, 16 and 32 bits are taken",
                                   nameOfValue(prologue.read), nameOf(type)));
  }

  int64_t readers(ValueId value) const {
    return std::ranges::count_if(
        kernel.body, [&](const BodyOp &reader) { return holds(reader.operands, value); });
  }

  /// Axes of extent above 1.
  std::set<AxisId> longAxes(ValueId value) const {
    std::set<AxisId> axes;
    for (AxisId axis : kernel.values[size_t(value)].axes)
      if (kernel.axes[size_t(axis)].extent > 1) axes.insert(axis);
    return axes;
  }

  const Kernel &kernel;
  const BodyOp &op;
  const std::array<ValueId, 3> values;
  const ContractionGroups groups;
  ContractionPrologue prologue;
  std::set<AxisId> operandAxes;
  std::set<ValueId> made;
};

}  // namespace

Expected<std::optional<ContractionPrologue>, Reason> contractionPrologue(const Kernel &kernel) {
  const OpId contraction = contractionIndex(kernel).value();
  if (contraction == 0) return {};
  return PrologueRecognition(kernel, contraction).answer();
}

std::string prologueRejection(const BodyOp &op) {
  if (op.operatorClass != OperatorClass::elementwise)
    return cannotStand(
        op, fmt::format("is of class {}; a prologue is element-wise", nameOf(op.operatorClass)));
  if (op.results.size() != 1) return cannotStand(op, "has several results");
  if (isGlobalScaling(op)) {
    const int64_t tile = attributeOf(op, attribute::tile);
    if (tile % vectorElements == 0) return "";
    return cannotStand(op, fmt::format("has sub-vectors of {} elements; multiples of {} are taken",
                                       tile, vectorElements));
  }
  if (op.kind == OpKind::dropout)
    return cannotStand(op, "draws; a prologue is a function of what it reads");
  if (op.expression.empty()) return cannotStand(op, "is no function of single elements");
  if (op.expression.readsElsewhere())
    return cannotStand(op,
                       "reads an operand at other coordinates than its element's; a prologue has "
                       "the elements at its own");
  if (op.expression.usesCoordinates())
    return cannotStand(op, "reads coordinates; a prologue is a function of what it reads alone");
  return "";
}

std::optional<PrologueStrides> prologueStrides(const Kernel &kernel,
                                               const Configuration &configuration,
                                               const ContractionPrologue &prologue,
                                               const PrologueInput &input) {
  const Layout &layout = configuration.inputs.at(input.input);
  const auto strides = groupStrides(kernel, configuration, input.value, layout);
  if (!strides) return std::nullopt;
  PrologueStrides result{
      .batch = strides->batch, .outer = prologue.isOfA ? strides->m : strides->n, .k = strides->k};
  if (input.subVector == 0) return result;
  const std::vector<AxisId> &axes = kernel.values[size_t(input.value)].axes;
  std::vector<int64_t> extents;
  for (const AxisId axis : axes) extents.push_back(kernel.axes[size_t(axis)].extent);
  result.k = stridesOf(
      layout, extents)[size_t(std::ranges::find(axes, input.subVectorAxis) - axes.begin())];
  return result;
}

std::string prologueLayoutRejection(const Kernel &kernel, const Configuration &configuration,
                                    const ContractionPrologue &prologue) {
  for (const PrologueInput &input : prologue.inputs)
    if (!prologueStrides(kernel, configuration, prologue, input))
      return fmt::format(
          "'{}', which is read before the contraction, does not lie as the GEMM's axes do",
          kernel.values[size_t(input.value)].name);
  return "";
}

}  // namespace weft
