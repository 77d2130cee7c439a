// Which launches of a plan may be concurrent: the order of its dependencies, among the kernels that
// are launched.
//
// Invariant: two launches that no path connects share no memory that one of them writes
// (readArtifact checks `after`, PlanLiveness.h), and none that is on no plan, as far as `sharing`
// names it.
#pragma once

#include "plan/Plan.h"

#include <functional>

namespace weft {

/// A launch and those that it waits for directly, as positions in the list; none that others of
/// them imply.
struct Launch {
  int kernel = -1;
  std::vector<int> after = {};
};

/// `kernels`: of an entry point, ascending; `isLaunched` is false for views, through which
/// dependencies pass, as through kernels that are not in the list. `sharing`: kernels that use
/// memory which the plan does not know of: they wait for each other, too.
std::vector<Launch> launchesOf(const Plan &plan, const std::vector<int> &kernels,
                               const std::function<bool(int)> &isLaunched,
                               const std::vector<int> &sharing = {});

/// Of all kernels of a plan, as its whole runs.
std::vector<Launch> launchesOf(const Plan &plan);

/// Whether any two launches may run at once.
bool mayRunConcurrently(const std::vector<Launch> &launches);

/// Seconds of the longest chain of launches that wait for each other, by their prices: no graph of
/// them takes less.
double longestChain(const Plan &plan, const std::vector<Launch> &launches);

}  // namespace weft
