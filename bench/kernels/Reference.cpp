#include "bench/kernels/Reference.h"

#include "ir/interpreter/Dropout.h"
#include "kernel/Error.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace weft::bench {
namespace {

std::vector<int64_t> extentsOf(const Kernel &kernel, int value) {
  std::vector<int64_t> extents;
  for (int axis : kernel.values[value].axes) extents.push_back(kernel.axes[axis].extent);
  return extents;
}

double numberOf(const BodyOp &op, const std::string &name) {
  const Attribute &attribute = op.attributes.at(name);
  return std::holds_alternative<double>(attribute) ? std::get<double>(attribute)
                                                   : static_cast<double>(std::get<int64_t>(attribute));
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// The element-wise functions that cases use, by their spelling.
double apply(const std::string &spelling, double a, double b) {
  if (spelling == "{0} + {1}") return a + b;
  if (spelling == "weft::relu({0})") return std::max(a, 0.0);
  if (spelling == "weft::gelu({0})") return 0.5 * a * std::erfc(-a * std::sqrt(0.5));
  if (spelling == "weft::geluTanh({0})") return a * sigmoid(2 * std::sqrt(2 / M_PI) * (a + 0.044715 * a * a * a));
  if (spelling == "weft::silu({0})") return a * sigmoid(a);
  throw Error::unsupported("the bench has no reference for '{}'", spelling);
}

}  // namespace

double inputElement(uint32_t seed, uint64_t position, DType type, int64_t limit) {
  uint32_t hash = static_cast<uint32_t>(position) * 2654435761u + static_cast<uint32_t>(position >> 32) * 40503u + seed * 2246822519u;
  hash = (hash ^ hash >> 15) * 2246822519u;
  hash = (hash ^ hash >> 13) * 3266489917u;
  hash ^= hash >> 16;
  if (type == DType::i1) return hash & 1;
  if (type == DType::i32) return static_cast<double>(hash % static_cast<uint32_t>(limit));
  return (static_cast<double>(hash >> 24) - 128) / 32;
}

Reference::Reference(const Case &subject, const Configuration &configuration) : kernel(subject.kernel), limits(subject.limits) {
  for (size_t i = 0; i < kernel.inputs.size(); ++i)
    strides.push_back(stridesOf(configuration.inputs[i], extentsOf(kernel, kernel.inputs[i])));
  for (size_t i = 0; i < kernel.outputs.size(); ++i)
    outputStrides.push_back(stridesOf(configuration.outputs[i], extentsOf(kernel, kernel.outputs[i])));
  definedBy.assign(kernel.values.size(), -1);
  for (size_t i = 0; i < kernel.body.size(); ++i)
    for (int result : kernel.body[i].results) definedBy[result] = static_cast<int>(i);
}

double Reference::at(const Point &point) {
  const int value = kernel.outputs[point.output];
  Coordinates at(kernel.axes.size(), 0);
  for (size_t d = 0; d < point.coordinates.size(); ++d) at[kernel.values[value].axes[d]] = point.coordinates[d];
  return evaluate(value, at);
}

std::vector<Point> Reference::samplePoints(size_t count) const {
  std::mt19937_64 random(11);
  std::vector<Point> points;
  const std::vector<int> reduced = kernel.reducedAxes();
  const auto reduces = [&](int axis) { return std::find(reduced.begin(), reduced.end(), axis) != reduced.end(); };
  int64_t rowElements = 1;
  for (int axis : reduced) rowElements *= kernel.axes[axis].extent;
  for (size_t output = 0; output < kernel.outputs.size(); ++output) {
    const std::vector<int64_t> extents = extentsOf(kernel, kernel.outputs[output]);
    // Neighbours along the last dimension, from the first, the last and random rows.
    const int64_t columns = extents.empty() ? 1 : extents.back();
    const bool wholeRow = !extents.empty() && reduces(kernel.values[kernel.outputs[output]].axes.back());
    const auto run = static_cast<size_t>(wholeRow ? columns : std::min<int64_t>(columns, 64));
    // Where every point needs a row of its own, fewer do.
    const size_t wanted = wholeRow || rowElements == 1 ? count : std::min(count, size_t(1 << 19) / static_cast<size_t>(rowElements) + run);
    for (size_t taken = 0, row = 0; taken < wanted || (wholeRow && row < 3); taken += run, ++row) {
      Point point{.output = static_cast<int>(output)};
      for (int64_t extent : extents)
        point.coordinates.push_back(row == 0 ? 0 : row == 1 ? extent - 1 : static_cast<int64_t>(random() % static_cast<uint64_t>(extent)));
      const int64_t first = extents.empty() ? 0 : std::min(point.coordinates.back(), columns - static_cast<int64_t>(run));
      for (size_t e = 0; e < run; ++e) {
        if (!extents.empty()) point.coordinates.back() = first + static_cast<int64_t>(e);
        point.position = 0;
        for (size_t d = 0; d < extents.size(); ++d) point.position += point.coordinates[d] * outputStrides[output][d];
        points.push_back(point);
      }
    }
  }
  return points;
}

double Reference::evaluate(int value, const Coordinates &at) {
  if (definedBy[value] >= 0) return evaluate(kernel.body[definedBy[value]], value, at);
  const size_t input = static_cast<size_t>(std::find(kernel.inputs.begin(), kernel.inputs.end(), value) - kernel.inputs.begin());
  int64_t position = 0;
  for (size_t d = 0; d < kernel.values[value].axes.size(); ++d) position += at[kernel.values[value].axes[d]] * strides[input][d];
  const auto limit = limits.find(value);
  return inputElement(static_cast<uint32_t>(input), static_cast<uint64_t>(position), kernel.values[value].dtype,
                      limit == limits.end() ? 1 : limit->second);
}

int64_t Reference::rowLength(const BodyOp &op) const {
  int64_t length = 1;
  for (int axis : op.reducedAxes) length *= kernel.axes[axis].extent;
  return length;
}

double Reference::overRow(const BodyOp &op, int statistic, double start, const Coordinates &at,
                          const std::function<double(double, const Coordinates &)> &fold) {
  Coordinates place = at;
  for (int axis : op.reducedAxes) place[axis] = -1;
  const auto key = std::make_pair(static_cast<int>(&op - kernel.body.data()) * 4 + statistic, place);
  if (const auto found = rows.find(key); found != rows.end()) return found->second;
  double result = start;
  for (int64_t flat = 0; flat < rowLength(op); ++flat) {
    int64_t rest = flat;
    for (int axis : op.reducedAxes) {
      place[axis] = rest % kernel.axes[axis].extent;
      rest /= kernel.axes[axis].extent;
    }
    result = fold(result, place);
  }
  return rows[key] = result;
}

double Reference::evaluate(const BodyOp &op, int result, const Coordinates &at) {
  const auto operand = [&](int i, const Coordinates &where) { return evaluate(op.operands[i], where); };
  const auto sum = [&](int statistic, const std::function<double(double)> &of) {
    return overRow(op, statistic, 0, at, [&](double total, const Coordinates &where) { return total + of(operand(0, where)); });
  };
  const auto largest = [&] {
    return overRow(op, 0, -INFINITY, at, [&](double most, const Coordinates &where) { return std::max(most, operand(0, where)); });
  };
  if (op.name == "softmax") {
    const double most = largest(), total = sum(1, [&](double x) { return std::exp(x - most); });
    return most == -INFINITY ? 0 : std::exp(operand(0, at) - most) / total;
  }
  if (op.name == "layer_norm") {
    const auto length = static_cast<double>(rowLength(op));
    const double mean = sum(0, [](double x) { return x; }) / length;
    const double variance = sum(1, [&](double x) { return (x - mean) * (x - mean); }) / length;
    const double rstd = 1 / std::sqrt(variance + numberOf(op, "epsilon"));
    if (op.results.size() > 1 && result == op.results[1]) return mean;
    if (op.results.size() > 2 && result == op.results[2]) return rstd;
    return (operand(0, at) - mean) * rstd * operand(1, at) + operand(2, at);
  }
  if (op.name == "rms_norm") {
    const double square = sum(0, [](double x) { return x * x; }) / static_cast<double>(rowLength(op));
    return operand(0, at) / std::sqrt(square + numberOf(op, "epsilon")) * operand(1, at);
  }
  if (op.name == "reduce") return std::get<std::string>(op.attributes.at("kind")) == "max" ? largest() : sum(1, [](double x) { return x; });
  if (op.name == "identity") return operand(0, at);
  if (op.name == "gather") return gather(op, at);
  if (op.name == "mask") return mask(op, at);
  if (op.name == "dropout") return dropout(op, at);
  return elementwise(op, at);
}

double Reference::elementwise(const BodyOp &op, const Coordinates &at) {
  const double first = evaluate(op.operands[0], at);
  if (op.spelling == "{0} * {factor}") return first * numberOf(op, "factor");
  return apply(op.spelling, first, op.operands.size() > 1 ? evaluate(op.operands[1], at) : 0);
}

double Reference::mask(const BodyOp &op, const Coordinates &at) {
  const std::vector<int> &axes = kernel.values[op.operands[0]].axes;
  const int64_t key = at[axes[static_cast<size_t>(numberOf(op, "key"))]];
  const bool causal = std::get<std::string>(op.attributes.at("kind")) == "causal";
  const double limit = causal ? static_cast<double>(at[axes[static_cast<size_t>(numberOf(op, "query"))]]) + 1 : evaluate(op.operands[1], at);
  return static_cast<double>(key) < limit ? evaluate(op.operands[0], at) : -INFINITY;
}

double Reference::dropout(const BodyOp &op, const Coordinates &at) {
  const std::vector<int> &axes = kernel.values[op.operands[0]].axes;
  const size_t rank = axes.size();
  int64_t outer = 0;
  for (size_t d = 0; d + 2 < rank; ++d) outer = outer * kernel.axes[axes[d]].extent + at[axes[d]];
  const reference::DropoutSource source{.seed = dropoutSeed, .step = dropoutStep,
                                        .stream = static_cast<uint32_t>(numberOf(op, "stream"))};
  const double p = numberOf(op, "p");
  const uint32_t draw = reference::dropoutDraw(source, outer, rank > 1 ? at[axes[rank - 2]] : 0, at[axes[rank - 1]]);
  return draw >= static_cast<uint32_t>(std::lround(p * 65536)) ? evaluate(op.operands[0], at) / (1 - p) : 0;
}

double Reference::gather(const BodyOp &op, const Coordinates &at) {
  Coordinates inTable = at;
  inTable[kernel.values[op.operands[0]].axes[0]] = static_cast<int64_t>(evaluate(op.operands[1], at));
  return evaluate(op.operands[0], inTable);
}

}  // namespace weft::bench
