// Matching of a body, op by op: sums that are added up first, then one function, then one sum over
// what was stored.
#include "codegen/families/library/LibraryEpilogue.h"

#include "kernel/Attributes.h"
#include "kernel/ContractionRegion.h"
#include "kernel/Error.h"
#include "kernel/ReduceKind.h"
#include "kernel/UnusedTokens.h"

#include <algorithm>
#include <array>
#include <set>

namespace weft {
namespace {

using Epilogue = LibraryEpilogue;
constexpr std::array<LibraryEpilogueTraits, 12> allEpilogues = {{
    {.epilogue = Epilogue::none, .name = "none"},
    {.epilogue = Epilogue::relu, .name = "relu"},
    {.epilogue = Epilogue::bias, .name = "bias", .readsBias = true},
    {.epilogue = Epilogue::reluBias, .name = "relu_bias", .readsBias = true},
    {.epilogue = Epilogue::gelu, .name = "gelu"},
    {.epilogue = Epilogue::geluBias, .name = "gelu_bias", .readsBias = true},
    {.epilogue = Epilogue::geluAux, .name = "gelu_aux", .writesAuxiliary = true},
    {.epilogue = Epilogue::geluAuxBias,
     .name = "gelu_aux_bias",
     .readsBias = true,
     .writesAuxiliary = true},
    {.epilogue = Epilogue::dgelu, .name = "dgelu", .readsAuxiliary = true},
    {.epilogue = Epilogue::dgeluBgrad,
     .name = "dgelu_bgrad",
     .readsAuxiliary = true,
     .writesGradient = true},
    {.epilogue = Epilogue::bgradA, .name = "bgrada", .writesGradient = true},
    {.epilogue = Epilogue::bgradB, .name = "bgradb", .writesGradient = true},
}};

std::string opRejection(const BodyOp &op, std::string_view why) {
  return fmt::format("'{}' {}", nameOf(op.kind), why);
}

class Matching {
public:
  explicit Matching(const Kernel &whole) : kernel(whole) {}

  Expected<LibraryForm, Reason> answer() {
    if (std::string rejection = match(); !rejection.empty()) return rejected(std::move(rejection));
    return form;
  }

private:
  std::string match() {
    if (std::string rejection = takeGradient(); !rejection.empty()) return rejection;
    Expected<ContractionRegion, Reason> recognised = contractionRegion(kernel);
    if (!recognised) return std::move(recognised.error().text);
    region = std::move(*recognised);
    if (region.softmax)
      return opRejection(kernel.body[region.softmax->op],
                         "follows the GEMM; the library has no such epilogue");
    if (region.prologue)
      return opRejection(
          kernel.body[0],
          "stands before the contraction; the library reads its operands as they are in memory");
    if (const double *scale = findAttribute(kernel.body[0], attribute::scale)) form.alpha = *scale;
    form.result = region.c;
    for (const OpId op : region.epilogue)
      if (std::string rejection = absorb(kernel.body[op]); !rejection.empty()) return rejection;
    if (std::string rejection = matchOutputs(); !rejection.empty()) return rejection;
    return matchGradient();
  }

  const std::string &nameOfValue(ValueId value) const { return kernel.values[size_t(value)].name; }

  // --- the sum over what is stored, or over an operand ---

  /// Takes the sum out of the kernel: what is left is a contraction with element-wise ops.
  std::string takeGradient() {
    const auto isReduction = [](const BodyOp &op) { return op.kind == OpKind::reduce; };
    const auto found = std::ranges::find_if(kernel.body, isReduction);
    if (found == kernel.body.end()) return "";
    if (reduceKind(*found) != ReduceKind::sum) return opRejection(*found, "is no sum");
    if (std::ranges::count_if(kernel.body, isReduction) > 1)
      return opRejection(*found, "stands twice; the library has one sum beside a GEMM");
    reduction = *found;
    form.gradient = found->results[0];
    if (std::erase(kernel.outputs, form.gradient) == 0)
      return opRejection(reduction, "is not stored");
    const auto readsSum = [&](const BodyOp &op) {
      return std::ranges::find(op.operands, form.gradient) != op.operands.end();
    };
    if (const auto reader = std::ranges::find_if(kernel.body, readsSum);
        reader != kernel.body.end())
      return opRejection(*reader, "follows the sum");
    kernel.body.erase(found);
    return "";
  }

