// The functions of codegen/device/sm80.cuh on the emulator.
//
// Copies land as late as the device allows: when their thread waits for their group. So what is
// read without waiting, or without a barrier behind the wait, is what was there before.
#pragma once

#include "emulate_keywords.h"

#include "tests/emulate/Mma.h"
#include "weft/types.cuh"

#include <deque>
#include <map>
#include <vector>

namespace weft::sm80 {

using SharedAddress = unsigned;

inline SharedAddress dynamicShared() { return 0; }
template <typename T>
T *sharedPlace(SharedAddress address) {
  return reinterpret_cast<T *>(static_cast<unsigned char *>(weft::emulate::dynamicShared()) +
                               address);
}

/// 16 bytes, aligned as the device demands.
struct alignas(16) SharedRow {
  unsigned words[4];
};

struct PendingCopy {
  SharedAddress to;
  const void *from;
  int bytes;
  int width = 16;  ///< bytes that are written, zero behind those that are read
};
/// Of a thread of the running block: groups, the last one not yet ended. What a block leaves behind
/// never lands.
struct PendingCopies {
  weft::emulate::Dim3 block;
  std::deque<std::vector<PendingCopy>> groups{{}};
};
inline PendingCopies &pendingCopies() {
  static std::map<unsigned, PendingCopies> ofThread;
  const weft::emulate::Dim3 block = weft::emulate::currentBlock;
  PendingCopies &own = ofThread[weft::emulate::currentThread.x];
  if (own.block.x != block.x || own.block.y != block.y || own.block.z != block.z)
    own = {.block = block};
  return own;
}

/// cp.async.cg.shared.global with a source size
inline void copyAsync(SharedAddress to, const void *from, int bytes) {
  if (reinterpret_cast<uintptr_t>(from) % 16 != 0 || to % 16 != 0 || bytes < 0 || bytes > 16)
    __builtin_trap();
  pendingCopies().groups.back().push_back({to, from, bytes});
}
inline void commitCopies() { pendingCopies().groups.emplace_back(); }
template <int pending>
void waitForCopies() {
  PendingCopies &own = pendingCopies();
  for (; own.groups.size() > pending + 1; own.groups.pop_front())
    for (const PendingCopy &copy : own.groups.front()) {
      SharedRow row{};
      std::memcpy(&row, copy.from, size_t(copy.bytes));
      std::memcpy(sharedPlace<unsigned char>(copy.to), &row, size_t(copy.width));
    }
}

/// ldmatrix.x4: all rows of the warp's blocks, as every lane names one, until the next exchange.
struct MatrixRows {
  const std::byte *slots;
  const unsigned short *operator[](unsigned row) const {
    return reinterpret_cast<const unsigned short *>(slots + row * weft::emulate::mostExchanged);
  }
};
inline MatrixRows collectRows(SharedAddress row, const char *file, int line) {
  const SharedRow own = *sharedPlace<SharedRow>(row);
  return {weft::emulate::exchange(~0u, &own, sizeof own, file, line)};
}
inline void loadMatrices(unsigned (&words)[4], SharedAddress row,
                         const char *file = __builtin_FILE(), int line = __builtin_LINE()) {
  const MatrixRows rows = collectRows(row, file, line);
  const unsigned lane = weft::emulate::currentThread.x % 32;
  for (unsigned n = 0; n < 4; ++n) {
    const unsigned short *from = &rows[8 * n + lane / 4][2 * (lane % 4)];
    words[n] = from[0] | unsigned(from[1]) << 16;
  }
}
inline void loadTransposed(unsigned (&words)[4], SharedAddress row,
                           const char *file = __builtin_FILE(), int line = __builtin_LINE()) {
  const MatrixRows rows = collectRows(row, file, line);
  const unsigned lane = weft::emulate::currentThread.x % 32, first = 2 * (lane % 4);
  for (unsigned n = 0; n < 4; ++n)
    words[n] = rows[8 * n + first][lane / 4] | unsigned(rows[8 * n + first + 1][lane / 4]) << 16;
}

/// mma.sync.m16n8k16
template <typename T>
void multiply(T *, float &sum0, float &sum1, float &sum2, float &sum3, const unsigned (&a)[4],
              unsigned b0, unsigned b1, const char *file = __builtin_FILE(),
              int line = __builtin_LINE()) {
  weft::emulate::MmaOperands own;
  for (int n = 0; n < 4; ++n)
    for (int half = 0; half < 2; ++half)
      own.a[2 * n + half] = widen(T{(unsigned short)(a[n] >> 16 * half)});
  for (int half = 0; half < 2; ++half) {
    own.b[half] = widen(T{(unsigned short)(b0 >> 16 * half)});
    own.b[2 + half] = widen(T{(unsigned short)(b1 >> 16 * half)});
  }
  float sums[4] = {sum0, sum1, sum2, sum3};
  weft::emulate::multiplyAccumulate16(sums, own, file, line);
  sum0 = sums[0], sum1 = sums[1], sum2 = sums[2], sum3 = sums[3];
}

inline void storeShared(SharedAddress to, unsigned word) { *sharedPlace<unsigned>(to) = word; }
inline void storeShared(SharedAddress to, const unsigned (&words)[4]) {
  *sharedPlace<SharedRow>(to) = {words[0], words[1], words[2], words[3]};
}
inline void loadShared(unsigned (&words)[4], SharedAddress from) {
  const SharedRow row = *sharedPlace<SharedRow>(from);
  for (int n = 0; n < 4; ++n) words[n] = row.words[n];
}
inline unsigned short loadSharedElement(SharedAddress from) {
  return *sharedPlace<unsigned short>(from);
}

/// shf.r.wrap.b32
inline unsigned joinHalves(unsigned low, unsigned high) { return low >> 16 | high << 16; }

}  // namespace weft::sm80
