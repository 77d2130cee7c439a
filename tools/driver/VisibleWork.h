// Which share of the work of each op masks by position leave: no plan has to compute scores that
// are hidden, nor what is made of them or of their gradients. No MLIR.
#pragma once

#include "passes/select/Selection.h"

#include <vector>

namespace weft::driver {

/// By op of the problem: from 0 to 1, for contractions; 1 for all others. Causal masks, windows and
/// block masks count, over rows that are evenly spread where there are many; what arguments say of
/// lengths and segments hides nothing here.
std::vector<double> visibleWork(const select::Problem &problem);

}  // namespace weft::driver
