// bias_dropout_residual_layernorm    (this header is not hashed)
//
//   ops        biased = bias product, bias
//              dropped = dropout biased
//              residual = residual dropped, x
//              y, mean, rstd = layer_norm residual, gamma, beta
//   space      b=8 j=512 | i=1024 (reduced)
//   reads      product[b,j,i] f16   x[b,j,i] f16   bias[i] f16   gamma[i] f16   beta[i] f16    16.8 MB
//   writes     residual[b,j,i] f16   y[b,j,i] f16   mean[b,j] f32   rstd[b,j] f32    16.8 MB
//   flop       16.8 Mflop
//   config     vector 8 x f16 along i, one warp a row, 4 rows a block    launch <<<1024, 128>>>
#include "weft/dropout.cuh"
#include "weft/math.cuh"
#include "weft/reduce.cuh"
#include "weft/types.cuh"
#include "weft/vector.cuh"

namespace {
constexpr int j = 512, i = 1024;                    // extents
constexpr int width = 8;                            // elements a thread takes along i
constexpr int threadsPerRow = 32, rowsPerBlock = 4;
constexpr int steps = i / (width * threadsPerRow);  // a thread's share of a row
constexpr unsigned dropThreshold = 6554u;           // 0.1 of 65536 draws
constexpr float keepScale = 1.1111112f;
constexpr float epsilon = 1e-05f;
}  // namespace

extern "C" __global__ void __launch_bounds__(rowsPerBlock * threadsPerRow)
bias_dropout_residual_layer_norm_f16_8x512x1024(const weft::half *__restrict__ product,
                                                const weft::half *__restrict__ x, const weft::half *__restrict__ bias,
                                                const weft::half *__restrict__ gamma,
                                                const weft::half *__restrict__ beta,
                                                weft::half *__restrict__ residual, weft::half *__restrict__ y,
                                                float *__restrict__ mean, float *__restrict__ rstd,
                                                const weft::DropoutKey *__restrict__ dropoutKey,
                                                unsigned dropoutStream) {
  static_assert(j == 512 && i == 1024, "plan.json: these extents");
  static_assert((4096 + rowsPerBlock - 1) / rowsPerBlock == 1024, "plan.json: 1024 blocks");
  static_assert(rowsPerBlock * threadsPerRow == 128, "plan.json: 128 threads a block");
  static_assert(width == 8 && threadsPerRow == 32 && rowsPerBlock == 4 && steps == 4, "plan.json: these knobs");
  const int lane = threadIdx.x % threadsPerRow;
  const int row = blockIdx.x * rowsPerBlock + threadIdx.x / threadsPerRow;                        // (b, j), b slowest
  const int at_b = row / j;
  const int at_j = row % j;
  const int start = row * i;

  weft::Packed<weft::half, width> product_row[steps];
  weft::Kept<width> kept_row[steps];
  weft::Packed<weft::half, width> x_row[steps];
  const auto seed = weft::loadSeedInOrder(dropoutKey);
#pragma unroll
  for (int v = 0; v < steps; ++v) {
    const int at_i = (v * threadsPerRow + lane) * width;
    product_row[v] = weft::loadPackedInOrder<width>(product + start + at_i);
    x_row[v] = weft::loadPackedInOrder<width>(x + start + at_i);
  }
  // seed and step: a replay must not repeat masks
  const weft::DropoutKey key = weft::loadStepInOrder(dropoutKey, seed);
#pragma unroll
  for (int v = 0; v < steps; ++v) {
    const int at_i = (v * threadsPerRow + lane) * width;
    kept_row[v] = weft::keptColumnsPaired(key, dropoutStream, at_b, at_j, at_i, dropThreshold);
  }

  weft::Vec<float, width> residual_out[steps];                                                    // kept on chip
  float total = 0.0f;
#pragma unroll
  for (int v = 0; v < steps; ++v) {
    const int at_i = (v * threadsPerRow + lane) * width;
    const auto product_v = weft::unpack(product_row[v]);
    const auto bias_v = weft::loadVector<width>(bias + at_i);
    const auto x_v = weft::unpack(x_row[v]);
#pragma unroll
    for (int e = 0; e < width; ++e) {
      const float biased = product_v.at[e] + bias_v.at[e];                                        // %20
      const float dropped = kept_row[v].at(e) ? biased * keepScale : 0.0f;                        // %21
      residual_out[v].at[e] = dropped + x_v.at[e];                                                // %22
      total += residual_out[v].at[e];
    }
    weft::storeVector<width>(residual + start + at_i, residual_out[v]);
  }
  total = weft::warpSum<threadsPerRow>(total);

  const float mu_out = total / i;                                                                 // %23
  if (lane == 0)
    weft::storeOne(mean + row, mu_out);
  float squares = 0.0f;
#pragma unroll
  for (int v = 0; v < steps; ++v) {
#pragma unroll
    for (int e = 0; e < width; ++e) {
      const float square = (residual_out[v].at[e] - mu_out) * (residual_out[v].at[e] - mu_out);
      squares += square;
    }
  }
  squares = weft::warpSum<threadsPerRow>(squares);

  const float r_out = weft::rsqrt(squares / i + epsilon);                                         // %23
  if (lane == 0)
    weft::storeOne(rstd + row, r_out);
#pragma unroll
  for (int v = 0; v < steps; ++v) {
    const int at_i = (v * threadsPerRow + lane) * width;
    const auto gamma_v = weft::loadVector<width>(gamma + at_i);
    const auto beta_v = weft::loadVector<width>(beta + at_i);
    weft::Vec<float, width> y_out;
#pragma unroll
    for (int e = 0; e < width; ++e)
      y_out.at[e] = (residual_out[v].at[e] - mu_out) * r_out * gamma_v.at[e] + beta_v.at[e];      // %23
    weft::storeVector<width>(y + start + at_i, y_out);
  }
}
