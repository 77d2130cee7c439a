// mbarriers and named barriers of a block of sm_90a. An mbarrier's 8 bytes of shared memory hold a
// mark, so that whatever is written over it is found; its state stands here.
#pragma once

#include "tests/emulate/sm90/SharedMemory.h"

#include <array>
#include <map>

namespace weft::emulate {

class MemoryBarriers {
public:
  MemoryBarriers(Fibers &fibers, SharedMemory &shared) : fibers(fibers), shared(shared) {}
  void reset() { barriers.clear(); }
  void initialize(uint32_t address, int64_t arrivals);
  /// Expects so many bytes in this phase, beside those expected already.
  void expect(uint32_t address, int64_t bytes);
  void arrive(uint32_t address);
  /// Bytes of a copy have landed.
  void land(uint32_t address, int64_t bytes);
  /// Whether the phase of this parity has ended, and until it has.
  bool hasEnded(uint32_t address, uint32_t parity);
  void wait(uint32_t address, uint32_t parity, const SourceLine &at);
  /// For messages.
  std::string describe(uint32_t address) const;

private:
  struct Barrier {
    int number = 0;  ///< in the order of initialization
    int64_t arrivals = 0, missing = 0, bytes = 0;
    uint64_t phase = 0;
  };
  Barrier &at(uint32_t address);
  void endPhaseIfComplete(Barrier &barrier);

  Fibers &fibers;
  SharedMemory &shared;
  std::map<uint32_t, Barrier> barriers;
};

/// bar.sync and bar.arrive, of names 1 to 15.
class NamedBarriers {
public:
  explicit NamedBarriers(Fibers &fibers) : fibers(fibers) {}
  void reset() { barriers.fill({}); }
  void arrive(uint32_t name, int64_t threads, bool waits, const SourceLine &at);
  std::string describe(uint32_t name) const;

private:
  struct Barrier {
    int64_t expected = 0, arrived = 0;
    uint64_t phase = 0;
  };
  Fibers &fibers;
  std::array<Barrier, 16> barriers{};
};

}  // namespace weft::emulate
