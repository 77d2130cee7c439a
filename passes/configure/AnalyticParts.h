// Terms that the analytic prices of several families share; AnalyticCost.cpp explains the model.
#pragma once

#include "passes/configure/AnalyticConstants.h"
#include "passes/configure/CostModel.h"

#include <algorithm>
#include <cmath>

namespace weft::analytic {

/// Of the bandwidth that so many bytes in flight reach; `scale`: where it is 1 - 1/e.
inline double share(double bytesInFlight, double scale, const Device &device) {
  return 1 - std::exp(-bytesInFlight * referenceBandwidth(device) / scale);
}

inline double ceilDivide(double a, double b) { return std::ceil(a / b); }

/// What bounds a kernel without tensor cores.
inline Bound boundOf(double memorySeconds, double issueSeconds, double launchSeconds) {
  if (launchSeconds > std::max(memorySeconds, issueSeconds)) return Bound::launch;
  return memorySeconds >= issueSeconds ? Bound::memory : Bound::fma;
}

}  // namespace weft::analytic
