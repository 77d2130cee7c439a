// Constants of the analytic costs of transposes, each with the run that it was fitted to; what
// several families share stands in passes/configure/AnalyticConstants.h.
#pragma once

#include <cstdint>

namespace weft::analytic {

/// Seconds of a multiprocessor for a load and a store of a thread that transposes: 6080 x 2160
/// element by element take 34 us, 21091 x 1200 60 us.
constexpr double transposeAccessSeconds = 155e-12;

/// The same of a copy of rows element by element, several a thread and neighbours by neighbouring
/// threads (an estimate: a third of the instructions, and no tile between them).
constexpr double rowCopyAccessSeconds = 50e-12;

}  // namespace weft::analytic
