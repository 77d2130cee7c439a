// reduce__i    kernel 21 of paper-encoder, backward    (this header is not hashed)
//
//   ops        %40 = reduce %39 over b, j
//   space      i=1024 | b=96 j=128 (reduced)
//   reads      d_attention[b,j,i] f16    25.2 MB
//   writes     d_bo[i] f16    2.05 kB
//   flop       12.6 Mflop
//   config     vector 4 x f16 along i, 8 threads a column, 32 columns a block, 64 blocks of the grid a column    launch <<<512, 256>>>
//   not fused  add, layer_norm_dx, dropout, reduce: F012 reduction-axis-mismatch (i against b,j)
//   not fused  layer_norm_dx, dropout, reduce: F012 reduction-axis-mismatch (i against b,j)
#include "weft/grid.cuh"
#include "weft/types.cuh"
#include "weft/vector.cuh"

namespace {
constexpr int i = 1024, b = 96, j = 128;            // extents
constexpr int width = 4;                            // elements a thread takes along i
constexpr int threadsPerColumn = 8, columnsPerBlock = 32;
constexpr int blocksPerColumn = 64;
constexpr int parts = threadsPerColumn * blocksPerColumn;  // threads of the grid that share a column
constexpr int steps = b * j / parts;                // a thread's share of a column
__device__ weft::GridPartials<8, blocksPerColumn, 1 * columnsPerBlock * width> acrossBlocks;
}  // namespace

extern "C" __global__ void __launch_bounds__(columnsPerBlock * threadsPerColumn)
reduce_f16_96x128x1024(const weft::half *__restrict__ d_attention, weft::half *__restrict__ d_bo) {
  static_assert(b == 96 && j == 128 && i == 1024, "plan.json: these extents");
  static_assert((1024 / width + columnsPerBlock - 1) / columnsPerBlock * blocksPerColumn == 512, "plan.json: 512 blocks");
  static_assert(columnsPerBlock * threadsPerColumn == 256, "plan.json: 256 threads a block");
  static_assert(width == 4 && threadsPerColumn == 8 && columnsPerBlock == 32 && blocksPerColumn == 64 && parts == 512 && steps == 24, "plan.json: these knobs");
  static_assert(sizeof(acrossBlocks) == sizeof(weft::GridPartials<8, blocksPerColumn, 1 * columnsPerBlock * width>), "plan.json: device memory");
  __shared__ weft::GridScratch<columnsPerBlock, threadsPerColumn, width, 1> scratch;
  const int part = blockIdx.x % blocksPerColumn * threadsPerColumn + threadIdx.x / columnsPerBlock;
  // (i), 4 of i at once
  const int column = blockIdx.x / blocksPerColumn * columnsPerBlock + threadIdx.x % columnsPerBlock;
  const int at_i = column * width;

  weft::Vec<float, width> d_bo_out = {};
  constexpr int stepsInFlight = 8;
  constexpr int batches = steps / stepsInFlight;
#pragma unroll 1
  for (int batch = 0; batch < batches; ++batch) {
    weft::Packed<weft::half, width> d_attention_row[stepsInFlight];
#pragma unroll
    for (int n = 0; n < stepsInFlight; ++n) {
      const int v = batch * stepsInFlight + n;
      const int v_flat = v * parts + part;
      d_attention_row[n] = weft::loadPacked<width>(d_attention + at_i + v_flat * i);
    }
#pragma unroll
    for (int n = 0; n < stepsInFlight; ++n) {
      const auto d_attention_v = weft::unpack(d_attention_row[n]);
#pragma unroll
      for (int e = 0; e < width; ++e)
        d_bo_out.at[e] += d_attention_v.at[e];
    }
  }
  if (!weft::gridColumnSums(scratch, acrossBlocks, d_bo_out)) return;

  if (threadIdx.x < columnsPerBlock)
    weft::storeVector<width>(d_bo + at_i, d_bo_out);
}
