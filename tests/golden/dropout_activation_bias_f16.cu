// dropout_activation_bias    (this header is not hashed)
//
//   ops        dropped = dropout dy
//              dx = mul dropped, slope
//              dbias = reduce dx
//   space      u=4096 | b=8 j=512 (reduced)
//   reads      dy[b,j,u] f16   slope[b,j,u] f16    67.1 MB
//   writes     dx[b,j,u] f16   dbias[u] f16    33.6 MB
//   flop       33.6 Mflop
//   config     vector 8 x f16 along u, 16 threads a column, 16 columns a block    launch <<<32, 256>>>
#include "weft/columns.cuh"
#include "weft/dropout.cuh"
#include "weft/types.cuh"
#include "weft/vector.cuh"

namespace {
constexpr int u = 4096, b = 8, j = 512;             // extents
constexpr int width = 8;                            // elements a thread takes along u
constexpr int threadsPerColumn = 16, columnsPerBlock = 16;
constexpr int steps = b * j / threadsPerColumn;     // a thread's share of a column
constexpr unsigned dropThreshold = 6554u;           // 0.1 of 65536 draws
constexpr float keepScale = 1.1111112f;
}  // namespace

extern "C" __global__ void __launch_bounds__(columnsPerBlock * threadsPerColumn)
dropout_mul_reduce_f16_8x512x4096(const weft::half *__restrict__ dy, const weft::half *__restrict__ slope,
                                  weft::half *__restrict__ dx, weft::half *__restrict__ dbias,
                                  const weft::DropoutKey *__restrict__ dropoutKey, unsigned dropoutStream) {
  static_assert(b == 8 && j == 512 && u == 4096, "plan.json: these extents");
  static_assert((4096 / width + columnsPerBlock - 1) / columnsPerBlock == 32, "plan.json: 32 blocks");
  static_assert(columnsPerBlock * threadsPerColumn == 256, "plan.json: 256 threads a block");
  static_assert(width == 8 && threadsPerColumn == 16 && columnsPerBlock == 16 && steps == 256, "plan.json: these knobs");
  __shared__ weft::ColumnScratch<columnsPerBlock, threadsPerColumn, width, 1> scratch;
  const int part = threadIdx.x / columnsPerBlock;
  const int column = blockIdx.x * columnsPerBlock + threadIdx.x % columnsPerBlock;              // (u), 8 of u at once
  const int at_u = column * width;
  const weft::DropoutKey key = *dropoutKey;                           // seed and step: a replay must not repeat masks

  weft::Vec<float, width> dbias_out = {};
#pragma unroll 8
  for (int v = 0; v < steps; ++v) {
    const int v_flat = v * threadsPerColumn + part;
    const int at_b = v_flat / j;
    const int at_j = v_flat % j;
    const auto dy_v = weft::loadVector<width>(dy + at_u + v_flat * u);
    const auto kept = weft::keptColumnsPaired(key, dropoutStream, at_b, at_j, at_u, dropThreshold);
    const auto slope_v = weft::loadVector<width>(slope + at_u + v_flat * u);
    weft::Vec<float, width> dx_out;
#pragma unroll
    for (int e = 0; e < width; ++e) {
      const float dropped = kept.at(e) ? dy_v.at[e] * keepScale : 0.0f;                           // %20
      dx_out.at[e] = dropped * slope_v.at[e];                                                     // %21
      dbias_out.at[e] += dx_out.at[e];
    }
    weft::storeVector<width>(dx + at_u + v_flat * u, dx_out);
  }
  weft::blockColumnSums(scratch, dbias_out);

  if (part == 0)
    weft::storeVector<width>(dbias + at_u, dbias_out);
}
