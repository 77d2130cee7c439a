// d_weighted_projection__w_h_b_j    kernel 23 of paper-encoder, backward    (this header is not hashed)
//
//   ops        %42 = contract "whi,bji->whbj" %wo, %39
//   space      w=64 h=16 b=96 j=128 | i=1024 (reduced)
//   reads      wo[i,w,h] f16   d_attention[b,j,i] f16    27.3 MB
//   writes     d_weighted[w,h,b,j] f16    25.2 MB
//   flop       25.8 Gflop
//   config     wgmma, ping-pong tiles of 128 x 128, 6 stages, 2 epilogue stages, group-M 4    launch <<<132, 384>>>
//   not fused  reduce, contract: F021 contraction-epilogue-off (gemm-sm90: 'reduce' does not depend on the contraction's result; cublaslt: 'reduce' to 'd_bo' leaves not just the axes of one side of the GEMM; gemm-sm80: 'reduce' does not depend on the contraction's result)
//   not fused  contract, contract: F024 no-epilogue ('contract' is of class contraction; an epilogue is element-wise)
#include "weft/sm90_gemm.cuh"
#include "weft/wgmma_f16.cuh"

namespace {
constexpr weft::Offset w = 64, h = 16, i = 1024, b = 96, j = 128;  // extents
constexpr weft::sm90::GemmProblem gemm = {
    .batch = 1, .m = w * h, .n = b * j, .k = i,
    .a = {.outer = 1, .k = w * h, .batch = 0, .usesTma = true},
    .b = {.outer = i, .k = 1, .batch = 0, .usesTma = true},
    .strideCm = b * j, .batchStrideC = 0, .usesTma = true};
constexpr weft::sm90::Tile tile = {.m = 128, .n = 128, .stages = 6, .epilogueStages = 2, .groupM = 4, .splitK = 1,
    .isPingPong = true};
}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
gemm_f16_1024x12288x1024(const __grid_constant__ weft::sm90::TensorMap wo_map,
                         const __grid_constant__ weft::sm90::TensorMap d_attention_map,
                         const __grid_constant__ weft::sm90::TensorMap d_weighted_map) {
  static_assert(weft::sm90::TileConfig<gemm, tile>::sharedBytes == 229520);
  static_assert(gemm.batch == 1 && gemm.m == 1024 && gemm.n == 12288 && gemm.k == 1024, "plan.json: these extents");
  static_assert(tile.m == 128 && tile.n == 128 && tile.splitK == 1 && tile.multicastB == 1, "plan.json: 132 blocks and maps of these tiles");
  static_assert(w == 64 && h == 16 && i == 1024 && b == 96 && j == 128, "plan.json: these extents");
  static_assert(gemm.a.outer == 1 && gemm.a.k == 1024 && gemm.a.batch == 0 && gemm.a.usesTma == true, "plan.json: strides of operand a");
  static_assert(gemm.b.outer == 1024 && gemm.b.k == 1 && gemm.b.batch == 0 && gemm.b.usesTma == true, "plan.json: strides of operand b");
  static_assert(gemm.strideCm == 12288 && gemm.batchStrideC == 0 && gemm.usesTma == true, "plan.json: strides of the result");
  weft::sm90::runGemm<weft::half, gemm, tile>(weft::sm90::Args{
      .a = &wo_map, .b = &d_attention_map, .c = &d_weighted_map});
}
