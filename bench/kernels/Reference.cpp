#include "bench/kernels/Reference.h"

#include <algorithm>
#include <random>

namespace weft::bench {
namespace {

/// Readers of the inputs, each where its layout puts an element.
std::vector<reference::ElementReader> readersOf(const Case &subject,
                                                const Configuration &configuration) {
  const Kernel &kernel = subject.kernel;
  std::vector<reference::ElementReader> readers;
  for (size_t input = 0; input < kernel.inputs.size(); ++input) {
    const ValueId value = kernel.inputs[input];
    const auto limit = subject.limits.find(value);
    readers.push_back([input, type = kernel.values[value].dtype,
                       limit = limit == subject.limits.end() ? 1 : limit->second,
                       strides = stridesOf(configuration.inputs[input], extentsOf(kernel, value))](
                          std::span<const int64_t> at) {
      int64_t position = 0;
      for (size_t d = 0; d < strides.size(); ++d) position += at[d] * strides[d];
      return inputElement(static_cast<uint32_t>(input), static_cast<uint64_t>(position), type,
                          limit);
    });
  }
  return readers;
}

}  // namespace

double inputElement(uint32_t seed, uint64_t position, DType type, int64_t limit) {
  uint32_t hash = static_cast<uint32_t>(position) * 2654435761u +
                  static_cast<uint32_t>(position >> 32) * 40503u + seed * 2246822519u;
  hash = (hash ^ hash >> 15) * 2246822519u;
  hash = (hash ^ hash >> 13) * 3266489917u;
  hash ^= hash >> 16;
  if (type == DType::i1) return hash & 1;
  if (type == DType::i32) return static_cast<double>(hash % static_cast<uint32_t>(limit));
  return (static_cast<double>(hash >> 24) - 128) / 32;
}

Reference::Reference(const Case &subject, const Configuration &configuration)
    : kernel(subject.kernel),
      evaluator(subject.kernel, readersOf(subject, configuration),
                {.seed = dropoutSeed, .step = dropoutStep, .stream = 0}) {
  for (size_t i = 0; i < kernel.outputs.size(); ++i)
    outputStrides.push_back(
        stridesOf(configuration.outputs[i], extentsOf(kernel, kernel.outputs[i])));
}

std::vector<Point> Reference::samplePoints(size_t count) const {
  std::mt19937_64 random(11);
  std::vector<Point> points;
  const std::vector<AxisId> reduced = kernel.reducedAxes();
  const auto reduces = [&](AxisId axis) {
    return std::find(reduced.begin(), reduced.end(), axis) != reduced.end();
  };
  int64_t rowElements = 1;
  for (AxisId axis : reduced) rowElements *= kernel.axes[axis].extent;
  for (size_t output = 0; output < kernel.outputs.size(); ++output) {
    const std::vector<int64_t> extents = extentsOf(kernel, kernel.outputs[output]);
    // Neighbours along the last dimension, from the first, the last and random rows.
    const int64_t columns = extents.empty() ? 1 : extents.back();
    const bool wholeRow =
        !extents.empty() && reduces(kernel.values[kernel.outputs[output]].axes.back());
    const auto run = static_cast<size_t>(wholeRow ? columns : std::min<int64_t>(columns, 64));
    // Where every point needs a separate row, fewer do.
    const size_t wanted =
        wholeRow || rowElements == 1
            ? count
            : std::min(count, size_t(1 << 19) / static_cast<size_t>(rowElements) + run);
    for (size_t taken = 0, row = 0; taken < wanted || (wholeRow && row < 3); taken += run, ++row) {
      Point point{.output = static_cast<int>(output)};
      for (int64_t extent : extents)
        point.coordinates.push_back(
            row == 0   ? 0
            : row == 1 ? extent - 1
                       : static_cast<int64_t>(random() % static_cast<uint64_t>(extent)));
      const int64_t first =
          extents.empty() ? 0
                          : std::min(point.coordinates.back(), columns - static_cast<int64_t>(run));
      for (size_t e = 0; e < run; ++e) {
        if (!extents.empty()) point.coordinates.back() = first + static_cast<int64_t>(e);
        point.position = 0;
        for (size_t d = 0; d < extents.size(); ++d)
          point.position += point.coordinates[d] * outputStrides[output][d];
        points.push_back(point);
      }
    }
  }
  return points;
}

}  // namespace weft::bench
