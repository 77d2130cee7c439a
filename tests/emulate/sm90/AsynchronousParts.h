// What a multiprocessor of sm_90a does beside the threads of a block: barriers, bulk copies and
// products of warpgroups.
#pragma once

#include "tests/emulate/sm90/BulkCopies.h"
#include "tests/emulate/sm90/Wgmma.h"

namespace weft::emulate {

struct AsynchronousParts {
  explicit AsynchronousParts(Fibers &fibers) : fibers(fibers) {}
  void reset(DoneAtOnce atOnce) {
    shared.reset();
    memoryBarriers.reset();
    namedBarriers.reset();
    copies.reset(atOnce);
    products.reset(atOnce);
  }
  /// One thing that threads cannot go on without, when none can. False if there is nothing.
  bool completeOne() {
    return copies.completeLoad() || products.completeOne() || copies.completeStore();
  }
  void endThread(int thread) {
    copies.endThread(thread);
    products.endThread(thread);
  }
  void endBlock() { copies.endBlock(); }
  /// What a thread waits for, by the words of Fibers::wait.
  std::string describe(std::string_view what, uint32_t subject) const {
    if (what == "mbarrier") return memoryBarriers.describe(subject);
    if (what == "named barrier") return namedBarriers.describe(subject);
    if (what == "WGMMA") return products.describe(subject);
    return std::string(what);
  }

  Fibers &fibers;
  SharedMemory shared{fibers};
  MemoryBarriers memoryBarriers{fibers, shared};
  NamedBarriers namedBarriers{fibers};
  BulkCopies copies{fibers, shared, memoryBarriers};
  WgmmaQueue products{fibers, shared};
};

/// Those of the running block.
AsynchronousParts &asynchronousParts();

}  // namespace weft::emulate
