// The layouts under which a contraction is one GEMM: what all GEMM families share.
#pragma once

#include "kernel/Family.h"

#include <string>
#include <vector>

namespace weft {

/// Why a kernel is not one contraction of two operands and nothing else; empty if it is.
std::string contractionRejection(const Kernel &kernel);
/// Every layout of the operands (in the kernel's order) under which a contraction, alone or with an
/// epilogue (kernel/ContractionRegion.h), is one batched strided GEMM. Operands of an epilogue and
/// all outputs have the order of C's axes, so each layout of C determines theirs. Sorted by A, B,
/// C, without duplicates.
std::vector<LayoutTuple> contractionTuples(const Kernel &kernel);

/// The layouts in which one of A and B, or both alike, have several strides along a group of axes;
/// with one stride alone a transpose would have to come first. C merges, and C and an operand that
/// merges have the batch slowest. Legal or not, sorted as those of contractionTuples().
std::vector<LayoutTuple> severalStridesTuples(const Kernel &kernel);
/// The layouts, legal or not, in which the result is fixed and has several strides. None where it
/// is free or has one stride, or where the kernel has ops besides the contraction.
std::vector<LayoutTuple> stridedResultTuples(const Kernel &kernel, const FixedLayouts &fixed);

}  // namespace weft
