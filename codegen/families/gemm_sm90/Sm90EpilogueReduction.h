// Epilogue reductions in the kernel template of sm_90a
// (codegen/device/sm90_epilogue_reduction.cuh): every tile writes partial sums to device memory of
// the kernel's module, and the last-arriving tile of a strip of rows or columns adds them in a
// fixed order. contraction/ContractionEpilogue.h explains the mechanism.
#pragma once

#include "codegen/families/contraction/GemmProblem.h"
#include "codegen/families/gemm_sm90/Sm90GemmKnobs.h"
#include "kernel/ContractionRegion.h"

namespace weft {

/// Whether a reduction has one element a row of the kernel template's C, and not one a column.
bool isOfRows(const EpilogueReduction &sum, const GemmProblem &gemm);
/// Bytes of partial sums that the tiles of one launch write; 0 without reductions.
int64_t sm90PartialBytes(const ContractionRegion &region, const GemmProblem &gemm,
                         const Sm90GemmKnobs &knobs);
/// Why tiles with such knobs do not support the reductions: splitK, their number, device memory.
/// Empty if they do, or if there are none.
std::string sm90ReductionRejection(const ContractionRegion &region, const GemmProblem &gemm,
                                   const Sm90GemmKnobs &knobs);

}  // namespace weft
