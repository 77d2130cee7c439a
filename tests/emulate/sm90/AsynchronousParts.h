// What a multiprocessor of sm_90a does beside the threads of a block: barriers, bulk copies and
// products of warpgroups.
#pragma once

#include "tests/emulate/sm90/BulkCopies.h"
#include "tests/emulate/sm90/WarpgroupProducts.h"

namespace weft::emulate {

struct AsynchronousParts {
  explicit AsynchronousParts(Fibers &fibers) : fibers(fibers) {}
  void reset(Completion completion) {
    memoryBarriers.reset();
    namedBarriers.reset();
    copies.reset(completion);
    products.reset(completion);
  }
  /// One thing that threads cannot go on without, when none can: loads first, so that they find
  /// operands that were released too early. False if there is nothing.
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
  MemoryBarriers memoryBarriers{fibers};
  NamedBarriers namedBarriers{fibers};
  BulkCopies copies{fibers, memoryBarriers};
  WarpgroupProducts products{fibers};
};

/// Those of the running block.
AsynchronousParts &asynchronousParts();

}  // namespace weft::emulate
