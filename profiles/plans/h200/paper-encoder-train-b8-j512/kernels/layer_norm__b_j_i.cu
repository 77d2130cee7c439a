// layer_norm__b_j_i    kernel 9 of paper-encoder, forward    (this header is not hashed)
//
//   ops        %15, %15, %15 = layer_norm %14, %gamma1, %beta1 over i
//   space      b=8 j=512 | i=1024 (reduced)
//   reads      residual1[b,j,i] f16   gamma1[i] f16   beta1[i] f16    8.39 MB
//   writes     norm1[b,j,i] f16   mean1[b,j] f32   rstd1[b,j] f32    8.42 MB
//   flop       29.4 Mflop
//   config     vector 4 x f16 along i, one warp a row, 2 rows a block    launch <<<2048, 64>>>
//   not fused  contract, bias, dropout, residual, layer_norm: F024 no-epilogue ('layer_norm' is of class normalization; an epilogue is element-wise)
//   not fused  bias, dropout, residual, layer_norm, layer_norm_dx: F031 forward-and-backward (attention, d_residual1)
#include "weft/math.cuh"
#include "weft/reduce.cuh"
#include "weft/types.cuh"
#include "weft/vector.cuh"

namespace {
constexpr int i = 1024;                             // extents
constexpr int width = 4;                            // elements a thread takes along i
constexpr int threadsPerRow = 32, rowsPerBlock = 2;
constexpr int steps = i / (width * threadsPerRow);  // a thread's share of a row
constexpr float epsilon = 1e-05f;
}  // namespace

extern "C" __global__ void __launch_bounds__(rowsPerBlock * threadsPerRow)
layer_norm_f16_8x512x1024(const weft::half *__restrict__ residual1, const weft::half *__restrict__ gamma1,
                          const weft::half *__restrict__ beta1, weft::half *__restrict__ norm1,
                          float *__restrict__ mean1, float *__restrict__ rstd1) {
  static_assert(i == 1024, "plan.json: these extents");
  static_assert((4096 + rowsPerBlock - 1) / rowsPerBlock == 2048, "plan.json: 2048 blocks");
  static_assert(rowsPerBlock * threadsPerRow == 64, "plan.json: 64 threads a block");
  static_assert(width == 4 && threadsPerRow == 32 && rowsPerBlock == 2 && steps == 8, "plan.json: these knobs");
  const int lane = threadIdx.x % threadsPerRow;
  const int row = blockIdx.x * rowsPerBlock + threadIdx.x / threadsPerRow;                        // (b, j), b slowest
  const int start = row * i;

  weft::Packed<weft::half, width> residual1_row[steps];
#pragma unroll
  for (int v = 0; v < steps; ++v) {
    const int at_i = (v * threadsPerRow + lane) * width;
    residual1_row[v] = weft::loadPacked<width>(residual1 + start + at_i);
  }

  float total = 0.0f;
#pragma unroll
  for (int v = 0; v < steps; ++v) {
    const auto residual1_v = weft::unpack(residual1_row[v]);
#pragma unroll
    for (int e = 0; e < width; ++e)
      total += residual1_v.at[e];
  }
  total = weft::warpSum<threadsPerRow>(total);

  const float mu_out = total / i;                                                                 // %15
  if (lane == 0)
    weft::storeOne(mean1 + row, mu_out);
  float squares = 0.0f;
#pragma unroll
  for (int v = 0; v < steps; ++v) {
    const auto residual1_v = weft::unpack(residual1_row[v]);
#pragma unroll
    for (int e = 0; e < width; ++e) {
      const float square = (residual1_v.at[e] - mu_out) * (residual1_v.at[e] - mu_out);
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
    const auto residual1_v = weft::unpack(residual1_row[v]);
    const auto gamma1_v = weft::loadVector<width>(gamma1 + at_i);
    const auto beta1_v = weft::loadVector<width>(beta1 + at_i);
    weft::Vec<float, width> norm1_out;
#pragma unroll
    for (int e = 0; e < width; ++e)
      norm1_out.at[e] = (residual1_v.at[e] - mu_out) * r_out * gamma1_v.at[e] + beta1_v.at[e];    // %15
    weft::storeVector<width>(norm1 + start + at_i, norm1_out);
  }
}
