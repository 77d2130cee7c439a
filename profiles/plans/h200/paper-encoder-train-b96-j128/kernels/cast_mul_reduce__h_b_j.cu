// cast_mul_reduce__h_b_j    kernel 23 of paper-encoder, backward    (this header is not hashed)
//
//   ops        %46 = cast %39
//              %47 = mul %46, %7
//              %48 = reduce %47 over w
//   space      h=16 b=96 j=128 | w=64 (reduced)
//   reads      d_weighted[h,b,j,w] f16   weighted[b,j,h,w] f16    50.3 MB
//   writes     weighted_row_sums[h,b,j] f32    786 kB
//   flop       25.2 Mflop
//   config     vector 8 x f32 along w, 8 lanes of a warp a row, 8 rows a block    launch <<<24576, 64>>>
//   fused by   fuse: producer-consumer + reduction-consumer
//   not fused  softmax_from_log_sums, dropout, dropout, reduce, sub, mul: F001 iteration-space-mismatch (h,b,j,k against h,b,j,w)
//   not fused  softmax_from_log_sums, dropout, reduce, sub, mul: F001 iteration-space-mismatch (h,b,j,k against h,b,j,w)
#include "weft/reduce.cuh"
#include "weft/types.cuh"
#include "weft/vector.cuh"

namespace {
constexpr int h = 16, b = 96, j = 128, w = 64;      // extents
constexpr int width = 8;                            // elements a thread takes along w
constexpr int threadsPerRow = 8, rowsPerBlock = 8;
}  // namespace

extern "C" __global__ void __launch_bounds__(rowsPerBlock * threadsPerRow)
cast_mul_reduce_f32_64x16x96x128(const weft::half *__restrict__ d_weighted, const weft::half *__restrict__ weighted,
                                 float *__restrict__ weighted_row_sums) {
  static_assert(w == 64 && h == 16 && b == 96 && j == 128, "plan.json: these extents");
  static_assert((196608 + rowsPerBlock - 1) / rowsPerBlock == 24576, "plan.json: 24576 blocks");
  static_assert(rowsPerBlock * threadsPerRow == 64, "plan.json: 64 threads a block");
  static_assert(width == 8 && threadsPerRow == 8 && rowsPerBlock == 8, "plan.json: these knobs");
  const int lane = threadIdx.x % threadsPerRow;
  const int row = blockIdx.x * rowsPerBlock + threadIdx.x / threadsPerRow;                     // (h, b, j), h slowest
  const int at_h = row / (b * j);
  const int at_b_j = row % (b * j);
  const int start = row * w;
  const int start_2 = at_h * w + at_b_j * (h * w);

  float weighted_row_sums_out = 0.0f;
  const int at_w = lane * width;
  const auto d_weighted_v = weft::loadVector<width>(d_weighted + start + at_w);
  const auto weighted_v = weft::loadVector<width>(weighted + start_2 + at_w);
#pragma unroll
  for (int e = 0; e < width; ++e) {
    const float d_weighted_wide = d_weighted_v.at[e];                                             // %46
    const float weighted_terms = d_weighted_wide * weighted_v.at[e];                              // %47
    weighted_row_sums_out += weighted_terms;
  }
  weighted_row_sums_out = weft::warpSum<threadsPerRow>(weighted_row_sums_out);

  if (lane == 0)
    weft::storeOne(weighted_row_sums + row, weighted_row_sums_out);
}
