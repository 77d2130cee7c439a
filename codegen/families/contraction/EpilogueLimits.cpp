// Types and numbers of tensors; see EpilogueLimits.h.
#include "codegen/families/contraction/EpilogueLimits.h"

#include "kernel/UnusedTokens.h"
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
  const std::optional<UnusedTokens> summed = summedTokens(kernel);
  for (const ValueId value : operandValues(kernel)) {
    const DType own = kernel.values[size_t(value)].dtype;
    if (summed && summed->offsets == value) continue;
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

bool isOfRotaryAlone(const Kernel &kernel, const ContractionRegion &region, ValueId value) {
  return region.rotary && std::ranges::all_of(region.epilogue, [&](OpId op) {
           return op == region.rotary->op ||
                  std::ranges::count(kernel.body[op].operands, value) == 0;
         });
}

int epilogueRegisters(const Kernel &kernel, const ContractionRegion &region) {
  constexpr int fragment = 8, addresses = 4, vector = 4, draws = 4, partialRegisters = 20;
  constexpr int ofSubVectors = 16;  // places, maxima and sums, of two rows
  constexpr int coordinates = 4;  // of two rows and of the column, and what they are compared with
  constexpr int ofRotary = 20;    // positions of a lane's rows, frequencies, angles and pairs
  constexpr int ofGathered = 36;  // elements, places and what they are computed of, by ptxas
  constexpr int ofTokens = 4;     // their number, and whether the tile has any
  constexpr int ofJoiners = 16;   // used by the producer warps instead, which add up to two
                                  // reductions: reducesInProducer in sm90_epilogue.cuh
  if (region.isPlain()) return 0;
  int registers = fragment + (fragment + 2 * addresses) * int(region.wholeOutputs(kernel) - 1);
  if (region.softmax) registers += ofSubVectors;
  if (region.rotary) registers += ofRotary;
  registers += partialRegisters * int(region.reductions.size());
  if (region.reductions.size() == 1 || region.reductions.size() == 2) registers += ofJoiners;
  // The first tensor of the result's shape is loaded through shared memory, the first vector into
  // registers.
  bool isSubtileSeen = false, isVectorSeen = false;
  for (const EpilogueInput &input : region.inputs) {
    const bool isVector = input.role == EpilogueRole::m || input.role == EpilogueRole::n;
    bool &isSeen = isVector ? isVectorSeen : isSubtileSeen;
    const bool isFirst = (isVector || input.role == EpilogueRole::result) && !isSeen;
    isSeen = isSeen || isFirst;
    if (input.role == EpilogueRole::scalar) registers += 1;
    else if (input.role == EpilogueRole::gathered) registers += ofGathered;
    else registers += isFirst ? isVector ? vector : fragment : fragment + addresses;
  }
  if (std::ranges::any_of(region.elementwiseOps(),
                          [&](OpId op) { return kernel.body[op].kind == OpKind::dropout; }))
    registers += draws;
  if (std::ranges::any_of(region.epilogue,
                          [&](OpId op) { return kernel.body[op].expression.usesCoordinates(); }))
    registers += coordinates;
  if (std::ranges::any_of(region.epilogue, [&](OpId op) { return isTokenMask(kernel.body[op]); }))
    registers += ofTokens;
  return registers;
}

}  // namespace weft
