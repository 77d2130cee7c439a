// d_x_q_product_d_x_k_product_d_x_v_projection_add__b_j_i    kernel 30 of paper-encoder, backward    (this header is not hashed)
//
//   ops        %55 = contract "phi,phbj->bji" %54, %49
//              %59 = add %38, %55
//   space      i=1024 b=96 j=128 | p=64 h=48 (reduced)
//   reads      wq_wk_wv_2[p,h,i] f16   d_q_d_k_d_v[p,h,b,j] f16   d_residual1[b,j,i] f16    107 MB
//   writes     d_x[b,j,i] f16    25.2 MB
//   flop       77.3 Gflop
//   config     wgmma, ping-pong tiles of 128 x 128, 5 stages, 4 epilogue stages, group-M 4    launch <<<132, 384>>>
//   made by    stack-dX-wq-wk-wv
//   fused by   fuse: reduction-consumer
//   not fused  add, layer_norm_dx, dropout, add: F030 would-create-cycle (d_weighted)
//   not fused  concat, contract: F060 movement-op (d_q_d_k_d_v)
#include "weft/sm90_gemm.cuh"
#include "weft/wgmma_f16.cuh"

namespace {
constexpr weft::Offset p = 64, h = 48, i = 1024, b = 96, j = 128;  // extents
constexpr weft::sm90::GemmProblem gemm = {
    .batch = 1, .m = b * j, .n = i, .k = p * h,
    .a = {.outer = 1, .k = b * j, .batch = 0, .usesTma = true},
    .b = {.outer = 1, .k = i, .batch = 0, .usesTma = true},
    .strideCm = i, .batchStrideC = 0, .usesTma = true};
constexpr weft::sm90::Tile tile = {.m = 128, .n = 128, .stages = 5, .epilogueStages = 4, .groupM = 4, .splitK = 1,
    .isPingPong = true};
}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
gemm_add_f16_1024x12288x3072(const __grid_constant__ weft::sm90::TensorMap wq_wk_wv_2_map,
                             const __grid_constant__ weft::sm90::TensorMap d_q_d_k_d_v_map,
                             const __grid_constant__ weft::sm90::TensorMap d_residual1_map,
                             const __grid_constant__ weft::sm90::TensorMap d_x_map) {
  static_assert(weft::sm90::TileConfig<gemm, tile>::sharedBytes == 229536);
  static_assert(gemm.batch == 1 && gemm.m == 12288 && gemm.n == 1024 && gemm.k == 3072, "plan.json: these extents");
  static_assert(tile.m == 128 && tile.n == 128 && tile.splitK == 1 && tile.multicastB == 1, "plan.json: 132 blocks and maps of these tiles");
  static_assert(p == 64 && h == 48 && i == 1024 && b == 96 && j == 128, "plan.json: these extents");
  static_assert(gemm.a.outer == 1 && gemm.a.k == 12288 && gemm.a.batch == 0 && gemm.a.usesTma == true, "plan.json: strides of operand a");
  static_assert(gemm.b.outer == 1 && gemm.b.k == 1024 && gemm.b.batch == 0 && gemm.b.usesTma == true, "plan.json: strides of operand b");
  static_assert(gemm.strideCm == 1024 && gemm.batchStrideC == 0 && gemm.usesTma == true, "plan.json: strides of the result");
  const auto epilogueOp = [=](float (&accumulators)[8], const float (&d_residual1_v)[8],
      const weft::sm90::Fragment &at) {
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const float d_x_2 = d_residual1_v[e] + accumulators[e];                                     // %59
      accumulators[e] = d_x_2;
    }
  };
  weft::sm90::runGemm<weft::half, gemm, tile>(weft::sm90::Args{
      .a = &d_q_d_k_d_v_map, .b = &wq_wk_wv_2_map, .c = &d_x_map,
      .perElement = &d_residual1_map,
      .epilogue = epilogueOp});
}
