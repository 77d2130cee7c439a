// What asynchronous parts of a block (sm90/) ask of its threads, which are fibers (Emulator.cpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace weft::emulate {

/// A line of a device header or of emitted text.
struct SourceLine {
  const char *file = nullptr;
  int line = 0;
};

class Fibers {
public:
  virtual ~Fibers() = default;
  /// The number of the running thread in its block.
  virtual int runningThread() const = 0;
  virtual int threadCount() const = 0;
  /// Hands over to the other threads. `what` and `subject` name what is waited for, should nobody
  /// ever bring it.
  virtual void wait(const char *what, uint32_t subject, const SourceLine &at) = 0;
  /// Something happened that others may wait for.
  virtual void progressed() = 0;
  /// Ends the launch with an error; does not return.
  [[noreturn]] virtual void fail(const std::string &error) = 0;
  /// The block's dynamic shared memory, whose first byte has address 0.
  virtual std::span<std::byte> shared() const = 0;
};

/// Bytes of shared memory; an access outside ends the launch.
inline std::byte *sharedAt(Fibers &fibers, uint32_t address, size_t bytes) {
  const std::span<std::byte> shared = fibers.shared();
  if (address > shared.size() || bytes > shared.size() - address)
    fibers.fail("shared memory of " + std::to_string(shared.size()) + " bytes accessed at byte " +
                std::to_string(address));
  return shared.data() + address;
}

/// When copies and products complete that nobody has had to wait for yet: as late as the program
/// allows, which is when no thread can go on without; or as soon as they are issued.
enum class Completion : uint8_t { late, early };

}  // namespace weft::emulate
