// token_bias_gradient    (this header is not hashed)
//
//   ops        dropped = dropout dy
//              product = mul dropped, slope
//              dx = mask product, offsets
//              dbias = reduce dx
//   space      n=9 u=4096 | t=4096 (reduced)
//   reads      dy[t,u] f16   slope[t,u] f16   offsets[n] i32    67.1 MB
//   writes     dx[t,u] f16   dbias[u] f16    33.6 MB
//   flop       50.3 Mflop
//   config     vector 8 x f16 along u, 4 lanes a column, 64 columns a block    launch <<<8, 256>>>
#include "weft/columns.cuh"
#include "weft/dropout.cuh"
#include "weft/types.cuh"
#include "weft/vector.cuh"

namespace {
constexpr int u = 4096, t = 4096;                   // extents
constexpr int width = 8;                            // elements a thread takes along u
constexpr int columnsPerWarp = 8;                   // neighbouring lanes
constexpr int threadsPerColumn = 4, columnsPerBlock = 64;
constexpr int steps = t / threadsPerColumn;         // a thread's share of a column
constexpr unsigned dropThreshold = 6554u;           // 0.1 of 65536 draws
constexpr float keepScale = 1.1111112f;
}  // namespace

extern "C" __global__ void __launch_bounds__(columnsPerBlock * threadsPerColumn)
dropout_mul_mask_reduce_f16_4096x4096(const weft::half *__restrict__ dy, const weft::half *__restrict__ slope,
                                      const int *__restrict__ offsets, weft::half *__restrict__ dx,
                                      weft::half *__restrict__ dbias, const weft::DropoutKey *__restrict__ dropoutKey,
                                      unsigned dropoutStream) {
  static_assert(t == 4096 && u == 4096, "plan.json: these extents");
  static_assert((4096 / width + columnsPerBlock - 1) / columnsPerBlock == 8, "plan.json: 8 blocks");
  static_assert(columnsPerBlock * threadsPerColumn == 256, "plan.json: 256 threads a block");
  static_assert(width == 8 && columnsPerWarp == 8 && threadsPerColumn == 4 && columnsPerBlock == 64 && steps == 1024, "plan.json: these knobs");
  const int part = threadIdx.x % 32 / columnsPerWarp;
  // (u), 8 of u at once
  const int column = blockIdx.x * columnsPerBlock + threadIdx.x / 32 * columnsPerWarp + threadIdx.x % columnsPerWarp;
  const int at_u = column * width;
  const auto tokens = weft::loadOne(offsets + 8);
  // steps in which some thread has a token
  const int tokenSteps = tokens < 1 ? 0 : tokens < t ? (tokens + threadsPerColumn - 1) / threadsPerColumn : steps;
#pragma unroll 4
  for (int stepBehind = 0; stepBehind < steps - tokenSteps; ++stepBehind) {
    const int v = tokenSteps + stepBehind;
    const int at_t = v * threadsPerColumn + part;
    weft::storeVector<width>(dx + at_u + at_t * u, weft::Vec<float, width>{});
  }
  const weft::DropoutKey key = *dropoutKey;                           // seed and step: a replay must not repeat masks

  const auto offsets_e = weft::loadOne(offsets + 8);
  weft::Vec<float, width> dbias_out = {};
#pragma unroll 4
  for (int v = 0; v < tokenSteps; ++v) {
    const int at_t = v * threadsPerColumn + part;
    const auto dy_v = weft::loadVector<width>(dy + at_u + at_t * u);
    const auto kept = weft::keptColumns<width>(key, dropoutStream, 0, at_t, at_u, dropThreshold);
    const auto slope_v = weft::loadVector<width>(slope + at_u + at_t * u);
    weft::Vec<float, width> dx_out;
#pragma unroll
    for (int e = 0; e < width; ++e) {
      const float dropped = kept.at(e) ? dy_v.at[e] * keepScale : 0.0f;                           // %20
      const float product = dropped * slope_v.at[e];                                              // %21
      dx_out.at[e] = at_t < offsets_e ? product : 0.0f;                                           // %22
      dbias_out.at[e] += dx_out.at[e];
    }
    weft::storeVector<width>(dx + at_u + at_t * u, dx_out);
  }
  weft::warpColumnSums<columnsPerWarp>(dbias_out);

  if (part == 0)
    weft::storeVector<width>(dbias + at_u, dbias_out);
}
