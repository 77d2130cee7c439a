// The CUDA vocabulary of emitted kernels as host C++: enough for tests/emulate to compile their
// exact text. Threads are fibers (Emulator.cpp); a __shared__ variable is a static in a separate
// section that is poisoned before every block.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

namespace weft::emulate {

struct Dim3 {
  unsigned x = 1, y = 1, z = 1;
};

/// Of the running fiber; defined by the emulator.
extern Dim3 currentThread, currentBlock, threadsPerBlock, blocksPerGrid;

/// Waits for every thread of the block at the same source line.
void barrier(const char *file, int line);

/// Waits for every thread of every block of the cluster.
void clusterBarrier(const char *file, int line);

/// What the shared memory of block `rank` of the cluster holds at the place that `own` has in this
/// block's.
void loadFromBlock(const void *own, int rank, void *value, size_t size);

/// The running block's dynamic shared memory.
void *dynamicShared();

/// Bytes that a lane may give to others at once.
constexpr size_t mostExchanged = 48;
/// Gives `size` bytes to the lanes of `mask` and collects theirs: 32 slots of `size` bytes. Slots
/// of lanes that exited, do not exist or are not in the mask hold 0xFF.
void exchange(unsigned mask, const void *mine, size_t size, void *all, const char *file, int line);
/// The same without a copy: the slots lie `mostExchanged` bytes apart, and stay until the thread
/// exchanges again.
const std::byte *exchange(unsigned mask, const void *mine, size_t size, const char *file, int line);

/// The value that lane `source` gave; a source beyond the warp gives the own value.
template <typename T>
T shuffle(unsigned mask, T value, unsigned source, const char *file = __builtin_FILE(),
          int line = __builtin_LINE()) {
  T all[32];
  exchange(mask, &value, sizeof(T), all, file, line);
  return source < 32 ? all[source] : value;
}

/// Calls a kernel with arguments given by address.
template <typename... Parameters, size_t... Positions>
void call(void (*kernel)(Parameters...), void *const *arguments,
          std::index_sequence<Positions...>) {
  kernel(*static_cast<std::remove_cv_t<Parameters> *>(arguments[Positions])...);
}
template <typename... Parameters>
void call(void (*kernel)(Parameters...), void *const *arguments) {
  call(kernel, arguments, std::index_sequence_for<Parameters...>{});
}

}  // namespace weft::emulate
