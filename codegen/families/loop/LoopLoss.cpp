// Cross entropy as row reductions, and its gradient as a scalar expression of the logits and the
// kept logarithms of sums.
#include "codegen/families/loop/LoopOps.h"
#include "kernel/Attributes.h"

namespace weft::codegen {

/// Whether a label, as an expression, lies within the axis.
Code GraphBuilder::isLabel(const BodyOp &op, const Code &label) const {
  const AxisId axis =
      kernel.values[op.operands[0]].axes[static_cast<size_t>(attributeOf(op, attribute::axis))];
  return code("{0} >= 0 && {0} < {1}", label, space.axisName(axis));
}

/// log(sum(exp(x - m))) + m - x[label], m the maximum of the row. The element at the label is the
/// sum of all that stand there, so that the row is read as every reduction reads it.
int GraphBuilder::crossEntropy(const BodyOp &op, ValueId value, const Coordinates &coordinates) {
  const ShiftedExponentials e = exponentials(op.operands[0], coordinates);
  const int total = reduce(Reduction::sum, e.inRow, "total");
  const int logSum = pointwise("{0} + logf({1})", {e.shift, total}, "logSum");
  if (value == op.results[1]) return logSum;
  const Coordinates row = overRow(coordinates);
  const Index place = indexOf(op.operands[0], attributeOf(op, attribute::axis), row);
  const int chosen =
      pointwise(elementText(place) + " == {1} ? {0} : 0.0f",
                {evaluate(op.operands[0], row), evaluate(op.operands[1], row)}, "chosen", {place});
  const int atLabel = reduce(Reduction::sum, chosen, "atLabel");
  return pointwise(isLabel(op, "{2}") + " ? {0} - {1} : 0.0f",
                   {logSum, atLabel, evaluate(op.operands[1], coordinates)},
                   kernel.values[value].name);
}

/// dy * (exp(x - logSum) - [here is the label]), 0 in rows without a label.
int GraphBuilder::crossEntropyDx(const BodyOp &op, const std::string &name,
                                 const Coordinates &coordinates) {
  const Index place = indexOf(op.operands[0], attributeOf(op, attribute::axis), coordinates);
  graph.headers.insert("weft/math.cuh");
  const Code text =
      code("{} ? {{3}} * (weft::exp({{0}} - {{2}}) - ({} == {{1}} ? 1.0f : 0.0f)) : 0.0f",
           isLabel(op, "{1}"), elementText(place));
  std::vector<int> operands;
  for (ValueId operand : op.operands) operands.push_back(evaluate(operand, coordinates));
  return pointwise(text, operands, name, {place});
}

}  // namespace weft::codegen
