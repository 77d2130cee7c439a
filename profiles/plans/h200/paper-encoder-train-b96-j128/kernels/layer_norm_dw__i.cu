// layer_norm_dw__i    kernel 19 of paper-encoder, backward    (this header is not hashed)
//
//   ops        %37, %37 = layer_norm_dw %36, %14, %15, %15 over b, j
//   space      i=1024 | b=96 j=128 (reduced)
//   reads      d_norm1[b,j,i] f16   residual1[b,j,i] f16   mean1[b,j] f32   rstd1[b,j] f32    50.4 MB
//   writes     d_gamma1[i] f16   d_beta1[i] f16    4.10 kB
//   flop       50.3 Mflop
//   config     vector 8 x f16 along i, 32 threads a column, 16 columns a block, 32 blocks of the grid a column    launch <<<256, 512>>>
//   not fused  contract, bias, dropout, residual, layer_norm_dw: F031 forward-and-backward (attention_product, d_gamma1)
//   not fused  bias, dropout, residual, layer_norm, layer_norm_dw: F031 forward-and-backward (attention, d_gamma1)
#include "weft/grid.cuh"
#include "weft/types.cuh"
#include "weft/vector.cuh"

namespace {
constexpr int i = 1024, b = 96, j = 128;            // extents
constexpr int width = 8;                            // elements a thread takes along i
constexpr int threadsPerColumn = 32, columnsPerBlock = 16;
constexpr int blocksPerColumn = 32;
constexpr int parts = threadsPerColumn * blocksPerColumn;  // threads of the grid that share a column
constexpr int steps = b * j / parts;                // a thread's share of a column
__device__ weft::GridPartials<8, blocksPerColumn, 2 * columnsPerBlock * width> acrossBlocks;
}  // namespace

extern "C" __global__ void __launch_bounds__(columnsPerBlock * threadsPerColumn)
layer_norm_dw_f16_96x128x1024(const weft::half *__restrict__ d_norm1, const weft::half *__restrict__ residual1,
                              const float *__restrict__ mean1, const float *__restrict__ rstd1,
                              weft::half *__restrict__ d_gamma1, weft::half *__restrict__ d_beta1) {
  static_assert(b == 96 && j == 128 && i == 1024, "plan.json: these extents");
  static_assert((1024 / width + columnsPerBlock - 1) / columnsPerBlock * blocksPerColumn == 256, "plan.json: 256 blocks");
  static_assert(columnsPerBlock * threadsPerColumn == 512, "plan.json: 512 threads a block");
  static_assert(width == 8 && threadsPerColumn == 32 && columnsPerBlock == 16 && blocksPerColumn == 32 && parts == 1024 && steps == 12, "plan.json: these knobs");
  static_assert(sizeof(acrossBlocks) == sizeof(weft::GridPartials<8, blocksPerColumn, 2 * columnsPerBlock * width>), "plan.json: device memory");
  __shared__ weft::GridScratch<columnsPerBlock, threadsPerColumn, width, 2> scratch;
  const int part = blockIdx.x % blocksPerColumn * threadsPerColumn + threadIdx.x / columnsPerBlock;
  // (i), 8 of i at once
  const int column = blockIdx.x / blocksPerColumn * columnsPerBlock + threadIdx.x % columnsPerBlock;
  const int at_i = column * width;

  weft::Vec<float, width> d_gamma1_out = {};
  weft::Vec<float, width> d_beta1_out = {};
  constexpr int stepsInFlight = 4;
  constexpr int batches = steps / stepsInFlight;
#pragma unroll 1
  for (int batch = 0; batch < batches; ++batch) {
    weft::Packed<weft::half, width> d_norm1_row[stepsInFlight];
    weft::Packed<weft::half, width> residual1_row[stepsInFlight];
    float mean1_row[stepsInFlight];
    float rstd1_row[stepsInFlight];
#pragma unroll
    for (int n = 0; n < stepsInFlight; ++n) {
      const int v = batch * stepsInFlight + n;
      const int v_flat = v * parts + part;
      d_norm1_row[n] = weft::loadPacked<width>(d_norm1 + at_i + v_flat * i);
      residual1_row[n] = weft::loadPacked<width>(residual1 + at_i + v_flat * i);
      mean1_row[n] = weft::loadOne(mean1 + v_flat);
      rstd1_row[n] = weft::loadOne(rstd1 + v_flat);
    }
#pragma unroll
    for (int n = 0; n < stepsInFlight; ++n) {
      const auto d_norm1_v = weft::unpack(d_norm1_row[n]);
      const auto residual1_v = weft::unpack(residual1_row[n]);
#pragma unroll
      for (int e = 0; e < width; ++e) {
        const float normalized = (residual1_v.at[e] - mean1_row[n]) * rstd1_row[n];
        const float product = d_norm1_v.at[e] * normalized;
        d_gamma1_out.at[e] += product;
        d_beta1_out.at[e] += d_norm1_v.at[e];
      }
    }
  }
  if (!weft::gridColumnSums(scratch, acrossBlocks, d_gamma1_out, d_beta1_out)) return;

  if (threadIdx.x < columnsPerBlock) {
    weft::storeVector<width>(d_gamma1 + at_i, d_gamma1_out);
    weft::storeVector<width>(d_beta1 + at_i, d_beta1_out);
  }
}
