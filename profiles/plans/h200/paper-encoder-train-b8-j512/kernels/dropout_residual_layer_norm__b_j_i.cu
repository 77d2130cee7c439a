// dropout_residual_layer_norm__b_j_i    kernel 9 of paper-encoder, forward    (this header is not hashed)
//
//   ops        %13 = dropout %12
//              %14 = residual %13, %x
//              %15, %15, %15 = layer_norm %14, %gamma1, %beta1 over i
//   space      b=8 j=512 | i=1024 (reduced)
//   reads      attention[b,j,i] f16   x[b,j,i] f16   gamma1[i] f16   beta1[i] f16    16.8 MB
//   writes     residual1[b,j,i] f16   norm1[b,j,i] f16   mean1[b,j] f32   rstd1[b,j] f32    16.8 MB
//   flop       37.7 Mflop
//   config     vector 2 x f16 along i, one warp a row, 2 rows a block    launch <<<2048, 64>>>
//   fused by   fuse: producer-consumer + reduction-consumer
//   not fused  contract, bias, dropout, residual, layer_norm: F024 no-epilogue ('layer_norm' is of class normalization; an epilogue is element-wise)
//   not fused  contract, bias, dropout, residual, layer_norm_dw: F031 forward-and-backward (attention_product, d_gamma1)
#include "weft/dropout.cuh"
#include "weft/math.cuh"
#include "weft/reduce.cuh"
#include "weft/types.cuh"
#include "weft/vector.cuh"

namespace {
constexpr int j = 512, i = 1024;                    // extents
constexpr int width = 2;                            // elements a thread takes along i
constexpr int threadsPerRow = 32, rowsPerBlock = 2;
constexpr int steps = i / (width * threadsPerRow);  // a thread's share of a row
constexpr unsigned dropThreshold = 6554u;           // 0.1 of 65536 draws
constexpr float keepScale = 1.1111112f;
constexpr float epsilon = 1e-05f;
}  // namespace

extern "C" __global__ void __launch_bounds__(rowsPerBlock * threadsPerRow)
dropout_residual_layer_norm_b_j_i(const weft::half *__restrict__ attention, const weft::half *__restrict__ x,
                                  const weft::half *__restrict__ gamma1, const weft::half *__restrict__ beta1,
                                  weft::half *__restrict__ residual1, weft::half *__restrict__ norm1,
                                  float *__restrict__ mean1, float *__restrict__ rstd1,
                                  const weft::DropoutKey *__restrict__ dropoutKey, unsigned dropoutStream) {
  const int lane = threadIdx.x % threadsPerRow;
  const int row = blockIdx.x * rowsPerBlock + threadIdx.x / threadsPerRow;                        // (b, j), b slowest
  const int at_b = row / j;
  const int at_j = row % j;
  const int start = row * i;

  weft::Packed<weft::half, width> attention_row[steps];
  weft::Kept<width> kept_row[steps];
  weft::Packed<weft::half, width> x_row[steps];
  const auto seed = weft::loadSeedInOrder(dropoutKey);
#pragma unroll
  for (int v = 0; v < steps; ++v) {
    const int at_i = (v * threadsPerRow + lane) * width;
    attention_row[v] = weft::loadPackedInOrder<width>(attention + start + at_i);
    x_row[v] = weft::loadPackedInOrder<width>(x + start + at_i);
  }
  // seed and step: a replay must not repeat masks
  const weft::DropoutKey key = weft::loadStepInOrder(dropoutKey, seed);
#pragma unroll
  for (int v = 0; v < steps; ++v) {
    const int at_i = (v * threadsPerRow + lane) * width;
    kept_row[v] = weft::keptColumns<width>(key, dropoutStream, at_b, at_j, at_i, dropThreshold);
  }

  weft::Vec<float, width> residual1_out[steps];                                                   // kept on chip
  float total = 0.0f;
#pragma unroll
  for (int v = 0; v < steps; ++v) {
    const int at_i = (v * threadsPerRow + lane) * width;
    const auto attention_v = weft::unpack(attention_row[v]);
    const auto x_v = weft::unpack(x_row[v]);
#pragma unroll
    for (int e = 0; e < width; ++e) {
      const float attention_kept = kept_row[v].at(e) ? attention_v.at[e] * keepScale : 0.0f;      // %13
      residual1_out[v].at[e] = attention_kept + x_v.at[e];                                        // %14
      total += residual1_out[v].at[e];
    }
    weft::storeVector<width>(residual1 + start + at_i, residual1_out[v]);
  }
  total = weft::warpSum<threadsPerRow>(total);

  const float mu_out = total / i;                                                                 // %15
  if (lane == 0)
    weft::storeOne(mean1 + row, mu_out);
  float squares = 0.0f;
#pragma unroll
  for (int v = 0; v < steps; ++v) {
#pragma unroll
    for (int e = 0; e < width; ++e) {
      const float square = (residual1_out[v].at[e] - mu_out) * (residual1_out[v].at[e] - mu_out);
      squares += square;
    }
  }
  squares = weft::warpSum<threadsPerRow>(squares);

  const float r_out = weft::rsqrt(squares / i + epsilon);                                         // %15
  if (lane == 0)
    weft::storeOne(rstd1 + row, r_out);
#pragma unroll
  for (int v = 0; v < steps; ++v) {
    const int at_i = (v * threadsPerRow + lane) * width;
    const auto gamma1_v = weft::loadVector<width>(gamma1 + at_i);
    const auto beta1_v = weft::loadVector<width>(beta1 + at_i);
    weft::Vec<float, width> norm1_out;
#pragma unroll
    for (int e = 0; e < width; ++e)
      norm1_out.at[e] = (residual1_out[v].at[e] - mu_out) * r_out * gamma1_v.at[e] + beta1_v.at[e];  // %15
    weft::storeVector<width>(norm1 + start + at_i, norm1_out);
  }
}
