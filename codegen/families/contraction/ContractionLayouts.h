// The layouts under which a contraction is one GEMM: what all GEMM families share.
#pragma once

#include "kernel/Family.h"

#include <string>
#include <vector>

namespace weft {

/// Why a kernel is not one contraction of two operands and nothing else; empty if it is.
std::string contractionRejection(const Kernel &kernel);
/// Every layout of the operands (in the kernel's order) under which a contraction, alone or with an
/// epilogue (kernel/ContractionRegion.h), is one batched strided GEMM: what all
/// contraction families share. Operands of an epilogue and all outputs lie in the order of C's
/// axes: one layout of theirs for each of C. Sorted by A, B, C, without duplicates.
std::vector<LayoutTuple> contractionTuples(const Kernel &kernel);

/// The layouts in which one operand has several strides along a group of axes, so that a transpose
/// would have to come first otherwise. One of A and B has, or both alike; C merges, and it and the
/// operand that does have the batch slowest. Legal or not, sorted as those of contractionTuples().
std::vector<LayoutTuple> severalStridesTuples(const Kernel &kernel);
/// The layouts in which the result has several strides, as it is fixed, legal or not; none where it
/// is free or has one stride, and where ops stand before or behind the contraction.
std::vector<LayoutTuple> stridedResultTuples(const Kernel &kernel, const FixedLayouts &fixed);

}  // namespace weft
