// hidden_projection_bias_relu_dropout__u_b_j    kernel 10 of paper-encoder, forward    (this header is not hashed)
//
//   ops        %16 = contract "ui,bji->bju" %w1, %15
//              %17 = bias %16, %b1
//              %18 = relu %17
//              %19 = dropout %18
//   space      u=4096 b=96 j=128 | i=1024 (reduced)
//   reads      w1[u,i] f16   norm1[b,j,i] f16   b1[u] f16    33.6 MB
//   writes     active_kept[u,b,j] f16    101 MB
//   flop       103 Gflop
//   config     wgmma, ping-pong tiles of 128 x 192, 4 stages, 4 epilogue stages, group-M 8    launch <<<132, 384>>>
//   fused by   fuse: producer-consumer + reduction-consumer
//   not fused  contract, bias, relu, dropout, contract: F024 no-epilogue ('contract' is of class contraction; an epilogue is element-wise)
//   not fused  contract, bias, relu, dropout, contract: F031 forward-and-backward (hidden_product, d_w2)
#include "weft/dropout.cuh"
#include "weft/math.cuh"
#include "weft/sm90_gemm.cuh"
#include "weft/wgmma_f16.cuh"

namespace {
constexpr weft::Offset u = 4096, i = 1024, b = 96, j = 128;  // extents
constexpr weft::sm90::GemmProblem gemm = {
    .batch = 1, .m = u, .n = b * j, .k = i,
    .a = {.outer = i, .k = 1, .batch = 0, .usesTma = true},
    .b = {.outer = i, .k = 1, .batch = 0, .usesTma = true},
    .strideCm = b * j, .batchStrideC = 0, .usesTma = true};
constexpr weft::sm90::Tile tile = {.m = 128, .n = 192, .stages = 4, .epilogueStages = 4, .groupM = 8, .splitK = 1,
    .isPingPong = true};
constexpr unsigned dropThreshold = 6554u;           // 0.1 of 65536 draws
constexpr float keepScale = 1.1111112f;
}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
gemm_bias_relu_dropout_f16_4096x12288x1024(const __grid_constant__ weft::sm90::TensorMap w1_map,
                                           const __grid_constant__ weft::sm90::TensorMap norm1_map,
                                           const weft::half *__restrict__ b1,
                                           const __grid_constant__ weft::sm90::TensorMap active_kept_map,
                                           const weft::DropoutKey *__restrict__ dropoutKey, unsigned dropoutStream) {
  static_assert(weft::sm90::TileConfig<gemm, tile>::sharedBytes == 229520);
  static_assert(gemm.batch == 1 && gemm.m == 4096 && gemm.n == 12288 && gemm.k == 1024, "plan.json: these extents");
  static_assert(tile.m == 128 && tile.n == 192 && tile.splitK == 1 && tile.multicastB == 1, "plan.json: 132 blocks and maps of these tiles");
  static_assert(u == 4096 && i == 1024 && b == 96 && j == 128, "plan.json: these extents");
  static_assert(gemm.a.outer == 1024 && gemm.a.k == 1 && gemm.a.batch == 0 && gemm.a.usesTma == true, "plan.json: strides of operand a");
  static_assert(gemm.b.outer == 1024 && gemm.b.k == 1 && gemm.b.batch == 0 && gemm.b.usesTma == true, "plan.json: strides of operand b");
  static_assert(gemm.strideCm == 12288 && gemm.batchStrideC == 0 && gemm.usesTma == true, "plan.json: strides of the result");
  const weft::DropoutKey key = *dropoutKey;                           // seed and step: a replay must not repeat masks
  const float scaleOfKept = weft::opaque(keepScale);
  const auto epilogueOp = [=](float (&accumulators)[8], const float (&b1_v)[8], const weft::sm90::Fragment &at) {
    const auto kept = weft::keptTransposedFragment(key, dropoutStream, at.column / j, at.column % j, at.row,
        dropThreshold);
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const float hidden = accumulators[e] + b1_v[e];                                             // %17
      const float active = weft::relu(hidden);                                                    // %18
      const float active_kept_2 = (kept.at(e) ? active : 0.0f) * scaleOfKept;                     // %19
      accumulators[e] = active_kept_2;
    }
  };
  weft::sm90::runGemm<weft::half, gemm, tile>(weft::sm90::Args{
      .a = &w1_map, .b = &norm1_map, .c = &active_kept_map,
      .perRow = b1,
      .epilogue = epilogueOp});
}
