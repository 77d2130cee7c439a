// The functions of codegen/device/sm90_boxes.cuh on the emulator: boxes of any dimensions between
// memory and shared memory as TMA moves them, 128 bytes of an element of the contiguous group after
// the other, swizzled.
#pragma once

#include "weft/sm90.cuh"

namespace weft::sm90 {

/// What a test puts into a TensorMap of such a tensor, behind what it puts into any (sm90.cuh).
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
