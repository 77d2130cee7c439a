// product_bias_gelu_kept    (this header is not hashed)
//
//   ops        gemm = contract "bji,iu->bju" x, w
//              biased = bias gemm, bias
//              active = gelu biased
//   space      b=8 j=512 u=4096 | i=1024 (reduced)
//   reads      w[i,u] f16   x[b,j,i] f16   bias[u] f16    16.8 MB
//   writes     active[b,j,u] f16   biased[b,j,u] f16    67.1 MB
//   config     wgmma, ping-pong tiles of 128 x 128, 5 stages, 4 epilogue stages, group-M 8    launch <<<132, 384>>>
#include "weft/math.cuh"
#include "weft/sm90_gemm.cuh"

namespace {
constexpr weft::Offset b = 8, i = 1024, j = 512, u = 4096;  // extents
constexpr weft::sm90::GemmProblem gemm = {
    .batch = 1, .m = b * j, .n = u, .k = i,
    .a = {.outer = i, .k = 1, .batch = 0, .usesTma = true},
    .b = {.outer = 1, .k = u, .batch = 0, .usesTma = true},
    .strideCm = u, .batchStrideC = 0, .usesTma = true};
constexpr weft::sm90::Tile tile = {.m = 128, .n = 128, .stages = 5, .epilogueStages = 4, .groupM = 8, .splitK = 1,
    .isPingPong = true};
constexpr float scale = 0.0625f;
}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
gemm_bias_gelu_f16_4096x4096x1024(const __grid_constant__ weft::sm90::TensorMap w_map,
                                  const __grid_constant__ weft::sm90::TensorMap x_map,
                                  const weft::half *__restrict__ bias,
                                  const __grid_constant__ weft::sm90::TensorMap active_map,
                                  const __grid_constant__ weft::sm90::TensorMap biased_map) {
  static_assert(weft::sm90::TileConfig<gemm, tile>::sharedBytes == 229536);
  static_assert(gemm.batch == 1 && gemm.m == 4096 && gemm.n == 4096 && gemm.k == 1024, "plan.json: these extents");
  static_assert(tile.m == 128 && tile.n == 128 && tile.splitK == 1 && tile.multicastB == 1, "plan.json: 132 blocks and maps of these tiles");
  static_assert(b == 8 && i == 1024 && j == 512 && u == 4096, "plan.json: these extents");
  static_assert(gemm.a.outer == 1024 && gemm.a.k == 1 && gemm.a.batch == 0 && gemm.a.usesTma == true, "plan.json: strides of operand a");
  static_assert(gemm.b.outer == 1 && gemm.b.k == 4096 && gemm.b.batch == 0 && gemm.b.usesTma == true, "plan.json: strides of operand b");
  static_assert(gemm.strideCm == 4096 && gemm.batchStrideC == 0 && gemm.usesTma == true, "plan.json: strides of the result");
  const auto epilogueOp = [=](float (&accumulators)[8], const float (&bias_v)[8], float (&biased_v)[8],
      const weft::sm90::Fragment &at) {
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const float biased_2 = (accumulators[e] * scale) + bias_v[e];
      const float active_2 = weft::geluForHalf(biased_2);
      biased_v[e] = biased_2;
      accumulators[e] = active_2;
    }
  };
  weft::sm90::runGemm<weft::half, gemm, tile>(weft::sm90::Args{
      .a = &x_map, .b = &w_map, .c = &active_map,
      .perColumn = bias,
      .auxiliary = &biased_map,
      .epilogue = epilogueOp});
}
