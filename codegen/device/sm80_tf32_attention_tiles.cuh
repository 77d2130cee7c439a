// Attention and its backward pass from sm_80 on of f32 that is read as tf32: copies of rows, the
// two kinds of products, and stores. What lies where is as sm80_attention_tiles.cuh has it.
//
// Rows lie in shared memory as they came, and are rounded to nearest on the way to registers. A
// float is copied as two elements of 16 bits: rows, chunks and their places are those of 16-bit
// rows of twice as many columns. Four 8 x 8 blocks of these, as ldmatrix reads them, are then 16
// rows of eight floats, as a product of 16 x 8 x 8 takes them.
//
// **A left operand from accumulators.** Of a row of eight sums lane t of four has 2 t and 2 t + 1;
// of a left operand it has elements t and t + 4. A product may be summed in any order, so that
// element t is column 2 t of the sums and element t + 4 is column 2 t + 1, and the rows of the
// right operand follow:
//
//    accumulators  [s0 s1 | s2 s3 | s4 s5 | s6 s7]     lanes 0 .. 3 of a row
//    left operand  [s0 s2 s4 s6 | s1 s3 s5 s7]         the same registers, in another order
//
// No element crosses lanes. The right operand is read by words, since ldmatrix transposes elements
// of 16 bits alone; rows 2 t of four lanes lie in different banks, and so do rows 2 t + 1.
#pragma once

#include "weft/fragment.cuh"
#include "weft/sm80_attention_tiles.cuh"
#include "weft/sm80_tf32_mma.cuh"

namespace weft::sm80 {

template <int columns>
using FloatRows = AttentionRows<2 * columns>;

/// copyPositions() of floats.
template <int rows, int columns, int threads, Offset rowStride>
__device__ __forceinline__ void copyFloatPositions(SharedAddress to, const float *matrix, int first,
                                                   int end) {
  copyPositions<rows, 2 * columns, threads, 2 * rowStride>(
      to, reinterpret_cast<const half *>(matrix), first, end);
}

/// The 16 x 8 floats of shared rows from (row, 8 block) on, rounded: as the left operand of a
/// product has them (`isLeft`), or as the right one that is summed over along rows.
template <int columns, bool isLeft>
__device__ __forceinline__ void loadFloatRowBlock(unsigned (&words)[4], SharedAddress rows, int row,
                                                  int block) {
  loadRowBlock<2 * columns, isLeft>(words, rows, row, block);
#pragma unroll
  for (int w = 0; w < 4; ++w) words[w] = roundToTf32(words[w]);
}

/// sums += A B^T of a warp: 16 rows of A, and the rows of B from firstRow on; both of `width`
/// columns. `loadLeft`: eight columns of A, rounded.
template <int width, int count, typename LoadLeft>
__device__ __forceinline__ void multiplyTf32Rows(float (&sums)[count], const LoadLeft &loadLeft,
                                                 SharedAddress b, int firstRow) {
  // Unrolled whole, the loads of wide rows take more registers than there are.
  constexpr int blocks = width / 8, unrolled = blocks > 16 ? 4 : blocks;
#pragma unroll unrolled
  for (int block = 0; block < blocks; ++block) {
    unsigned left[4];
    loadLeft(left, block);
#pragma unroll
    for (int s = 0; s < count; s += 8) {
      unsigned right[4];
      loadFloatRowBlock<width, false>(right, b, firstRow + s * 2, block);
      multiplyTf32(sums[s], sums[s + 1], sums[s + 2], sums[s + 3], left, right[0], right[1]);
      multiplyTf32(sums[s + 4], sums[s + 5], sums[s + 6], sums[s + 7], left, right[2], right[3]);
    }
  }
}

/// A lane's row of shared floats and its column of every eight: FloatRows::placeOf(), of which
/// nothing but four addresses depends on the lane. Chunks are of four floats.
template <int columns>
class FloatColumn {
  using Rows = FloatRows<columns>;
  static constexpr int span = Rows::chunks < 8 ? Rows::chunks : 8, rowsOfBanks = 8 / span;

public:
  __device__ __forceinline__ FloatColumn(SharedAddress rows, int row, int column)
      : start(rows + row * Rows::pitchBytes + column % 4 * 4),
        swizzle((Rows::isPermuted ? column / 4 ^ row / rowsOfBanks % span : column / 4) * 16) {}
  /// Of a row that is `below` ones further down, and of an even chunk.
  __device__ __forceinline__ SharedAddress at(int below, int chunk) const {
    if constexpr (Rows::isPermuted)
      return start + (chunk % 8 * 16 ^ swizzle) + chunk / 8 * 128 + below * Rows::pitchBytes;
    else return start + swizzle + chunk * 16 + below * Rows::pitchBytes;
  }

private:
  SharedAddress start;
  int swizzle;  // bytes
};

/// sums += A B: A in the order of accumulators, four for every eight columns, which are the rows of
/// B from firstRow on, a multiple of 8; B has `width` columns.
template <int width, int count, int elements>
__device__ __forceinline__ void multiplyTf32Columns(float (&sums)[count],
                                                    const float (&a)[elements], SharedAddress b,
                                                    int firstRow) {
  const int lane = threadIdx.x % 32, row = firstRow + lane % 4 * 2;
  const FloatColumn<width> columns[2] = {{b, row, lane / 4}, {b, row + 1, lane / 4}};
#pragma unroll
  for (int e = 0; e < elements; e += 4) {
    // Columns 2 t of both rows, then columns 2 t + 1.
    const unsigned left[4] = {roundToTf32(bitsOf(a[e])), roundToTf32(bitsOf(a[e + 2])),
                              roundToTf32(bitsOf(a[e + 1])), roundToTf32(bitsOf(a[e + 3]))};
#pragma unroll
    for (int s = 0; s < count; s += 4) {
      unsigned right[2];
#pragma unroll
      for (int w = 0; w < 2; ++w)
        right[w] = roundToTf32(loadSharedWord(columns[w].at(e * 2, s / 2)));
      multiplyTf32(sums[s], sums[s + 1], sums[s + 2], sums[s + 3], left, right[0], right[1]);
    }
  }
}

/// Stores a lane's pairs of its first or second row (`half`). `row`: where that row's elements
/// begin; isAligned: at a multiple of 8 bytes.
template <bool isAligned, int count>
__device__ __forceinline__ void storeTf32Row(float *row, const float (&sums)[count], int half,
                                             float scale) {
  float *const first = row + threadIdx.x % 4 * 2;
#pragma unroll
  for (int s = half * 2; s < count; s += 4) {
    const Vec<float, 2> pair{{sums[s] * scale, sums[s + 1] * scale}};
    float *to = first + s / 4 * 8;
    if constexpr (isAligned) {
      storeVector<2>(to, pair);
    } else {
      storeOne(to, pair.at[0]);
      storeOne(to + 1, pair.at[1]);
    }
  }
}

}  // namespace weft::sm80
