// What a tensor-core kernel's epilogue reads and stores beside its sums: the eight elements that a
// lane holds of a block of 16 x 16, loaded from and stored to tensors of the result's shape, of its
// rows or of its columns.
//
// A fragment names the place of its first element: `batch`, `row`, `column`. Element e lies
// rowInFragment(e) rows below and columnInFragment(e) columns to the right of it; `column` is even.
// Out of bounds a load repeats the tensor's last row or column, whose results nobody stores.
#pragma once

#include "weft/vector.cuh"

namespace weft {

/// The bit pattern of a float.
__device__ __forceinline__ unsigned bitsOf(float value) {
  return __builtin_bit_cast(unsigned, value);
}

__device__ __forceinline__ constexpr int rowInFragment(int e) { return e / 2 % 2 * 8; }
__device__ __forceinline__ constexpr int columnInFragment(int e) { return e / 4 * 8 + e % 2; }

/// The place itself, or the last one: loads without a branch, which would cost a lane more than the
/// elements that it brings.
__device__ __forceinline__ int atMost(int place, Offset last) {
  return place < last ? place : int(last);
}

/// Two neighbours of a row of `columns` elements. isPaired: the row starts at a multiple of two
/// elements.
template <Offset columns, bool isPaired, typename T>
__device__ __forceinline__ Vec<float, 2> loadPair(const T *row, int column) {
  if constexpr (isPaired && columns % 2 == 0)
    return loadVector<2>(row + atMost(column, columns - 2));
  else
    return {{loadOne(row + atMost(column, columns - 1)),
             loadOne(row + atMost(column + 1, columns - 1))}};
}

/// One element a column, from a vector that starts at a multiple of two elements.
template <Offset columns, typename T, typename Fragment>
__device__ __forceinline__ Vec<float, 8> fragmentColumns(const T *from, const Fragment &at) {
  Vec<float, 8> values;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const Vec<float, 2> pair = loadPair<columns, true>(from, at.column + half * 8);
#pragma unroll
    for (int e = 0; e < 4; ++e) values.at[half * 4 + e] = pair.at[e % 2];
  }
  return values;
}

/// One element a row.
template <Offset rows, typename T, typename Fragment>
__device__ __forceinline__ Vec<float, 8> fragmentRows(const T *from, const Fragment &at) {
  const float upper = loadOne(from + atMost(at.row, rows - 1)),
              lower = loadOne(from + atMost(at.row + 8, rows - 1));
  Vec<float, 8> values;
#pragma unroll
  for (int e = 0; e < 8; ++e) values.at[e] = rowInFragment(e) == 0 ? upper : lower;
  return values;
}

/// A matrix of rows x columns, contiguous along columns. isPaired: every row starts at a multiple
/// of two elements.
template <Offset rows, Offset columns, Offset pitch, bool isPaired, typename T, typename Fragment>
__device__ __forceinline__ Vec<float, 8> loadFragment(const T *from, const Fragment &at) {
  Vec<float, 8> values;
#pragma unroll
  for (int e = 0; e < 8; e += 2) {
    const Vec<float, 2> pair =
        loadPair<columns, isPaired>(from + atMost(at.row + rowInFragment(e), rows - 1) * pitch,
                                    at.column + columnInFragment(e));
    values.at[e] = pair.at[0];
    values.at[e + 1] = pair.at[1];
  }
  return values;
}

template <Offset rows, Offset columns, Offset pitch, bool isPaired, typename T, typename Fragment>
__device__ __forceinline__ void storeFragment(T *to, const Vec<float, 8> &values,
                                              const Fragment &at) {
#pragma unroll
  for (int e = 0; e < 8; e += 2) {
    const int row = at.row + rowInFragment(e), column = at.column + columnInFragment(e);
    T *first = to + row * pitch + column;
    if constexpr (isPaired && columns % 2 == 0) {  // no pair begins inside and ends outside
      if (row < rows && column < columns)
        storeVector<2>(first, Vec<float, 2>{{values.at[e], values.at[e + 1]}});
    } else if (row < rows && isPaired && column + 1 < columns) {
      storeVector<2>(first, Vec<float, 2>{{values.at[e], values.at[e + 1]}});
    } else if (row < rows) {
      if (column < columns) storeOne(first, values.at[e]);
      if (column + 1 < columns) storeOne(first + 1, values.at[e + 1]);
    }
  }
}

}  // namespace weft
