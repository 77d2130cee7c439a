// The walk from an output to inputs, and what all ops share. One member function an op; handlerOf()
// is the table.
#include "kernel/reference/PointEvaluator.h"

#include "kernel/Error.h"
#include "kernel/ShortFunction.h"
#include "kernel/reference/Rounding.h"
#include "kernel/reference/ScalarReferences.h"

#include <algorithm>
#include <cmath>

namespace weft::reference {

Coordinates Coordinates::without(size_t dimension) const {
  Coordinates result(count - 1);
  for (size_t d = 0, to = 0; d < count; ++d)
    if (d != dimension) result[to++] = values[d];
  return result;
}

Coordinates Coordinates::with(size_t dimension, int64_t value) const {
  Coordinates result(count + 1);
  for (size_t d = 0, from = 0; d <= count; ++d) result[d] = d == dimension ? value : values[from++];
  return result;
}

KeptElements::KeptElements(std::span<const int64_t> extents) : strides(extents.size()) {
  constexpr int64_t mostKept = 1 << 22;
  int64_t elements = 1;
  for (size_t d = extents.size(); d-- > 0; elements *= extents[d]) strides[d] = elements;
  if (elements <= mostKept) pages.resize((size_t(elements) + pageSize - 1) / pageSize);
}

std::unique_ptr<KeptElements::Page> KeptElements::emptyPage() {
  auto page = std::make_unique<Page>();
  page->fill({.value = 0, .error = -1});
  return page;
}

double sumError(int64_t n) { return (8 + 2 * std::sqrt(double(n))) * roundoff; }

double float8SumError(int64_t n, double total, double magnitude, double squares) {
  constexpr double lost = 0x1p-13;
  constexpr int64_t together = 32;
  const double running = std::abs(total) + 2 * std::sqrt(squares);
  const double oneWay = magnitude > 0 ? double(n) * std::abs(total) / magnitude : 0;
  return lost * running *
         (double((n + together - 1) / together) + 2 * std::sqrt(double(n)) + oneWay);
}

double tf32SumError(double total, double magnitude, double squares) {
  constexpr double lost = 0x1p-9;
  return lost * std::min(magnitude, std::abs(total) + 2 * std::sqrt(squares));
}

double roundedExponential(DType type, double exponential) {
  const double relative = roundingError(type, 1), least = roundingError(type, 0);
  return std::max(relative * exponential, std::min(least, exponential));
}

double roundedExponentialSumError(double total, double magnitude, double squares) {
  return std::min(magnitude, std::abs(total) + 3 * std::sqrt(squares));
}

double tolerance(const Point &point, DType type) {
  // The rounding of the farthest value that the error admits, which may have a larger exponent.
  return point.error + roundingError(type, std::abs(point.value) + point.error);
}

bool agrees(double stored, const Point &point, DType type) {
  if (!point.isSpecified) return true;
  if (std::isnan(stored) || std::isnan(point.value)) return false;
  const double exact = roundTo(type, point.value);
  if (std::isinf(exact) || std::isinf(stored)) return stored == exact;
  const Point held{.value = saturated(type, point.value), .error = point.error};
  const double allowed = tolerance(held, type);
  return std::isfinite(allowed) && std::abs(stored - held.value) <= allowed;
}

PointEvaluator::Handler PointEvaluator::handlerOf(const Kernel &kernel, const BodyOp &op) {
  static const std::map<OpKind, Handler> handlers = {
      {OpKind::dropout, &PointEvaluator::dropout},
      {OpKind::mask, &PointEvaluator::mask},
      {OpKind::rotary, &PointEvaluator::rotary},
      {OpKind::alibi, &PointEvaluator::alibi},
      {OpKind::relativeBias, &PointEvaluator::relativeBias},
      {OpKind::expandBuckets, &PointEvaluator::expandBuckets},
      {OpKind::tileBounds, &PointEvaluator::tileBounds},
      {OpKind::softmax, &PointEvaluator::softmax},
      {OpKind::softmaxFromLogSums, &PointEvaluator::softmaxFromLogSums},
      {OpKind::layerNorm, &PointEvaluator::layerNorm},
      {OpKind::rmsNorm, &PointEvaluator::rmsNorm},
      {OpKind::reduce, &PointEvaluator::reduce},
      {OpKind::localSoftmax, &PointEvaluator::localSoftmax},
      {OpKind::reduceSubvectors, &PointEvaluator::reduceSubvectors},
      {OpKind::globalScaling, &PointEvaluator::globalScaling},
      {OpKind::subvectorContract, &PointEvaluator::subvectorContract},
      {OpKind::onlineSoftmaxContract, &PointEvaluator::onlineSoftmaxContract},
      {OpKind::crossEntropy, &PointEvaluator::crossEntropy},
      {OpKind::crossEntropyDx, &PointEvaluator::crossEntropyDx},
      {OpKind::softmaxDx, &PointEvaluator::softmaxDx},
      {OpKind::layerNormDx, &PointEvaluator::normDx},
      {OpKind::rmsNormDx, &PointEvaluator::normDx},
      {OpKind::layerNormDw, &PointEvaluator::normDw},
      {OpKind::rmsNormDw, &PointEvaluator::normDw},
      {OpKind::scatterAdd, &PointEvaluator::scatterAdd},
      {OpKind::contract, &PointEvaluator::contract},
      {OpKind::identity, &PointEvaluator::identity},
      {OpKind::transpose, &PointEvaluator::transpose},
      {OpKind::slice, &PointEvaluator::slice},
      {OpKind::concat, &PointEvaluator::concat},
      {OpKind::splitAxis, &PointEvaluator::splitAxis},
      {OpKind::mergeAxes, &PointEvaluator::mergeAxes},
      {OpKind::gather, &PointEvaluator::gather},
      {OpKind::pad, &PointEvaluator::pad},
      {OpKind::offsets, &PointEvaluator::offsets},
      {OpKind::lengths, &PointEvaluator::lengths},
      {OpKind::pack, &PointEvaluator::pack},
      {OpKind::unpack, &PointEvaluator::unpack},
      {OpKind::append, &PointEvaluator::append},
      {OpKind::gatherPages, &PointEvaluator::gatherPages},
      {OpKind::broadcast, &PointEvaluator::broadcast},
      {OpKind::constant, &PointEvaluator::constant},
  };
  const auto found = handlers.find(op.kind);
  if (found != handlers.end()) return found->second;
  if (scalarReferences().contains(op.kind) && op.operands.size() <= mostScalarOperands)
    return &PointEvaluator::scalar;
  throw Error::unsupported("kernel '{}': op '{}' has no reference evaluation of single elements",
                           kernel.name, nameOf(op.kind));
}

PointEvaluator::PointEvaluator(const Kernel &from, std::vector<ElementReader> inputs,
                               const DropoutSource &source)
    : kernel(from),
      readers(std::move(inputs)),
      source(source),
      inputOf(from.values.size(), -1),
      definitions(from.values.size()) {
  if (readers.size() != kernel.inputs.size())
    throw Error::badInput("kernel '{}' has {} inputs, {} were given", kernel.name,
                          kernel.inputs.size(), readers.size());
  for (size_t n = 0; n < kernel.inputs.size(); ++n) inputOf[kernel.inputs[n]] = int(n);
  for (const ValueId output : kernel.outputs)
    unspecified.push_back(unspecifiedRows(kernel, output));
  for (const Value &value : kernel.values) {
    if (value.axes.size() >= Coordinates::maximumRank)
      throw Error::unsupported(
          "kernel '{}': '{}' has {} dimensions; single elements are evaluated up to {}",
          kernel.name, value.name, value.axes.size(), Coordinates::maximumRank - 1);
    std::vector<int64_t> extents;
    for (const AxisId axis : value.axes) extents.push_back(kernel.axes[size_t(axis)].extent);
    factors.emplace_back(extents);
    sums.emplace_back(extents);
  }
  for (const BodyOp &op : kernel.body)
    for (size_t n = 0; n < op.results.size(); ++n) {
      Definition &definition = definitions[op.results[n]];
      definition = {
          .op = &op, .result = n, .handler = handlerOf(kernel, op), .operandDimensions = {}};
      const auto meaning = scalarReferences().find(op.kind);
      if (meaning == scalarReferences().end()) continue;
      definition.scalar = meaning->second;
      definition.isShort = shortExpression(kernel, op).has_value();
      for (const ValueId operand : op.operands)
        definition.operandDimensions.push_back(dimensionsAlong(op, operand));
    }
}

/// Maps: where each dimension of an operand stands in the result. Dimensions that no axis
/// identifies (the blocks of a mask's table) are -1.
std::vector<int> PointEvaluator::dimensionsAlong(const BodyOp &op, ValueId operand) const {
  const std::vector<AxisId> &own = kernel.values[operand].axes,
                            &result = kernel.values[op.results[0]].axes;
  std::vector<int> dimensions;
  for (size_t d = 0; d < own.size(); ++d) {
    const auto found = std::find(result.begin(), result.end(), own[d]);
    dimensions.push_back(own == result           ? int(d)
                         : found == result.end() ? -1
                                                 : int(found - result.begin()));
  }
  return dimensions;
}

Coordinates PointEvaluator::mapped(const BodyOp &op, size_t operand, const Coordinates &at) const {
  const std::vector<int> &dimensions = definition(op).operandDimensions[operand];
  Coordinates result(dimensions.size());
  for (size_t d = 0; d < dimensions.size(); ++d) {
    if (dimensions[d] < 0)
      throw Error::checkFailed(
          "kernel '{}': op '{}' gives no coordinate for dimension {} of operand {}", kernel.name,
          nameOf(op.kind), d, operand);
    result[d] = at[size_t(dimensions[d])];
  }
  return result;
}

Point PointEvaluator::output(size_t output, std::span<const int64_t> coordinates) {
  Point point = evaluate(kernel.outputs[output], Coordinates(coordinates));
  if (const std::optional<UnusedTokens> &rows = unspecified.at(output)) {
    const std::vector<AxisId> &axes = kernel.values[size_t(kernel.outputs[output])].axes;
    const auto dimension = size_t(std::ranges::find(axes, rows->axis) - axes.begin());
    const int64_t last[] = {rows->element};
    point.isSpecified =
        point.isSpecified && double(coordinates[dimension]) <
                                 evaluate(rows->offsets, Coordinates(std::span(last))).value;
  }
  return point;
}

Point PointEvaluator::evaluate(ValueId value, const Coordinates &at) {
  if (inputOf[value] >= 0) return {.value = readers[size_t(inputOf[value])](at), .error = 0};
  const Definition &definition = definitions[value];
  return (this->*definition.handler)(*definition.op, definition.result, at);
}

}  // namespace weft::reference
