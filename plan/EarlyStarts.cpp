// By predicted times alone; docs/experiments/launches.md has the figures.
#include "plan/EarlyStarts.h"

namespace weft {
namespace {

/// Whether launching is much of what the plan takes. In longer plans the blocks that wait take more
/// from those at work than launching costs.
bool hasShortKernels(const Plan &plan) {
  constexpr double mostSecondsOfMean = 5e-6;
  double seconds = 0;
  int launches = 0;
  for (const PlanKernel &kernel : plan.kernels) {
    if (kernel.family.isView()) continue;
    seconds += kernel.seconds;
    ++launches;
  }
  return seconds < mostSecondsOfMean * launches;
}

}  // namespace

void chooseEarlyStarts(Plan &plan, EarlyStarts which) {
  const bool isEarly =
      !plan.concurrent &&
      (which == EarlyStarts::all || (which == EarlyStarts::shortPlans && hasShortKernels(plan)));
  for (PlanKernel &kernel : plan.kernels) kernel.startsEarly = isEarly;
}

}  // namespace weft
