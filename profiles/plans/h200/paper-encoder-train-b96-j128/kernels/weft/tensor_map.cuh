// Where TMA finds a tensor: what the host encodes and a kernel takes as a parameter.
#pragma once

namespace weft::sm90 {

/// A driver's description of a tensor and of the box that one copy moves (CUtensorMap); a
/// __grid_constant__ parameter.
struct alignas(64) TensorMap {
  unsigned char bytes[128];
};

}  // namespace weft::sm90
