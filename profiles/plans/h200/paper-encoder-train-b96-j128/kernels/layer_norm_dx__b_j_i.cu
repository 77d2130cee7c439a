// layer_norm_dx__b_j_i    kernel 13 of paper-encoder, backward    (this header is not hashed)
//
//   ops        %26 = layer_norm_dx %d_norm2, %23, %gamma2, %24, %24 over i
//   space      b=96 j=128 | i=1024 (reduced)
//   reads      d_norm2[b,j,i] f16   residual2[b,j,i] f16   gamma2[i] f16   mean2[b,j] f32   rstd2[b,j] f32    50.4 MB
//   writes     d_residual2[b,j,i] f16    25.2 MB
//   flop       113 Mflop
//   config     vector 4 x f16 along i, one block of 128 threads a row    launch <<<12288, 128>>>
//   not fused  contract, bias, dropout, residual, layer_norm_dx: F031 forward-and-backward (feed_forward_product, d_residual2)
//   not fused  bias, dropout, residual, layer_norm, layer_norm_dx: F031 forward-and-backward (feed_forward, d_residual2)
#include "weft/reduce.cuh"
#include "weft/types.cuh"
#include "weft/vector.cuh"

namespace {
constexpr int i = 1024;                             // extents
constexpr int width = 4;                            // elements a thread takes along i
constexpr int threadsPerRow = 128, rowsPerBlock = 1;
constexpr int steps = i / (width * threadsPerRow);  // a thread's share of a row
}  // namespace

extern "C" __global__ void __launch_bounds__(rowsPerBlock * threadsPerRow)
layer_norm_dx_f16_96x128x1024(const weft::half *__restrict__ d_norm2, const weft::half *__restrict__ residual2,
                              const weft::half *__restrict__ gamma2, const float *__restrict__ mean2,
                              const float *__restrict__ rstd2, weft::half *__restrict__ d_residual2) {
  static_assert(i == 1024, "plan.json: these extents");
  static_assert((12288 + rowsPerBlock - 1) / rowsPerBlock == 12288, "plan.json: 12288 blocks");
  static_assert(rowsPerBlock * threadsPerRow == 128, "plan.json: 128 threads a block");
  static_assert(width == 4 && threadsPerRow == 128 && rowsPerBlock == 1 && steps == 2, "plan.json: these knobs");
  __shared__ float scratch[2][rowsPerBlock * threadsPerRow / 32];                 // a float a warp for each reduction
  const int lane = threadIdx.x;
  const int row = blockIdx.x;                                                                     // (b, j), b slowest
  const int start = row * i;

  weft::Packed<weft::half, width> d_norm2_row[steps];
  weft::Packed<weft::half, width> residual2_row[steps];
#pragma unroll
  for (int v = 0; v < steps; ++v) {
    const int at_i = (v * threadsPerRow + lane) * width;
    d_norm2_row[v] = weft::loadPacked<width>(d_norm2 + start + at_i);
    residual2_row[v] = weft::loadPacked<width>(residual2 + start + at_i);
  }

  const auto mean2_e = weft::loadOne(mean2 + row);
  const auto rstd2_e = weft::loadOne(rstd2 + row);
  weft::Vec<float, width> scaled[steps];                                                          // kept on chip
  weft::Vec<float, width> normalized[steps];                                                      // kept on chip
  float products = 0.0f;
  float total = 0.0f;
#pragma unroll
  for (int v = 0; v < steps; ++v) {
    const int at_i = (v * threadsPerRow + lane) * width;
    const auto d_norm2_v = weft::unpack(d_norm2_row[v]);
    const auto gamma2_v = weft::loadVector<width>(gamma2 + at_i);
    const auto residual2_v = weft::unpack(residual2_row[v]);
#pragma unroll
    for (int e = 0; e < width; ++e) {
      scaled[v].at[e] = d_norm2_v.at[e] * gamma2_v.at[e];
      normalized[v].at[e] = (residual2_v.at[e] - mean2_e) * rstd2_e;
      const float product = scaled[v].at[e] * normalized[v].at[e];
      products += product;
      total += scaled[v].at[e];
    }
  }
  products = weft::blockSum<threadsPerRow>(products, scratch[0]);
  total = weft::blockSum<threadsPerRow>(total, scratch[1]);

  const float slope = products / i;
  const float offset = total / i;
#pragma unroll
  for (int v = 0; v < steps; ++v) {
    const int at_i = (v * threadsPerRow + lane) * width;
    weft::Vec<float, width> d_residual2_out;
#pragma unroll
    for (int e = 0; e < width; ++e)
      d_residual2_out.at[e] = rstd2_e * (scaled[v].at[e] - offset - normalized[v].at[e] * slope);  // %26
    weft::storeVector<width>(d_residual2 + start + at_i, d_residual2_out);
  }
}
