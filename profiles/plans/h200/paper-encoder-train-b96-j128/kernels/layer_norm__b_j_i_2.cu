// layer_norm__b_j_i_2    kernel 12 of paper-encoder, forward    (this header is not hashed)
//
//   ops        %24, %24, %24 = layer_norm %23, %gamma2, %beta2 over i
//   space      b=96 j=128 | i=1024 (reduced)
//   reads      residual2[b,j,i] f16   gamma2[i] f16   beta2[i] f16    25.2 MB
//   writes     norm2[b,j,i] f16   mean2[b,j] f32   rstd2[b,j] f32    25.3 MB
//   flop       88.1 Mflop
//   config     vector 8 x f16 along i, one block of 128 threads a row    launch <<<12288, 128>>>
//   not fused  contract, bias, dropout, residual, layer_norm: F024 no-epilogue ('layer_norm' is of class normalization; an epilogue is element-wise)
//   not fused  bias, dropout, residual, layer_norm, layer_norm_dx: F031 forward-and-backward (feed_forward, d_residual2)
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
layer_norm_f16_96x128x1024(const weft::half *__restrict__ residual2, const weft::half *__restrict__ gamma2,
                           const weft::half *__restrict__ beta2, weft::half *__restrict__ norm2,
                           float *__restrict__ mean2, float *__restrict__ rstd2) {
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
  const auto residual2_v = weft::loadVector<width>(residual2 + start + at_i);
#pragma unroll
  for (int e = 0; e < width; ++e)
    total += residual2_v.at[e];
  total = weft::blockSum<threadsPerRow>(total, scratch[0]);

  const float mu_out = total / i;                                                                 // %24
  if (lane == 0)
    weft::storeOne(mean2 + row, mu_out);
  float squares = 0.0f;
#pragma unroll
  for (int e = 0; e < width; ++e) {
    const float square = (residual2_v.at[e] - mu_out) * (residual2_v.at[e] - mu_out);
    squares += square;
  }
  squares = weft::blockSum<threadsPerRow>(squares, scratch[1]);

  const float r_out = weft::rsqrt(squares / i + epsilon);                                         // %24
  if (lane == 0)
    weft::storeOne(rstd2 + row, r_out);
  const auto gamma2_v = weft::loadVector<width>(gamma2 + at_i);
  const auto beta2_v = weft::loadVector<width>(beta2 + at_i);
  weft::Vec<float, width> norm2_out;
#pragma unroll
  for (int e = 0; e < width; ++e)
    norm2_out.at[e] = (residual2_v.at[e] - mu_out) * r_out * gamma2_v.at[e] + beta2_v.at[e];      // %24
  weft::storeVector<width>(norm2 + start + at_i, norm2_out);
}
