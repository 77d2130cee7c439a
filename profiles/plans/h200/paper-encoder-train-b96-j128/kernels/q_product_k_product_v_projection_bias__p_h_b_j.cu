// q_product_k_product_v_projection_bias__p_h_b_j    kernel 1 of paper-encoder, forward    (this header is not hashed)
//
//   ops        %1 = contract "phi,bji->phbj" %0, %x
//              %3 = bias %1, %2
//   space      p=64 h=48 b=96 j=128 | i=1024 (reduced)
//   reads      wq_wk_wv[p,h,i] f16   x[b,j,i] f16   bq_bk_bv[p,h] f16    31.5 MB
//   writes     q_k_v[p,h,b,j] f16    75.5 MB
//   flop       77.3 Gflop
//   config     wgmma, ping-pong tiles of 128 x 192, 4 stages, 4 epilogue stages, group-M 4    launch <<<132, 384>>>
//   made by    stack-q_product-k_product-v_product
//   fused by   fuse: reduction-consumer
//   not fused  contract, bias, slice: F024 no-epilogue ('slice' is of class movement; an epilogue is element-wise)
//   not fused  contract, bias, slice: F024 no-epilogue ('slice' is of class movement; an epilogue is element-wise)
#include "weft/sm90_gemm.cuh"
#include "weft/wgmma_f16.cuh"

namespace {
constexpr weft::Offset p = 64, h = 48, i = 1024, b = 96, j = 128;  // extents
constexpr weft::sm90::GemmProblem gemm = {
    .batch = 1, .m = p * h, .n = b * j, .k = i,
    .a = {.outer = i, .k = 1, .batch = 0, .usesTma = true},
    .b = {.outer = i, .k = 1, .batch = 0, .usesTma = true},
    .strideCm = b * j, .batchStrideC = 0, .usesTma = true};
constexpr weft::sm90::Tile tile = {.m = 128, .n = 192, .stages = 4, .epilogueStages = 4, .groupM = 4, .splitK = 1,
    .isPingPong = true};
}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
gemm_bias_f16_3072x12288x1024(const __grid_constant__ weft::sm90::TensorMap wq_wk_wv_map,
                              const __grid_constant__ weft::sm90::TensorMap x_map,
                              const weft::half *__restrict__ bq_bk_bv,
                              const __grid_constant__ weft::sm90::TensorMap q_k_v_map) {
  static_assert(weft::sm90::TileConfig<gemm, tile>::sharedBytes == 229520);
  static_assert(gemm.batch == 1 && gemm.m == 3072 && gemm.n == 12288 && gemm.k == 1024, "plan.json: these extents");
  static_assert(tile.m == 128 && tile.n == 192 && tile.splitK == 1 && tile.multicastB == 1, "plan.json: 132 blocks and maps of these tiles");
  static_assert(p == 64 && h == 48 && i == 1024 && b == 96 && j == 128, "plan.json: these extents");
  static_assert(gemm.a.outer == 1024 && gemm.a.k == 1 && gemm.a.batch == 0 && gemm.a.usesTma == true, "plan.json: strides of operand a");
  static_assert(gemm.b.outer == 1024 && gemm.b.k == 1 && gemm.b.batch == 0 && gemm.b.usesTma == true, "plan.json: strides of operand b");
  static_assert(gemm.strideCm == 12288 && gemm.batchStrideC == 0 && gemm.usesTma == true, "plan.json: strides of the result");
  const auto epilogueOp = [=](float (&accumulators)[8], const float (&bq_bk_bv_v)[8], const weft::sm90::Fragment &at) {
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const float q_k_v_2 = accumulators[e] + bq_bk_bv_v[e];                                      // %3
      accumulators[e] = q_k_v_2;
    }
  };
  weft::sm90::runGemm<weft::half, gemm, tile>(weft::sm90::Args{
      .a = &wq_wk_wv_map, .b = &x_map, .c = &q_k_v_map,
      .perRow = bq_bk_bv,
      .epilogue = epilogueOp});
}
