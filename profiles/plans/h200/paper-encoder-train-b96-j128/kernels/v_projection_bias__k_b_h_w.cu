// v_projection_bias__k_b_h_w    kernel 4 of paper-encoder, forward    (this header is not hashed)
//
//   ops        %4 = contract "whi,bki->whbk" %wv, %x
//              %5 = bias %4, %bv
//   space      w=64 h=16 b=96 j=128 | i=1024 (reduced)
//   reads      wv[h,w,i] f16   x[j,b,i] f16   bv[h,w] f16    27.3 MB
//   writes     v[j,b,h,w] f16    25.2 MB
//   flop       25.8 Gflop
//   config     wgmma, ping-pong tiles of 128 x 128, 6 stages, 2 epilogue stages, group-M 4    launch <<<132, 384>>>
//   fused by   fuse: reduction-consumer
//   not fused  contract, bias, contract: F031 forward-and-backward (v_product, d_kept)
//   not fused  contract, contract: F023 beside-contraction (q_product)
#include "weft/sm90_gemm.cuh"
#include "weft/wgmma_f16.cuh"

namespace {
constexpr weft::Offset w = 64, h = 16, i = 1024, b = 96, j = 128;  // extents
constexpr weft::sm90::GemmProblem gemm = {
    .batch = 1, .m = b * j, .n = w * h, .k = i,
    .a = {.outer = i, .k = 1, .batch = 0, .usesTma = true},
    .b = {.outer = i, .k = 1, .batch = 0, .usesTma = true},
    .strideCm = h * w, .batchStrideC = 0, .usesTma = true};
constexpr weft::sm90::Tile tile = {.m = 128, .n = 128, .stages = 6, .epilogueStages = 2, .groupM = 4, .splitK = 1,
    .isPingPong = true};
}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
gemm_bias_f16_1024x12288x1024(const __grid_constant__ weft::sm90::TensorMap wv_map,
                              const __grid_constant__ weft::sm90::TensorMap x_map, const weft::half *__restrict__ bv,
                              const __grid_constant__ weft::sm90::TensorMap v_map) {
  static_assert(weft::sm90::TileConfig<gemm, tile>::sharedBytes == 229520);
  static_assert(gemm.batch == 1 && gemm.m == 12288 && gemm.n == 1024 && gemm.k == 1024, "plan.json: these extents");
  static_assert(tile.m == 128 && tile.n == 128 && tile.splitK == 1 && tile.multicastB == 1, "plan.json: 132 blocks and maps of these tiles");
  static_assert(w == 64 && h == 16 && i == 1024 && b == 96 && j == 128, "plan.json: these extents");
  static_assert(gemm.a.outer == 1024 && gemm.a.k == 1 && gemm.a.batch == 0 && gemm.a.usesTma == true, "plan.json: strides of operand a");
  static_assert(gemm.b.outer == 1024 && gemm.b.k == 1 && gemm.b.batch == 0 && gemm.b.usesTma == true, "plan.json: strides of operand b");
  static_assert(gemm.strideCm == 1024 && gemm.batchStrideC == 0 && gemm.usesTma == true, "plan.json: strides of the result");
  const auto epilogueOp = [=](float (&accumulators)[8], const float (&bv_v)[8], const weft::sm90::Fragment &at) {
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const float v_2 = accumulators[e] + bv_v[e];                                                // %5
      accumulators[e] = v_2;
    }
  };
  weft::sm90::runGemm<weft::half, gemm, tile>(weft::sm90::Args{
      .a = &x_map, .b = &wv_map, .c = &v_map,
      .perColumn = bv,
      .epilogue = epilogueOp});
}
