// Adversarial scores of fused attentions and of their backward passes on the host.
#pragma once

#include "kernel/AttentionBackwardRegion.h"
#include "kernel/AttentionRegion.h"
#include "kernel/Ragged.h"
#include "tests/emulate/AttentionPoison.h"
#include "tests/unit/samples/AdversarialScores.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>

namespace weft::emulate {

/// Fills the input "q" or "keys" as such scores ask for; whether it did.
inline bool fillScores(samples::ScoreKind scores, std::string_view input, const Tensor &tensor) {
  if (scores == samples::ScoreKind::usual || (input != "q" && input != "keys")) return false;
  tensor.forEach([&](std::span<const int64_t> at) {
    reference::storeElement(
        tensor.type, tensor.at(at),
        samples::adversarialElement(scores, input == "keys", at, tensor.extents.back()));
  });
  return true;
}

/// Of an attention without masks whose scores are `extreme` or `lowest`, where all keys but the
/// lowest score alike: each result is the mean of their values, but for the rounding of
/// exponentials and of itself. Errors of scores of 6e4 are large, so that the bounds of fp64 would
/// let blocks of keys weigh differently.
inline void checkMeans(const Kernel &kernel, samples::ScoreKind scores,
                       std::span<const std::unique_ptr<Tensor>> tensors) {
  const AttentionRegion region = attentionRegion(kernel).value();
  const auto tensorOf = [&](ValueId value) -> const Tensor & {
    return *tensors[size_t(std::ranges::find(kernel.inputs, value) - kernel.inputs.begin())];
  };
  const ValueId output = kernel.outputs[0];
  const Tensor &values = tensorOf(region.v), &got = *tensors[kernel.inputs.size()];
  const std::vector<AxisId> &axes = kernel.values[size_t(output)].axes,
                            &from = kernel.values[size_t(region.v)].axes;
  const std::vector<AxisId> &queries = kernel.values[size_t(region.q)].axes;
  const AxisId position = queries[queries.size() - 2];  // as adversarialElement() has it
  const int64_t keys = kernel.axes[size_t(region.keyAxis)].extent;
  const double unit = got.type == DType::f16 ? 0x1p-11 : 0x1p-8;
  int64_t wrong = 0;
  got.forEach([&](std::span<const int64_t> at) {
    const auto coordinate = [&](AxisId axis) {
      return at[size_t(std::ranges::find(axes, axis) - axes.begin())];
    };
    const int64_t query = coordinate(position);
    double sum = 0, largest = 0, count = 0;
    std::vector<int64_t> place(from.size());
    for (int64_t key = 0; key < keys; ++key) {
      if (scores == samples::ScoreKind::extreme && (key % 3 == 0) != (query % 2 == 0)) continue;
      for (size_t d = 0; d < from.size(); ++d)
        place[d] = from[d] == region.keyAxis ? key : coordinate(from[d]);
      const double value = values(place);
      sum += value, count += 1, largest = std::max(largest, std::abs(value));
    }
    // Sums are in single precision; all exponentials of a row round alike.
    const double want = sum / count;
    if (!(std::abs(got(at) - want) <= 2.1 * unit * std::abs(want) + 0x1p-20 * largest)) ++wrong;
  });
  CHECK(wrong == 0);
}

/// The coordinates of a row of scores that a packed row of the logarithms of sums is of; nothing
/// for a token of no sequence.
inline std::optional<std::vector<int64_t>> placeOf(
    const Kernel &kernel, const AttentionBackwardRegion &region, std::span<const int64_t> row,
    std::span<const std::unique_ptr<Tensor>> tensors) {
  const PackedRow &own = region.packed->rows.front();
  const std::vector<AxisId> &stored = kernel.values[size_t(own.stored)].axes;
  const auto coordinate = [&](AxisId axis) {
    return row[size_t(std::ranges::find(stored, axis) - stored.begin())];
  };
  const auto place =
      placeOfToken(coordinate(own.tokens), kernel.axes[size_t(region.packed->sequences)].extent,
                   kernel.axes[size_t(region.packed->positions)].extent, [&](int64_t n) {
                     const std::array<int64_t, 1> at = {n};
                     return int64_t((*tensors[region.packed->input])(at));
                   });
  if (!place) return std::nullopt;
  std::vector<int64_t> at;
  for (const AxisId axis : kernel.values[size_t(own.read)].axes)
    at.push_back(axis == region.packed->sequences   ? place->sequence
                 : axis == region.packed->positions ? place->position
                                                    : coordinate(axis));
  return at;
}

/// What forward stores of its rows: the logarithm of the sum of exponentials, -inf where masks
/// leave nothing.
inline void fillLogSums(const Kernel &kernel, std::span<const std::unique_ptr<Tensor>> tensors) {
  const AttentionBackwardRegion region = attentionBackwardRegion(kernel).value();
  Kernel scored = kernel;
  scored.outputs = {kernel.body[region.probability].operands[0]};
  std::vector<reference::ElementReader> readers;
  for (size_t i = 0; i < kernel.inputs.size(); ++i)
    readers.push_back(
        [tensor = tensors[i].get()](std::span<const int64_t> at) { return (*tensor)(at); });
  reference::PointEvaluator evaluator(scored, readers, {});
  const size_t input =
      size_t(std::ranges::find(kernel.inputs, region.logSums) - kernel.inputs.begin());
  const Tensor &logSums = *tensors[input];
  const int64_t keys = kernel.axes[size_t(region.keyAxis)].extent;
  logSums.forEach([&](std::span<const int64_t> row) {
    std::vector<int64_t> at(row.begin(), row.end());
    if (region.packed) {
      const auto place = placeOf(kernel, region, row, tensors);
      if (!place) return reference::storeElement(logSums.type, logSums.at(row), NAN);
      at = *place;
    }
    at.push_back(0);
    std::vector<double> scores;
    for (at.back() = 0; at.back() < keys; ++at.back())
      scores.push_back(evaluator.output(0, at).value);
    const double largest = *std::ranges::max_element(scores);
    double sum = 0;
    for (const double score : scores) sum += std::isinf(largest) ? 0 : std::exp(score - largest);
    reference::storeElement(logSums.type, logSums.at(row),
                            std::isinf(largest) ? largest : largest + std::log(sum));
  });
}

/// Tokens of no sequence in every packed operand, which no kernel may read.
inline void poisonUnused(const Kernel &kernel, std::span<const std::unique_ptr<Tensor>> tensors) {
  const AttentionBackwardRegion region = attentionBackwardRegion(kernel).value();
  if (!region.packed) return;
  const PackedGradients &packed = *region.packed;
  std::vector<AxisId> tokens = {packed.q, packed.k, packed.v, packed.dOutput};
  for (const PackedRow &row : packed.rows) tokens.push_back(row.tokens);
  for (size_t input = 0; input < kernel.inputs.size(); ++input) {
    const std::vector<AxisId> &axes = kernel.values[size_t(kernel.inputs[input])].axes;
    const auto along = std::ranges::find_first_of(axes, tokens);
    if (along == axes.end()) continue;
    const Tensor &tensor = *tensors[input];
    tensor.forEach([&](std::span<const int64_t> at) {
      const int64_t token = at[size_t(along - axes.begin())];
      const auto place = placeOfToken(token, kernel.axes[size_t(packed.sequences)].extent,
                                      kernel.axes[size_t(packed.positions)].extent, [&](int64_t n) {
                                        const std::array<int64_t, 1> own = {n};
                                        return int64_t((*tensors[packed.input])(own));
                                      });
      if (!place) reference::storeElement(tensor.type, tensor.at(at), notNumber(token));
    });
  }
}

}  // namespace weft::emulate
