// What the epilogue store of the GEMM skeleton of sm_90a needs of codegen/device/sm90.cuh, on the
// emulator. Products of warpgroups and copies of operands are not emulated: sm90_gemm.cuh.
//
// All threads of a block are consumers that do the same: so a named barrier, or a wait for what
// TMA brings, is one of the whole block. TMA moves at once.
#pragma once

#include "emulate_keywords.h"

#include "weft/tensor_map.cuh"
#include "weft/types.cuh"

#include <cstring>

namespace weft::sm90 {

using SharedAddress = unsigned;

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
inline unsigned char *sharedBytes(SharedAddress address) {
  return static_cast<unsigned char *>(weft::emulate::dynamicShared()) + address;
}

inline void arrive(SharedAddress) {}
inline void arriveExpecting(SharedAddress, int) {}
inline void wait(SharedAddress, int, const char *file = __builtin_FILE(),
                 int line = __builtin_LINE()) {
  weft::emulate::barrier(file, line);
}
inline void arriveAt(int, int) {}
inline void synchronize(int, int, const char *file = __builtin_FILE(),
                        int line = __builtin_LINE()) {
  weft::emulate::barrier(file, line);
}

inline void storePair(SharedAddress to, float first, float second) {
  if (to % 8 != 0) __builtin_trap();
  std::memcpy(sharedBytes(to), &first, 4);
  std::memcpy(sharedBytes(to + 4), &second, 4);
}
inline void loadAccumulators(float (&accumulators)[4], SharedAddress from) {
  if (from % 16 != 0) __builtin_trap();
  std::memcpy(accumulators, sharedBytes(from), 16);
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

/// stmatrix.x4 and ldmatrix.x4: lane l names row l % 8 of block l / 8 and holds two elements of row
/// l / 4 of each block.
inline void storeMatrices(SharedAddress row, const unsigned (&words)[4]) {
  const int lane = weft::emulate::currentThread.x % 32;
  for (int block = 0; block < 4; ++block)
    std::memcpy(sharedBytes(__shfl_sync(~0u, row, 8 * block + lane / 4) + lane % 4 * 4),
                &words[block], 4);
}
inline void loadMatrices(unsigned (&words)[4], SharedAddress row) {
  const int lane = weft::emulate::currentThread.x % 32;
  for (int block = 0; block < 4; ++block)
    std::memcpy(&words[block],
                sharedBytes(__shfl_sync(~0u, row, 8 * block + lane / 4) + lane % 4 * 4), 4);
}
inline unsigned packPair(half *, float low, float high) {
  return ptx::floatToHalf(low) | unsigned(ptx::floatToHalf(high)) << 16;
}
inline unsigned packPair(bfloat16 *, float low, float high) {
  return ptx::floatToBfloat16(low) | unsigned(ptx::floatToBfloat16(high)) << 16;
}

inline unsigned loadWord(const void *from) {
  unsigned words[1];
  ptx::loadInOrder(words, from);
  return words[0];
}
inline unsigned loadBits(const void *from) {
  unsigned short bits;
  std::memcpy(&bits, from, 2);
  return bits;
}
inline int hide(int value, int lane) { return __shfl_sync(~0u, value, lane); }

}  // namespace weft::sm90
