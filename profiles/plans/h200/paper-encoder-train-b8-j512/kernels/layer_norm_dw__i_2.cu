// layer_norm_dw__i_2    kernel 22 of paper-encoder, backward    (this header is not hashed)
//
//   ops        %25, %25 = layer_norm_dw %d_norm2, %23, %24, %24 over b, j
//   space      i=1024 | b=8 j=512 (reduced)
//   reads      d_norm2[b,j,i] f16   residual2[b,j,i] f16   mean2[b,j] f32   rstd2[b,j] f32    16.8 MB
//   writes     d_gamma2[i] f16   d_beta2[i] f16    4.10 kB
//   flop       16.8 Mflop
//   config     vector 4 x f16 along i, 16 threads a column, 16 columns a block, 32 blocks of the grid a column    launch <<<512, 256>>>
//   not fused  layer_norm_dw, dropout, softmax_dx: F012 reduction-axis-mismatch (b,j against k)
//   not fused  layer_norm_dw, scale, relu_dx, reduce: F012 reduction-axis-mismatch (b,j against b2,j2)
#include "weft/grid.cuh"
#include "weft/types.cuh"
#include "weft/vector.cuh"

namespace {
constexpr int i = 1024, b = 8, j = 512;             // extents
constexpr int width = 4;                            // elements a thread takes along i
constexpr int threadsPerColumn = 16, columnsPerBlock = 16;
constexpr int blocksPerColumn = 32;
constexpr int parts = threadsPerColumn * blocksPerColumn;  // threads of the grid that share a column
constexpr int steps = b * j / parts;                // a thread's share of a column
__device__ weft::GridPartials<16, blocksPerColumn, 2 * columnsPerBlock * width> acrossBlocks;
}  // namespace

extern "C" __global__ void __launch_bounds__(columnsPerBlock * threadsPerColumn)
layer_norm_dw_f16_8x512x1024(const weft::half *__restrict__ d_norm2, const weft::half *__restrict__ residual2,
                             const float *__restrict__ mean2, const float *__restrict__ rstd2,
                             weft::half *__restrict__ d_gamma2, weft::half *__restrict__ d_beta2) {
  static_assert(b == 8 && j == 512 && i == 1024, "plan.json: these extents");
  static_assert((1024 / width + columnsPerBlock - 1) / columnsPerBlock * blocksPerColumn == 512, "plan.json: 512 blocks");
  static_assert(columnsPerBlock * threadsPerColumn == 256, "plan.json: 256 threads a block");
  static_assert(width == 4 && threadsPerColumn == 16 && columnsPerBlock == 16 && blocksPerColumn == 32 && parts == 512 && steps == 8, "plan.json: these knobs");
  static_assert(sizeof(acrossBlocks) == sizeof(weft::GridPartials<16, blocksPerColumn, 2 * columnsPerBlock * width>), "plan.json: device memory");
  __shared__ weft::GridScratch<columnsPerBlock, threadsPerColumn, width, 2> scratch;
  const int part = blockIdx.x % blocksPerColumn * threadsPerColumn + threadIdx.x / columnsPerBlock;
  // (i), 4 of i at once
  const int column = blockIdx.x / blocksPerColumn * columnsPerBlock + threadIdx.x % columnsPerBlock;
  const int at_i = column * width;

  weft::Packed<weft::half, width> d_norm2_row[steps];
  weft::Packed<weft::half, width> residual2_row[steps];
#pragma unroll
  for (int v = 0; v < steps; ++v) {
    const int v_flat = v * parts + part;
    d_norm2_row[v] = weft::loadPacked<width>(d_norm2 + at_i + v_flat * i);
    residual2_row[v] = weft::loadPacked<width>(residual2 + at_i + v_flat * i);
  }

  weft::Vec<float, width> d_gamma2_out = {};
  weft::Vec<float, width> d_beta2_out = {};
#pragma unroll
  for (int v = 0; v < steps; ++v) {
    const int v_flat = v * parts + part;
    const auto d_norm2_v = weft::unpack(d_norm2_row[v]);
    const auto residual2_v = weft::unpack(residual2_row[v]);
    const auto mean2_e = weft::loadOne(mean2 + v_flat);
    const auto rstd2_e = weft::loadOne(rstd2 + v_flat);
#pragma unroll
    for (int e = 0; e < width; ++e) {
      const float normalized = (residual2_v.at[e] - mean2_e) * rstd2_e;
      const float product = d_norm2_v.at[e] * normalized;
      d_gamma2_out.at[e] += product;
      d_beta2_out.at[e] += d_norm2_v.at[e];
    }
  }
  if (!weft::gridColumnSums(scratch, acrossBlocks, d_gamma2_out, d_beta2_out)) return;

  if (threadIdx.x < columnsPerBlock) {
    weft::storeVector<width>(d_gamma2 + at_i, d_gamma2_out);
    weft::storeVector<width>(d_beta2 + at_i, d_beta2_out);
  }
}
