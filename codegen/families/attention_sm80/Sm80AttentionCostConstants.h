// Constants of the analytic costs of attention-sm80, each with the run that it was fitted to; what
// several families share stands in passes/configure/AnalyticConstants.h.
#pragma once

#include <cstdint>

namespace weft::analytic {

/// attention-sm80 on sm_90a, many queries: 10 heads of 96 on 5, B=3 L=768, causal, take 37.2, 33.3
/// and 35.2 us with tiles of 64 x 32, 64 x 64 and 128 x 64, 1.7 to 2.2 times what its parts add up
/// to (H100 run). The cause is not known.
constexpr double sm80AttentionOnWgmma = 2;

}  // namespace weft::analytic
