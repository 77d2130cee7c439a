// Which heads a fused attention could have where a family would take it but for those that it has.
//
// Invariant: what is named has been asked of the families, and is the nearest that they take.
#pragma once

#include "kernel/Kernel.h"

#include <functional>
#include <string>

namespace weft {

/// "head dim 256" of a kernel that `rejection` has a reason against; "head dims 64 and 256" where
/// values have another one, the greater of which is changed. Empty where no other head dim helps.
std::string nearestHeadDim(const Kernel &kernel,
                           const std::function<std::string(const Kernel &)> &rejection);

}  // namespace weft
