// Constants of the analytic costs of gemm-fma, each with the run that it was fitted to; what
// several families share stands in passes/configure/AnalyticConstants.h.
#pragma once

#include <cstdint>

namespace weft::analytic {

/// gemm-fma: blocks that wait for their first tiles (384 measurements of profiles/h200 take 1.4
/// times the estimate without it).
constexpr double fmaStartSeconds = 0.8e-6;

}  // namespace weft::analytic
