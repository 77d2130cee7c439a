// Gradients of softmax and of norms as row reductions and scalar expressions: one pass over the row
// for its sums, one for the result. Gradients of a norm's parameters reduce over all other axes.
#include "codegen/families/loop/LoopOps.h"

namespace weft::codegen {

/// y * (dy - sum(dy * y)).
int GraphBuilder::softmaxDx(const BodyOp &op, const std::string &name,
                            const Coordinates &coordinates) {
  const Coordinates row = overRow(coordinates);
  const int product = pointwise(
      "{0} * {1}", {evaluate(op.operands[0], row), evaluate(op.operands[1], row)}, "product");
  const int total = reduce(Reduction::sum, product, "total");
  return pointwise(
      "{1} * ({0} - {2})",
      {evaluate(op.operands[0], coordinates), evaluate(op.operands[1], coordinates), total}, name);
}

/// The normalized value at a place: (x - mean) * rstd, or x * rstd without a mean (-1).
int GraphBuilder::normalized(ValueId x, ValueId mean, ValueId rstd,
                             const Coordinates &coordinates) {
  if (mean < 0)
    return pointwise("{0} * {1}", {evaluate(x, coordinates), evaluate(rstd, coordinates)},
                     "normalized");
  return pointwise(
      "({0} - {1}) * {2}",
      {evaluate(x, coordinates), evaluate(mean, coordinates), evaluate(rstd, coordinates)},
      "normalized");
}

/// rstd * (g - mean(g) - n * mean(g * n)) with g = dy * gamma; an RMS norm has no mean and no
/// second term.
int GraphBuilder::normDx(const BodyOp &op, const std::string &name,
                         const Coordinates &coordinates) {
  const bool hasMean = op.operands.size() == 5;
  const ValueId dy = op.operands[0], x = op.operands[1], gamma = op.operands[2],
                mean = hasMean ? op.operands[3] : ValueId(), rstd = op.operands.back();
  const Coordinates row = overRow(coordinates);
  const auto scaledAt = [&](const Coordinates &at) {
    return pointwise("{0} * {1}", {evaluate(dy, at), evaluate(gamma, at)}, "scaled");
  };
  const auto meanOf = [&](int node, const char *sum, const char *wish) {
    return pointwise("{0} / " + rowLengthText(), {reduce(Reduction::sum, node, sum)}, wish);
  };
  const int inRow = scaledAt(row), normalizedInRow = normalized(x, mean, rstd, row);
  const int product = pointwise("{0} * {1}", {inRow, normalizedInRow}, "product");
  const int slope = meanOf(product, "products", "slope");
  const int here = scaledAt(coordinates), normalizedHere = normalized(x, mean, rstd, coordinates);
  const int scale = evaluate(rstd, coordinates);
  if (!hasMean)
    return pointwise("{3} * ({0} - {1} * {2})", {here, normalizedHere, slope, scale}, name);
  const int offset = meanOf(inRow, "total", "offset");
  return pointwise("{4} * ({0} - {1} - {2} * {3})", {here, offset, normalizedHere, slope, scale},
                   name);
}

/// Sum of dy * n, and of dy for the second result.
int GraphBuilder::normDw(const BodyOp &op, ValueId value, const Coordinates &coordinates) {
  const Coordinates row = overRow(coordinates);
  const std::string &name = kernel.values[value].name;
  const int dy = evaluate(op.operands[0], row);
  if (op.results.size() > 1 && value == op.results[1]) return reduce(Reduction::sum, dy, name);
  const ValueId mean = op.operands.size() == 4 ? op.operands[2] : ValueId();
  const int product = pointwise(
      "{0} * {1}", {dy, normalized(op.operands[1], mean, op.operands.back(), row)}, "product");
  return reduce(Reduction::sum, product, name);
}

}  // namespace weft::codegen