  std::string matchGradient() {
    if (form.gradient < 0) return "";
    const ValueId summed = reduction.operands[0];
    const bool isOfA = summed == region.a, isOfB = summed == region.b;
    if (isOfA || isOfB) {
      if (form.epilogue != Epilogue::none || form.residual >= 0 || form.alpha != 1)
        return opRejection(
            reduction, fmt::format("of '{}' stands beside a plain GEMM only", nameOfValue(summed)));
      form.epilogue = isOfA ? Epilogue::bgradA : Epilogue::bgradB;
      return rejectionOfVector(isOfA ? EpilogueRole::m : EpilogueRole::n);
    }
    if (summed != form.result || form.epilogue != Epilogue::dgelu)
      return opRejection(
          reduction,
          fmt::format("is over '{}'; the library sums an operand, or the derivative of GELU",
                      nameOfValue(summed)));
    form.epilogue = Epilogue::dgeluBgrad;
    return rejectionOfVector(roleOf(form.gradient));
  }

  /// The sum must run over everything but one group.
  std::string rejectionOfVector(EpilogueRole wanted) const {
    const bool isVector = wanted == EpilogueRole::m || wanted == EpilogueRole::n;
    const ContractionGroups groups = contractionGroups(kernel, {region.a, region.b, region.c});
    if (isVector && roleOf(form.gradient) == wanted && groups[batchGroup].empty()) return "";
    return opRejection(reduction,
                       fmt::format("to '{}' leaves not just the axes of one side of the GEMM",
                                   nameOfValue(form.gradient)));
  }

  EpilogueRole roleOf(ValueId value) const {
    const ContractionGroups groups = contractionGroups(kernel, {region.a, region.b, region.c});
    std::set<AxisId> axes;
    for (const AxisId axis : kernel.values[size_t(value)].axes)
      if (kernel.axes[size_t(axis)].extent > 1) axes.insert(axis);
    const auto is = [&](ContractionGroup group) {
      return axes == std::set<AxisId>(groups[group].begin(), groups[group].end());
    };
    return axes.empty() ? EpilogueRole::scalar
           : is(mGroup) ? EpilogueRole::m
           : is(nGroup) ? EpilogueRole::n
                        : EpilogueRole::mixed;
  }

  // --- what is applied element by element ---

  std::string absorb(const BodyOp &op) {
    if (hasFunction())
      return opRejection(op, "follows the function; the library has one at the end");
    const auto isChain = [&](ValueId operand) { return operand == form.result; };
    if (std::ranges::count_if(op.operands, isChain) != 1)
      return opRejection(op, "reads not just the value before it");
    std::string rejection = op.kind == OpKind::scale        ? multiply(op)
                            : op.kind == OpKind::geluTanhDx ? applySlope(op)
                            : op.kind == OpKind::relu || op.kind == OpKind::geluTanh
                                ? applyFunction(op)
                                : add(op);
    operandOfFunction = form.result;
    form.result = op.results[0];
    return rejection;
  }

  bool hasFunction() const { return isRelu || isGelu || isSlope; }

  std::string multiply(const BodyOp &op) {
    if (form.bias >= 0) return opRejection(op, "multiplies a bias that was added");
    const double factor = attributeOf(op, attribute::factor);
    form.alpha *= factor;
    form.beta *= factor;
    return "";
  }

  /// The GEMM, or what was added to it, plus or minus a tensor of the kernel.
  std::string add(const BodyOp &op) {
    const bool isDifference = op.kind == OpKind::sub;
    if (!isDifference && op.kind != OpKind::add && op.kind != OpKind::bias &&
        op.kind != OpKind::residual)
      return noForm(op);
    const bool isFirst = op.operands[0] == form.result;
    const ValueId other = op.operands[isFirst ? 1 : 0];
    const auto input = std::ranges::find(region.inputs, other, &EpilogueInput::value);
    if (input == region.inputs.end())
      return opRejection(op, fmt::format("adds '{}', which is no input", nameOfValue(other)));
    if (isDifference && !isFirst) {
      if (form.bias >= 0) return opRejection(op, "subtracts a bias");
      form.alpha = -form.alpha;
      form.beta = -form.beta;
    }
    const double sign = isDifference && isFirst ? -1 : 1;
    if (input->role == EpilogueRole::result) return addResidual(op, other, sign);
    if (input->role != EpilogueRole::m && input->role != EpilogueRole::n)
      return opRejection(op,
                         fmt::format("adds '{}', which runs along neither all axes of the result "
                                     "nor those of one operand alone",
                                     nameOfValue(other)));
    if (sign < 0) return opRejection(op, "subtracts a bias");
    if (form.bias >= 0)
      return opRejection(op, fmt::format("adds '{}', a second bias", nameOfValue(other)));
    form.bias = other;
    return "";
  }

