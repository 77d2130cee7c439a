// product_bias_gelu    (this header is not hashed)
//
//   ops        product = contract "bji,iu->bju" x, w
//              biased = bias product, bias
//              active = gelu biased
//   space      b=1 j=8 u=4096 | i=1024 (reduced)
//   reads      w[i,u] f16   x[b,j,i] f16   bias[u] f16    8.41 MB
//   writes     active[b,j,u] f16    65.5 kB
//   config     wgmma, narrow tiles of 8 x 64, 8 stages, k over 2 blocks    launch <<<128, 160>>>
#include "weft/hopper_narrow.cuh"
#include "weft/math.cuh"

namespace {
constexpr weft::Offset b = 1, i = 1024, j = 8, u = 4096;  // extents
constexpr weft::hopper::Product product = {
    .batch = 1, .m = j, .n = u, .k = i,
    .a = {.outer = i, .k = 1, .batch = 0, .isByEngine = true},
    .b = {.outer = 1, .k = u, .batch = 0, .isByEngine = true},
    .strideCm = u, .batchStrideC = 0, .isByEngine = true};
constexpr weft::hopper::NarrowTile tile = {.m = 8, .n = 64, .stages = 8, .splits = 2};
constexpr float scale = 0.0625f;
}  // namespace

extern "C" __global__ void __cluster_dims__(tile.splits) __launch_bounds__(160, 1)
product_bias_gelu(const __grid_constant__ weft::hopper::TensorMap w_map,
                  const __grid_constant__ weft::hopper::TensorMap x_map, const weft::half *__restrict__ bias,
                  weft::half *__restrict__ active) {
  static_assert(weft::hopper::NarrowPlan<product, tile>::sharedBytes == 75912);
  static_assert(product.batch == 1 && product.m == 8 && product.n == 4096 && product.k == 1024, "plan.json: these extents");
  static_assert(tile.m == 8 && tile.n == 64 && tile.splits == 2, "plan.json: 128 blocks and maps of these tiles");
  static_assert(b == 1 && i == 1024 && j == 8 && u == 4096, "plan.json: these extents");
  static_assert(product.a.outer == 1024 && product.a.k == 1 && product.a.batch == 0 && product.a.isByEngine == true, "plan.json: strides of operand a");
  static_assert(product.b.outer == 1 && product.b.k == 4096 && product.b.batch == 0 && product.b.isByEngine == true, "plan.json: strides of operand b");
  static_assert(product.strideCm == 4096 && product.batchStrideC == 0 && product.isByEngine == true, "plan.json: strides of the result");
  const auto finish = [=](const weft::hopper::NarrowFragment<4> &at) {
    const auto bias_v = weft::hopper::askRows<product.n>(bias, at);
    const auto finishSums = [=](float (&sums)[4]) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const float biased = (sums[e] * scale) + bias_v[e];
        const float active_2 = weft::geluForHalf(biased);
        sums[e] = active_2;
      }
    };
    return finishSums;
  };
  weft::hopper::narrowContraction<weft::half, product, tile>(&x_map, &w_map, active, finish);
}
