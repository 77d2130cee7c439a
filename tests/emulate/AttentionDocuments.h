// Document masks for fused attentions on the host: segments, the bounds of their tiles, and keys
// that no query's document has, which a kernel that skips their tiles never reads.
#pragma once

#include "kernel/TileBounds.h"
#include "tests/emulate/EmittedRun.h"

namespace weft::emulate {

/// Segments of so many batch elements and keys: runs of `run` keys, whose numbers are in no order.
inline std::vector<double> segmentsOf(int64_t batch, int64_t keys, int64_t run) {
  std::vector<double> segments;
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t key = 0; key < keys; ++key)
      segments.push_back(double((key / run * 7 + b * 3) % 5 - 2));
  return segments;
}

/// Of one batch element: `hidden` keys of documents that no other key has, before all others;
/// neither are in order.
inline std::vector<double> hiddenDocuments(int64_t keys, int64_t hidden) {
  std::vector<double> segments;
  for (int64_t key = 0; key < keys; ++key)
    segments.push_back(key < hidden ? double(9 - key % 3) : double(key % 2));
  return segments;
}

inline size_t inputNamed(const Kernel &kernel, std::string_view name) {
  return size_t(std::ranges::find(kernel.inputs, name,
                                  [&](ValueId value) -> std::string_view {
                                    return kernel.values[size_t(value)].name;
                                  }) -
                kernel.inputs.begin());
}

/// The inputs "segments" and, where the kernel has it, "bounds"; nothing without segments.
inline void fillDocuments(const Kernel &kernel, const std::vector<double> &segments,
                          std::span<const std::unique_ptr<Tensor>> tensors) {
  if (segments.empty()) return;
  const Tensor &own = *tensors[inputNamed(kernel, "segments")];
  size_t place = 0;
  own.forEach([&](std::span<const int64_t> at) {
    reference::storeElement(own.type, own.at(at), segments.at(place++));
  });
  REQUIRE(place == segments.size());
  if (inputNamed(kernel, "bounds") == kernel.inputs.size()) return;
  const Tensor &bounds = *tensors[inputNamed(kernel, "bounds")];
  const int64_t positions = own.extents[1];
  bounds.forEach([&](std::span<const int64_t> at) {
    const int64_t first = at[1] * boundedTile, end = std::min(first + boundedTile, positions);
    const auto row = segments.begin() + at[0] * positions;
    const auto [least, greatest] = std::minmax_element(row + first, row + end);
    reference::storeElement(bounds.type, bounds.at(at), at[2] == 0 ? *least : *greatest);
  });
}

}  // namespace weft::emulate
