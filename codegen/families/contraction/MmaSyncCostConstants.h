// Constants of the analytic costs of the families of mma.sync: gemm-sm80 and those of attention.
#pragma once

namespace weft::analytic {

/// Share of the peak of mma.sync, and of the peak of WGMMA on sm_90a (estimates, no run yet).
constexpr double mmaSyncShare = 0.85, mmaSyncShareOfWgmma = 0.55;
/// Nothing hides the load of a block's first k-tiles.
constexpr double mmaSyncStartSeconds = 0.5e-6;
/// Factor over the library's first candidate, at least, until there are measurements.
constexpr double mmaSyncUnmeasured = 1.05;

}  // namespace weft::analytic
