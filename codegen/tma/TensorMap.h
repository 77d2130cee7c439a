// The description of a tensor for TMA: its layout in memory and the box that one copy moves. Plain
// data; the driver encodes it with an address into the 128 bytes that a kernel receives
// (runtime/cuda/TensorMaps.h).
#pragma once

#include "kernel/DType.h"

#include <cstdint>
#include <vector>

namespace weft {

/// Dimensions innermost first; the innermost has a stride of 1.
struct TensorMap {
  DType dtype = DType::f16;
  std::vector<int64_t> extents{};  ///< elements
  std::vector<int64_t>
      strides{};  ///< elements, of all dimensions but the innermost; multiples of 16 bytes
  std::vector<int>
      box{};  ///< elements of one copy; what is out of bounds is read as zero and not written
  int swizzleBytes =
      128;  ///< span within which shared memory is permuted; the box's innermost side at most
  bool operator==(const TensorMap &) const = default;
};

/// What the hardware asks of the tensor's address.
inline constexpr int64_t tensorMapAlignment = 16;

}  // namespace weft
