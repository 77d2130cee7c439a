// feed_forward_projection_bias_dropout_residual__b_j_i    kernel 11 of paper-encoder, forward    (this header is not hashed)
//
//   ops        %20 = contract "iu,bju->bji" %w2, %19
//              %21 = bias %20, %b2
//              %22 = dropout %21
//              %23 = residual %22, %15
//   space      i=1024 b=96 j=128 | u=4096 (reduced)
//   reads      w2[u,i] f16   active_kept[u,b,j] f16   b2[i] f16   norm1[b,j,i] f16    134 MB
//   writes     residual2[b,j,i] f16    25.2 MB
//   flop       103 Gflop
//   config     wgmma, cooperative tiles of 128 x 256, 3 stages, 4 epilogue stages, group-M 8    launch <<<132, 384>>>
//   fused by   fuse: producer-consumer + reduction-consumer
//   not fused  contract, bias, relu, dropout, contract: F024 no-epilogue ('contract' is of class contraction; an epilogue is element-wise)
//   not fused  contract, bias, dropout, residual, layer_norm: F024 no-epilogue ('layer_norm' is of class normalization; an epilogue is element-wise)
#include "weft/dropout.cuh"
#include "weft/sm90_gemm.cuh"
#include "weft/wgmma_f16.cuh"

namespace {
constexpr weft::Offset i = 1024, u = 4096, b = 96, j = 128;  // extents
constexpr weft::sm90::GemmProblem gemm = {
    .batch = 1, .m = b * j, .n = i, .k = u,
    .a = {.outer = 1, .k = b * j, .batch = 0, .usesTma = true},
    .b = {.outer = 1, .k = i, .batch = 0, .usesTma = true},
    .strideCm = i, .batchStrideC = 0, .usesTma = true};
constexpr weft::sm90::Tile tile = {.m = 128, .n = 256, .stages = 3, .epilogueStages = 4, .groupM = 8, .splitK = 1,
    .isPingPong = false};
constexpr unsigned dropThreshold = 6554u;           // 0.1 of 65536 draws
constexpr float keepScale = 1.1111112f;
}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
gemm_bias_dropout_residual_f16_1024x12288x4096(const __grid_constant__ weft::sm90::TensorMap w2_map,
                                               const __grid_constant__ weft::sm90::TensorMap active_kept_map,
                                               const weft::half *__restrict__ b2,
                                               const __grid_constant__ weft::sm90::TensorMap norm1_map,
                                               const __grid_constant__ weft::sm90::TensorMap residual2_map,
                                               const weft::DropoutKey *__restrict__ dropoutKey,
                                               unsigned dropoutStream) {
  static_assert(weft::sm90::TileConfig<gemm, tile>::sharedBytes == 213120);
  static_assert(gemm.batch == 1 && gemm.m == 12288 && gemm.n == 1024 && gemm.k == 4096, "plan.json: these extents");
  static_assert(tile.m == 128 && tile.n == 256 && tile.splitK == 1 && tile.multicastB == 1, "plan.json: 132 blocks and maps of these tiles");
  static_assert(i == 1024 && u == 4096 && b == 96 && j == 128, "plan.json: these extents");
  static_assert(gemm.a.outer == 1 && gemm.a.k == 12288 && gemm.a.batch == 0 && gemm.a.usesTma == true, "plan.json: strides of operand a");
  static_assert(gemm.b.outer == 1 && gemm.b.k == 1024 && gemm.b.batch == 0 && gemm.b.usesTma == true, "plan.json: strides of operand b");
  static_assert(gemm.strideCm == 1024 && gemm.batchStrideC == 0 && gemm.usesTma == true, "plan.json: strides of the result");
  const weft::DropoutKey key = *dropoutKey;                           // seed and step: a replay must not repeat masks
  const float scaleOfKept = weft::opaque(keepScale);
  const auto epilogueOp = [=](float (&accumulators)[8], const float (&norm1_v)[8], const float (&b2_v)[8],
      const weft::sm90::Fragment &at) {
    const auto kept = weft::keptFragment(key, dropoutStream, at.row / j, at.row % j, at.column, dropThreshold);
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const float feed_forward = accumulators[e] + b2_v[e];                                       // %21
      const float feed_forward_kept = (kept.at(e) ? feed_forward : 0.0f) * scaleOfKept;           // %22
      const float residual2_2 = feed_forward_kept + norm1_v[e];                                   // %23
      accumulators[e] = residual2_2;
    }
  };
  weft::sm90::runGemm<weft::half, gemm, tile>(weft::sm90::Args{
      .a = &active_kept_map, .b = &w2_map, .c = &residual2_map,
      .perElement = &norm1_map,
      .perColumn = b2,
      .epilogue = epilogueOp});
}
