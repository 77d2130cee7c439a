// What the epilogue store of the GEMM template of sm_90a needs of codegen/device/sm90_tma.cuh, on
// the emulator: TMA moves at once, 128 bytes of an element of the contiguous dimension after the
// other, swizzled. Copies of operands with one stride and products of warpgroups are not emulated:
// sm90_gemm.cuh.
#pragma once

#include "emulate_keywords.h"

#include "weft/sm90_shared.cuh"
#include "weft/tensor_map.cuh"

#include <cstring>

namespace weft::sm90 {

/// What a test puts into a TensorMap: rows of neighbouring elements of 16 bits, and boxes of them.
struct EmulatedMap {
  unsigned char *start;
  long long columns, rows, pitch, batchStride;
  int dimensions, extents[5], box[5];
};
inline EmulatedMap emulatedMap(const TensorMap *map) {
  EmulatedMap emulated;
  std::memcpy(&emulated, map->bytes, sizeof emulated);
  return emulated;
}

/// Boxes of 64 x 64 elements in rows of 128 bytes, swizzled. Visits 16 bytes at a time that lie
/// inside.
template <typename Visit>
void forEachOfBox(const TensorMap *map, SharedAddress box, int x, int y, int batch, Visit visit) {
  const EmulatedMap of = emulatedMap(map);
  for (int row = 0; row < of.box[1]; ++row)
    for (int chunk = 0; chunk < 8; ++chunk) {
      unsigned char *shared = sharedBytes(box + row * 128 + (chunk ^ row % 8) * 16);
      const bool isInside = y + row < of.rows && x + chunk * 8 < of.columns;
      visit(shared, isInside ? of.start + 2 * (batch * of.batchStride + (y + row) * of.pitch + x +
                                               chunk * 8)
                             : nullptr);
    }
}
inline void loadTile(SharedAddress to, const TensorMap *map, SharedAddress, int x, int y,
                     int batch = 0) {
  forEachOfBox(map, to, x, y, batch, [](unsigned char *shared, const unsigned char *global) {
    if (global) std::memcpy(shared, global, 16);
    else std::memset(shared, 0, 16);
  });
}
inline void storeTile(const TensorMap *map, SharedAddress from, int x, int y, int batch = 0) {
  forEachOfBox(map, from, x, y, batch, [](const unsigned char *shared, unsigned char *global) {
    if (global) std::memcpy(global, shared, 16);
  });
}
inline void commitStores() {}
template <int pending>
void waitForStoresToRead() {}
inline void fenceForAsync() {}

/// What a test puts into a TensorMap of such a tensor, behind what it puts into any.
struct EmulatedBoxes : EmulatedMap {
  long long strides[4];
};
static_assert(sizeof(EmulatedBoxes) <= sizeof(TensorMap));

/// Visits the elements of a box: where they lie in shared memory, and in memory, nullptr where they
/// are out of bounds.
template <int dimensions, typename Visit>
void forEachOfBoxes(const TensorMap *map, SharedAddress box, const int (&at)[5], Visit visit) {
  EmulatedBoxes of;
  std::memcpy(&of, map->bytes, sizeof of);
  if (of.dimensions != dimensions || of.box[0] * 2 != 128 || box % 1024 != 0) __builtin_trap();
  int elements = 1;
  for (int d = 0; d < dimensions; ++d) elements *= of.box[d];
  for (int element = 0; element < elements; ++element) {
    long long offset = 0;
    bool isInside = true;
    for (int d = 0, rest = element; d < dimensions; rest /= of.box[d++]) {
      const int index = at[d] + rest % of.box[d];
      isInside = isInside && index >= 0 && index < of.extents[d];
      offset += index * (d == 0 ? 1 : of.strides[d - 1]);
    }
    const int row = element / 64, column = element % 64;
    visit(sharedBytes(box + row * 128 + (column / 8 ^ row % 8) * 16 + column % 8 * 2),
          isInside ? of.start + 2 * offset : nullptr);
  }
}
template <int dimensions>
void loadBox(SharedAddress to, const TensorMap *map, SharedAddress, const int (&at)[5]) {
  forEachOfBoxes<dimensions>(map, to, at, [](unsigned char *shared, const unsigned char *global) {
    if (global) std::memcpy(shared, global, 2);
    else std::memset(shared, 0, 2);
  });
}
template <int dimensions>
void storeBox(const TensorMap *map, SharedAddress from, const int (&at)[5]) {
  forEachOfBoxes<dimensions>(map, from, at, [](const unsigned char *shared, unsigned char *global) {
    if (global) std::memcpy(global, shared, 2);
  });
}

}  // namespace weft::sm90
