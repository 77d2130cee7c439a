// GEMMs of gemm-sm90 whose groups of axes have several strides. Tensor maps have a dimension for
// each stride, so that no transpose has to come first: attention's [b,h,j,p] as rows (b,j) and
// columns (h,p) of a projection, [b,j,h,p] as the batch elements (b,h).
//
// Invariant: a box fills shared memory in the same order as a box of a merged group. So along the
// contiguous group 64 neighbours, a row of 128 bytes, lie in one factor, and 64 rows are one box;
// every tile consists of such boxes.
#pragma once

#include "codegen/families/contraction/GemmProblem.h"
#include "codegen/tma/TensorMap.h"

namespace weft {

/// The factors of a tensor's groups in the order of the map's dimensions: the contiguous group, the
/// other one, the batch. A group of extent 1 has none.
struct MapGroups {
  GroupFactors columns, rows, batch;
};
/// Of an operand, or of C, that has several strides.
MapGroups mapGroups(const GemmOperand &operand);
MapGroups mapGroups(const GemmProblem &gemm);

/// Rows of a box where a tile has `side` of them: all if they form one box, else 64.
int boxRows(const MapGroups &groups, int side);
/// A map with boxes of 64 columns (elements of 16 bits) and so many rows.
TensorMap mapOf(DType dtype, const MapGroups &groups, int rows);

/// The GEMM if any tensor has several strides along a group, or why this is not supported: names
/// the operand, the axes and the limit. Elements have 16 bits, TMA moves whole tensors, and m, n
/// and k are above 1.
Expected<GemmProblem, Reason> multiStrideProblem(const Kernel &kernel,
                                                 const Configuration &configuration);

/// The box that TMA moves for `side` neighbouring indices of a group: its extent along each factor.
/// Nothing where a range that begins at a multiple of `side` is no box: at a factor that is not the
/// slowest, neither its extent nor what is left of `side` divides the other.
std::optional<std::vector<int>> boxSides(const GroupFactors &factors, int64_t side);

}  // namespace weft
