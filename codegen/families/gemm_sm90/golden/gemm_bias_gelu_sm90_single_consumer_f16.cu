// product_bias_gelu    (this header is not hashed)
//
//   ops        gemm = contract "bji,iu->bju" x, w
//              biased = bias gemm, bias
//              active = gelu biased
//   space      b=1 j=8 u=4096 | i=1024 (reduced)
//   reads      w[i,u] f16   x[b,j,i] f16   bias[u] f16    8.41 MB
//   writes     active[b,j,u] f16    65.5 kB
//   config     wgmma, single-consumer tiles of 8 x 64, 8 stages, k over 2 blocks    launch <<<128, 160>>>
#include "weft/math.cuh"
#include "weft/sm90_single_consumer.cuh"
#include "weft/wgmma_f16_small_n.cuh"

namespace {
constexpr weft::Offset i = 1024, j = 8, u = 4096;   // extents
constexpr weft::sm90::GemmProblem gemm = {
    .batch = 1, .m = j, .n = u, .k = i,
    .a = {.outer = i, .k = 1, .batch = 0, .usesTma = true},
    .b = {.outer = 1, .k = u, .batch = 0, .usesTma = true},
    .strideCm = u, .batchStrideC = 0, .usesTma = true};
constexpr weft::sm90::SingleConsumerTile tile = {.m = 8, .n = 64, .stages = 8, .splitK = 2};
constexpr float scale = 0.0625f;
}  // namespace

extern "C" __global__ void __cluster_dims__(tile.splitK) __launch_bounds__(160, 1)
gemm_bias_gelu_f16_8x4096x1024(const __grid_constant__ weft::sm90::TensorMap w_map,
                               const __grid_constant__ weft::sm90::TensorMap x_map, const weft::half *bias,
                               weft::half *active) {
  static_assert(weft::sm90::SingleConsumerConfig<gemm, tile>::sharedBytes == 75912);
  static_assert(gemm.batch == 1 && gemm.m == 8 && gemm.n == 4096 && gemm.k == 1024, "plan.json: these extents");
  static_assert(tile.m == 8 && tile.n == 64 && tile.splitK == 2, "plan.json: 128 blocks and maps of these tiles");
  static_assert(i == 1024 && j == 8 && u == 4096, "plan.json: these extents");
  static_assert(gemm.a.outer == 1024 && gemm.a.k == 1 && gemm.a.batch == 0 && gemm.a.usesTma == true, "plan.json: strides of operand a");
  static_assert(gemm.b.outer == 1 && gemm.b.k == 4096 && gemm.b.batch == 0 && gemm.b.usesTma == true, "plan.json: strides of operand b");
  static_assert(gemm.strideCm == 4096 && gemm.batchStrideC == 0 && gemm.usesTma == true, "plan.json: strides of the result");
  const auto epilogueOp = [=](const weft::sm90::SingleConsumerFragment<4> &at) {
    const auto bias_v = weft::sm90::prefetchRows<gemm.n>(bias, at);
    const auto runEpilogue = [=](float (&accumulators)[4]) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const float biased = (accumulators[e] * scale) + bias_v[e];
        const float active_2 = weft::geluForHalf(biased);
        accumulators[e] = active_2;
      }
    };
    return runEpilogue;
  };
  weft::sm90::singleConsumerGemm<weft::half, gemm, tile>(weft::sm90::SingleConsumerArgs{
      .a = &x_map, .b = &w_map, .c = active,
      .epilogue = epilogueOp});
}
