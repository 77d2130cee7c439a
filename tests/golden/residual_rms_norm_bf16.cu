// residual_rms_norm    (this header is not hashed)
//
//   ops        sum = residual x, r
//              y = rms_norm sum, gamma
//   space      b=8 j=512 | i=1024 (reduced)
//   reads      x[b,j,i] bf16   r[b,j,i] bf16   gamma[i] bf16    16.8 MB
//   writes     sum[b,j,i] bf16   y[b,j,i] bf16    16.8 MB
//   flop       8.39 Mflop
//   config     vector 8 x bf16 along i, one block of 128 threads a row    launch <<<4096, 128>>>
#include "weft/math.cuh"
#include "weft/reduce.cuh"
#include "weft/types.cuh"
#include "weft/vector.cuh"

namespace {
constexpr int i = 1024;                             // extents
constexpr int width = 8;                            // elements a thread takes along i
constexpr int threadsPerRow = 128, rowsPerBlock = 1;
constexpr float epsilon = 1e-06f;
}  // namespace

extern "C" __global__ void __launch_bounds__(rowsPerBlock * threadsPerRow)
residual_rms_norm_bf16_8x512x1024(const weft::bfloat16 *__restrict__ x, const weft::bfloat16 *__restrict__ r,
                                  const weft::bfloat16 *__restrict__ gamma, weft::bfloat16 *__restrict__ sum,
                                  weft::bfloat16 *__restrict__ y) {
  static_assert(i == 1024, "plan.json: these extents");
  static_assert((4096 + rowsPerBlock - 1) / rowsPerBlock == 4096, "plan.json: 4096 blocks");
  static_assert(rowsPerBlock * threadsPerRow == 128, "plan.json: 128 threads a block");
  static_assert(width == 8 && threadsPerRow == 128 && rowsPerBlock == 1, "plan.json: these knobs");
  __shared__ float scratch[1][rowsPerBlock * threadsPerRow / 32];                 // a float a warp for each reduction
  const int lane = threadIdx.x;
  const int row = blockIdx.x;                                                                     // (b, j), b slowest
  const int start = row * i;

  weft::Vec<float, width> sum_out;                                                                // kept on chip
  float squares = 0.0f;
  const int at_i = lane * width;
  const auto x_v = weft::loadVector<width>(x + start + at_i);
  const auto r_v = weft::loadVector<width>(r + start + at_i);
#pragma unroll
  for (int e = 0; e < width; ++e) {
    sum_out.at[e] = x_v.at[e] + r_v.at[e];                                                        // %20
    const float square = sum_out.at[e] * sum_out.at[e];
    squares += square;
  }
  weft::storeVector<width>(sum + start + at_i, sum_out);
  squares = weft::blockSum<threadsPerRow>(squares, scratch[0]);

  const float r_2 = weft::rsqrt(squares / i + epsilon);
  const auto gamma_v = weft::loadVector<width>(gamma + at_i);
  weft::Vec<float, width> y_out;
#pragma unroll
  for (int e = 0; e < width; ++e)
    y_out.at[e] = sum_out.at[e] * r_2 * gamma_v.at[e];                                            // %21
  weft::storeVector<width>(y + start + at_i, y_out);
}
