// Recognition: the contraction's operands first, then every op in order, with what depends on C.
#include "kernel/ContractionRegion.h"

#include "kernel/Attributes.h"
#include "kernel/ConfigurationText.h"
#include "kernel/CoordinateExpressions.h"
#include "kernel/Error.h"
#include "kernel/RecentAnswers.h"
#include "kernel/Recognition.h"
#include "kernel/ReduceKind.h"
#include "kernel/UnusedTokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

namespace weft {
namespace {

class ContractionRecognition {
public:
  explicit ContractionRecognition(const Kernel &kernel) : kernel(kernel) {}

  Expected<ContractionRegion, Reason> answer() {
    std::string rejection = rejectionOfGemm();
    for (int op = region.contraction + 1; rejection.empty() && op < std::ssize(kernel.body); ++op)
      rejection = addOp(op);
    if (rejection.empty()) rejection = addInputs();
    if (rejection.empty() && region.isSum(0)) rejection = rejectionOfFirstOutput();
    if (rejection.empty() && region.softmax) rejection = rejectionBesideSoftmax();
    if (rejection.empty() && region.rotary) rejection = rejectionOfUnrotated();
    if (!rejection.empty()) return rejected(std::move(rejection));
    region.storesAccumulator = std::ranges::find(kernel.outputs, region.c) != kernel.outputs.end();
    return std::move(region);
  }

private:
  std::string rejectionOfGemm() {
    const auto values = contractionValues(kernel);
    if (!values) return "the body does not open with a contraction of two operands";
    std::tie(region.a, region.b, region.c) = std::tuple_cat(*values);
    if (region.a == region.b) return "both operands of the contraction are one tensor";
    region.contraction = *contractionIndex(kernel);
    Expected<std::optional<ContractionPrologue>, Reason> before = contractionPrologue(kernel);
    if (!before) return std::move(before.error().text);
    region.prologue = *std::move(before);
    region.operands = gemmInputs(kernel);
    resultAxes = longAxes(region.c);
    dependent.insert(region.c);
    return "";
  }

  std::string addOp(OpId index) {
    const BodyOp &op = kernel.body[index];
    const auto isOfSum = [&](ValueId operand) {
      return std::ranges::any_of(region.reductions, [&](const EpilogueReduction &sum) {
        return kernel.body[sum.op].results[0] == operand;
      });
    };
    if (const auto found = std::ranges::find_if(op.operands, isOfSum); found != op.operands.end())
      return cannotStand(op, fmt::format("reads '{}', a sum over all tiles of the result",
                                         kernel.values[size_t(*found)].name));
    if (region.softmax) return addBehindSoftmax(index);
    if (op.kind == OpKind::reduce) return addSum(index);
    if (op.kind == OpKind::localSoftmax) return addSoftmax(index);
    const auto isUnrotated = [&](ValueId operand) { return unrotated.contains(operand); };
    if (const auto found = std::ranges::find_if(op.operands, isUnrotated);
        found != op.operands.end())
      return cannotStand(op, fmt::format("reads '{}', which a rotary embedding has turned",
                                         kernel.values[size_t(*found)].name));
    if (op.kind == OpKind::rotary && dependent.contains(op.operands[0])) return addRotary(index);
    if (std::string rejection = epilogueRejection(op); !rejection.empty()) return rejection;
    for (size_t n = 0; n < op.operands.size(); ++n) {
      if (!op.expression.readsElsewhere(int(n)) || isTokenMask(op)) continue;
      const Value &value = kernel.values[size_t(op.operands[n])];
      if (value.dtype == DType::i1)
        return cannotStand(op, "reads a table of blocks, at other coordinates than its element's");
      if (std::ranges::count(kernel.inputs, op.operands[n]) == 0)
        return cannotStand(op, fmt::format("reads '{}', which the kernel computes, at other "
                                           "coordinates than its element's",
                                           value.name));
    }
    const auto dependsOnGemm = [&](ValueId operand) { return dependent.contains(operand); };
    if (std::ranges::none_of(op.operands, dependsOnGemm))
      return cannotStand(op, "does not depend on the contraction's result");
    const ValueId result = op.results[0];
    if (longAxes(result) != resultAxes)
      return cannotStand(op, fmt::format("gives '{}' over other axes than the contraction's result",
                                         kernel.values[result].name));
    dependent.insert(result);
    region.epilogue.push_back(index);
    return "";
  }

