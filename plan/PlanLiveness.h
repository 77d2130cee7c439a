// Which kernels use which memory of a plan: which tensors may share bytes, and which kernels must
// wait for which.
//
// A live range is a tensor with all its views (a cache that is appended to, with the result), or
// the memory that an algorithm of a library works in; kernels may use disjoint ranges of it in any
// order. Two live ranges may share bytes if the dependencies (`after`) order all kernels of one
// before those of the other; a result may also share the bytes of an operand of its kernel, if the
// kernel may run in place (overwritableInputs in kernel/Family.h).
#pragma once

#include "plan/PlanMemory.h"

namespace weft {

/// The argument that the kernel appends to, in whose memory its result lies; -1: none.
int cacheOf(const Plan &plan, const PlanKernel &kernel);

struct LiveRange {
  std::string name;       ///< of its first tensor
  MemoryRange range;      ///< of all of it
  bool isGiven = false;   ///< an argument or parameter: there from the start, and not to be written
  bool isResult = false;  ///< to be kept once it is written
  std::vector<int> users = {};  ///< kernels that read or write it, ascending; views touch no memory
  std::vector<int> writers = {};  ///< those of them that write
  std::vector<MemoryRange> touched =
      {};  ///< what each user reads and writes of the range, from its first byte to its last
  std::vector<std::vector<int>> tensors =
      {};  ///< those of the plan that each user touches; none of a workspace
};
std::vector<LiveRange> liveRangesOf(const Plan &plan, const PlanMemory &memory);

/// Pairs of kernels of which the second must wait for the first: it uses what the first computes,
/// or one of them writes where the other reads or writes. Sorted; not every pair that others imply
/// is left out.
std::vector<std::pair<int, int>> conflicts(const Plan &plan,
                                           const std::vector<LiveRange> &liveRanges);
/// The same in any order, a pair once for each range of memory that it shares: where sets are made
/// of them, which sorting would only delay.
std::vector<std::pair<int, int>> repeatedConflicts(const Plan &plan,
                                                   const std::vector<LiveRange> &liveRanges);

/// Which kernels come before which.
class KernelOrder {
public:
  /// `pairs`: (earlier, later) of `kernels` kernels, the earlier with the smaller number.
  KernelOrder(size_t kernels, const std::vector<std::pair<int, int>> &pairs);
  /// What `after` of a plan's kernels says.
  explicit KernelOrder(const Plan &plan);
  /// Whether `later` comes after `earlier`, directly or by others.
  bool waits(int later, int earlier) const { return before[size_t(later)][size_t(earlier)]; }

private:
  void follow(int later, int earlier);
  std::vector<std::vector<bool>> before;
};

/// Whether two kernels are of different slices (PlanChunk::isSlice), which run at once.
bool areOfDifferentSlices(const PlanKernel &a, const PlanKernel &b);

/// Throws Error(badInput) naming `where` and the kernel: a slice that waits for another, two live
/// ranges that share bytes and are
/// not kept apart, or a write over an argument, a parameter or a finished result.
void checkLiveRanges(const Plan &plan, const PlanMemory &memory, const std::string &where);

}  // namespace weft
