// Where the elements of a plan's tensors lie. The first thing that is checked of a plan: everything
// else computes with its sizes, and the runtime allocates and addresses by them.
//
// Invariant, once checkPlaces returned: extents are positive, strides and offsets are not negative,
// no two elements of a tensor lie in one place, buffers are numbered without large gaps, and no
// size, not even that of all buffers together, overflows.
#pragma once

#include "plan/Plan.h"

namespace weft {

/// Throws Error(badInput) naming `where` and the place in the plan: what the invariant rules out,
/// tensors of one name, and arguments or parameters that share memory.
void checkPlaces(const Plan &plan, const std::string &where);

/// Whether an element of one is an element of the other; both in one buffer, their sizes checked.
bool sharesElements(const PlanTensor &a, const PlanTensor &b);

}  // namespace weft
