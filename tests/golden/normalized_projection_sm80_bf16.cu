// normalized_projection    (this header is not hashed)
//
//   ops        centered = sub x, mean
//              normal = mul centered, rstd
//              gained = mul normal, gamma
//              shifted = add gained, beta
//              gemm = contract "bji,iu->bju" shifted, w
//   space      b=8 j=512 u=3072 | i=1024 (reduced)
//   reads      x[b,j,i] bf16   mean[b,j] f32   rstd[b,j] f32   gamma[i] bf16   beta[i] bf16   w[i,u] bf16    14.7 MB
//   writes     gemm[b,j,u] bf16    25.2 MB
//   config     mma.sync, tile 128 x 128 x 32, 4 stages, 2 x 2 warps, group-M 8    launch <<<768, 128>>>
#include "weft/sm80_prologue.cuh"

namespace {
constexpr weft::Offset b = 8, i = 1024, j = 512, u = 3072;  // extents
constexpr weft::sm80::GemmProblem gemm = {
    .batch = 1, .m = b * j, .n = u, .k = i,
    .a = {.outer = i, .k = 1, .batch = 0, .isAligned = true},
    .b = {.outer = 1, .k = u, .batch = 0, .isAligned = true},
    .strideCm = u, .batchStrideC = 0, .isAligned = true};
constexpr weft::sm80::Tile tile = {.m = 128, .n = 128, .k = 32, .stages = 4, .warpsM = 2, .warpsN = 2, .groupM = 8};
}  // namespace

extern "C" __global__ void __launch_bounds__(128, 1)
sub_mul_x2_add_gemm_bf16_4096x3072x1024(const weft::bfloat16 *__restrict__ x, const float *__restrict__ mean,
                                        const float *__restrict__ rstd, const weft::bfloat16 *__restrict__ gamma,
                                        const weft::bfloat16 *__restrict__ beta, const weft::bfloat16 *__restrict__ w,
                                        weft::bfloat16 *__restrict__ gemm_2) {
  static_assert(weft::sm80::TileConfig<gemm, tile>::sharedBytes == 65536);
  static_assert(gemm.batch == 1 && gemm.m == 4096 && gemm.n == 3072 && gemm.k == 1024, "plan.json: these extents");
  static_assert(1 * ((4096 + tile.m - 1) / tile.m) * ((3072 + tile.n - 1) / tile.n) == 768, "plan.json: 768 blocks");
  static_assert(32 * tile.warpsM * tile.warpsN == 128, "plan.json: 128 threads a block");
  static_assert(b == 8 && i == 1024 && j == 512 && u == 3072, "plan.json: these extents");
  static_assert(gemm.a.outer == 1024 && gemm.a.k == 1 && gemm.a.batch == 0 && gemm.a.isAligned == true, "plan.json: strides of operand a");
  static_assert(gemm.b.outer == 1 && gemm.b.k == 3072 && gemm.b.batch == 0 && gemm.b.isAligned == true, "plan.json: strides of operand b");
  static_assert(gemm.strideCm == 3072 && gemm.batchStrideC == 0 && gemm.isAligned == true, "plan.json: strides of the result");
  const auto transform = [=](float (&x_v)[8], const weft::OperandPlace &at) {
    const float mean_v = weft::loadOne(mean + weft::insideOperand(at.outer, gemm.m));
    const float rstd_v = weft::loadOne(rstd + weft::insideOperand(at.outer, gemm.m));
    const auto gamma_v = weft::alongOperand<gemm.k, 1, true>(gamma, at.k);
    const auto beta_v = weft::alongOperand<gemm.k, 1, true>(beta, at.k);
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const float centered = x_v[e] - mean_v;
      const float normal = centered * rstd_v;
      const float gained = normal * gamma_v.at[e];
      const float shifted = gained + beta_v.at[e];
      x_v[e] = shifted;
    }
  };
  weft::sm80::prologueGemm<weft::bfloat16, gemm, tile>(weft::sm80::Args{
      .a = x, .b = w, .c = gemm_2,
      .transformA = transform});
}
