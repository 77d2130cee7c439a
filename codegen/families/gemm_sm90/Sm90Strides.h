// Products of sm_90a whose groups of axes have several strides, through tensor maps with a
// dimension for each of them, so that no transpose has to come first: attention's [b,h,j,p] as rows
// (b,j) and columns (h,p) of a projection, [b,j,h,p] as the members (b,h) of a batch.
//
// Invariant: a box fills shared memory in the order that one of the merged group does. So along the
// contiguous group 64 neighbours, a row of 128 bytes, lie in one factor, and 64 rows are a box;
// every tile is made of these.
#pragma once

#include "codegen/families/contraction/GemmProblem.h"
#include "kernel/TensorMap.h"

namespace weft {

/// What TMA is told of the groups of a tensor, in the order of the map's dimensions: the
/// contiguous group, the other one, the batch. Of a group of extent 1 there are none.
struct MapGroups {
  GroupFactors columns, rows, batch;
};
/// Of an operand, or of C, that has several strides.
MapGroups mapGroups(const GemmOperand &operand);
MapGroups mapGroups(const GemmProblem &gemm);

/// Rows of a box where a tile has `side` of them: all, or 64 where all are no box.
int boxRows(const MapGroups &groups, int side);
/// A map with boxes of 64 columns (elements of 16 bits) and so many rows.
TensorMap mapOf(DType dtype, const MapGroups &groups, int rows);

/// Why a kernel does not have several strides along a group: names the operand, the axes and the
/// limit; or the GEMM, if any tensor has. Elements of 16 bits, in tensors that TMA
/// moves whole; sides and k longer than 1.
GemmProblemOrRejection multiStrideProblem(const Kernel &kernel, const Configuration &configuration);

}  // namespace weft
