// attention_projection_bias_dropout_residual__b_j_i    kernel 8 of paper-encoder, forward    (this header is not hashed)
//
//   ops        %11 = contract "whi,whbj->bji" %wo, %10
//              %12 = bias %11, %bo
//              %13 = dropout %12
//              %14 = residual %13, %x
//   space      i=1024 b=8 j=512 | w=64 h=16 (reduced)
//   reads      wo[w,h,i] f16   weighted[w,h,b,j] f16   bo[i] f16   x[b,j,i] f16    18.9 MB
//   writes     residual1[b,j,i] f16    8.39 MB
//   flop       8.60 Gflop
//   config     wgmma, cooperative tiles of 128 x 256, 3 stages, 4 epilogue stages, group-M 8    launch <<<128, 384>>>
//   fused by   fuse: producer-consumer + reduction-consumer
//   not fused  contract, bias, dropout, residual, layer_norm: F024 no-epilogue ('layer_norm' is of class normalization; an epilogue is element-wise)
//   not fused  contract, bias, dropout, residual, layer_norm_dw: F031 forward-and-backward (attention_product, d_gamma1)
#include "weft/dropout.cuh"
#include "weft/sm90_gemm.cuh"
#include "weft/wgmma_f16.cuh"

namespace {
constexpr weft::Offset w = 64, h = 16, i = 1024, b = 8, j = 512;  // extents
constexpr weft::sm90::GemmProblem gemm = {
    .batch = 1, .m = b * j, .n = i, .k = w * h,
    .a = {.outer = 1, .k = b * j, .batch = 0, .usesTma = true},
    .b = {.outer = 1, .k = i, .batch = 0, .usesTma = true},
    .strideCm = i, .batchStrideC = 0, .usesTma = true};
constexpr weft::sm90::Tile tile = {.m = 128, .n = 256, .stages = 3, .epilogueStages = 4, .groupM = 8, .splitK = 1,
    .isPingPong = false};
constexpr unsigned dropThreshold = 6554u;           // 0.1 of 65536 draws
constexpr float keepScale = 1.1111112f;
}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
gemm_bias_dropout_residual_f16_1024x4096x1024(const __grid_constant__ weft::sm90::TensorMap wo_map,
                                              const __grid_constant__ weft::sm90::TensorMap weighted_map,
                                              const weft::half *__restrict__ bo,
                                              const __grid_constant__ weft::sm90::TensorMap x_map,
                                              const __grid_constant__ weft::sm90::TensorMap residual1_map,
                                              const weft::DropoutKey *__restrict__ dropoutKey,
                                              unsigned dropoutStream) {
  static_assert(weft::sm90::TileConfig<gemm, tile>::sharedBytes == 213120);
  static_assert(gemm.batch == 1 && gemm.m == 4096 && gemm.n == 1024 && gemm.k == 1024, "plan.json: these extents");
  static_assert(tile.m == 128 && tile.n == 256 && tile.splitK == 1 && tile.multicastB == 1, "plan.json: 128 blocks and maps of these tiles");
  static_assert(w == 64 && h == 16 && i == 1024 && b == 8 && j == 512, "plan.json: these extents");
  static_assert(gemm.a.outer == 1 && gemm.a.k == 4096 && gemm.a.batch == 0 && gemm.a.usesTma == true, "plan.json: strides of operand a");
  static_assert(gemm.b.outer == 1 && gemm.b.k == 1024 && gemm.b.batch == 0 && gemm.b.usesTma == true, "plan.json: strides of operand b");
  static_assert(gemm.strideCm == 1024 && gemm.batchStrideC == 0 && gemm.usesTma == true, "plan.json: strides of the result");
  const weft::DropoutKey key = *dropoutKey;                           // seed and step: a replay must not repeat masks
  const float scaleOfKept = weft::opaque(keepScale);
  const auto epilogueOp = [=](float (&accumulators)[8], const float (&x_v)[8], const float (&bo_v)[8],
      const weft::sm90::Fragment &at) {
    const auto kept = weft::keptFragment(key, dropoutStream, at.row / j, at.row % j, at.column, dropThreshold);
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const float attention = accumulators[e] + bo_v[e];                                          // %12
      const float attention_kept = (kept.at(e) ? attention : 0.0f) * scaleOfKept;                 // %13
      const float residual1_2 = attention_kept + x_v[e];                                          // %14
      accumulators[e] = residual1_2;
    }
  };
  weft::sm90::runGemm<weft::half, gemm, tile>(weft::sm90::Args{
      .a = &weighted_map, .b = &wo_map, .c = &residual1_map,
      .perElement = &x_map,
      .perColumn = bo,
      .epilogue = epilogueOp});
}
