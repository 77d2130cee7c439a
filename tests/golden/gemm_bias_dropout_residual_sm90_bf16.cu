// product_bias_dropout_residual    (this header is not hashed)
//
//   ops        gemm = contract "bji,iu->bju" x, w
//              biased = bias gemm, bias
//              kept = dropout biased
//              sum = residual kept, rest
//   space      b=8 j=512 u=1024 | i=1024 (reduced)
//   reads      w[i,u] bf16   x[b,j,i] bf16   bias[u] bf16   rest[b,j,u] bf16    18.9 MB
//   writes     sum[b,j,u] bf16    8.39 MB
//   config     wgmma, ping-pong tiles of 128 x 128, 6 stages, 2 epilogue stages, group-M 8    launch <<<132, 384>>>
#include "weft/dropout.cuh"
#include "weft/sm90_gemm.cuh"

namespace {
constexpr weft::Offset b = 8, i = 1024, j = 512, u = 1024;  // extents
constexpr weft::sm90::GemmProblem gemm = {
    .batch = 1, .m = b * j, .n = u, .k = i,
    .a = {.outer = i, .k = 1, .batch = 0, .usesTma = true},
    .b = {.outer = 1, .k = u, .batch = 0, .usesTma = true},
    .strideCm = u, .batchStrideC = 0, .usesTma = true};
constexpr weft::sm90::Tile tile = {.m = 128, .n = 128, .stages = 6, .epilogueStages = 2, .groupM = 8, .splitK = 1,
    .isPingPong = true};
constexpr unsigned dropThreshold = 6554u;           // 0.1 of 65536 draws
constexpr float keepScale = 1.1111112f;
}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
gemm_bias_dropout_residual_bf16_4096x1024x1024(const __grid_constant__ weft::sm90::TensorMap w_map,
                                               const __grid_constant__ weft::sm90::TensorMap x_map,
                                               const weft::bfloat16 *__restrict__ bias,
                                               const __grid_constant__ weft::sm90::TensorMap rest_map,
                                               const __grid_constant__ weft::sm90::TensorMap sum_map,
                                               const weft::DropoutKey *__restrict__ dropoutKey,
                                               unsigned dropoutStream) {
  static_assert(weft::sm90::TileConfig<gemm, tile>::sharedBytes == 229520);
  static_assert(gemm.batch == 1 && gemm.m == 4096 && gemm.n == 1024 && gemm.k == 1024, "plan.json: these extents");
  static_assert(tile.m == 128 && tile.n == 128 && tile.splitK == 1 && tile.multicastB == 1, "plan.json: 132 blocks and maps of these tiles");
  static_assert(b == 8 && i == 1024 && j == 512 && u == 1024, "plan.json: these extents");
  static_assert(gemm.a.outer == 1024 && gemm.a.k == 1 && gemm.a.batch == 0 && gemm.a.usesTma == true, "plan.json: strides of operand a");
  static_assert(gemm.b.outer == 1 && gemm.b.k == 1024 && gemm.b.batch == 0 && gemm.b.usesTma == true, "plan.json: strides of operand b");
  static_assert(gemm.strideCm == 1024 && gemm.batchStrideC == 0 && gemm.usesTma == true, "plan.json: strides of the result");
  const weft::DropoutKey key = *dropoutKey;                           // seed and step: a replay must not repeat masks
  const float scaleOfKept = weft::opaque(keepScale);
  const auto epilogueOp = [=](float (&accumulators)[8], const float (&rest_v)[8], const float (&bias_v)[8],
      const weft::sm90::Fragment &at) {
    const auto kept = weft::keptFragment(key, dropoutStream, at.row / j, at.row % j, at.column, dropThreshold);
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const float biased = accumulators[e] + bias_v[e];
      const float kept_2 = (kept.at(e) ? biased : 0.0f) * scaleOfKept;
      const float sum_2 = kept_2 + rest_v[e];
      accumulators[e] = sum_2;
    }
  };
  weft::sm90::runGemm<weft::bfloat16, gemm, tile>(weft::sm90::Args{
      .a = &x_map, .b = &w_map, .c = &sum_map,
      .perElement = &rest_map,
      .perColumn = bias,
      .epilogue = epilogueOp});
}
