// projection    (this header is not hashed)
//
//   ops        c = contract "phi,bji->phbj" a, b
//   space      b=8 h=16 j=512 p=64 | i=1024 (reduced)
//   reads      a[p,h,i] f16   b[b,j,i] f16    10.5 MB
//   writes     c[p,h,b,j] f16    8.39 MB
//   flop       8.59 Gflop
//   config     wgmma, ping-pong tiles of 128 x 128, 6 stages, 2 epilogue stages, group-M 8    launch <<<132, 384>>>
#include "weft/sm90_gemm.cuh"

namespace {
constexpr weft::Offset b = 8, h = 16, i = 1024, j = 512, p = 64;  // extents
constexpr weft::sm90::GemmProblem gemm = {
    .batch = 1, .m = h * p, .n = b * j, .k = i,
    .a = {.outer = i, .k = 1, .batch = 0, .usesTma = true},
    .b = {.outer = i, .k = 1, .batch = 0, .usesTma = true},
    .strideCm = b * j, .batchStrideC = 0, .usesTma = true};
constexpr weft::sm90::Tile tile = {.m = 128, .n = 128, .stages = 6, .epilogueStages = 2, .groupM = 8, .splitK = 1,
    .isPingPong = true};
constexpr float scale = 0.125f;
}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
gemm_f16_1024x4096x1024(const __grid_constant__ weft::sm90::TensorMap a_map,
                        const __grid_constant__ weft::sm90::TensorMap b_2_map,
                        const __grid_constant__ weft::sm90::TensorMap c_map) {
  static_assert(weft::sm90::TileConfig<gemm, tile>::sharedBytes == 229520);
  static_assert(gemm.batch == 1 && gemm.m == 1024 && gemm.n == 4096 && gemm.k == 1024, "plan.json: these extents");
  static_assert(tile.m == 128 && tile.n == 128 && tile.splitK == 1 && tile.multicastB == 1, "plan.json: 132 blocks and maps of these tiles");
  static_assert(b == 8 && h == 16 && i == 1024 && j == 512 && p == 64, "plan.json: these extents");
  static_assert(gemm.a.outer == 1024 && gemm.a.k == 1 && gemm.a.batch == 0 && gemm.a.usesTma == true, "plan.json: strides of operand a");
  static_assert(gemm.b.outer == 1024 && gemm.b.k == 1 && gemm.b.batch == 0 && gemm.b.usesTma == true, "plan.json: strides of operand b");
  static_assert(gemm.strideCm == 4096 && gemm.batchStrideC == 0 && gemm.usesTma == true, "plan.json: strides of the result");
  const auto epilogueOp = [=](float (&accumulators)[8], const weft::sm90::Fragment &at) {
#pragma unroll
    for (int e = 0; e < 8; ++e)
      accumulators[e] = accumulators[e] * scale;
  };
  weft::sm90::runGemm<weft::half, gemm, tile>(weft::sm90::Args{
      .a = &a_map, .b = &b_2_map, .c = &c_map,
      .epilogue = epilogueOp});
}
