// Which op of a dataflow graph depends on which, as a bit matrix. Answers whether a set of ops is
// convex.
#pragma once

#include "passes/fuse/Dataflow.h"

#include <optional>
#include <vector>

namespace weft {

class Reachability {
public:
  explicit Reachability(const Dataflow &flow)
      : after(flow.ops.size(), std::vector<bool>(flow.ops.size())) {
    for (size_t op = flow.ops.size(); op-- > 0;)
      for (int tensor : flow.ops[op].results)
        for (int consumer : flow.tensors[tensor].consumers) {
          after[op][consumer] = true;
          for (size_t later = 0; later < after.size(); ++later)
            if (after[consumer][later]) after[op][later] = true;
        }
  }

  /// True if `to` needs a result of `from`, directly or not.
  bool reaches(int from, int to) const { return after[from][to]; }

  /// An op outside the set that lies on a path between two of its ops; nothing if the set is
  /// convex.
  std::optional<int> opBetween(const std::vector<int> &set) const {
    std::vector<bool> inside(after.size());
    for (int op : set) inside[op] = true;
    for (int op = set.front(); op < set.back(); ++op) {
      if (inside[op]) continue;
      bool below = false, above = false;
      for (int member : set) {
        below |= after[member][op];
        above |= after[op][member];
      }
      if (below && above) return op;
    }
    return std::nullopt;
  }

private:
  std::vector<std::vector<bool>> after;
};

}  // namespace weft