  std::string addRotary(OpId index) {
    const BodyOp &op = kernel.body[index];
    const std::optional<RotatedPairs> turned = rotatedPairs(kernel, index);
    if (!turned) return epilogueRejection(op);
    const RotatedPairs &rotary = *turned;
    if (region.rotary) return cannotStand(op, "stands twice behind the contraction");
    if (region.prologue)
      return cannotStand(op, "stands in one kernel with ops before the contraction");
    for (const OpId before : region.epilogue)
      if (!rotatesAlike(kernel.body[before], rotary.pairs))
        return cannotStand(op, fmt::format("follows '{}'; partners are elements of what the "
                                           "contraction gives",
                                           nameOf(kernel.body[before].kind)));
    if (!region.reductions.empty())
      return cannotStand(op, "stands beside a sum of what the contraction gives");
    for (size_t operand = 1; operand < op.operands.size(); ++operand)
      if (std::ranges::count(kernel.inputs, op.operands[operand]) == 0)
        return cannotStand(op, "reads starts that the kernel computes");
    const ContractionGroups groups = contractionGroups(kernel, {region.a, region.b, region.c});
    const auto isIn = [&](ContractionGroup group, AxisId axis) {
      return std::ranges::find(groups[group], axis) != groups[group].end();
    };
    const ContractionGroup side = isIn(nGroup, rotary.pairs) ? nGroup : mGroup;
    if (!isIn(side, rotary.pairs))
      return cannotStand(op, fmt::format("rotates pairs along '{}', of the GEMM's batch",
                                         kernel.axes[size_t(rotary.pairs)].name));
    if (isIn(side, rotary.position) && kernel.axes[size_t(rotary.position)].extent > 1)
      return cannotStand(op, "has positions on the side of the GEMM that its pairs are of");
    if (rotary.among >= 0 && !isIn(side, rotary.among))
      return cannotStand(op,
                         fmt::format("rotates a part of '{}', which is not of the side of pairs",
                                     kernel.axes[size_t(rotary.among)].name));
    if (longAxes(op.results[0]) != resultAxes)
      return cannotStand(op, "gives other axes than the contraction's result");
    unrotated = dependent;
    dependent = {op.results[0]};
    region.epilogue.push_back(index);
    region.rotary = rotary;
    return "";
  }

  /// Whether it may as well stand behind a rotary embedding: zeros or no numbers for rows that it
  /// masks, partners together.
  bool rotatesAlike(const BodyOp &op, AxisId pairs) const {
    if (!isTokenMask(op)) return false;
    const double *fill = findAttribute(op, attribute::fill);
    const auto key = size_t(attributeOf(op, attribute::key));
    return (isUnreadMask(op) || (fill && *fill == 0)) &&
           kernel.values[size_t(op.results[0])].axes[key] != pairs;
  }

  std::string rejectionOfUnrotated() const {
    const auto stored = std::ranges::find_if(
        kernel.outputs, [&](ValueId output) { return unrotated.contains(output); });
    if (stored == kernel.outputs.end()) return "";
    return cannotStand(kernel.body[region.rotary->op],
                       fmt::format("rotates '{}', which is stored as it is, too",
                                   kernel.values[size_t(*stored)].name));
  }

