// reduce__p_h_2    kernel 34 of paper-encoder, backward    (this header is not hashed)
//
//   ops        %62 = reduce %52 over b, j
//   space      p=64 h=16 | b=96 j=128 (reduced)
//   reads      d_q[h,b,j,p] f16    25.2 MB
//   writes     d_bq[p,h] f16    2.05 kB
//   flop       12.6 Mflop
//   config     vector 2 x f16 along p, 32 threads a column, 16 columns a block, clusters of 8 blocks    launch <<<256, 512>>>
//   not fused  contract, reduce: F021 contraction-epilogue-off (gemm-sm90: 'reduce' to 'd_bq' runs over the members of a batched GEMM; cublaslt: 'reduce' is over 'd_q'; the library sums an operand, or the derivative of GELU; gemm-sm80: 'reduce' to 'd_bq' runs over the members of a batched GEMM)
//   not fused  concat, reduce: F060 movement-op (d_q_d_k_d_v)
#include "weft/columns.cuh"
#include "weft/types.cuh"
#include "weft/vector.cuh"

namespace {
constexpr int h = 16, p = 64, b = 96, j = 128;      // extents
constexpr int width = 2;                            // elements a thread takes along p
constexpr int threadsPerColumn = 32, columnsPerBlock = 16;
constexpr int blocksPerColumn = 8;                  // a cluster
constexpr int parts = threadsPerColumn * blocksPerColumn;  // threads of a cluster that share a column
constexpr int steps = b * j / parts;                // a thread's share of a column
}  // namespace

extern "C" __global__ void __cluster_dims__(blocksPerColumn) __launch_bounds__(columnsPerBlock * threadsPerColumn)
reduce_f16_64x16x96x128(const weft::half *__restrict__ d_q, weft::half *__restrict__ d_bq) {
  static_assert(p == 64 && h == 16 && b == 96 && j == 128, "plan.json: these extents");
  static_assert((64 / width * 16 + columnsPerBlock - 1) / columnsPerBlock * blocksPerColumn == 256, "plan.json: 256 blocks");
  static_assert(columnsPerBlock * threadsPerColumn == 512, "plan.json: 512 threads a block");
  static_assert(width == 2 && threadsPerColumn == 32 && columnsPerBlock == 16 && blocksPerColumn == 8 && parts == 256 && steps == 48, "plan.json: these knobs");
  __shared__ weft::ColumnScratch<columnsPerBlock, threadsPerColumn, width, 1> scratch;
  const int part = blockIdx.x % blocksPerColumn * threadsPerColumn + threadIdx.x / columnsPerBlock;
  // (h, p), h slowest, 2 of p at once
  const int column = blockIdx.x / blocksPerColumn * columnsPerBlock + threadIdx.x % columnsPerBlock;
  const int at_h = column / (p / width);
  const int at_p = column % (p / width) * width;
  const int start = at_h * (b * j * p) + at_p;
  const int start_2 = at_h + at_p * h;

  weft::Vec<float, width> d_bq_out = {};
#pragma unroll 8
  for (int v = 0; v < steps; ++v) {
    const int v_flat = v * parts + part;
    const auto d_q_v = weft::loadVector<width>(d_q + start + v_flat * p);
#pragma unroll
    for (int e = 0; e < width; ++e)
      d_bq_out.at[e] += d_q_v.at[e];
  }
  weft::clusterColumnSums<blocksPerColumn>(scratch, d_bq_out);

  if (part == 0)
    weft::storeStrided<width>(d_bq + start_2, h, d_bq_out);
}
