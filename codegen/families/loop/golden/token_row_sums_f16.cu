// token_row_sums    (this header is not hashed)
//
//   ops        product = mul x, y
//              terms = mask product, offsets
//              sums = reduce terms
//              row_sums = mask sums, offsets
//   space      n=9 t=4096 h=16 | p=64 (reduced)
//   reads      x[t,h,p] f16   y[t,h,p] f16   offsets[n] i32    16.8 MB
//   writes     terms[t,h,p] f16   row_sums[t,h] f16    8.52 MB
//   flop       8.52 Mflop
//   config     vector 8 x f16 along p, 8 lanes of a warp a row, 16 rows a block    launch <<<4096, 128>>>
#include "weft/reduce.cuh"
#include "weft/types.cuh"
#include "weft/vector.cuh"

namespace {
constexpr int h = 16, p = 64;                       // extents
constexpr int width = 8;                            // elements a thread takes along p
constexpr int threadsPerRow = 8, rowsPerBlock = 16;
}  // namespace

extern "C" __global__ void __launch_bounds__(rowsPerBlock * threadsPerRow)
mul_mask_reduce_mask_f16_4096x16x64(const weft::half *__restrict__ x, const weft::half *__restrict__ y,
                                    const int *__restrict__ offsets, weft::half *__restrict__ terms,
                                    weft::half *__restrict__ row_sums) {
  static_assert(h == 16 && p == 64, "plan.json: these extents");
  static_assert((65536 + rowsPerBlock - 1) / rowsPerBlock == 4096, "plan.json: 4096 blocks");
  static_assert(rowsPerBlock * threadsPerRow == 128, "plan.json: 128 threads a block");
  static_assert(width == 8 && threadsPerRow == 8 && rowsPerBlock == 16, "plan.json: these knobs");
  const int lane = threadIdx.x % threadsPerRow;
  const int row = blockIdx.x * rowsPerBlock + threadIdx.x / threadsPerRow;                        // (t, h), t slowest
  const int at_t = row / h;
  const int start = row * p;
  const auto tokens = weft::loadOne(offsets + 8);
  if (at_t >= tokens) {
    const int at_p = lane * width;
    weft::storeVector<width>(terms + start + at_p, weft::Vec<float, width>{});
  }

  const auto offsets_e = weft::loadOne(offsets + 8);
  float sums = 0.0f;
  const int at_p = lane * width;
  if (at_t < tokens) {
    const auto x_v = weft::loadVector<width>(x + start + at_p);
    const auto y_v = weft::loadVector<width>(y + start + at_p);
    weft::Vec<float, width> terms_out;
#pragma unroll
    for (int e = 0; e < width; ++e) {
      const float product = x_v.at[e] * y_v.at[e];                                                // %20
      terms_out.at[e] = at_t < offsets_e ? product : 0.0f;                                        // %21
      sums += terms_out.at[e];
    }
    weft::storeVector<width>(terms + start + at_p, terms_out);
  }
  sums = weft::warpSum<threadsPerRow>(sums);

  const float row_sums_out = at_t < offsets_e ? sums : 0.0f;                                      // %23
  if (lane == 0)
    weft::storeOne(row_sums + row, row_sums_out);
}
