// Kernels in parts: those around a plan's largest temporary run several times, each time on part of
// one axis, so that only a part of the temporary is there at a time. Scores of attention, head by
// head or a few heads at a time, are what it is for.
//
// What is computed stays the same: parts are cut along an axis that none of the kernels reduces
// over, dropout masks are drawn at the coordinates of the whole. No MLIR.
#pragma once

#include "tools/driver/PlanBuilder.h"

namespace weft::driver {

/// How often the kernels run, what prices them, and whether kernels may run at once
/// (Plan::branches).
struct Parts {
  int count = 1;
  const CostModel *prices = nullptr;
  bool branches = false;
};

/// A kernel on `size` indices of an axis from `start` on. Throws Error(badInput) naming what does
/// not allow it: no such axis, one that is reduced, indices beyond its extent, an op that takes
/// elements from other coordinates.
Kernel onPart(const Kernel &kernel, const std::string &axis, int64_t start, int64_t size);

/// How much slower than the fastest a plan may be that takes less memory (PartsChoice.h).
inline constexpr double mostSlower = 0.25;

/// The name of the kernel that a part is of, and the other way round.
std::string wholeName(const runtime::PlanKernel &part);
std::string partName(const std::string &whole, const runtime::PlanPart &part);

/// Replaces the kernels around the largest temporary of a plan without buffers: part by part,
/// operands and results of the whole as views (`viewOf`, by tensor). Throws Error(unsupported)
/// saying why when they cannot run in so many parts.
void runInParts(PlannedKernels &planned, std::vector<int> &viewOf, const Parts &parts);

}  // namespace weft::driver
