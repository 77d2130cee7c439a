// Adversarial scores of fused attentions and of their backward passes on the host.
#pragma once

#include "kernel/AttentionBackwardRegion.h"
#include "tests/emulate/EmittedRun.h"
#include "tests/unit/samples/AdversarialScores.h"

#include <cmath>
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

}  // namespace weft::emulate
