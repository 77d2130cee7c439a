// A driver's tensor map as the emulator has it, in the place of the driver's 128 bytes.
#pragma once

#include "codegen/tma/TensorMap.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace weft::emulate {

/// The first members are those of rows, the others of any boxes.
struct alignas(64) EmulatedMap {
  std::byte *start;
  int64_t columns, rows, pitch, batchStride;
  int32_t dimensions, extents[5] = {}, box[5] = {};
  int64_t strides[4] = {};
  int16_t elementBytes = 2, swizzleBytes = 128;
  DType type = DType::f16;

  EmulatedMap() = default;
  EmulatedMap(std::byte *start, const TensorMap &map)
      : start(start - map.shift * sizeOf(map.dtype)),
        columns(map.extents[0]),
        rows(map.extents[1]),
        pitch(map.strides[0]),
        batchStride(map.strides.size() > 1 ? map.strides[1] : 0),
        dimensions(int32_t(map.extents.size())),
        elementBytes(int16_t(sizeOf(map.dtype))),
        swizzleBytes(int16_t(map.swizzleBytes)),
        type(map.dtype) {
    std::ranges::copy(map.extents, extents);
    std::ranges::copy(map.box, box);
    std::ranges::copy(map.strides, strides);
  }
};
static_assert(sizeof(EmulatedMap) == 128);

}  // namespace weft::emulate
