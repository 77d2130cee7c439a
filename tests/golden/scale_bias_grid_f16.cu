// scale_bias    (this header is not hashed)
//
//   ops        centred = sub x, mean
//              normalized = mul centred, rstd
//              product = mul dy, normalized
//              dgamma = reduce product
//              dbeta = reduce dy
//   space      i=1024 | b=8 j=512 (reduced)
//   reads      dy[b,j,i] f16   x[b,j,i] f16   mean[b,j] f32   rstd[b,j] f32    16.8 MB
//   writes     dgamma[i] f16   dbeta[i] f16    4.10 kB
//   flop       12.6 Mflop
//   config     vector 8 x f16 along i, 16 threads a column, 16 columns a block, 32 blocks of the grid a column    launch <<<256, 256>>>
#include "weft/grid.cuh"
#include "weft/types.cuh"
#include "weft/vector.cuh"

namespace {
constexpr int i = 1024, b = 8, j = 512;             // extents
constexpr int width = 8;                            // elements a thread takes along i
constexpr int threadsPerColumn = 16, columnsPerBlock = 16;
constexpr int blocksPerColumn = 32;
constexpr int parts = threadsPerColumn * blocksPerColumn;  // threads of the grid that share a column
constexpr int steps = b * j / parts;                // a thread's share of a column
__device__ weft::GridPartials<8, blocksPerColumn, 2 * columnsPerBlock * width> acrossBlocks;
}  // namespace

extern "C" __global__ void __launch_bounds__(columnsPerBlock * threadsPerColumn)
sub_mul_x2_reduce_x2_f16_8x512x1024(const weft::half *__restrict__ dy, const weft::half *__restrict__ x,
                                    const float *__restrict__ mean, const float *__restrict__ rstd,
                                    weft::half *__restrict__ dgamma, weft::half *__restrict__ dbeta) {
  static_assert(b == 8 && j == 512 && i == 1024, "plan.json: these extents");
  static_assert((1024 / width + columnsPerBlock - 1) / columnsPerBlock * blocksPerColumn == 256, "plan.json: 256 blocks");
  static_assert(columnsPerBlock * threadsPerColumn == 256, "plan.json: 256 threads a block");
  static_assert(width == 8 && threadsPerColumn == 16 && columnsPerBlock == 16 && blocksPerColumn == 32 && parts == 512 && steps == 8, "plan.json: these knobs");
  static_assert(sizeof(acrossBlocks) == sizeof(weft::GridPartials<8, blocksPerColumn, 2 * columnsPerBlock * width>), "plan.json: device memory");
  __shared__ weft::GridScratch<columnsPerBlock, threadsPerColumn, width, 2> scratch;
  const int part = blockIdx.x % blocksPerColumn * threadsPerColumn + threadIdx.x / columnsPerBlock;
  // (i), 8 of i at once
  const int column = blockIdx.x / blocksPerColumn * columnsPerBlock + threadIdx.x % columnsPerBlock;
  const int at_i = column * width;

  weft::Packed<weft::half, width> dy_row[steps];
  weft::Packed<weft::half, width> x_row[steps];
#pragma unroll
  for (int v = 0; v < steps; ++v) {
    const int v_flat = v * parts + part;
    dy_row[v] = weft::loadPacked<width>(dy + at_i + v_flat * i);
    x_row[v] = weft::loadPacked<width>(x + at_i + v_flat * i);
  }

  weft::Vec<float, width> dgamma_out = {};
  weft::Vec<float, width> dbeta_out = {};
#pragma unroll
  for (int v = 0; v < steps; ++v) {
    const int v_flat = v * parts + part;
    const auto dy_v = weft::unpack(dy_row[v]);
    const auto x_v = weft::unpack(x_row[v]);
    const auto mean_e = weft::loadOne(mean + v_flat);
    const auto rstd_e = weft::loadOne(rstd + v_flat);
#pragma unroll
    for (int e = 0; e < width; ++e) {
      const float centred = x_v.at[e] - mean_e;                                                   // %20
      const float normalized = centred * rstd_e;                                                  // %21
      const float product = dy_v.at[e] * normalized;                                              // %22
      dgamma_out.at[e] += product;
      dbeta_out.at[e] += dy_v.at[e];
    }
  }
  if (!weft::gridColumnSums(scratch, acrossBlocks, dgamma_out, dbeta_out)) return;

  if (threadIdx.x < columnsPerBlock) {
    weft::storeVector<width>(dgamma + at_i, dgamma_out);
    weft::storeVector<width>(dbeta + at_i, dbeta_out);
  }
}
