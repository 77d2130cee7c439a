// Softmax, norms and reductions as row reductions and scalar expressions. Statistics are two-pass:
// the mean first, then the sum of squared differences from it, which is as accurate as fp32 allows.
#include "codegen/ExpressionText.h"
#include "codegen/families/loop/LoopOps.h"
#include "kernel/Attributes.h"
#include "kernel/Error.h"
#include "kernel/ReduceKind.h"

namespace weft::codegen {

/// The same place, but anywhere along the reduced axes: where the operands of a row reduction are
/// looked at.
Coordinates GraphBuilder::overRow(const Coordinates &coordinates) const {
  Coordinates result = coordinates;
  for (AxisId axis : axes.reduced) result.at[axis] = home.at.at(axis);
  if (axes.splitAxis >= 0) result.at[axes.splitAxis] = home.at.at(axes.splitAxis);
  return result;
}

int64_t GraphBuilder::rowLength() const {
  int64_t length = 1;
  for (AxisId axis : axes.reduced) length *= kernel.axes[axis].extent;
  return length;
}

Code GraphBuilder::rowLengthText() const {
  std::vector<Code> extents;
  for (AxisId axis : axes.reduced) extents.push_back(space.axisName(axis));
  const Code product = joined(extents, " * ");
  return extents.size() == 1 ? product : code("({})", product);
}

/// exp(x - m) with m = max of the row; a row of -inf alone is shifted by 0, so that it gives zeros
/// and no NaN.
GraphBuilder::ShiftedExponentials GraphBuilder::exponentials(int operand,
                                                             const Coordinates &coordinates) {
  const int inRow = evaluate(operand, overRow(coordinates));
  const int largest = reduce(Reduction::maximum, inRow, "largest");
  const int shift = pointwise("{0} == weft::negativeInfinity ? 0.0f : {0}", {largest}, "shift");
  graph.headers.insert("weft/math.cuh");
  const Code text = "weft::expFast({0} - {1})";
  return {.shift = shift,
          .inRow = pointwise(text, {inRow, shift}, "exponential"),
          .here = pointwise(text, {evaluate(operand, coordinates), shift}, "exponential")};
}

int GraphBuilder::softmax(const BodyOp &op, const std::string &name,
                          const Coordinates &coordinates) {
  const ShiftedExponentials e = exponentials(op.operands[0], coordinates);
  const int total = reduce(Reduction::sum, e.inRow, "total");
  const int inverse = pointwise("{0} == 0.0f ? 0.0f : 1.0f / {0}", {total}, "inverse");
  return pointwise("{0} * {1}", {e.here, inverse}, name);
}

int GraphBuilder::layerNorm(const BodyOp &op, ValueId value, const Coordinates &coordinates) {
  const int inRow = evaluate(op.operands[0], overRow(coordinates));
  const int mean =
      pointwise("{0} / " + rowLengthText(), {reduce(Reduction::sum, inRow, "total")}, "mu");
  const int square = pointwise("({0} - {1}) * ({0} - {1})", {inRow, mean}, "square");
  const Code epsilon =
      constant("float", "epsilon",
               ConstantValue::text(floatLiteral(attributeOr(op, attribute::epsilon, 1e-5))));
  const int squares = reduce(Reduction::sum, square, "squares");
  const int inverse =
      pointwise(code("weft::rsqrt({{0}} / {} + {})", rowLengthText(), epsilon), {squares}, "r");
  graph.headers.insert("weft/math.cuh");
  if (op.results.size() > 1 && value == op.results[1]) return mean;
  if (op.results.size() > 2 && value == op.results[2]) return inverse;
  const int here = evaluate(op.operands[0], coordinates);
  const int gamma = evaluate(op.operands[1], coordinates);
  const std::string &name = kernel.values[value].name;
  if (op.operands.size() == 2)
    return pointwise("({0} - {1}) * {2} * {3}", {here, mean, inverse, gamma}, name);
  const int beta = evaluate(op.operands[2], coordinates);
  return pointwise("({0} - {1}) * {2} * {3} + {4}", {here, mean, inverse, gamma, beta}, name);
}

int GraphBuilder::rmsNorm(const BodyOp &op, ValueId value, const Coordinates &coordinates) {
  const int inRow = evaluate(op.operands[0], overRow(coordinates));
  const int squares = reduce(Reduction::sum, pointwise("{0} * {0}", {inRow}, "square"), "squares");
  const Code epsilon =
      constant("float", "epsilon",
               ConstantValue::text(floatLiteral(attributeOr(op, attribute::epsilon, 1e-5))));
  const int inverse =
      pointwise(code("weft::rsqrt({{0}} / {} + {})", rowLengthText(), epsilon), {squares}, "r");
  graph.headers.insert("weft/math.cuh");
  if (op.results.size() > 1 && value == op.results[1]) return inverse;
  const int here = evaluate(op.operands[0], coordinates),
            gamma = evaluate(op.operands[1], coordinates);
  return pointwise("{0} * {1} * {2}", {here, inverse, gamma}, kernel.values[value].name);
}

int GraphBuilder::reduceOp(const BodyOp &op, const std::string &name,
                           const Coordinates &coordinates) {
  const std::optional<ReduceKind> kind = reduceKind(op);
  if (!kind)
    throw Error::unsupported("kernel '{}': reduce of kind '{}'; there are sum and max", kernel.name,
                             attributeOf(op, attribute::kind));
  if (kind == ReduceKind::maximum) graph.headers.insert("weft/math.cuh");
  return reduce(kind == ReduceKind::sum ? Reduction::sum : Reduction::maximum,
                evaluate(op.operands[0], overRow(coordinates)), name);
}

/// Section 3.2 of "Accelerating Transformer Inference via softmax recomposition": x' = exp(x - m'),
/// m' and d' a sub-vector.
int GraphBuilder::localSoftmax(const BodyOp &op, ValueId value, const Coordinates &coordinates) {
  const ShiftedExponentials e = exponentials(op.operands[0], coordinates);
  if (value == op.results[1]) return graph.nodes[e.shift].operands[0];
  if (value == op.results[2]) return reduce(Reduction::sum, e.inRow, "total");
  return e.here;
}

/// r' = exp(m' - m) / d with m = max m', d = sum of exp(m' - m) d'; an empty row gives zero.
int GraphBuilder::reduceSubVectors(const BodyOp &op, const std::string &name,
                                   const Coordinates &coordinates) {
  const ShiftedExponentials e = exponentials(op.operands[0], coordinates);
  const int denominators = evaluate(op.operands[1], overRow(coordinates));
  const int total =
      reduce(Reduction::sum, pointwise("{0} * {1}", {e.inRow, denominators}, "part"), "total");
  const int inverse = pointwise("{0} == 0.0f ? 0.0f : 1.0f / {0}", {total}, "inverse");
  return pointwise("{0} * {1}", {e.here, inverse}, name);
}

/// x' * r' of the sub-vector that the element lies in.
int GraphBuilder::globalScaling(const BodyOp &op, const std::string &name,
                                const Coordinates &coordinates) {
  const size_t dimension = static_cast<size_t>(attributeOf(op, attribute::axis));
  const AxisId axis = kernel.values[op.operands[0]].axes[dimension];
  const AxisId subVectorAxis = kernel.values[op.operands[1]].axes[dimension];
  Coordinates scales = coordinates;
  scales.at[subVectorAxis] = divided(coordinates.at.at(axis), attributeOf(op, attribute::tile),
                                     kernel.axes[subVectorAxis].extent);
  return pointwise("{0} * {1}",
                   {evaluate(op.operands[0], coordinates), evaluate(op.operands[1], scales)}, name);
}

}  // namespace weft::codegen
