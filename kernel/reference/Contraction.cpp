// One element of a contraction: the sum over the letters that the result lacks.
#include "kernel/Error.h"
#include "kernel/StridedBatchedGemm.h"
#include "kernel/reference/PointEvaluator.h"
#include "kernel/reference/Rounding.h"

#include <algorithm>
#include <cmath>

namespace weft::reference {

/// An operand as it is stored, or as it would be where the kernel computes it: rounded to its
/// element type. Whoever is off by the error may round to another neighbour, and only then.
Point PointEvaluator::factor(const BodyOp &op, size_t n, const Coordinates &at) {
  const int value = op.operands[n];
  if (inputOf[size_t(value)] >= 0) return operand(op, n, at);
  // Every element is a factor of many products.
  constexpr int64_t mostKept = 1 << 22;
  if (kernel.elements(value) > mostKept) return roundedFactor(op, n, at);
  std::vector<std::optional<Point>> &kept = factors[value];
  if (kept.empty()) kept.resize(size_t(kernel.elements(value)));
  size_t index = 0;
  for (size_t d = 0; d < at.size(); ++d) index = index * size_t(extent(value, d)) + size_t(at[d]);
  if (!kept[index]) kept[index] = roundedFactor(op, n, at);
  return *kept[index];
}

Point PointEvaluator::roundedFactor(const BodyOp &op, size_t n, const Coordinates &at) {
  const Point exact = operand(op, n, at);
  const DType type = kernel.values[size_t(op.operands[n])].dtype;
  if (type == DType::f32) return exact;
  const auto rounded = [&](double element) { return roundTo(type, saturated(type, element)); };
  const double nearest = rounded(exact.value), least = rounded(exact.value - exact.error),
               most = rounded(exact.value + exact.error);
  return {.value = nearest, .error = std::max(nearest - least, most - nearest)};
}

PointEvaluator::Terms PointEvaluator::termsOf(const BodyOp &op, size_t resultRank) const {
  const std::string spec = text(op, "spec");
  const size_t comma = spec.find(','), arrow = spec.find("->");
  if (comma == std::string::npos || arrow == std::string::npos || arrow < comma)
    throw Error::checkFailed("kernel '{}': \"{}\" is no contraction", kernel.name, spec);
  Terms terms{.operands = {spec.substr(0, comma), spec.substr(comma + 1, arrow - comma - 1)},
              .result = spec.substr(arrow + 2)};
  if (terms.operands[0].size() != rank(op.operands[0]) ||
      terms.operands[1].size() != rank(op.operands[1]) || terms.result.size() != resultRank)
    throw Error::checkFailed("kernel '{}': contraction \"{}\" does not fit its operands",
                             kernel.name, spec);
  return terms;
}

Coordinates PointEvaluator::place(const Terms &terms, size_t side, const Coordinates &at) {
  Coordinates result(terms.operands[side].size());
  for (size_t d = 0; d < result.size(); ++d) {
    const size_t found = terms.result.find(terms.operands[side][d]);
    if (found != std::string::npos) result[d] = at[found];
  }
  return result;
}

Point PointEvaluator::contract(const BodyOp &op, size_t, const Coordinates &at) {
  const Terms all = termsOf(op, at.size());
  const auto &[terms, result] = all;
  Coordinates places[2] = {place(all, 0, at), place(all, 1, at)};
  struct Reduced {
    size_t dimensions[2];
    int64_t extent;
  };
  std::vector<Reduced> reduced;
  for (size_t d = 0; d < terms[0].size(); ++d)
    if (result.find(terms[0][d]) == std::string::npos)
      reduced.push_back({{d, terms[1].find(terms[0][d])}, extent(op.operands[0], d)});

  int64_t count = 1;
  for (const Reduced &one : reduced) count *= one.extent;
  // A kernel may scale the accumulators by an operand's factors instead of the operand, which is
  // not rounded then.
  const auto isScaled = [&](size_t side) {
    const auto maker = std::ranges::find_if(
        kernel.body, [&](const BodyOp &other) { return other.results[0] == op.operands[side]; });
    return maker != kernel.body.end() && maker->kind == OpKind::globalScaling;
  };
  const bool mayStay[2] = {isScaled(0), isScaled(1)};
  double total = 0, magnitude = 0, squares = 0, error = 0, unrounded = 0;
  for (int64_t n = 0; n < count; ++n) {
    int64_t rest = n;
    for (size_t r = reduced.size(); r-- > 0; rest /= reduced[r].extent)
      for (size_t side : {0, 1})
        places[side][reduced[r].dimensions[side]] = rest % reduced[r].extent;
    const Point a = factor(op, 0, places[0]), b = factor(op, 1, places[1]);
    total += a.value * b.value;
    magnitude += std::abs(a.value * b.value);
    squares += a.value * b.value * a.value * b.value;
    error += a.error * std::abs(b.value) + b.error * std::abs(a.value);
    if (!mayStay[0] && !mayStay[1]) continue;
    const Point wholeA = mayStay[0] ? operand(op, 0, places[0]) : a,
                wholeB = mayStay[1] ? operand(op, 1, places[1]) : b;
    unrounded += wholeA.value * wholeB.value;
    magnitude += std::max(0.0, std::abs(wholeA.value * wholeB.value) - std::abs(a.value * b.value));
    error += wholeA.error * std::abs(wholeB.value) + wholeB.error * std::abs(wholeA.value);
  }
  if (mayStay[0] || mayStay[1]) error += std::abs(total - unrounded);
  const auto isSingleConsumer = [&](int value) {
    return isFloat8(kernel.values[size_t(value)].dtype);
  };
  if (isSingleConsumer(op.operands[0]) && isSingleConsumer(op.operands[1]))
    error += float8SumError(count, total, magnitude, squares);
  if (isTf32(op)) error += tf32SumError(total, magnitude, squares);
  const double scale = number(op, "scale", 1);
  return {.value = total * scale,
          .error = std::abs(scale) * (error + sumError(count) * magnitude) +
                   2 * roundoff * std::abs(total * scale)};
}

}  // namespace weft::reference
