// projection    (this header is not hashed)
//
//   ops        c = contract "phi,bji->phbj" a, b
//   space      b=7 h=16 j=511 p=64 | i=1024 (reduced)
//   reads      a[p,h,i] f16   b[b,j,i] f16    9.42 MB
//   writes     c[p,h,b,j] f16    7.33 MB
//   flop       7.50 Gflop
//   config     wgmma, ping-pong tiles of 128 x 128, 6 stages, 2 epilogue stages, group-M 8    launch <<<132, 384>>>
#include "weft/sm90_gemm.cuh"

namespace {
constexpr weft::Offset b = 7, h = 16, i = 1024, j = 511, p = 64;  // extents
constexpr weft::sm90::GemmProblem gemm = {
    .batch = 1, .m = h * p, .n = b * j, .k = i,
    .a = {.outer = i, .k = 1, .batch = 0, .usesTma = true},
    .b = {.outer = i, .k = 1, .batch = 0, .usesTma = true},
    .strideCm = b * j, .batchStrideC = 0, .usesTma = false};
constexpr weft::sm90::Tile tile = {.m = 128, .n = 128, .stages = 6, .epilogueStages = 2, .groupM = 8, .splitK = 1,
    .isPingPong = true};
}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
gemm_f16_1024x3577x1024(const __grid_constant__ weft::sm90::TensorMap a_map,
                        const __grid_constant__ weft::sm90::TensorMap b_2_map, weft::half *__restrict__ c) {
  static_assert(weft::sm90::TileConfig<gemm, tile>::sharedBytes == 229520);
  static_assert(gemm.batch == 1 && gemm.m == 1024 && gemm.n == 3577 && gemm.k == 1024, "plan.json: these extents");
  static_assert(tile.m == 128 && tile.n == 128 && tile.splitK == 1 && tile.multicastB == 1, "plan.json: 132 blocks and maps of these tiles");
  static_assert(b == 7 && h == 16 && i == 1024 && j == 511 && p == 64, "plan.json: these extents");
  static_assert(gemm.a.outer == 1024 && gemm.a.k == 1 && gemm.a.batch == 0 && gemm.a.usesTma == true, "plan.json: strides of operand a");
  static_assert(gemm.b.outer == 1024 && gemm.b.k == 1 && gemm.b.batch == 0 && gemm.b.usesTma == true, "plan.json: strides of operand b");
  static_assert(gemm.strideCm == 3577 && gemm.batchStrideC == 0 && gemm.usesTma == false, "plan.json: strides of the result");
  weft::sm90::runGemm<weft::half, gemm, tile>(weft::sm90::Args{.a = &a_map, .b = &b_2_map, .c = c});
}
