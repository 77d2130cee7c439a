// Dynamic shared memory of a block of sm_90a, which threads and asynchronous parts reach by
// different ways (proxies): what a thread has stored, TMA and WGMMA may read behind a fence of this
// thread alone.
#pragma once

#include "tests/emulate/Fibers.h"

#include <vector>

namespace weft::emulate {

class SharedMemory {
public:
  explicit SharedMemory(Fibers &fibers) : fibers(fibers) {}
  void reset();
  /// Bytes that the running thread loads, or stores by PTX. An access outside ends the launch.
  std::byte *load(uint32_t address, size_t bytes) { return at(address, bytes); }
  std::byte *store(uint32_t address, size_t bytes);
  /// Orders what the running thread stored before later accesses of asynchronous parts.
  void fence();
  /// Bytes that an asynchronous part reads or writes.
  std::byte *accessByPart(uint32_t address, size_t bytes);

private:
  static constexpr uint32_t wordBytes = 4;
  std::byte *at(uint32_t address, size_t bytes);

  Fibers &fibers;
  std::vector<uint16_t> storedBy;  ///< of each word: 1 + the thread that has had no fence since
  std::vector<std::vector<uint32_t>> unfenced;  ///< words, by thread
};

}  // namespace weft::emulate
