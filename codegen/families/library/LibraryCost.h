// The modelled price of a GEMM by cuBLASLt: what the library's kernels reach, without a call of it.
//
//   t = launch + max(memory, tensor) + min(memory, tensor) x (one step of k) / k
//
// Tensor: the best of the library's tiles, in waves over the multiprocessors. A last wave that is
// not full costs a whole one, edges are padded to whole tiles, small tiles are less efficient, and
// long k may be split (of several batch elements of f32 the first candidate does not), which writes
// and reads partial sums. Memory: every operand once. A block loads its first step of k before it
// computes, and stores after its last: that part does not overlap. TMA cannot load rows that are no
// multiple of 16 bytes. An epilogue is a share of the GEMM, more of it with an operand of the
// result's shape. Constants and their sources: AnalyticConstants.h.
// Checked against H200 figures in tests/library_test.cpp.
#pragma once

#include "codegen/families/library/LibraryKnobs.h"
#include "passes/configure/CostModel.h"

namespace weft {

Expected<ConfigurationSpace, Reason> librarySpace(const Kernel &kernel, const Device &device);

/// Bytes and flop are left to the caller. Throws Error(unsupported) where the layouts are no
/// library GEMM.
Cost libraryCost(const Kernel &kernel, const Configuration &configuration,
                 const LibraryKnobs &knobs, const Device &device);

}  // namespace weft
