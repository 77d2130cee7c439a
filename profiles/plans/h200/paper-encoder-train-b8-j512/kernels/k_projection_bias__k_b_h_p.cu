// k_projection_bias__k_b_h_p    kernel 3 of paper-encoder, forward    (this header is not hashed)
//
//   ops        %2 = contract "phi,bki->phbk" %wk, %x
//              %3 = bias %2, %bk
//   space      p=64 h=16 b=8 j=512 | i=1024 (reduced)
//   reads      wk[i,h,p] f16   x[j,b,i] f16   bk[h,p] f16    10.5 MB
//   writes     k[j,b,h,p] f16    8.39 MB
//   flop       8.59 Gflop
//   config     wgmma, ping-pong tiles of 128 x 128, 6 stages, 2 epilogue stages, group-M 8    launch <<<132, 384>>>
//   fused by   fuse: reduction-consumer
//   not fused  contract, bias, contract: F024 no-epilogue ('contract' is of class contraction; an epilogue is element-wise)
//   not fused  contract, bias, contract: F031 forward-and-backward (k_product, score_again)
#include "weft/sm90_gemm.cuh"
#include "weft/wgmma_f16.cuh"

namespace {
constexpr weft::Offset p = 64, h = 16, i = 1024, b = 8, j = 512;  // extents
constexpr weft::sm90::GemmProblem gemm = {
    .batch = 1, .m = b * j, .n = p * h, .k = i,
    .a = {.outer = i, .k = 1, .batch = 0, .usesTma = true},
    .b = {.outer = 1, .k = h * p, .batch = 0, .usesTma = true},
    .strideCm = h * p, .batchStrideC = 0, .usesTma = true};
constexpr weft::sm90::Tile tile = {.m = 128, .n = 128, .stages = 6, .epilogueStages = 2, .groupM = 8, .splitK = 1,
    .isPingPong = true};
}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
gemm_bias_f16_1024x4096x1024(const __grid_constant__ weft::sm90::TensorMap wk_map,
                             const __grid_constant__ weft::sm90::TensorMap x_map, const weft::half *__restrict__ bk,
                             const __grid_constant__ weft::sm90::TensorMap k_map) {
  static_assert(weft::sm90::TileConfig<gemm, tile>::sharedBytes == 229520);
  static_assert(gemm.batch == 1 && gemm.m == 4096 && gemm.n == 1024 && gemm.k == 1024, "plan.json: these extents");
  static_assert(tile.m == 128 && tile.n == 128 && tile.splitK == 1 && tile.multicastB == 1, "plan.json: 132 blocks and maps of these tiles");
  static_assert(p == 64 && h == 16 && i == 1024 && b == 8 && j == 512, "plan.json: these extents");
  static_assert(gemm.a.outer == 1024 && gemm.a.k == 1 && gemm.a.batch == 0 && gemm.a.usesTma == true, "plan.json: strides of operand a");
  static_assert(gemm.b.outer == 1 && gemm.b.k == 1024 && gemm.b.batch == 0 && gemm.b.usesTma == true, "plan.json: strides of operand b");
  static_assert(gemm.strideCm == 1024 && gemm.batchStrideC == 0 && gemm.usesTma == true, "plan.json: strides of the result");
  const auto epilogueOp = [=](float (&accumulators)[8], const float (&bk_v)[8], const weft::sm90::Fragment &at) {
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const float k_2 = accumulators[e] + bk_v[e];                                                // %3
      accumulators[e] = k_2;
    }
  };
  weft::sm90::runGemm<weft::half, gemm, tile>(weft::sm90::Args{
      .a = &x_map, .b = &wk_map, .c = &k_map,
      .perColumn = bk,
      .epilogue = epilogueOp});
}
