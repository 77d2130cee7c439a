// reduce__i_2    kernel 23 of paper-encoder, backward    (this header is not hashed)
//
//   ops        %40 = reduce %39 over b, j
//   space      i=1024 | b=8 j=512 (reduced)
//   reads      d_attention[b,j,i] f16    8.39 MB
//   writes     d_bo[i] f16    2.05 kB
//   flop       4.19 Mflop
//   config     vector 8 x f16 along i, 64 threads a column, 8 columns a block, clusters of 8 blocks    launch <<<128, 512>>>
//   not fused  add, layer_norm_dx, dropout, reduce: F012 reduction-axis-mismatch (i against b,j)
//   not fused  layer_norm_dx, dropout, reduce: F012 reduction-axis-mismatch (i against b,j)
#include "weft/columns.cuh"
#include "weft/types.cuh"
#include "weft/vector.cuh"

namespace {
constexpr int i = 1024, b = 8, j = 512;             // extents
constexpr int width = 8;                            // elements a thread takes along i
constexpr int threadsPerColumn = 64, columnsPerBlock = 8;
constexpr int blocksPerColumn = 8;                  // a cluster
constexpr int parts = threadsPerColumn * blocksPerColumn;  // threads of a cluster that share a column
constexpr int steps = b * j / parts;                // a thread's share of a column
}  // namespace

extern "C" __global__ void __cluster_dims__(blocksPerColumn) __launch_bounds__(columnsPerBlock * threadsPerColumn)
reduce_f16_8x512x1024(const weft::half *__restrict__ d_attention, weft::half *__restrict__ d_bo) {
  static_assert(b == 8 && j == 512 && i == 1024, "plan.json: these extents");
  static_assert((1024 / width + columnsPerBlock - 1) / columnsPerBlock * blocksPerColumn == 128, "plan.json: 128 blocks");
  static_assert(columnsPerBlock * threadsPerColumn == 512, "plan.json: 512 threads a block");
  static_assert(width == 8 && threadsPerColumn == 64 && columnsPerBlock == 8 && blocksPerColumn == 8 && parts == 512 && steps == 8, "plan.json: these knobs");
  __shared__ weft::ColumnScratch<columnsPerBlock, threadsPerColumn, width, 1> scratch;
  const int part = blockIdx.x % blocksPerColumn * threadsPerColumn + threadIdx.x / columnsPerBlock;
  // (i), 8 of i at once
  const int column = blockIdx.x / blocksPerColumn * columnsPerBlock + threadIdx.x % columnsPerBlock;
  const int at_i = column * width;

  weft::Packed<weft::half, width> d_attention_row[steps];
#pragma unroll
  for (int v = 0; v < steps; ++v) {
    const int v_flat = v * parts + part;
    d_attention_row[v] = weft::loadPacked<width>(d_attention + at_i + v_flat * i);
  }

  weft::Vec<float, width> d_bo_out = {};
#pragma unroll
  for (int v = 0; v < steps; ++v) {
    const auto d_attention_v = weft::unpack(d_attention_row[v]);
#pragma unroll
    for (int e = 0; e < width; ++e)
      d_bo_out.at[e] += d_attention_v.at[e];
  }
  weft::clusterColumnSums<blocksPerColumn>(scratch, d_bo_out);

  if (part == 0)
    weft::storeVector<width>(d_bo + at_i, d_bo_out);
}
