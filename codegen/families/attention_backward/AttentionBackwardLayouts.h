// The layouts under which families offer the backward pass of a fused attention: elements of a head
// are neighbours, and all other axes stand in any order.
#pragma once

#include "kernel/AttentionBackwardRegion.h"
#include "kernel/Family.h"

#include <vector>

namespace weft {

/// Layouts of the seven tensors of heads with the head or value dimension fastest, of other inputs
/// in every order; in the order of the kernel's operands. Of more than `mostAttentionTuples`
/// combinations, first these other inputs have their logical order alone, those of rows that in
/// which rows are numbered; then, one after the
/// other as long as there are too many, values lie as keys do, their gradients as each other, the
/// gradient of queries as that of keys, since they may be stacked for the projections, or, where a
/// group has several heads, as that of the output; this one as queries do, and gradients as what
/// they are of. Sorted, without duplicates.
std::vector<LayoutTuple> attentionBackwardTuples(const Kernel &kernel,
                                                 const AttentionBackwardRegion &region);

}  // namespace weft
