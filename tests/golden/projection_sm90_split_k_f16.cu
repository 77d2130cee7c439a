// projection    (this header is not hashed)
//
//   ops        c = contract "mk,nk->mn" a, b
//   space      m=8 n=4096 | k=4096 (reduced)
//   reads      a[m,k] f16   b[n,k] f16    33.6 MB
//   writes     c[m,n] f16    65.5 kB
//   flop       268 Mflop
//   config     wgmma, ping-pong tiles of 64 x 128, 6 stages, 2 epilogue stages, group-M 8, k over 4 blocks    launch <<<128, 384>>>
#include "weft/sm90_gemm.cuh"

namespace {
constexpr weft::Offset k = 4096, m = 8, n = 4096;   // extents
constexpr weft::sm90::GemmProblem gemm = {
    .batch = 1, .m = m, .n = n, .k = k,
    .a = {.outer = k, .k = 1, .batch = 0, .usesTma = true},
    .b = {.outer = k, .k = 1, .batch = 0, .usesTma = true},
    .strideCm = n, .batchStrideC = 0, .usesTma = true};
constexpr weft::sm90::Tile tile = {.m = 64, .n = 128, .stages = 6, .epilogueStages = 2, .groupM = 8, .splitK = 4,
    .isPingPong = true};
}  // namespace

extern "C" __global__ void __cluster_dims__(tile.splitK) __launch_bounds__(384, 1)
gemm_f16_8x4096x4096(const __grid_constant__ weft::sm90::TensorMap a_map,
                     const __grid_constant__ weft::sm90::TensorMap b_map,
                     const __grid_constant__ weft::sm90::TensorMap c_map) {
  static_assert(weft::sm90::TileConfig<gemm, tile>::sharedBytes == 229520);
  static_assert(gemm.batch == 1 && gemm.m == 8 && gemm.n == 4096 && gemm.k == 4096, "plan.json: these extents");
  static_assert(tile.m == 64 && tile.n == 128 && tile.splitK == 4 && tile.multicastB == 1, "plan.json: 128 blocks and maps of these tiles");
  static_assert(k == 4096 && m == 8 && n == 4096, "plan.json: these extents");
  static_assert(gemm.a.outer == 4096 && gemm.a.k == 1 && gemm.a.batch == 0 && gemm.a.usesTma == true, "plan.json: strides of operand a");
  static_assert(gemm.b.outer == 4096 && gemm.b.k == 1 && gemm.b.batch == 0 && gemm.b.usesTma == true, "plan.json: strides of operand b");
  static_assert(gemm.strideCm == 4096 && gemm.batchStrideC == 0 && gemm.usesTma == true, "plan.json: strides of the result");
  weft::sm90::runGemm<weft::half, gemm, tile>(weft::sm90::Args{.a = &a_map, .b = &b_map, .c = &c_map});
}
