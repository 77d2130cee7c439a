// d_w    (this header is not hashed)
//
//   ops        c = contract "mi,mu->iu" a, b
//   space      i=1024 u=3072 | m=4096 (reduced)
//   reads      a[m,i] f16   b[m,u] f16    33.6 MB
//   writes     c[i,u] f16    6.29 MB
//   flop       25.8 Gflop
//   config     wgmma, cooperative tiles of 128 x 128, 6 stages, 2 epilogue stages, group-M 8, stream-K runs of k-tiles for 132 blocks    launch <<<132, 384>>>
#include "weft/sm90_stream_k.cuh"

namespace {
constexpr weft::Offset i = 1024, m = 4096, u = 3072;  // extents
constexpr weft::sm90::GemmProblem gemm = {
    .batch = 1, .m = i, .n = u, .k = m,
    .a = {.outer = 1, .k = i, .batch = 0, .usesTma = true},
    .b = {.outer = 1, .k = u, .batch = 0, .usesTma = true},
    .strideCm = u, .batchStrideC = 0, .usesTma = true};
constexpr weft::sm90::Tile tile = {.m = 128, .n = 128, .stages = 6, .epilogueStages = 2, .groupM = 8, .splitK = 1,
    .isPingPong = false};
__device__ weft::sm90::StreamKPartials<gemm, tile, 132> c_partials;
}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
gemm_f16_1024x3072x4096(const __grid_constant__ weft::sm90::TensorMap a_map,
                        const __grid_constant__ weft::sm90::TensorMap b_map,
                        const __grid_constant__ weft::sm90::TensorMap c_map) {
  static_assert(weft::sm90::TileConfig<gemm, tile>::sharedBytes == 229520);
  static_assert(gemm.batch == 1 && gemm.m == 1024 && gemm.n == 3072 && gemm.k == 4096, "plan.json: these extents");
  static_assert(tile.m == 128 && tile.n == 128 && tile.splitK == 1 && tile.multicastB == 1, "plan.json: 132 blocks and maps of these tiles");
  static_assert(sizeof(c_partials) == sizeof(weft::sm90::StreamKPartials<gemm, tile, 132>), "plan.json: 132 blocks");
  static_assert(i == 1024 && m == 4096 && u == 3072, "plan.json: these extents");
  static_assert(gemm.a.outer == 1 && gemm.a.k == 1024 && gemm.a.batch == 0 && gemm.a.usesTma == true, "plan.json: strides of operand a");
  static_assert(gemm.b.outer == 1 && gemm.b.k == 3072 && gemm.b.batch == 0 && gemm.b.usesTma == true, "plan.json: strides of operand b");
  static_assert(gemm.strideCm == 3072 && gemm.batchStrideC == 0 && gemm.usesTma == true, "plan.json: strides of the result");
  weft::sm90::streamKGemm<weft::half, gemm, tile, 132>(weft::sm90::Args{
      .a = &a_map, .b = &b_map, .c = &c_map,
      .partials = &c_partials});
}
