// layer_norm_dx_dropout__b_j_i_2    kernel 20 of paper-encoder, backward    (this header is not hashed)
//
//   ops        %38 = layer_norm_dx %36, %14, %gamma1, %15, %15 over i
//              %39 = dropout %38
//   space      b=8 j=512 | i=1024 (reduced)
//   reads      d_norm1[b,j,i] f16   residual1[b,j,i] f16   gamma1[i] f16   mean1[b,j] f32   rstd1[b,j] f32    16.8 MB
//   writes     d_residual1[b,j,i] f16   d_attention[b,j,i] f16    16.8 MB
//   flop       41.9 Mflop
//   config     vector 16 x f16 along i, one block of 64 threads a row    launch <<<4096, 64>>>
//   fused by   fuse: reduction-consumer
//   not fused  contract, bias, dropout, residual, layer_norm_dx: F031 forward-and-backward (attention_product, d_residual1)
//   not fused  bias, dropout, residual, layer_norm, layer_norm_dx: F031 forward-and-backward (attention, d_residual1)
#include "weft/dropout.cuh"
#include "weft/reduce.cuh"
#include "weft/types.cuh"
#include "weft/vector.cuh"

namespace {
constexpr int j = 512, i = 1024;                    // extents
constexpr int width = 16;                           // elements a thread takes along i
constexpr int threadsPerRow = 64, rowsPerBlock = 1;
constexpr unsigned dropThreshold = 6554u;           // 0.1 of 65536 draws
constexpr float keepScale = 1.1111112f;
}  // namespace

extern "C" __global__ void __launch_bounds__(rowsPerBlock * threadsPerRow)
layer_norm_dx_dropout_f16_8x512x1024(const weft::half *__restrict__ d_norm1, const weft::half *__restrict__ residual1,
                                     const weft::half *__restrict__ gamma1, const float *__restrict__ mean1,
                                     const float *__restrict__ rstd1, weft::half *__restrict__ d_residual1,
                                     weft::half *__restrict__ d_attention,
                                     const weft::DropoutKey *__restrict__ dropoutKey, unsigned dropoutStream) {
  static_assert(j == 512 && i == 1024, "plan.json: these extents");
  static_assert((4096 + rowsPerBlock - 1) / rowsPerBlock == 4096, "plan.json: 4096 blocks");
  static_assert(rowsPerBlock * threadsPerRow == 64, "plan.json: 64 threads a block");
  static_assert(width == 16 && threadsPerRow == 64 && rowsPerBlock == 1, "plan.json: these knobs");
  __shared__ float scratch[2][rowsPerBlock * threadsPerRow / 32];                 // a float a warp for each reduction
  const int lane = threadIdx.x;
  const int row = blockIdx.x;                                                                     // (b, j), b slowest
  const int at_b = row / j;
  const int at_j = row % j;
  const int start = row * i;
  const weft::DropoutKey key = *dropoutKey;                           // seed and step: a replay must not repeat masks

  const auto mean1_e = weft::loadOne(mean1 + row);
  const auto rstd1_e = weft::loadOne(rstd1 + row);
  weft::Vec<float, width> scaled;                                                                 // kept on chip
  weft::Vec<float, width> normalized;                                                             // kept on chip
  float products = 0.0f;
  float total = 0.0f;
  const int at_i = lane * width;
  const auto d_norm1_v = weft::loadVector<width>(d_norm1 + start + at_i);
  const auto gamma1_v = weft::loadVector<width>(gamma1 + at_i);
  const auto residual1_v = weft::loadVector<width>(residual1 + start + at_i);
#pragma unroll
  for (int e = 0; e < width; ++e) {
    scaled.at[e] = d_norm1_v.at[e] * gamma1_v.at[e];
    normalized.at[e] = (residual1_v.at[e] - mean1_e) * rstd1_e;
    const float product = scaled.at[e] * normalized.at[e];
    products += product;
    total += scaled.at[e];
  }
  products = weft::blockSum<threadsPerRow>(products, scratch[0]);
  total = weft::blockSum<threadsPerRow>(total, scratch[1]);

  const float slope = products / i;
  const float offset = total / i;
  weft::Vec<float, width> d_residual1_out;
  const auto kept = weft::keptColumns<width>(key, dropoutStream, at_b, at_j, at_i, dropThreshold);
  weft::Vec<float, width> d_attention_out;
#pragma unroll
  for (int e = 0; e < width; ++e) {
    d_residual1_out.at[e] = rstd1_e * (scaled.at[e] - offset - normalized.at[e] * slope);         // %38
    d_attention_out.at[e] = kept.at(e) ? d_residual1_out.at[e] * keepScale : 0.0f;                // %39
  }
  weft::storeVector<width>(d_residual1 + start + at_i, d_residual1_out);
  weft::storeVector<width>(d_attention + start + at_i, d_attention_out);
}
