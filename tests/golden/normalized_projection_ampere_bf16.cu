// normalized_projection    (this header is not hashed)
//
//   ops        centered = sub x, mean
//              normal = mul centered, rstd
//              gained = mul normal, gamma
//              shifted = add gained, beta
//              product = contract "bji,iu->bju" shifted, w
//   space      b=8 j=512 u=3072 | i=1024 (reduced)
//   reads      x[b,j,i] bf16   mean[b,j] f32   rstd[b,j] f32   gamma[i] bf16   beta[i] bf16   w[i,u] bf16    14.7 MB
//   writes     product[b,j,u] bf16    25.2 MB
//   config     mma.sync, tile 128 x 128 x 32, 4 stages, 2 x 2 warps, raster 8    launch <<<768, 128>>>
#include "weft/ampere_prologue.cuh"

namespace {
constexpr weft::Offset b = 8, i = 1024, j = 512, u = 3072;  // extents
constexpr weft::ampere::Product product = {
    .batch = 1, .m = b * j, .n = u, .k = i,
    .a = {.outer = i, .k = 1, .batch = 0, .isAligned = true},
    .b = {.outer = 1, .k = u, .batch = 0, .isAligned = true},
    .strideCm = u, .batchStrideC = 0, .isAligned = true};
constexpr weft::ampere::Tile tile = {.m = 128, .n = 128, .k = 32, .stages = 4, .warpsM = 2, .warpsN = 2, .rasterM = 8};
}  // namespace

extern "C" __global__ void __launch_bounds__(128, 1)
normalized_projection(const weft::bfloat16 *__restrict__ x, const float *__restrict__ mean,
                      const float *__restrict__ rstd, const weft::bfloat16 *__restrict__ gamma,
                      const weft::bfloat16 *__restrict__ beta, const weft::bfloat16 *__restrict__ w,
                      weft::bfloat16 *__restrict__ product_2) {
  static_assert(weft::ampere::Plan<product, tile>::sharedBytes == 65536);
  static_assert(product.batch == 1 && product.m == 4096 && product.n == 3072 && product.k == 1024, "plan.json: these extents");
  static_assert(1 * ((4096 + tile.m - 1) / tile.m) * ((3072 + tile.n - 1) / tile.n) == 768, "plan.json: 768 blocks");
  static_assert(32 * tile.warpsM * tile.warpsN == 128, "plan.json: 128 threads a block");
  static_assert(b == 8 && i == 1024 && j == 512 && u == 3072, "plan.json: these extents");
  static_assert(product.a.outer == 1024 && product.a.k == 1 && product.a.batch == 0 && product.a.isAligned == true, "plan.json: strides of operand a");
  static_assert(product.b.outer == 1 && product.b.k == 3072 && product.b.batch == 0 && product.b.isAligned == true, "plan.json: strides of operand b");
  static_assert(product.strideCm == 3072 && product.batchStrideC == 0 && product.isAligned == true, "plan.json: strides of the result");
  const auto make = [=](float (&x_v)[8], const weft::OperandPlace &at) {
    const float mean_v = weft::loadOne(mean + weft::insideOperand(at.outer, product.m));
    const float rstd_v = weft::loadOne(rstd + weft::insideOperand(at.outer, product.m));
    const auto gamma_v = weft::alongOperand<product.k, 1, true>(gamma, at.k);
    const auto beta_v = weft::alongOperand<product.k, 1, true>(beta, at.k);
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const float centered = x_v[e] - mean_v;
      const float normal = centered * rstd_v;
      const float gained = normal * gamma_v.at[e];
      const float shifted = gained + beta_v.at[e];
      x_v[e] = shifted;
    }
  };
  weft::ampere::contractionOfMade<weft::bfloat16, product, tile>(weft::madeOf(x, make), w, product_2,
      weft::ampere::Unchanged{});
}
