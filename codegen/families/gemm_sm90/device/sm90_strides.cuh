// Operands and results whose groups of axes have several strides, for the GEMM kernel template
// (sm90_gemm.cuh): TMA counts through them. A tensor map has a dimension for each stride; an index
// of a group of axes (m, n, k, the batch) is split into coordinates along the group's dimensions,
// fastest first. The host has chosen boxes that fill shared memory as those of one stride do.
//
// Which tensors these are, their element types say: the kernel template's functions find the
// functions here by the type of their arguments, so that kernels without them do not depend on this
// header.
#pragma once

#include "weft/sm90_epilogue.cuh"
#include "weft/sm90_tma.cuh"

namespace weft::sm90 {

/// Extents of a group's dimensions of a map, fastest first; zeros behind the last.
struct Dimensions {
  Offset extent[4];
  __host__ __device__ constexpr int count() const {
    int dimensions = 0;
    while (dimensions < 4 && extent[dimensions] > 0) ++dimensions;
    return dimensions;
  }
};

/// The dimensions of a map, in this order: of the contiguous group, of the other one, of the batch.
/// boxRows: rows of one box.
struct MapDimensions {
  Dimensions columns, rows, batch;
  int boxRows;
  __host__ __device__ constexpr int count() const {
    return columns.count() + rows.count() + batch.count();
  }
};

/// An element of a tensor whose map has these dimensions.
template <typename T, MapDimensions dimensions>
struct Strided : T {
  using Stored = T;
};

/// Where such a tensor is.
template <MapDimensions dimensions>
struct StridedMap {
  const TensorMap *map;
};
template <typename T, MapDimensions dimensions>
struct Tensor<Strided<T, dimensions>> {
  StridedMap<dimensions> map;
  Strided<T, dimensions> *elements;
};
template <typename T, MapDimensions dimensions>
struct Tensor<const Strided<T, dimensions>> {
  StridedMap<dimensions> map;
  const Strided<T, dimensions> *elements;
};

/// The coordinates of an index along a group, from `first` on; the slowest is out of bounds where
/// the index is.
template <Dimensions group>
__device__ __forceinline__ void splitIndex(int index, int (&at)[5], int first) {
#pragma unroll
  for (int dimension = 0; dimension < group.count(); ++dimension) {
    const bool isSlowest = dimension + 1 == group.count();
    at[first + dimension] = isSlowest ? index : index % int(group.extent[dimension]);
    index /= int(group.extent[dimension]);
  }
}

/// The coordinates of a column, a row and a batch element.
template <MapDimensions dimensions>
__device__ __forceinline__ void coordinates(int (&at)[5], int column, int row, int batch) {
  splitIndex<dimensions.columns>(column, at, 0);
  splitIndex<dimensions.rows>(row, at, dimensions.columns.count());
  splitIndex<dimensions.batch>(batch, at, dimensions.columns.count() + dimensions.rows.count());
}

template <MapDimensions dimensions>
__device__ __forceinline__ void prefetchMap(const StridedMap<dimensions> &of) {
  prefetchMap(of.map);
}

/// Rows [outer, outer + rows) of a kTile, as sm90_load.cuh has it for one stride: subtiles of 64 of
/// the outer axis, or rows along k, here in as many boxes as the rows of one leave.
template <Operand operand, int rows, bool isBatched, MapDimensions dimensions>
__device__ __forceinline__ void loadKTile(SharedAddress to, const StridedMap<dimensions> &of,
                                          SharedAddress barrier, int outer, int k, int batch) {
  static_assert(isBatched == (dimensions.batch.count() > 0),
                "a map has dimensions of the batch where there is one");
  constexpr int together = operand.isAlongK() ? dimensions.boxRows : 64;
#pragma unroll
  for (int first = 0; first < rows; first += together) {
    int at[5];
    if constexpr (operand.isAlongK()) coordinates<dimensions>(at, k, outer + first, batch);
    else coordinates<dimensions>(at, outer + first, k, batch);
    loadBox<dimensions.count()>(to + first * rowBytes, of.map, barrier, at);
  }
}

/// Has TMA store a subtile of C from its buffer.
template <GemmProblem gemm, Tile tile, MapDimensions dimensions>
__device__ __forceinline__ void storeSubtile(const Subtiles<gemm, tile> &subtiles, int subtile,
                                             const StridedMap<dimensions> &of,
                                             SharedAddress buffer) {
  static_assert(dimensions.boxRows == 64, "a subtile is one box");
  int at[5];
  coordinates<dimensions>(at, subtiles.column(subtile), subtiles.row(subtile), subtiles.at.batch);
  storeBox<dimensions.count()>(of.map, buffer, at);
}

}  // namespace weft::sm90

namespace weft {

/// To an element of such a tensor.
template <typename T>
__device__ __forceinline__ T narrow(Compute<T> value) {
  return {narrow<typename T::Stored>(value)};
}

}  // namespace weft
