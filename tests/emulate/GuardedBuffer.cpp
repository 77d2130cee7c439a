// [protected][poison ... argument, poison to 16 bytes][protected]; protection is wide, for wrong
// strides
#include "tests/emulate/GuardedBuffer.h"

#include <algorithm>
#include <cstring>
#include <system_error>

#include <sys/mman.h>
#include <unistd.h>

namespace weft::emulate {
namespace {

constexpr size_t alignment = 16, guard = 1 << 20;
constexpr std::byte poison{0xFF};

size_t roundUp(size_t value, size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace

GuardedBuffer::GuardedBuffer(size_t bytes) : size(bytes) {
  const size_t inner =
      roundUp(std::max(roundUp(bytes, alignment), size_t(1)), size_t(sysconf(_SC_PAGESIZE)));
  mapped = inner + 2 * guard;
  void *memory = mmap(nullptr, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    throw std::system_error(errno, std::generic_category(), "guarded buffer");
  mapping = static_cast<std::byte *>(memory);
  mprotect(mapping + guard, inner, PROT_READ | PROT_WRITE);
  std::memset(mapping + guard, int(poison), inner);
  start = mapping + guard + inner - roundUp(bytes, alignment);
}

GuardedBuffer::~GuardedBuffer() { munmap(mapping, mapped); }

bool GuardedBuffer::intact() const {
  const auto poisoned = [](std::byte byte) { return byte == poison; };
  return std::all_of(mapping + guard, start, poisoned) &&
         std::all_of(start + size, mapping + mapped - guard, poisoned);
}

}  // namespace weft::emulate
