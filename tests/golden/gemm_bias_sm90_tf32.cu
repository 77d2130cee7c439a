// product_bias    (this header is not hashed)
//
//   ops        gemm = contract "bji,iu->bju" x, w in tf32
//              biased = bias gemm, bias
//   space      b=8 j=512 u=1024 | i=1024 (reduced)
//   reads      w[u,i] f32   x[b,j,i] f32   bias[u] f32    21.0 MB
//   writes     biased[b,j,u] f32    16.8 MB
//   config     wgmma, ping-pong tiles of 128 x 128, 6 stages, 2 epilogue stages, group-M 8    launch <<<132, 384>>>
#include "weft/fragment.cuh"
#include "weft/sm90_gemm.cuh"
#include "weft/sm90_tf32.cuh"

namespace {
constexpr weft::Offset b = 8, i = 1024, j = 512, u = 1024;  // extents
constexpr weft::sm90::GemmProblem gemm = {
    .batch = 1, .m = b * j, .n = u, .k = i,
    .a = {.outer = i, .k = 1, .batch = 0, .usesTma = true},
    .b = {.outer = i, .k = 1, .batch = 0, .usesTma = true},
    .strideCm = u, .batchStrideC = 0, .usesTma = false, .operandBytes = 4, .isPaired = true};
constexpr weft::sm90::Tile tile = {.m = 128, .n = 128, .stages = 6, .epilogueStages = 2, .groupM = 8, .splitK = 1,
    .isPingPong = true};
}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
gemm_bias_tf32_4096x1024x1024(const __grid_constant__ weft::sm90::TensorMap w_map,
                              const __grid_constant__ weft::sm90::TensorMap x_map, const float *__restrict__ bias,
                              float *__restrict__ biased) {
  static_assert(weft::sm90::TileConfig<gemm, tile>::sharedBytes == 229520);
  static_assert(gemm.batch == 1 && gemm.m == 4096 && gemm.n == 1024 && gemm.k == 1024, "plan.json: these extents");
  static_assert(tile.m == 128 && tile.n == 128 && tile.splitK == 1 && tile.multicastB == 1, "plan.json: 132 blocks and maps of these tiles");
  static_assert(b == 8 && i == 1024 && j == 512 && u == 1024, "plan.json: these extents");
  static_assert(gemm.a.outer == 1024 && gemm.a.k == 1 && gemm.a.batch == 0 && gemm.a.usesTma == true, "plan.json: strides of operand a");
  static_assert(gemm.b.outer == 1024 && gemm.b.k == 1 && gemm.b.batch == 0 && gemm.b.usesTma == true, "plan.json: strides of operand b");
  static_assert(gemm.strideCm == 1024 && gemm.batchStrideC == 0 && gemm.usesTma == false && gemm.operandBytes == 4 && gemm.isPaired == true, "plan.json: strides of the result");
  const auto epilogueOp = [=](float (&accumulators)[8], const weft::sm90::Fragment &at) {
    const auto bias_v = weft::fragmentColumns<gemm.n>(bias, at);
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const float biased_2 = accumulators[e] + bias_v.at[e];
      accumulators[e] = biased_2;
    }
  };
  using Elements = weft::sm90::Elements<weft::tfloat32, weft::tfloat32, float>;
  weft::sm90::runGemm<Elements, gemm, tile>(weft::sm90::Args{
      .a = &x_map, .b = &w_map, .c = biased,
      .epilogue = weft::sm90::PerThreadEpilogue{epilogueOp}});
}
