// Accumulators of what an epilogue computes in the skeleton kernel of sm_90a
// (codegen/device/sm90_epilogue_reduction.cuh): every tile leaves partial sums in device memory of
// the kernel's module, and the last tile of a strip adds them in their order.
#pragma once

#include "codegen/families/contraction/GemmProblem.h"
#include "codegen/families/gemm_sm90/Sm90GemmKnobs.h"
#include "kernel/ContractionRegion.h"

namespace weft {

/// Whether a sum has one element a row of the skeleton's C, and not one a column.
bool isOfRows(const EpilogueReduction &sum, const GemmProblem &gemm);
/// Bytes of partial sums that the tiles of one launch leave; 0 without sums.
int64_t sm90PartialBytes(const ContractionRegion &region, const GemmProblem &gemm,
                         const Sm90GemmKnobs &knobs);
/// Why tiles with such knobs do not sum: splitK, number of sums, device memory. Empty if they do,
/// or if there are no sums.
std::string sm90ReductionRejection(const ContractionRegion &region, const GemmProblem &gemm,
                                   const Sm90GemmKnobs &knobs);

}  // namespace weft
