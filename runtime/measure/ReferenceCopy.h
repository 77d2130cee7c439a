// A small copy kernel that is always the same: how soon kernels start in this process.
//
// On an H200 all kernels of a process whose data are cold start about 0.35 us earlier in some
// processes than in others: the same graph of the same kernels in the same minute, and the same
// from run to run. What code the process has loaded decides it (where buffers lie, how much is
// allocated, which library kernels ran, clocks, a compiler beside it and the number of calls were
// ruled out one by one); with this module loaded, every process that was looked at is of the later
// kind, which most are. So `weft profile` and `weft time` both load it, measure it and report it:
// times of 2 us from two processes compare only if their reference copies agree.
//
// Invariant: the kernel never changes, or old protocols lose their meaning.
#pragma once

#include "runtime/measure/Measure.h"

namespace weft::runtime {

class ReferenceCopy {
public:
  /// Loads the module, which is all that decides how soon kernels start. Throws DriverError.
  explicit ReferenceCopy(const cuda::Context &context);
  /// One call reads and writes 512 KiB each. The first time, allocates what cold calls take: twice
  /// the L2's size and a little. Lives as long as this object. Throws DriverError.
  Subject subject();

private:
  cuda::Module module;
  cuda::FunctionHandle *function;
  int sets;
  cuda::Buffer memory;
};

}  // namespace weft::runtime
