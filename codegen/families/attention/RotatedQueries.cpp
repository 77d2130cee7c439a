// Texts of a rotary embedding's angles; see RotatedQueries.h.
#include "codegen/families/attention/RotatedQueries.h"

#include "codegen/ExpressionText.h"
#include "codegen/families/attention/AttentionPlaces.h"
#include "codegen/families/contraction/ContractionTexts.h"
#include "codegen/families/contraction/EpilogueLimits.h"
#include "kernel/CoordinateExpressions.h"
#include "kernel/Error.h"
#include "passes/configure/Margins.h"

#include <fmt/format.h>

#include <algorithm>

namespace weft {
namespace {

constexpr int64_t chunk = 8;
/// Of an element that is turned (an estimate): a sine and a cosine for two of them, as in the
/// epilogue of gemm-sm90; a loop kernel, which has them for each element, takes 24.
constexpr double rotationInstructions = 15;
/// The margin of queries that a fused attention turns (an estimate): no measurement has them yet.
constexpr double rotatedQueries = 0.02;

}  // namespace

std::string rotatedQueriesRejection(const Kernel &kernel, const AttentionRegion &region) {
  if (!region.turned) return "";
  const RotatedPairs &pairs = region.turned->pairs;
  if (const Value &q = kernel.values[size_t(region.q)]; !isHalf(q.dtype))
    return fmt::format(
        "queries of {} that a rotary op rotates; f16 and bf16 are rotated when they "
        "are loaded",
        nameOf(q.dtype));
  const bool isHalved = pairs.style == RotaryStyle::halved;
  if (const int64_t unit = chunk * (isHalved ? 2 : 1); pairs.turned % unit != 0)
    return fmt::format(
        "{} elements of a query are turned as {} pairs; a thread turns multiples "
        "of {}",
        pairs.turned, nameOf(pairs.style), unit);
  return "";
}

double rotatedQuerySeconds(const AttentionRegion &region, const Device &device) {
  if (!region.turned) return 0;
  const double instructionRate = device.fmaFlops / 2 / device.multiprocessors;
  return double(region.turned->pairs.turned) * rotationInstructions / instructionRate;
}

Cost withRotationMargin(const AttentionRegion &region, const Cost &cost) {
  return region.turned ? margins::added(cost, rotatedQueries) : cost;
}

}  // namespace weft

namespace weft::codegen {
namespace {

/// The factor and the frequency of an angle, as nodes of the expression.
std::pair<int, int> angleOf(const Kernel &kernel, const BodyOp &op) {
  for (const ExpressionNode &node : op.expression.all())
    if (node.kind == ExpressionNode::Kind::call && node.function->result == ScalarType::rotation)
      return {node.children[0], node.children[1]};
  throw Error::checkFailed("kernel '{}': a rotary op whose expression turns nothing", kernel.name);
}

}  // namespace

RotatedQueryTexts rotatedQueries(const ScoreContext &context, const std::string &sequences) {
  const RotatedQueries &turned = context.region.turned.value();
  const BodyOp &op = context.kernel.body[turned.pairs.op];
  const auto [factor, frequency] = angleOf(context.kernel, op);
  ScoreOps ops(context);
  RotatedQueryTexts texts{.position = context.names.reserve("positionOf"),
                          .frequency = context.names.reserve("frequencyOf"),
                          .columns = context.names.reserve("rotatedColumns")};
  const Code head = context.names.reserve("head"), query = context.names.reserve("query"),
             column = context.names.reserve("column");
  const auto inMemory = ops.coordinates(head, query, Code::plain("0"));
  Block body;
  std::map<ValueId, Code> names;
  Code token = query;  // along the axis of tokens, where they are packed
  if (context.problem.packed) {
    token = context.names.reserve("token");
    body.push_back(
        declareConstant("int", token, code("{}.of({}).first + {}", sequences, head, query)));
  }
  if (turned.starts >= 0) {
    const AxisId tokens = context.problem.packed ? context.region.packed->q : AxisId();
    const AttentionTensor starts = attentionTensor(context.kernel, context.configuration,
                                                   context.problem, turned.starts, tokens, -1);
    const std::string &pointer = context.inputs[turned.input];
    std::string place = placeOfHead(context.problem, starts, head);
    if (starts.rowStride != 0) place += fmt::format(" + {} * {}", token.str(), starts.rowStride);
    const Code name =
        context.names.reserve(context.kernel.values[size_t(turned.starts)].name + "_v");
    body.push_back(
        declareConstant("int", name, fmt::format("weft::loadOne({} + {})", pointer, place)));
    names[turned.starts] = name;
  }
  const Code position = ops.text(op, factor, names, body, [&](AxisId axis) {
    return context.problem.packed && axis == context.region.packed->q ? token : inMemory(axis);
  });
  body.push_back(evaluate(code("return {}", position)));
  if (op.number >= 0) body.back().note = fmt::format("%{}", op.number);
  texts.functions.push_back({.kind = Statement::Kind::function,
                             .type = code("int {}, int {}", head, query),
                             .name = texts.position,
                             .body = std::move(body)});

  Block ofPair;
  const Code text = ops.text(op, frequency, names, ofPair, [&](AxisId axis) {
    return axis == turned.pairs.pairs ? column : inMemory(axis);
  });
  ofPair.push_back(evaluate(code("return {}", text)));
  texts.functions.push_back({.kind = Statement::Kind::function,
                             .type = code("int {}", column),
                             .name = texts.frequency,
                             .body = std::move(ofPair)});
  texts.constants = ops.constants;
  texts.constants.push_back(
      {"weft::RotatedColumns",
       {{texts.columns,
         ConstantValue::members(
             {{"rotated", turned.pairs.turned},
              {"isHalved", ConstantValue::truth(turned.pairs.style == RotaryStyle::halved)},
              {"isReverse", ConstantValue::truth(turned.pairs.isReverse)},
              {"isShort", ConstantValue::truth(hasShortRotations(op.expression))}})}},
       "",
       {ConstantSubject::Kind::rotaryPairs}});
  texts.headers = ops.headers;
  texts.headers.insert("weft/rotated_chunks.cuh");
  texts.headers.insert("weft/vector.cuh");
  return texts;
}

}  // namespace weft::codegen
