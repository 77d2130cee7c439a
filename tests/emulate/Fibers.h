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
  /// Hands over as wait() does, of a thread that looks again and again for what other threads or
  /// blocks bring; an error if that goes on while nothing else happens.
  virtual void poll(const char *what, const SourceLine &at) = 0;
  /// Something happened that others may wait for.
  virtual void progressed() = 0;
  /// Ends the launch with an error; does not return.
  [[noreturn]] virtual void fail(const std::string &error) = 0;
  /// The block's dynamic shared memory, whose first byte has address 0.
  virtual std::span<std::byte> shared() const = 0;
};

/// Which asynchronous work is done as soon as it is issued. What is not is done as late as the
/// program allows: when no thread can go on without it.
struct DoneAtOnce {
  bool loads = false, products = false, stores = false;
};

}  // namespace weft::emulate