  std::string addSum(OpId index) {
    const BodyOp &op = kernel.body[index];
    const ValueId value = op.operands[0], result = op.results[0];
    const std::string &name = kernel.values[size_t(result)].name;
    if (reduceKind(op) != ReduceKind::sum)
      return cannotStand(op, fmt::format("is of class {} and no sum; an epilogue is element-wise",
                                         nameOf(op.operatorClass)));
    if (!dependent.contains(value))
      return cannotStand(op, "does not depend on the contraction's result");
    const auto output = std::ranges::find(kernel.outputs, result);
    if (output == kernel.outputs.end())
      return cannotStand(op, fmt::format("to '{}' is not stored", name));
    if (region.prologue)
      return cannotStand(
          op, fmt::format("to '{}' stands in one kernel with ops before the contraction", name));
    if (!contractionGroups(kernel, {region.a, region.b, region.c})[batchGroup].empty())
      return cannotStand(op, fmt::format("to '{}' runs over the members of a batched GEMM", name));
    const EpilogueRole role = roleOf(longAxes(result));
    if (role != EpilogueRole::m && role != EpilogueRole::n)
      return cannotStand(
          op, fmt::format("to '{}' leaves not just the axes of one side of the GEMM", name));
    region.reductions.push_back({.op = index,
                                 .output = size_t(output - kernel.outputs.begin()),
                                 .value = value,
                                 .role = role});
    return "";
  }

  std::string addSoftmax(OpId index) {
    const BodyOp &op = kernel.body[index];
    const ValueId value = op.operands[0];
    if (!dependent.contains(value))
      return cannotStand(op, "does not depend on the contraction's result");
    if (region.prologue)
      return cannotStand(op, "stands in one kernel with ops before the contraction");
    const auto axis = size_t(attributeOf(op, attribute::axis));
    const AxisId divided = kernel.values[size_t(value)].axes[axis];
    const ContractionGroups groups = contractionGroups(kernel, {region.a, region.b, region.c});
    const auto isAllOf = [&](ContractionGroup group) {
      return groups[group] == std::vector{divided};
    };
    const EpilogueRole role = isAllOf(mGroup) ? EpilogueRole::m : EpilogueRole::n;
    if (kernel.axes[size_t(divided)].extent == 1 || (role == EpilogueRole::n && !isAllOf(nGroup)))
      return cannotStand(op, fmt::format("divides '{}', which is not all of one side of the GEMM",
                                         kernel.axes[size_t(divided)].name));
    std::array<size_t, 3> outputs{};
    for (size_t result = 0; result < outputs.size(); ++result) {
      const auto output = std::ranges::find(kernel.outputs, op.results[result]);
      if (output == kernel.outputs.end() && result == 0 && isFirstOutputDropoutOf(op.results[0]))
        continue;
      if (output == kernel.outputs.end())
        return cannotStand(op, fmt::format("gives '{}', which is not stored",
                                           kernel.values[size_t(op.results[result])].name));
      outputs[result] = size_t(output - kernel.outputs.begin());
    }
    if (outputs[0] != 0)
      return cannotStand(op, fmt::format("gives '{}', which is not the first output",
                                         kernel.values[size_t(op.results[0])].name));
    region.softmax =
        EpilogueSoftmax{.op = index,
                        .value = value,
                        .length = attributeOf(op, attribute::tile),
                        .subVectorAxis = kernel.values[size_t(op.results[1])].axes[axis],
                        .role = role,
                        .maxima = outputs[1],
                        .sums = outputs[2]};
    return "";
  }

  /// Whether what a dropout keeps of exponentials is stored in their place.
  bool isFirstOutputDropoutOf(ValueId exponentials) const {
    return std::ranges::any_of(kernel.body, [&](const BodyOp &op) {
      return op.kind == OpKind::dropout && op.operands[0] == exponentials &&
             op.results[0] == kernel.outputs[0];
    });
  }

  /// Nothing but one dropout of the exponentials, whose result is stored.
  std::string addBehindSoftmax(OpId index) {
    const BodyOp &op = kernel.body[index];
    if (op.kind != OpKind::dropout)
      return cannotStand(op, "follows a local softmax, which ends an epilogue");
    const auto output = std::ranges::find(kernel.outputs, op.results[0]);
    if (op.operands[0] != kernel.body[region.softmax->op].results[0] ||
        output == kernel.outputs.end() || region.softmax->dropped)
      return cannotStand(
          op, "follows a local softmax; of its exponentials one may, if its result is stored");
    region.softmax->dropped = {.op = index, .output = size_t(output - kernel.outputs.begin())};
    return "";
  }

