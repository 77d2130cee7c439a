// reduce__w_h    kernel 32 of paper-encoder, backward    (this header is not hashed)
//
//   ops        %60 = reduce %43 over b, k
//   space      w=64 h=16 | b=96 k=128 (reduced)
//   reads      d_v[b,k,h,w] f16    25.2 MB
//   writes     d_bv[w,h] f16    2.05 kB
//   flop       12.6 Mflop
//   config     vector 2 x f16 along w, 32 threads a column, 16 columns a block, clusters of 8 blocks    launch <<<256, 512>>>
//   not fused  cast, mul, reduce, reduce: F012 reduction-axis-mismatch (b,j against w)
//   not fused  contract, reduce: F021 contraction-epilogue-off (gemm-sm90: 'reduce' to 'd_bv' runs over the members of a batched GEMM; cublaslt: 'reduce' is over 'd_v'; the library sums an operand, or the derivative of GELU; gemm-sm80: 'reduce' to 'd_bv' runs over the members of a batched GEMM)
#include "weft/columns.cuh"
#include "weft/types.cuh"
#include "weft/vector.cuh"

namespace {
constexpr int h = 16, w = 64, b = 96, k = 128;      // extents
constexpr int width = 2;                            // elements a thread takes along w
constexpr int threadsPerColumn = 32, columnsPerBlock = 16;
constexpr int blocksPerColumn = 8;                  // a cluster
constexpr int parts = threadsPerColumn * blocksPerColumn;  // threads of a cluster that share a column
constexpr int steps = b * k / parts;                // a thread's share of a column
constexpr int d_v_k = 3072;                         // stride of d_v along k
}  // namespace

extern "C" __global__ void __cluster_dims__(blocksPerColumn) __launch_bounds__(columnsPerBlock * threadsPerColumn)
reduce_f16_64x16x96x128(const weft::half *__restrict__ d_v, weft::half *__restrict__ d_bv) {
  static_assert(w == 64 && h == 16 && b == 96 && k == 128, "plan.json: these extents");
  static_assert((64 / width * 16 + columnsPerBlock - 1) / columnsPerBlock * blocksPerColumn == 256, "plan.json: 256 blocks");
  static_assert(columnsPerBlock * threadsPerColumn == 512, "plan.json: 512 threads a block");
  static_assert(width == 2 && threadsPerColumn == 32 && columnsPerBlock == 16 && blocksPerColumn == 8 && parts == 256 && steps == 48, "plan.json: these knobs");
  static_assert(d_v_k == 3072, "plan.json: strides of d_v");
  __shared__ weft::ColumnScratch<columnsPerBlock, threadsPerColumn, width, 1> scratch;
  const int part = blockIdx.x % blocksPerColumn * threadsPerColumn + threadIdx.x / columnsPerBlock;
  // (h, w), h slowest, 2 of w at once
  const int column = blockIdx.x / blocksPerColumn * columnsPerBlock + threadIdx.x % columnsPerBlock;
  const int at_h = column / (w / width);
  const int at_w = column % (w / width) * width;
  const int start = column * width;
  const int start_2 = at_h + at_w * h;

  weft::Vec<float, width> d_bv_out = {};
#pragma unroll 8
  for (int v = 0; v < steps; ++v) {
    const int v_flat = v * parts + part;
    const auto d_v_v = weft::loadVector<width>(d_v + start + v_flat * d_v_k);
#pragma unroll
    for (int e = 0; e < width; ++e)
      d_bv_out.at[e] += d_v_v.at[e];
  }
  weft::clusterColumnSums<blocksPerColumn>(scratch, d_bv_out);

  if (part == 0)
    weft::storeStrided<width>(d_bv + start_2, h, d_bv_out);
}
