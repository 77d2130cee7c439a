// The word in which kernels say which element of an argument is out of range, as the host reads it
// (codegen/families/loop/device/argument_status.cuh writes it).
#pragma once

#include <cstdint>
#include <optional>

namespace weft {

/// All bits set: no element of the argument was out of range.
constexpr uint64_t noElement = ~uint64_t(0);

struct ReportedElement {
  int64_t place = 0;  ///< of the sequence; of an index in row-major order
  int32_t value = 0;
};

inline std::optional<ReportedElement> reportedElement(uint64_t word) {
  if (word == noElement) return std::nullopt;
  return ReportedElement{.place = int64_t(word >> 32), .value = int32_t(uint32_t(word))};
}

}  // namespace weft