  /// Its exponentials are stored in the place of C, and nothing else but those that are dropped.
  std::string rejectionBesideSoftmax() const {
    const std::vector<ValueId> &own = kernel.body[region.softmax->op].results;
    const std::optional<EpilogueSoftmax::Dropped> &dropped = region.softmax->dropped;
    const auto isOther = [&](ValueId output) {
      return std::ranges::find(own, output) == own.end() &&
             !(dropped && kernel.outputs[dropped->output] == output);
    };
    const auto other = std::ranges::find_if(kernel.outputs, isOther);
    if (other == kernel.outputs.end()) return "";
    return cannotStand(
        kernel.body[region.softmax->op],
        fmt::format("stands beside '{}', another output", kernel.values[size_t(*other)].name));
  }

  std::string rejectionOfFirstOutput() const {
    return fmt::format(
        "'{}', a sum, is the first output; that has to have the axes of the contraction's result",
        kernel.values[size_t(kernel.outputs[0])].name);
  }

  std::string addInputs() {
    for (size_t input = 0; input < kernel.inputs.size(); ++input) {
      const ValueId value = kernel.inputs[input];
      const bool isOfGemm = value == region.a || value == region.b;
      const BodyOp *reader = readerInEpilogue(value);
      if (isOfGemm && reader)
        return cannotStand(*reader, fmt::format("reads '{}', an operand of the contraction",
                                                kernel.values[value].name));
      if (isOfGemm || !reader) continue;
      if (const BodyOp *gatherer = readerOf(value, true)) {
        if (readerOf(value, false))
          return cannotStand(*gatherer, fmt::format("reads '{}' at other coordinates than another "
                                                    "read of it",
                                                    kernel.values[size_t(value)].name));
        region.inputs.push_back({.input = input, .value = value, .role = EpilogueRole::gathered});
        continue;
      }
      const std::set<AxisId> axes = isOneElement(value) ? std::set<AxisId>() : longAxes(value);
      if (!std::ranges::includes(resultAxes, axes))
        return cannotStand(
            *reader, fmt::format("reads '{}' along an axis that the contraction's result lacks",
                                 kernel.values[value].name));
      region.inputs.push_back({.input = input, .value = value, .role = roleOf(axes)});
    }
    return "";
  }

  const BodyOp *readerInEpilogue(ValueId value) const {
    for (const OpId op : region.epilogue)
      if (std::ranges::find(kernel.body[op].operands, value) != kernel.body[op].operands.end())
        return &kernel.body[op];
    return nullptr;
  }

  /// The op, no mask of tokens, that reads it at coordinates that it computes, or at its element's.
  const BodyOp *readerOf(ValueId value, bool elsewhere) const {
    for (const OpId index : region.epilogue) {
      const BodyOp &op = kernel.body[index];
      const bool isRotated = region.rotary && index == region.rotary->op;
      const bool reads = std::ranges::any_of(op.expression.all(), [&](const ExpressionNode &node) {
        return node.kind == ExpressionNode::Kind::operand &&
               op.operands[size_t(node.index)] == value && node.children.empty() != elsewhere;
      });
      if (reads && !isTokenMask(op) && !isRotated) return &op;
    }
    return nullptr;
  }

  /// Whether masks of tokens alone read it: one element for all of the result.
  bool isOneElement(ValueId value) const {
    return std::ranges::all_of(region.epilogue, [&](OpId index) {
      const BodyOp &op = kernel.body[index];
      return isTokenMask(op) ? op.operands[0] != value
                             : std::ranges::find(op.operands, value) == op.operands.end();
    });
  }

  EpilogueRole roleOf(const std::set<AxisId> &axes) const {
    const ContractionGroups groups = contractionGroups(kernel, {region.a, region.b, region.c});
    const auto is = [&](ContractionGroup group) {
      return axes == std::set<AxisId>(groups[group].begin(), groups[group].end());
    };
    if (axes == resultAxes) return EpilogueRole::result;
    if (axes.empty()) return EpilogueRole::scalar;
    return is(mGroup) ? EpilogueRole::m : is(nGroup) ? EpilogueRole::n : EpilogueRole::mixed;
  }

