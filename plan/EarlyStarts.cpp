// By predicted time alone; docs/experiments/launches.md has the figures.
#include "plan/EarlyStarts.h"

namespace weft {

void chooseEarlyStarts(Plan &plan, EarlyStarts which) {
  // Of longer kernels the blocks that wait take more from those at work than launching costs.
  constexpr double mostSeconds = 5e-6;
  for (PlanKernel &kernel : plan.kernels)
    kernel.startsEarly = !plan.concurrent && which != EarlyStarts::none &&
                         (which == EarlyStarts::all || kernel.seconds < mostSeconds);
}

}  // namespace weft
