// projection    (this header is not hashed)
//
//   ops        c = contract "mk,kn->mn" a, b
//   space      m=8 n=4096 | k=4096 (reduced)
//   reads      a[m,k] f16   b[k,n] f16    33.6 MB
//   writes     c[m,n] f16    65.5 kB
//   flop       268 Mflop
//   config     wgmma, narrow tiles of 8 x 64, 24 stages, k over 2 blocks    launch <<<128, 160>>>
#include "weft/hopper_narrow.cuh"

namespace {
constexpr weft::Offset k = 4096, m = 8, n = 4096;   // extents
constexpr weft::hopper::Product product = {
    .batch = 1, .m = m, .n = n, .k = k,
    .a = {.outer = k, .k = 1, .batch = 0, .isByEngine = true},
    .b = {.outer = 1, .k = n, .batch = 0, .isByEngine = true},
    .strideCm = n, .batchStrideC = 0, .isByEngine = true};
constexpr weft::hopper::NarrowTile tile = {.m = 8, .n = 64, .stages = 24, .splits = 2};
}  // namespace

extern "C" __global__ void __cluster_dims__(tile.splits) __launch_bounds__(160, 1)
projection(const __grid_constant__ weft::hopper::TensorMap a_map,
           const __grid_constant__ weft::hopper::TensorMap b_map, weft::half *__restrict__ c) {
  static_assert(weft::hopper::NarrowPlan<product, tile>::sharedBytes == 223624);
  static_assert(product.batch == 1 && product.m == 8 && product.n == 4096 && product.k == 4096, "plan.json: these extents");
  static_assert(tile.m == 8 && tile.n == 64 && tile.splits == 2, "plan.json: 128 blocks and maps of these tiles");
  static_assert(k == 4096 && m == 8 && n == 4096, "plan.json: these extents");
  static_assert(product.a.outer == 4096 && product.a.k == 1 && product.a.batch == 0 && product.a.isByEngine == true, "plan.json: strides of operand a");
  static_assert(product.b.outer == 1 && product.b.k == 4096 && product.b.batch == 0 && product.b.isByEngine == true, "plan.json: strides of operand b");
  static_assert(product.strideCm == 4096 && product.batchStrideC == 0 && product.isByEngine == true, "plan.json: strides of the result");
  weft::hopper::narrowContraction<weft::half, product, tile>(&a_map, &b_map, c, 0.125f);
}
