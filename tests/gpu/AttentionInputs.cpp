#include "tests/gpu/AttentionInputs.h"

#include "kernel/AttentionBackwardRegion.h"
#include "kernel/Ragged.h"
#include "kernel/reference/PointEvaluator.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>

namespace weft::gputest {
namespace {

using runtime::TensorImage;

/// The coordinates of element n of the row-major order.
std::vector<int64_t> placeOf(const std::vector<int64_t> &shape, int64_t n) {
  std::vector<int64_t> place(shape.size());
  for (size_t d = shape.size(); d-- > 0; n /= shape[d]) place[d] = n % shape[d];
  return place;
}

const TensorImage *inputNamed(const Kernel &kernel, const std::vector<TensorImage> &inputs,
                              std::string_view name) {
  for (size_t n = 0; n < inputs.size(); ++n)
    if (kernel.values[size_t(kernel.inputs[n])].name == name) return &inputs[n];
  return nullptr;
}

/// Sets the elements of an input whose position along an axis is asked for.
template <typename IsUnread>
int64_t poison(TensorImage &image, size_t along, const IsUnread &isUnread) {
  int64_t count = 0;
  for (int64_t n = 0; n < image.elements(); ++n) {
    const std::vector<int64_t> at = placeOf(image.shape(), n);
    if (!isUnread(at)) continue;
    image.set(at, at[along] % 2 == 0 ? std::numeric_limits<double>::quiet_NaN()
                                     : std::numeric_limits<double>::infinity());
    ++count;
  }
  return count;
}

}  // namespace

void fillLogSums(const Kernel &kernel, std::vector<TensorImage> &inputs) {
  const auto region = attentionBackwardRegion(kernel);
  if (!region || region->packed) return;
  Kernel scored = kernel;
  scored.outputs = {kernel.body[region->probability].operands[0]};
  std::vector<reference::ElementReader> readers;
  for (const TensorImage &input : inputs)
    readers.push_back([&input](std::span<const int64_t> at) { return input.at(at); });
  reference::PointEvaluator evaluator(scored, readers, {});
  TensorImage &logSums =
      inputs[size_t(std::ranges::find(kernel.inputs, region->logSums) - kernel.inputs.begin())];
  const int64_t keys = kernel.axes[size_t(region->keyAxis)].extent;
  for (int64_t n = 0; n < logSums.elements(); ++n) {
    const std::vector<int64_t> row = placeOf(logSums.shape(), n);
    std::vector<int64_t> at = row;
    at.push_back(0);
    std::vector<double> scores;
    for (at.back() = 0; at.back() < keys; ++at.back())
      scores.push_back(evaluator.output(0, at).value);
    const double largest = *std::ranges::max_element(scores);
    double sum = 0;
    for (const double score : scores) sum += std::isinf(largest) ? 0 : std::exp(score - largest);
    logSums.set(row, std::isinf(largest) ? largest : largest + std::log(sum));
  }
}

int64_t poisonUnread(const Kernel &kernel, std::vector<TensorImage> &inputs) {
  const TensorImage *lengths = inputNamed(kernel, inputs, "lengths"),
                    *offsets = inputNamed(kernel, inputs, "offsets");
  const auto extent = [&](std::string_view name) {
    return std::ranges::find(kernel.axes, name, &Axis::name)->extent;
  };
  int64_t count = 0;
  for (size_t n = 0; n < inputs.size(); ++n) {
    const std::string &name = kernel.values[size_t(kernel.inputs[n])].name;
    const bool isOfKeys = name == "keys" || name == "v";
    if (offsets != nullptr && (isOfKeys || name == "q" || name == "d_output" ||
                               name == "log_sums" || name == "row_sums")) {
      const auto offset = [&](int64_t sequence) {
        return int64_t(offsets->at(std::array<int64_t, 1>{sequence}));
      };
      // Tokens are the first axis.
      count += poison(inputs[n], 0, [&](const std::vector<int64_t> &at) {
        return !placeOfToken(at[0], offsets->elements() - 1, extent("j"), offset);
      });
    } else if (offsets == nullptr && lengths != nullptr && isOfKeys) {
      // Axes: batch, heads, keys, columns.
      count += poison(inputs[n], 2, [&](const std::vector<int64_t> &at) {
        return at[2] >= int64_t(lengths->at(std::array<int64_t, 1>{at[0]}));
      });
    }
  }
  return count;
}

}  // namespace weft::gputest
