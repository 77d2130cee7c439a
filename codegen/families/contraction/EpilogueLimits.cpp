// Types and numbers of tensors; see EpilogueLimits.h.
#include "codegen/families/contraction/EpilogueLimits.h"

#include "passes/configure/Family.h"

#include <fmt/format.h>

#include <algorithm>

namespace weft {
namespace {

/// Whether a prologue reads it, which has said what types it takes.
bool isOfPrologue(const ContractionRegion &region, ValueId value) {
  return region.prologue &&
         std::ranges::find(region.prologue->inputs, value, &PrologueInput::value) !=
             region.prologue->inputs.end();
}

/// Whether every op of the epilogue that reads it computes with integers: the lengths of a mask.
bool isReadAsInteger(const Kernel &kernel, const ContractionRegion &region, ValueId value) {
  if (kernel.values[size_t(value)].dtype != DType::i32 ||
      std::ranges::find(region.inputs, value, &EpilogueInput::value) == region.inputs.end())
    return false;
  return std::ranges::all_of(region.epilogue, [&](OpId index) {
    const BodyOp &op = kernel.body[index];
    return std::ranges::all_of(op.expression.all(), [&](const ExpressionNode &node) {
      return node.kind != ExpressionNode::Kind::operand || node.type == ScalarType::i32 ||
             op.operands[size_t(node.index)] != value;
    });
  });
}

}  // namespace

std::string epilogueTypesRejection(const Kernel &kernel, const ContractionRegion &region) {
  for (const ValueId value : operandValues(kernel)) {
    const DType own = kernel.values[size_t(value)].dtype;
    if (value != region.a && value != region.b && !isOfPrologue(region, value) &&
        own != DType::f32 && !isHalf(own) && !isReadAsInteger(kernel, region, value))
      return fmt::format("'{}' is {}; an epilogue takes f32, f16 and bf16",
                         kernel.values[size_t(value)].name, nameOf(own));
  }
  return "";
}

std::string epilogueTensorsRejection(const Kernel &kernel, const ContractionRegion &region) {
  constexpr size_t mostTensors = 3;
  const auto isWhole = [](const EpilogueInput &input) {
    return input.role == EpilogueRole::result || input.role == EpilogueRole::mixed;
  };
  const auto inputs = size_t(std::ranges::count_if(region.inputs, isWhole));
  if (inputs > mostTensors)
    return fmt::format("the epilogue reads {} tensors of several axes; {} are taken", inputs,
                       mostTensors);
  if (const size_t outputs = region.wholeOutputs(kernel); outputs > mostTensors)
    return fmt::format("the epilogue has {} outputs; {} are taken", outputs, mostTensors);
  return "";
}

}  // namespace weft