  std::string addResidual(const BodyOp &op, ValueId other, double sign) {
    if (form.residual >= 0)
      return opRejection(
          op, fmt::format("adds '{}', a second tensor of the result's shape", nameOfValue(other)));
    form.residual = other;
    form.beta = sign;
    return "";
  }

  std::string applyFunction(const BodyOp &op) {
    (op.kind == OpKind::relu ? isRelu : isGelu) = true;
    return "";
  }

  std::string applySlope(const BodyOp &op) {
    const auto input = std::ranges::find(region.inputs, op.operands[1], &EpilogueInput::value);
    if (op.operands[0] != form.result || input == region.inputs.end() ||
        input->role != EpilogueRole::result)
      return opRejection(op, "takes its gradient not from the GEMM");
    if (form.bias >= 0 || form.residual >= 0)
      return opRejection(op, "is of a sum; the library's derivative is of the GEMM alone");
    form.auxiliary = op.operands[1];
    isSlope = true;
    return "";
  }

  static std::string noForm(const BodyOp &op) {
    if (isTokenMask(op))
      return opRejection(op,
                         "leaves out rows whose number is counted on the device; the library "
                         "computes all of them");
    if (op.kind == OpKind::gelu || op.kind == OpKind::geluDx)
      return opRejection(op,
                         "is of the error function; the library's GELU is the tanh approximation");
    if (op.kind == OpKind::reluDx)
      return opRejection(op,
                         "reads a tensor; the library's derivative of ReLU reads a mask of bits");
    return opRejection(op, "is none of the library's epilogues");
  }

  std::string matchOutputs() {
    for (const ValueId output : kernel.outputs) {
      if (output == form.result) continue;
      if (isGelu && output == operandOfFunction) form.auxiliary = output;
      else
        return fmt::format("'{}' is stored beside '{}'{}", nameOfValue(output),
                           nameOfValue(form.result),
                           isRelu ? "; of ReLU the library keeps a mask of bits"
                                  : "; only the operand of GELU can be");
    }
    if (std::ranges::find(kernel.outputs, form.result) == kernel.outputs.end())
      return fmt::format("'{}' is not stored", nameOfValue(form.result));
    form.epilogue = epilogue();
    return "";
  }

  Epilogue epilogue() const {
    const bool hasBias = form.bias >= 0;
    if (isSlope) return Epilogue::dgelu;
    if (isRelu) return hasBias ? Epilogue::reluBias : Epilogue::relu;
    if (!isGelu) return hasBias ? Epilogue::bias : Epilogue::none;
    if (form.auxiliary >= 0) return hasBias ? Epilogue::geluAuxBias : Epilogue::geluAux;
    return hasBias ? Epilogue::geluBias : Epilogue::gelu;
  }

  Kernel kernel;  ///< without the sum
  ContractionRegion region;
  BodyOp reduction;
  LibraryForm form;
  bool isRelu = false, isGelu = false, isSlope = false;
  ValueId operandOfFunction = -1;
};

}  // namespace

std::span<const LibraryEpilogueTraits> libraryEpilogues() { return allEpilogues; }

const LibraryEpilogueTraits &traitsOf(LibraryEpilogue epilogue) {
  return *std::ranges::find(allEpilogues, epilogue, &LibraryEpilogueTraits::epilogue);
}

std::optional<LibraryEpilogue> parseLibraryEpilogue(std::string_view name) {
  const auto found = std::ranges::find(allEpilogues, name, &LibraryEpilogueTraits::name);
  return found == allEpilogues.end() ? std::nullopt : std::optional(found->epilogue);
}

Expected<LibraryForm, Reason> libraryForm(const Kernel &kernel) {
  if (summedTokens(kernel))
    return rejected(
        "sums over tokens whose number is counted on the device; the library adds all "
        "that fit");
  return Matching(kernel).answer();
}

std::string describe(const LibraryForm &form) {
  std::string text =
      form.epilogue == LibraryEpilogue::none ? "" : std::string(traitsOf(form.epilogue).name);
  if (form.residual >= 0) text += text.empty() ? "residual" : " + residual";
  return text;
}

}  // namespace weft
