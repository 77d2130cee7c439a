// scaled_product    (this header is not hashed)
//
//   ops        gemm = contract "bmk,bnk->bmn" a, b
//              half = mul gemm, scale_a
//              whole = mul half, scale_b
//              biased = bias whole, bias
//              c = cast biased
//   space      b=1 m=4096 n=1024 | k=2048 (reduced)
//   reads      a[b,m,k] f8e4m3   b[b,n,k] f8e5m2   scale_a[] f32   scale_b[] f32   bias[n] f16    10.5 MB
//   writes     c[b,m,n] f16    8.39 MB
//   config     wgmma, ping-pong tiles of 128 x 128, 6 stages, 2 epilogue stages, group-M 8    launch <<<132, 384>>>
#include "weft/float8.cuh"
#include "weft/sm90_gemm.cuh"

namespace {
constexpr weft::Offset k = 2048, m = 4096, n = 1024;  // extents
constexpr weft::sm90::GemmProblem gemm = {
    .batch = 1, .m = m, .n = n, .k = k,
    .a = {.outer = k, .k = 1, .batch = 0, .usesTma = true},
    .b = {.outer = k, .k = 1, .batch = 0, .usesTma = true},
    .strideCm = n, .batchStrideC = 0, .usesTma = true, .operandBytes = 1};
constexpr weft::sm90::Tile tile = {.m = 128, .n = 128, .stages = 6, .epilogueStages = 2, .groupM = 8, .splitK = 1,
    .isPingPong = true};
}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
gemm_mul_x2_bias_cast_f8e4m3_f8e5m2_f16_4096x1024x2048(const __grid_constant__ weft::sm90::TensorMap a_map,
                                                       const __grid_constant__ weft::sm90::TensorMap b_2_map,
                                                       const float *__restrict__ scale_a,
                                                       const float *__restrict__ scale_b,
                                                       const weft::half *__restrict__ bias,
                                                       const __grid_constant__ weft::sm90::TensorMap c_map) {
  static_assert(weft::sm90::TileConfig<gemm, tile>::sharedBytes == 229520);
  static_assert(gemm.batch == 1 && gemm.m == 4096 && gemm.n == 1024 && gemm.k == 2048, "plan.json: these extents");
  static_assert(tile.m == 128 && tile.n == 128 && tile.splitK == 1 && tile.multicastB == 1, "plan.json: 132 blocks and maps of these tiles");
  static_assert(k == 2048 && m == 4096 && n == 1024, "plan.json: these extents");
  static_assert(gemm.a.outer == 2048 && gemm.a.k == 1 && gemm.a.batch == 0 && gemm.a.usesTma == true, "plan.json: strides of operand a");
  static_assert(gemm.b.outer == 2048 && gemm.b.k == 1 && gemm.b.batch == 0 && gemm.b.usesTma == true, "plan.json: strides of operand b");
  static_assert(gemm.strideCm == 1024 && gemm.batchStrideC == 0 && gemm.usesTma == true && gemm.operandBytes == 1, "plan.json: strides of the result");
  const float scale_a_v = weft::loadOne(scale_a);
  const float scale_b_v = weft::loadOne(scale_b);
  const auto epilogueOp = [=](float (&accumulators)[8], const float (&bias_v)[8], const weft::sm90::Fragment &at) {
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const float half_2 = accumulators[e] * scale_a_v;
      const float whole = half_2 * scale_b_v;
      const float biased = whole + bias_v[e];
      const float c_2 = biased;
      accumulators[e] = c_2;
    }
  };
  using Elements = weft::sm90::Elements<weft::float8e4m3, weft::float8e5m2, weft::half>;
  weft::sm90::runGemm<Elements, gemm, tile>(weft::sm90::Args{
      .a = &a_map, .b = &b_2_map, .c = &c_map,
      .perColumn = bias,
      .epilogue = epilogueOp});
}
