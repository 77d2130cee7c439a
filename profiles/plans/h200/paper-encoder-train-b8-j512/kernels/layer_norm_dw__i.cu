// layer_norm_dw__i    kernel 19 of paper-encoder, backward    (this header is not hashed)
//
//   ops        %37, %37 = layer_norm_dw %36, %14, %15, %15 over b, j
//   space      i=1024 | b=8 j=512 (reduced)
//   reads      d_norm1[b,j,i] f16   residual1[b,j,i] f16   mean1[b,j] f32   rstd1[b,j] f32    16.8 MB
//   writes     d_gamma1[i] f16   d_beta1[i] f16    4.10 kB
//   flop       16.8 Mflop
//   config     vector 4 x f16 along i, 16 threads a column, 16 columns a block, 32 blocks of the grid a column    launch <<<512, 256>>>
//   not fused  contract, bias, dropout, residual, layer_norm_dw: F031 forward-and-backward (attention_product, d_gamma1)
//   not fused  bias, dropout, residual, layer_norm, layer_norm_dw: F031 forward-and-backward (attention, d_gamma1)
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
layer_norm_dw_f16_8x512x1024(const weft::half *__restrict__ d_norm1, const weft::half *__restrict__ residual1,
                             const float *__restrict__ mean1, const float *__restrict__ rstd1,
                             weft::half *__restrict__ d_gamma1, weft::half *__restrict__ d_beta1) {
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

  weft::Packed<weft::half, width> d_norm1_row[steps];
  weft::Packed<weft::half, width> residual1_row[steps];
#pragma unroll
  for (int v = 0; v < steps; ++v) {
    const int v_flat = v * parts + part;
    d_norm1_row[v] = weft::loadPacked<width>(d_norm1 + at_i + v_flat * i);
    residual1_row[v] = weft::loadPacked<width>(residual1 + at_i + v_flat * i);
  }

  weft::Vec<float, width> d_gamma1_out = {};
  weft::Vec<float, width> d_beta1_out = {};
#pragma unroll
  for (int v = 0; v < steps; ++v) {
    const int v_flat = v * parts + part;
    const auto d_norm1_v = weft::unpack(d_norm1_row[v]);
    const auto residual1_v = weft::unpack(residual1_row[v]);
    const auto mean1_e = weft::loadOne(mean1 + v_flat);
    const auto rstd1_e = weft::loadOne(rstd1 + v_flat);
#pragma unroll
    for (int e = 0; e < width; ++e) {
      const float normalized = (residual1_v.at[e] - mean1_e) * rstd1_e;
      const float product = d_norm1_v.at[e] * normalized;
      d_gamma1_out.at[e] += product;
      d_beta1_out.at[e] += d_norm1_v.at[e];
    }
  }
  if (!weft::gridColumnSums(scratch, acrossBlocks, d_gamma1_out, d_beta1_out)) return;

  if (threadIdx.x < columnsPerBlock) {
    weft::storeVector<width>(d_gamma1 + at_i, d_gamma1_out);
    weft::storeVector<width>(d_beta1 + at_i, d_beta1_out);
  }
}
