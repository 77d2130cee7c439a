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
  /// Elements that the map begins in front of the tensor, where kernels touch nothing: a map of
  /// packed tokens (codegen/families/attention_backward_sm90/device/
  /// sm90_packed_attention_backward.cuh) has the rows of the longest sequence as its second
  /// dimension and the end of a sequence as its last one, of the same stride, and begins as many
  /// rows in front.
  int64_t shift = 0;
  bool operator==(const TensorMap &) const = default;
};

/// What the hardware asks of the tensor's address.
inline constexpr int64_t tensorMapAlignment = 16;

}  // namespace weft
