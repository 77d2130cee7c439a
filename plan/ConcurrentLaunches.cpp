// Dependencies between launches; see ConcurrentLaunches.h.
#include "plan/ConcurrentLaunches.h"

#include "kernel/Configuration.h"
#include "plan/PlanLiveness.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace weft {
namespace {

/// For each kernel of the plan the positions of launches that must finish before it, the nearest on
/// every path.
std::vector<std::set<int>> nearestLaunches(const Plan &plan, const std::vector<int> &positionOf) {
  std::vector<std::set<int>> nearest(plan.kernels.size());
  for (size_t kernel = 0; kernel < plan.kernels.size(); ++kernel)
    for (const int before : plan.kernels[kernel].after) {
      if (positionOf[size_t(before)] >= 0) nearest[kernel].insert(positionOf[size_t(before)]);
      else nearest[kernel].insert(nearest[size_t(before)].begin(), nearest[size_t(before)].end());
    }
  return nearest;
}

}  // namespace

std::vector<Launch> launchesOf(const Plan &plan, const std::vector<int> &kernels,
                               const std::function<bool(int)> &isLaunched,
                               const std::vector<int> &sharing) {
  std::vector<Launch> launches;
  std::vector<int> positionOf(plan.kernels.size(), -1);
  for (const int kernel : kernels)
    if (isLaunched(kernel)) {
      positionOf[size_t(kernel)] = int(launches.size());
      launches.push_back({.kernel = kernel});
    }
  std::vector<std::set<int>> nearest = nearestLaunches(plan, positionOf);
  int lastSharing = -1;
  std::vector<std::pair<int, int>> pairs;
  for (size_t position = 0; position < launches.size(); ++position) {
    std::set<int> &before = nearest[size_t(launches[position].kernel)];
    if (std::ranges::count(sharing, launches[position].kernel) > 0) {
      if (lastSharing >= 0) before.insert(lastSharing);
      lastSharing = int(position);
    }
    for (const int one : before) pairs.emplace_back(one, int(position));
  }
  const KernelOrder order(launches.size(), pairs);
  for (const auto &[earlier, later] : pairs) {
    const std::set<int> &others = nearest[size_t(launches[size_t(later)].kernel)];
    const auto implies = [&](int other) { return order.waits(other, earlier); };
    if (std::ranges::none_of(others, implies)) launches[size_t(later)].after.push_back(earlier);
  }
  return launches;
}

std::vector<Launch> launchesOf(const Plan &plan) {
  std::vector<int> kernels(plan.kernels.size());
  std::iota(kernels.begin(), kernels.end(), 0);
  return launchesOf(plan, kernels,
                    [&](int kernel) { return !plan.kernels[size_t(kernel)].family.isView(); });
}

bool mayRunConcurrently(const std::vector<Launch> &launches) {
  for (size_t position = 1; position < launches.size(); ++position)
    if (std::ranges::find(launches[position].after, int(position) - 1) ==
        launches[position].after.end())
      return true;
  return false;
}

double longestChain(const Plan &plan, const std::vector<Launch> &launches) {
  std::vector<double> ends;
  for (const Launch &launch : launches) {
    double start = 0;
    for (const int before : launch.after) start = std::max(start, ends[size_t(before)]);
    ends.push_back(start + plan.kernels[size_t(launch.kernel)].seconds);
  }
  return ends.empty() ? 0 : std::ranges::max(ends);
}

}  // namespace weft
