// Memory of one kernel argument between two protected ranges. The bytes end at the upper one (but
// for the last few that 16-byte alignment costs), so that an access beyond them faults; every byte
// that the argument does not own is 0xFF: reading it gives NaN, and writing it is found afterwards.
#pragma once

#include <cstddef>
#include <span>

namespace weft::emulate {

class GuardedBuffer {
public:
  /// Poisoned with 0xFF: NaN in every float format, -1 in i32.
  explicit GuardedBuffer(size_t bytes);
  ~GuardedBuffer();
  GuardedBuffer(const GuardedBuffer &) = delete;
  GuardedBuffer &operator=(const GuardedBuffer &) = delete;

  std::span<std::byte> bytes() const { return {start, size}; }
  /// Whether every byte around the argument still holds the poison.
  bool intact() const;

private:
  std::byte *mapping = nullptr, *start = nullptr;
  size_t size = 0, mapped = 0;
};

}  // namespace weft::emulate
