// What a tensor-core kernel's epilogue reads and stores beside its sums: the eight elements that a lane holds of a block of
// 16 x 16, loaded from and stored to tensors of the result's shape, of its rows or of its columns.
//
// A fragment names the place of its first element: `batch`, `row`, `column`. Element e lies rowInFragment(e) rows below and
// columnInFragment(e) columns to the right of it; `column` is even. Elements out of bounds are zero and never touched.
#pragma once

#include "weft/vector.cuh"

namespace weft {

__device__ __forceinline__ constexpr int rowInFragment(int e) { return e / 2 % 2 * 8; }
__device__ __forceinline__ constexpr int columnInFragment(int e) { return e / 4 * 8 + e % 2; }

/// One element a column, from a vector that starts at a multiple of 4 bytes.
template <Offset columns, typename T, typename Fragment>
__device__ __forceinline__ Vec<float, 8> fragmentColumns(const T *from, const Fragment &at) {
  Vec<float, 8> values;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int column = at.column + half * 8;
    Vec<float, 2> pair{};
    if (column + 1 < columns) pair = loadVector<2>(from + column);
    else if (column < columns) pair.at[0] = loadOne(from + column);
#pragma unroll
    for (int e = 0; e < 4; ++e) values.at[half * 4 + e] = pair.at[e % 2];
  }
  return values;
}

/// One element a row.
template <Offset rows, typename T, typename Fragment>
__device__ __forceinline__ Vec<float, 8> fragmentRows(const T *from, const Fragment &at) {
  const float upper = at.row < rows ? loadOne(from + at.row) : 0.0f;
  const float lower = at.row + 8 < rows ? loadOne(from + at.row + 8) : 0.0f;
  Vec<float, 8> values;
#pragma unroll
  for (int e = 0; e < 8; ++e) values.at[e] = rowInFragment(e) == 0 ? upper : lower;
  return values;
}

/// A matrix of rows x columns, contiguous along columns. isPaired: every row starts at a multiple of two elements.
template <Offset rows, Offset columns, Offset pitch, bool isPaired, typename T, typename Fragment>
__device__ __forceinline__ Vec<float, 8> loadFragment(const T *from, const Fragment &at) {
  Vec<float, 8> values;
#pragma unroll
  for (int e = 0; e < 8; e += 2) {
    const int row = at.row + rowInFragment(e), column = at.column + columnInFragment(e);
    const T *first = from + row * pitch + column;
    Vec<float, 2> pair{};
    if (row < rows && isPaired && column + 1 < columns) {
      pair = loadVector<2>(first);
    } else if (row < rows) {
      if (column < columns) pair.at[0] = loadOne(first);
      if (column + 1 < columns) pair.at[1] = loadOne(first + 1);
    }
    values.at[e] = pair.at[0];
    values.at[e + 1] = pair.at[1];
  }
  return values;
}

template <Offset rows, Offset columns, Offset pitch, bool isPaired, typename T, typename Fragment>
__device__ __forceinline__ void storeFragment(T *to, const Vec<float, 8> &values, const Fragment &at) {
#pragma unroll
  for (int e = 0; e < 8; e += 2) {
    const int row = at.row + rowInFragment(e), column = at.column + columnInFragment(e);
    T *first = to + row * pitch + column;
    if (row < rows && isPaired && column + 1 < columns) {
      storeVector<2>(first, Vec<float, 2>{{values.at[e], values.at[e + 1]}});
    } else if (row < rows) {
      if (column < columns) storeOne(first, values.at[e]);
      if (column + 1 < columns) storeOne(first + 1, values.at[e + 1]);
    }
  }
}

}  // namespace weft
