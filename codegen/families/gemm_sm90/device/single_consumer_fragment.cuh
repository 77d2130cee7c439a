// What the epilogue of a single-consumer tile (sm90_single_consumer.cuh) reads and stores beside
// its accumulators, straight from and to global memory.
//
// A thread holds `count` accumulators of a tile, four of every eight columns of the instruction:
// element e lies rowInFragment(e) rows below and columnInFragment(e) columns to the right of its
// first (fragment.cuh), over all columns of the tile. Rows and columns are those of the
// instruction, which may run along C's columns and rows: so whole tensors have a stride along each,
// one of which is 1.
//
// Operands are asked for before the tile is multiplied, and are as they are stored until an element
// is read: to convert one would be to wait for it. Out of bounds the last row or column is asked
// for again, whose results nobody stores.
#pragma once

#include "weft/fragment.cuh"
#include "weft/ordered_load.cuh"
#include "weft/pack.cuh"

namespace weft::sm90 {

/// Where the accumulators of a thread lie; `column` is even.
template <int accumulators>
struct SingleConsumerFragment {
  static constexpr int count = accumulators;
  int batch, row, column;
};

/// An element as it is stored, in 32 bits; asked for where the program says so (ordered_load.cuh).
template <typename T>
__device__ __forceinline__ unsigned issueLoad(const T *from) {
  if constexpr (sizeof(T) == 4) return loadWord(from);
  else return loadBits(from);
}
/// The lower or upper 16 bits of a word, or all of it, as an element.
template <typename T>
__device__ __forceinline__ Compute<T> elementOf(unsigned word, int half = 0) {
  if constexpr (sizeof(T) == 4) return __builtin_bit_cast(T, word);
  else return widen(T{static_cast<unsigned short>(word >> half * 16)});
}

/// A scalar.
template <typename T>
struct PrefetchedScalar {
  unsigned word;
  __device__ __forceinline__ Compute<T> operator[](int) const { return elementOf<T>(word); }
};
template <typename T>
__device__ __forceinline__ PrefetchedScalar<T> prefetchScalar(const T *from) {
  return {issueLoad(from)};
}

/// One element a row.
template <typename T>
struct PrefetchedRows {
  unsigned words[2];
  __device__ __forceinline__ Compute<T> operator[](int e) const {
    return elementOf<T>(words[rowInFragment(e) / 8]);
  }
};
template <Offset rows, typename T, int accumulators>
__device__ __forceinline__ PrefetchedRows<T> prefetchRows(
    const T *from, const SingleConsumerFragment<accumulators> &at) {
  return {
      {issueLoad(from + atMost(at.row, rows - 1)), issueLoad(from + atMost(at.row + 8, rows - 1))}};
}

/// Pairs of neighbouring columns: in one access each where elements have 16 bits and every pair
/// lies in a row and starts at a multiple of two.
template <typename T, int pairs, bool isOneAccess>
struct PrefetchedPairs {
  static constexpr int accesses = isOneAccess ? 1 : 2;
  unsigned words[pairs][accesses];
  __device__ __forceinline__ Compute<T> at(int pair, int side) const {
    return isOneAccess ? elementOf<T>(words[pair][0], side)
                       : elementOf<T>(words[pair][side * (accesses - 1)]);
  }
  template <Offset columns>
  __device__ __forceinline__ void ask(int pair, const T *row, int column) {
    if constexpr (isOneAccess) {
      words[pair][0] = loadWord(row + atMost(column, columns - 2));
    } else {
      words[pair][0] = issueLoad(row + atMost(column, columns - 1));
      words[pair][1] = issueLoad(row + atMost(column + 1, columns - 1));
    }
  }
};
template <typename T, Offset columns, bool isPaired>
constexpr bool areOneAccess = isPaired &&columns % 2 == 0 && sizeof(T) == 2;

/// One element a column, from a vector. isPaired: it starts at a multiple of two elements.
template <typename T, int accumulators, bool isOneAccess>
struct PrefetchedColumns {
  PrefetchedPairs<T, accumulators / 4, isOneAccess> pairs;
  __device__ __forceinline__ Compute<T> operator[](int e) const { return pairs.at(e / 4, e % 2); }
};
template <Offset columns, bool isPaired, typename T, int accumulators>
__device__ __forceinline__ auto prefetchColumns(const T *from,
                                                const SingleConsumerFragment<accumulators> &at) {
  PrefetchedColumns<T, accumulators, areOneAccess<T, columns, isPaired>> asked;
#pragma unroll
  for (int group = 0; group < accumulators / 4; ++group)
    asked.pairs.template ask<columns>(group, from, at.column + group * 8);
  return asked;
}

/// One element for each of the thread's.
template <typename T, int accumulators>
struct PrefetchedElements {
  unsigned words[accumulators];
  __device__ __forceinline__ Compute<T> operator[](int e) const { return elementOf<T>(words[e]); }
};
template <typename T, int accumulators, bool isOneAccess>
struct PrefetchedTile {
  PrefetchedPairs<T, accumulators / 2, isOneAccess> pairs;
  __device__ __forceinline__ Compute<T> operator[](int e) const { return pairs.at(e / 2, e % 2); }
};
/// A matrix of rows x columns. isPaired: it is contiguous along columns, and every row starts at a
/// multiple of two elements.
template <Offset rows, Offset columns, Offset rowStride, Offset columnStride, bool isPaired,
          typename T, int accumulators>
__device__ __forceinline__ auto prefetchTile(const T *from,
                                             const SingleConsumerFragment<accumulators> &at) {
  if constexpr (columnStride == 1) {
    PrefetchedTile<T, accumulators, areOneAccess<T, columns, isPaired>> asked;
#pragma unroll
    for (int e = 0; e < accumulators; e += 2)
      asked.pairs.template ask<columns>(
          e / 2, from + atMost(at.row + rowInFragment(e), rows - 1) * rowStride,
          at.column + columnInFragment(e));
    return asked;
  } else {
    PrefetchedElements<T, accumulators> asked;
#pragma unroll
    for (int e = 0; e < accumulators; ++e)
      asked.words[e] =
          issueLoad(from + atMost(at.row + rowInFragment(e), rows - 1) * rowStride +
                    atMost(at.column + columnInFragment(e), columns - 1) * columnStride);
    return asked;
  }
}

/// Rounds the elements of a thread and stores those that lie in a matrix of rows x columns.
template <Offset rows, Offset columns, Offset rowStride, Offset columnStride, bool isPaired,
          typename T, int accumulators>
__device__ __forceinline__ void storeTileElements(T *to, const float (&values)[accumulators],
                                                  const SingleConsumerFragment<accumulators> &at) {
#pragma unroll
  for (int e = 0; e < accumulators; e += 2) {
    const int row = at.row + rowInFragment(e), column = at.column + columnInFragment(e);
    if (row >= rows || column >= columns) continue;
    T *const first = to + row * rowStride + column * columnStride;
    if (isPaired && column + 1 < columns) {
      if constexpr (sizeof(T) == 2)
        *reinterpret_cast<unsigned *>(first) =
            packPair(static_cast<T *>(nullptr), values[e], values[e + 1]);
      else storeVector<2>(first, Vec<float, 2>{{values[e], values[e + 1]}});
      continue;
    }
    storeOne(first, values[e]);
    if (column + 1 < columns) storeOne(first + columnStride, values[e + 1]);
  }
}

}  // namespace weft::sm90
