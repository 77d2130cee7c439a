// Bounds and fences of shared memory; see SharedMemory.h.
#include "tests/emulate/sm90/SharedMemory.h"

#include <fmt/format.h>

namespace weft::emulate {

void SharedMemory::reset() {
  storedBy.assign(fibers.shared().size() / wordBytes + 1, 0);
  unfenced.assign(size_t(fibers.threadCount()), {});
}

std::byte *SharedMemory::at(uint32_t address, size_t bytes) {
  const std::span<std::byte> shared = fibers.shared();
  if (address > shared.size() || bytes > shared.size() - address)
    fibers.fail(
        fmt::format("shared memory of {} bytes accessed at byte {}", shared.size(), address));
  return shared.data() + address;
}

std::byte *SharedMemory::store(uint32_t address, size_t bytes) {
  std::byte *place = at(address, bytes);
  const int thread = fibers.runningThread();
  for (uint32_t word = address / wordBytes; word * wordBytes < address + bytes; ++word) {
    if (storedBy[word] == thread + 1) continue;
    storedBy[word] = uint16_t(thread + 1);
    unfenced[size_t(thread)].push_back(word);
  }
  return place;
}

void SharedMemory::fence() {
  const int thread = fibers.runningThread();
  for (const uint32_t word : unfenced[size_t(thread)])
    if (storedBy[word] == thread + 1) storedBy[word] = 0;
  unfenced[size_t(thread)].clear();
}

std::byte *SharedMemory::accessByPart(uint32_t address, size_t bytes) {
  std::byte *place = at(address, bytes);
  for (uint32_t word = address / wordBytes; word * wordBytes < address + bytes; ++word)
    if (storedBy[word] != 0)
      fibers.fail(fmt::format(
          "TMA or WGMMA accesses byte {} of shared memory, which thread {} has stored without "
          "fence.proxy.async behind",
          address, storedBy[word] - 1));
  return place;
}

}  // namespace weft::emulate