  /// Axes of extent above 1.
  std::set<AxisId> longAxes(ValueId value) const {
    std::set<AxisId> axes;
    for (AxisId axis : kernel.values[value].axes)
      if (kernel.axes[axis].extent > 1) axes.insert(axis);
    return axes;
  }

  const Kernel &kernel;
  ContractionRegion region;
  std::set<AxisId> resultAxes;
  std::set<ValueId> dependent;
  std::set<ValueId> unrotated;  ///< what depended on the contraction before a rotary embedding
};

}  // namespace

bool ContractionRegion::isSum(size_t output) const {
  return std::ranges::find(reductions, output, &EpilogueReduction::output) != reductions.end();
}

bool ContractionRegion::isWhole(size_t output) const {
  return !isSum(output) && !(softmax && (output == softmax->maxima || output == softmax->sums));
}

std::vector<OpId> ContractionRegion::elementwiseOps() const {
  std::vector<OpId> ops = epilogue;
  if (softmax && softmax->dropped) ops.push_back(softmax->dropped->op);
  return ops;
}

size_t ContractionRegion::wholeOutputs(const Kernel &kernel) const {
  size_t count = 0;
  for (size_t output = 0; output < kernel.outputs.size(); ++output)
    count += isWhole(output) ? 1 : 0;
  return count;
}

std::optional<SubVectorStrides> subVectorStrides(const Kernel &kernel,
                                                 const Configuration &configuration,
                                                 const ContractionRegion &region, size_t output) {
  const EpilogueSoftmax &softmax = region.softmax.value();
  // In C's order, in which a kernel counts members and rows; operands may have another one where
  // their groups have several strides.
  const ContractionGroups groups = groupsAsLaidOut(kernel, region, configuration.outputs.at(0));
  const std::map<AxisId, int64_t> own =
      stridesByAxis(kernel, kernel.outputs[output], configuration.outputs.at(output));
  const auto merged = [&](const std::vector<AxisId> &group) -> std::optional<int64_t> {
    int64_t stride = 0, expected = 0;
    for (auto axis = group.rbegin(); axis != group.rend(); ++axis) {
      if (kernel.axes[size_t(*axis)].extent == 1) continue;
      const int64_t at = own.at(*axis);
      if (stride == 0) stride = at;
      else if (at != expected) return std::nullopt;
      expected = at * kernel.axes[size_t(*axis)].extent;
    }
    return stride;
  };
  const auto batch = merged(groups[batchGroup]),
             row = merged(groups[softmax.role == EpilogueRole::n ? mGroup : nGroup]);
  if (!batch || !row) return std::nullopt;
  const auto along = own.find(softmax.subVectorAxis);
  return SubVectorStrides{
      .batch = *batch, .row = *row, .subVector = along == own.end() ? 0 : along->second};
}

std::string softmaxRejection(const Kernel &kernel, const Configuration &configuration,
                             const ContractionRegion &region, bool columnsAreN) {
  if (!region.softmax) return "";
  const EpilogueSoftmax &softmax = *region.softmax;
  const BodyOp &op = kernel.body[softmax.op];
  if (softmax.length != fragmentBlockSide && softmax.length != 2 * fragmentBlockSide &&
      softmax.length != 4 * fragmentBlockSide)
    return cannotStand(
        op, fmt::format("has sub-vectors of {} elements; {}, {} and {} are taken behind a GEMM",
                        softmax.length, fragmentBlockSide, 2 * fragmentBlockSide,
                        4 * fragmentBlockSide));
  if ((softmax.role == EpilogueRole::n) != columnsAreN)
    return cannotStand(op, fmt::format("runs along an axis in which '{}' is not contiguous",
                                       kernel.values[size_t(kernel.outputs[0])].name));
  for (const size_t output : {softmax.maxima, softmax.sums})
    if (!subVectorStrides(kernel, configuration, region, output))
      return cannotStand(op, fmt::format("gives '{}', which does not lie as the GEMM's axes do",
                                         kernel.values[size_t(kernel.outputs[output])].name));
  return "";
}

std::string_view nameOf(EpilogueRole role) {
  switch (role) {
    case EpilogueRole::result: return "result";
    case EpilogueRole::m: return "m";
    case EpilogueRole::n: return "n";
    case EpilogueRole::scalar: return "scalar";
    case EpilogueRole::mixed: return "mixed";
    case EpilogueRole::gathered: return "gathered";
  }
  return "?";
}

ContractionGroups groupsAsLaidOut(const Kernel &kernel, const ContractionRegion &region,
                                  const Layout &layout) {
  ContractionGroups groups = contractionGroups(kernel, {region.a, region.b, region.c});
  const std::vector<AxisId> &axes = kernel.values[size_t(kernel.outputs[0])].axes;
  std::vector<int> place(kernel.axes.size());
  for (size_t i = 0; i < layout.order.size(); ++i)
    place[size_t(axes[size_t(layout.order[i])])] = int(i);
  for (std::vector<AxisId> &group : groups)
    std::ranges::sort(group, {}, [&](AxisId axis) { return place[size_t(axis)]; });
  return groups;
}

std::map<AxisId, int64_t> stridesByAxis(const Kernel &kernel, ValueId value, const Layout &layout) {
  const std::vector<AxisId> &axes = kernel.values[size_t(value)].axes;
  std::vector<int64_t> extents;
  for (AxisId axis : axes) extents.push_back(kernel.axes[size_t(axis)].extent);
  const std::vector<int64_t> own = stridesOf(layout, extents);
  std::map<AxisId, int64_t> result;
  for (size_t i = 0; i < axes.size(); ++i)
    if (extents[i] > 1) result[axes[i]] = own[i];
  return result;
}

bool isContiguous(const Kernel &kernel, const ContractionGroups &groups,
                  const EpilogueReduction &sum, const Layout &layout) {
  return isContiguous(kernel, groups,
                      EpilogueInput{.value = kernel.outputs[sum.output], .role = sum.role}, layout);
}

bool isContiguous(const Kernel &kernel, const ContractionGroups &groups, const EpilogueInput &input,
                  const Layout &layout) {
  const std::map<AxisId, int64_t> own = stridesByAxis(kernel, input.value, layout);
  const std::vector<AxisId> &group = groups[input.role == EpilogueRole::n ? nGroup : mGroup];
  int64_t expected = 1;
  for (auto axis = group.rbegin(); axis != group.rend();
       expected *= kernel.axes[size_t(*axis++)].extent)
    if (kernel.axes[size_t(*axis)].extent > 1 && own.at(*axis) != expected) return false;
  return true;
}

std::string contractionForm(const Kernel &kernel, const Configuration &configuration) {
  const Expected<ContractionRegion, Reason> answer = contractionRegion(kernel);
  const auto gemm = stridedBatchedGemm(kernel, configuration);
  const auto factored = gemm ? std::nullopt : multiStrideGemm(kernel, configuration);
  if (!answer || (!gemm && !factored))
    throw Error::checkFailed("kernel '{}': these layouts are no GEMM with an epilogue",
                             kernel.name);
  const ContractionRegion &region = *answer;
  const ContractionGroups groups = groupsAsLaidOut(kernel, region, configuration.outputs[0]);
  const std::map<AxisId, int64_t> result =
      stridesByAxis(kernel, kernel.outputs[0], configuration.outputs[0]);
  std::string text = gemm ? strideText(*gemm) : strideText(*factored);
  const auto addWhole = [&](ValueId value, const Layout &layout) {
    const std::map<AxisId, int64_t> own = stridesByAxis(kernel, value, layout);
    if (own == result) text += " as-result";
    else
      for (const auto &[axis, stride] : own)
        text += fmt::format(" {}:{}/{}", axis.index, stride,
                            result.contains(axis) ? result.at(axis) : 0);
    text += fmt::format(",{}", layout.alignment);
  };
  if (region.prologue)
    for (const PrologueInput &input : region.prologue->inputs) {
      const auto strides = prologueStrides(kernel, configuration, *region.prologue, input);
      if (!strides)
        throw Error::checkFailed("kernel '{}': {}", kernel.name,
                                 prologueLayoutRejection(kernel, configuration, *region.prologue));
      text += fmt::format(" made-of,{}:{}:{},{}", strides->batch, strides->outer, strides->k,
                          configuration.inputs[input.input].alignment);
    }
  for (const EpilogueInput &input : region.inputs) {
    const Layout &layout = configuration.inputs[input.input];
    const bool isVector = input.role == EpilogueRole::m || input.role == EpilogueRole::n;
    if (isVector && isContiguous(kernel, groups, input, layout))
      text += fmt::format(" vector,{}", layout.alignment);
    else if (input.role != EpilogueRole::scalar) addWhole(input.value, layout);
  }
  for (size_t output = 1; output < kernel.outputs.size(); ++output) {
    const auto sum = std::ranges::find(region.reductions, output, &EpilogueReduction::output);
    const Layout &layout = configuration.outputs[output];
    if (!region.isWhole(output) && sum == region.reductions.end()) {
      const auto strides = subVectorStrides(kernel, configuration, region, output);
      if (!strides)
        throw Error::checkFailed("kernel '{}': '{}' does not lie as the GEMM's axes do",
                                 kernel.name, kernel.values[size_t(kernel.outputs[output])].name);
      text += fmt::format(" sub-vectors,{}:{}:{},{}", strides->batch, strides->row,
                          strides->subVector, layout.alignment);
    } else if (sum != region.reductions.end() && isContiguous(kernel, groups, *sum, layout))
      text += fmt::format(" vector,{}", layout.alignment);
    else addWhole(kernel.outputs[output], layout);
  }
  for (const OpId op : region.elementwiseOps()) {
    if (kernel.body[op].kind != OpKind::dropout) continue;
    const std::vector<AxisId> &axes = kernel.values[size_t(kernel.body[op].results[0])].axes;
    const bool isMOnN = drawsByFragment(kernel, axes, groups[mGroup], groups[nGroup]),
               isNOnM = drawsByFragment(kernel, axes, groups[nGroup], groups[mGroup]);
    text += isMOnN ? " draws-mn" : isNOnM ? " draws-nm" : " draws-each";
  }
  return text;
}

bool drawsByFragment(const Kernel &kernel, const std::vector<AxisId> &axes,
                     const std::vector<AxisId> &rows, const std::vector<AxisId> &columns) {
  const auto isFastest = [&](const std::vector<AxisId> &group, AxisId axis) {
    return !group.empty() && group.back() == axis &&
           (group.size() == 1 || kernel.axes[size_t(axis)].extent % fragmentBlockSide == 0);
  };
  return axes.size() >= 2 && isFastest(columns, axes[axes.size() - 1]) &&
         isFastest(rows, axes[axes.size() - 2]);
}

std::string epilogueRejection(const BodyOp &op) {
  if (op.operatorClass != OperatorClass::elementwise)
    return cannotStand(
        op, fmt::format("is of class {}; an epilogue is element-wise", nameOf(op.operatorClass)));
  if (op.results.size() != 1) return cannotStand(op, "has several results");
  if (op.kind == OpKind::dropout) return "";
  if (op.expression.empty()) return cannotStand(op, "is no function of single elements");
  if (isTokenMask(op)) return "";
  for (const ExpressionNode &node : op.expression.all()) {
    if (node.type == ScalarType::rotation)
      return cannotStand(
          op,
          "reads an operand at other coordinates than its element's; an epilogue has "
          "the elements at its own");
    if (node.kind == ExpressionNode::Kind::operand &&
        std::ranges::any_of(node.children,
                            [&](int child) { return op.expression.readsOperand(child); }))
      return cannotStand(op, "reads elements at coordinates that are themselves read");
  }
  return "";
}

const Expected<ContractionRegion, Reason> &contractionRegion(const Kernel &kernel) {
  thread_local RecentAnswers<Expected<ContractionRegion, Reason>> recent;
  return recent.of([&] { return ContractionRecognition(kernel).answer(); }, kernel);
}

}  // namespace weft
