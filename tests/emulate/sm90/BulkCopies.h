// Bulk copies of a block of sm_90a: boxes of tensors by TMA, and runs of bytes.
//
//   load    lands as a whole, and tells its mbarrier; at once, or when no thread can go on without
//           it, the newest first
//   store,  two steps: it reads shared memory, then writes or adds; each when a wait of its thread
//   add     asks for it, or at once; what nobody has asked for is written when the block ends
#pragma once

#include "tests/emulate/EmulatedMap.h"
#include "tests/emulate/sm90/Barriers.h"

#include <deque>
#include <memory>
#include <optional>
#include <vector>

namespace weft::emulate {

/// Either the box of a map from a position on, or neighbouring bytes at an address.
struct GlobalSide {
  std::optional<EmulatedMap> map = {};
  std::array<int32_t, 5> position{};
  std::byte *start = nullptr;
  int64_t bytes = 0;
};

class BulkCopies {
public:
  BulkCopies(Fibers &fibers, SharedMemory &shared, MemoryBarriers &barriers);
  void reset(DoneAtOnce atOnce);
  void load(uint32_t to, const GlobalSide &from, uint32_t barrier);
  /// Writes, or adds fp32 elements to what is there.
  void store(const GlobalSide &to, uint32_t from, bool addsFloats);
  void commitStores();
  void waitForStores(int64_t pending, bool toReadOnly, const SourceLine &at);
  /// Of those that threads cannot go on without. False if there are none.
  bool completeLoad();
  bool completeStore();
  /// A thread ends, or the whole block: what must not be left behind.
  void endThread(int thread);
  void endBlock();

private:
  struct Load {
    uint32_t to, barrier;
    GlobalSide from;
  };
  struct Store {
    GlobalSide to;
    uint32_t from;
    bool addsFloats = false;
    std::vector<std::byte> taken{};
    bool isRead = false, isWritten = false, mustRead = false, mustWrite = false;
  };
  using Group = std::vector<std::shared_ptr<Store>>;

  void check(const GlobalSide &side, uint32_t address);
  void land(const Load &load);
  void read(Store &store);
  void write(Store &store);

  Fibers &fibers;
  SharedMemory &shared;
  MemoryBarriers &barriers;
  DoneAtOnce atOnce;
  std::vector<Load> loads;
  std::vector<std::deque<Group>> groups;  ///< by thread; the last one is not committed
};

}  // namespace weft::emulate
