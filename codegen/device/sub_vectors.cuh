// Local softmax of what the lanes of a warp hold of a tensor-core kernel's result ("Recomposing
// Softmax Layers", section 3.2): exponentials, each against the maximum of its sub-vector, a run of
// `length` neighbours in a row; of every sub-vector that maximum and the sum of its exponentials.
//
// A sub-vector is one block of 16 x 16 wide or several side by side, which one warp has: four lanes
// hold 16 neighbours of a row. The last one of a row may be shorter. One that is -inf throughout
// gives zeros and the sum 0.
#pragma once

#include "weft/fragment.cuh"
#include "weft/math.cuh"

namespace weft {

/// Element strides of a statistic: of batch elements, of rows, and of sub-vectors in a row.
struct SubVectorStrides {
  Offset batch, row, subVector;
};
/// A matrix's rows in sub-vectors, and where what is stored of each lies.
struct SubVectors {
  int length;
  SubVectorStrides maxima, sums;
};

/// Of one half of the lane's rows in blocks side by side. All lanes of the warp take part.
/// isClipped: columns from `columns` on do not count.
template <int blocks, bool isClipped, typename Fragment>
__device__ __forceinline__ void subVectorExponentials(float (&values)[blocks][8], int half,
                                                      const Fragment &at, Offset columns,
                                                      float &maximum, float &sum) {
  const float none = ptx::floatFromBits(0xff800000u);  // -inf
  const auto forEach = [&](const auto &visit) {
#pragma unroll
    for (int block = 0; block < blocks; ++block)
#pragma unroll
      for (int e = 0; e < 8; ++e)
        if (rowInFragment(e) / 8 == half)
          visit(values[block][e], at.column + block * 16 + columnInFragment(e));
  };
  maximum = none;
  forEach([&](float &value, int column) {
    if (isClipped && column >= columns) value = none;
    maximum = weft::maximum(maximum, value);
  });
#pragma unroll
  for (int mask = 1; mask < 4; mask *= 2)
    maximum = weft::maximum(maximum, ptx::shuffleXor(maximum, mask));
  const float shift = maximum == none ? 0.0f : maximum;
  sum = 0;
  forEach([&](float &value, int) {
    value = expFast(value - shift);
    sum += value;
  });
#pragma unroll
  for (int mask = 1; mask < 4; mask *= 2) sum += ptx::shuffleXor(sum, mask);
}

/// Replaces blocks side by side by exponentials, and stores what belongs to their sub-vectors, of a
/// result of rows x columns. `at`: the first block, whose column is a multiple of the length beside
/// the lane's own place. All lanes of the warp take part.
template <SubVectors subVectors, Offset rows, Offset columns, bool isClipped, int blocks,
          typename T, typename Fragment>
__device__ __forceinline__ void localSoftmax(float (&values)[blocks][8], const Fragment &at,
                                             T *maxima, T *sums) {
  constexpr int side = 16, together = subVectors.length / side;
  static_assert(subVectors.length % side == 0 && blocks % together == 0,
                "sub-vectors are whole blocks that one warp has");
  const int lane = threadIdx.x % 4;
#pragma unroll
  for (int first = 0; first < blocks; first += together) {
    float own[together][8], maximum[2], sum[2];
#pragma unroll
    for (int block = 0; block < together; ++block)
#pragma unroll
      for (int e = 0; e < 8; ++e) own[block][e] = values[first + block][e];
    const Fragment start{at.batch, at.row, at.column + first * side};
#pragma unroll
    for (int half = 0; half < 2; ++half)
      subVectorExponentials<together, isClipped>(own, half, start, columns, maximum[half],
                                                 sum[half]);
#pragma unroll
    for (int block = 0; block < together; ++block)
#pragma unroll
      for (int e = 0; e < 8; ++e) values[first + block][e] = own[block][e];
    // The four lanes of a row know all: each stores one number of the two rows.
    const bool isMaximum = lane / 2 == 0;
    const int row = start.row + lane % 2 * 8, subVector = start.column / subVectors.length;
    const float upper = isMaximum ? maximum[0] : sum[0], lower = isMaximum ? maximum[1] : sum[1];
    const SubVectorStrides strides = isMaximum ? subVectors.maxima : subVectors.sums;
    if (row < rows && Offset(subVector) * subVectors.length < columns)
      storeOne((isMaximum ? maxima : sums) + at.batch * strides.batch + row * strides.row +
                   subVector * strides.subVector,
               lane % 2 == 0 ? upper : lower);
  }
}

}  // namespace weft
