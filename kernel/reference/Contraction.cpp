// One element of a contraction: the sum over the letters that the result lacks.
#include "kernel/Attributes.h"
#include "kernel/Error.h"
#include "kernel/StridedBatchedGemm.h"
#include "kernel/reference/PointEvaluator.h"
#include "kernel/reference/Rounding.h"

#include <algorithm>
#include <cmath>

namespace weft::reference {

/// An operand as it is stored, or as it would be where the kernel computes it: rounded to its
/// element type. Whoever is off by the error may round to another neighbour, and only then.
Point PointEvaluator::newFactor(const BodyOp &op, size_t n, const Coordinates &at, size_t place) {
  const auto value = size_t(op.operands[n]);
  const Point made = inputOf[value] >= 0 ? operand(op, n, at) : roundedFactor(op, n, at);
  return factors[value].isKept() ? factors[value].keep(place, made) : made;
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
  const std::string spec = attributeOf(op, attribute::spec);
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

const PointEvaluator::Contraction &PointEvaluator::contractionOf(const BodyOp &op,
                                                                 size_t resultRank) {
  std::optional<Contraction> &known = definitions[size_t(op.results[0])].contraction;
  if (known) return *known;
  Contraction made{.terms = termsOf(op, resultRank), .reduced = {}};
  const auto &[terms, result] = made.terms;
  for (size_t d = 0; d < terms[0].size(); ++d) {
    if (result.find(terms[0][d]) != std::string::npos) continue;
    const std::array<size_t, 2> dimensions = {d, terms[1].find(terms[0][d])};
    const auto stride = [&](size_t side) {
      return factors[size_t(op.operands[side])].stride(dimensions[side]);
    };
    made.reduced.push_back({.dimensions = dimensions,
                            .strides = {stride(0), stride(1)},
                            .extent = extent(op.operands[0], d)});
    made.count *= made.reduced.back().extent;
  }
  for (const size_t side : {0, 1}) {
    const auto maker = std::ranges::find_if(
        kernel.body, [&](const BodyOp &other) { return other.results[0] == op.operands[side]; });
    made.mayStay[side] = maker != kernel.body.end() && maker->kind == OpKind::globalScaling;
  }
  return known.emplace(std::move(made));
}

/// Ops behind it may ask for an element many times, as the statistics of a softmax do.
Point PointEvaluator::contract(const BodyOp &op, size_t, const Coordinates &at) {
  KeptElements &kept = sums[size_t(op.results[0])];
  if (!kept.isKept()) return sumOfProducts(op, at);
  const size_t place = kept.placeOf(at);
  const Point *const known = kept.find(place);
  return known ? *known : kept.keep(place, sumOfProducts(op, at));
}

/// The last element of an operand of integers along one axis.
int64_t PointEvaluator::lastOf(const BodyOp &op, size_t n) {
  Coordinates last(1);
  last[0] = extent(op.operands[n], 0) - 1;
  return int64_t(operand(op, n, last).value);
}

Point PointEvaluator::sumOfProducts(const BodyOp &op, const Coordinates &at) {
  const auto &[terms, reduced, count, mayStay] = contractionOf(op, at.size());
  Coordinates coordinates[2] = {place(terms, 0, at), place(terms, 1, at)};
  size_t places[2];
  for (const size_t side : {0, 1})
    places[side] = factors[size_t(op.operands[side])].placeOf(coordinates[side]);
  double total = 0, magnitude = 0, squares = 0, error = 0, unrounded = 0;
  const int64_t summed = op.operands.size() > 2 ? std::min(count, lastOf(op, 2)) : count;
  for (int64_t n = 0; n < summed; ++n) {
    const Point a = factor(op, 0, coordinates[0], places[0]),
                b = factor(op, 1, coordinates[1], places[1]);
    const double product = a.value * b.value;
    total += product;
    magnitude += std::abs(product);
    squares += a.value * b.value * a.value * b.value;
    error += a.error * std::abs(b.value) + b.error * std::abs(a.value);
    if (mayStay[0] || mayStay[1]) {
      const Point wholeA = mayStay[0] ? operand(op, 0, coordinates[0]) : a,
                  wholeB = mayStay[1] ? operand(op, 1, coordinates[1]) : b;
      const double whole = wholeA.value * wholeB.value;
      unrounded += whole;
      magnitude += std::max(0.0, std::abs(whole) - std::abs(product));
      error += wholeA.error * std::abs(wholeB.value) + wholeB.error * std::abs(wholeA.value);
    }
    for (size_t r = reduced.size(); r-- > 0;) {
      const auto &[dimensions, strides, extent] = reduced[r];
      int64_t &digit = coordinates[0][dimensions[0]];
      const bool carries = ++digit == extent;
      if (carries) digit = 0;
      coordinates[1][dimensions[1]] = digit;
      for (const size_t side : {0, 1})
        places[side] += size_t(carries ? strides[side] * (1 - extent) : strides[side]);
      if (!carries) break;
    }
  }
  if (mayStay[0] || mayStay[1]) error += std::abs(total - unrounded);
  const auto isSingleConsumer = [&](ValueId value) {
    return isFloat8(kernel.values[size_t(value)].dtype);
  };
  if (isSingleConsumer(op.operands[0]) && isSingleConsumer(op.operands[1]))
    error += float8SumError(count, total, magnitude, squares);
  if (isTf32(op)) error += tf32SumError(total, magnitude, squares);
  const double scale = attributeOr(op, attribute::scale, 1);
  return {.value = total * scale,
          .error = std::abs(scale) * (error + sumError(count) * magnitude) +
                   2 * roundoff * std::abs(total * scale)};
}

}  // namespace weft::reference
