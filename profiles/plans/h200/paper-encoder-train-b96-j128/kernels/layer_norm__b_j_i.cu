// layer_norm__b_j_i    kernel 9 of paper-encoder, forward    (this header is not hashed)
//
//   ops        %15, %15, %15 = layer_norm %14, %gamma1, %beta1 over i
//   space      b=96 j=128 | i=1024 (reduced)
//   reads      residual1[b,j,i] f16   gamma1[i] f16   beta1[i] f16    25.2 MB
//   writes     norm1[b,j,i] f16   mean1[b,j] f32   rstd1[b,j] f32    25.3 MB
//   flop       88.1 Mflop
//   config     vector 8 x f16 along i, one block of 128 threads a row    launch <<<12288, 128>>>
//   not fused  contract, bias, dropout, residual, layer_norm: F024 no-epilogue ('layer_norm' is of class normalization; an epilogue is element-wise)
//   not fused  bias, dropout, residual, layer_norm, layer_norm_dx: F031 forward-and-backward (attention, d_residual1)
#include "weft/math.cuh"
#include "weft/reduce.cuh"
#include "weft/types.cuh"
#include "weft/vector.cuh"

namespace {
constexpr int i = 1024;                             // extents
constexpr int width = 8;                            // elements a thread takes along i
constexpr int threadsPerRow = 128, rowsPerBlock = 1;
constexpr float epsilon = 1e-05f;
}  // namespace

extern "C" __global__ void __launch_bounds__(rowsPerBlock * threadsPerRow)
layer_norm_f16_96x128x1024(const weft::half *__restrict__ residual1, const weft::half *__restrict__ gamma1,
                           const weft::half *__restrict__ beta1, weft::half *__restrict__ norm1,
                           float *__restrict__ mean1, float *__restrict__ rstd1) {
  static_assert(i == 1024, "plan.json: these extents");
  static_assert((12288 + rowsPerBlock - 1) / rowsPerBlock == 12288, "plan.json: 12288 blocks");
  static_assert(rowsPerBlock * threadsPerRow == 128, "plan.json: 128 threads a block");
  static_assert(width == 8 && threadsPerRow == 128 && rowsPerBlock == 1, "plan.json: these knobs");
  __shared__ float scratch[2][rowsPerBlock * threadsPerRow / 32];                 // a float a warp for each reduction
  const int lane = threadIdx.x;
  const int row = blockIdx.x;                                                                     // (b, j), b slowest
  const int start = row * i;

  float total = 0.0f;
  const int at_i = lane * width;
  const auto residual1_v = weft::loadVector<width>(residual1 + start + at_i);
#pragma unroll
  for (int e = 0; e < width; ++e)
    total += residual1_v.at[e];
  total = weft::blockSum<threadsPerRow>(total, scratch[0]);

  const float mu_out = total / i;                                                                 // %15
  if (lane == 0)
    weft::storeOne(mean1 + row, mu_out);
  float squares = 0.0f;
#pragma unroll
  for (int e = 0; e < width; ++e) {
    const float square = (residual1_v.at[e] - mu_out) * (residual1_v.at[e] - mu_out);
    squares += square;
  }
  squares = weft::blockSum<threadsPerRow>(squares, scratch[1]);

  const float r_out = weft::rsqrt(squares / i + epsilon);                                         // %15
  if (lane == 0)
    weft::storeOne(rstd1 + row, r_out);
  const auto gamma1_v = weft::loadVector<width>(gamma1 + at_i);
  const auto beta1_v = weft::loadVector<width>(beta1 + at_i);
  weft::Vec<float, width> norm1_out;
#pragma unroll
  for (int e = 0; e < width; ++e)
    norm1_out.at[e] = (residual1_v.at[e] - mu_out) * r_out * gamma1_v.at[e] + beta1_v.at[e];      // %15
  weft::storeVector<width>(norm1 + start + at_i, norm1_out);
}
