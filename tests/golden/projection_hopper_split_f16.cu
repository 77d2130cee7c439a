// projection    (this header is not hashed)
//
//   ops        c = contract "mk,nk->mn" a, b
//   space      m=8 n=4096 | k=4096 (reduced)
//   reads      a[m,k] f16   b[n,k] f16    33.6 MB
//   writes     c[m,n] f16    65.5 kB
//   flop       268 Mflop
//   config     wgmma, ping-pong tiles of 64 x 128, 6 stages, 2 staged panels, raster 8, k over 4 blocks    launch <<<128, 384>>>
#include "weft/hopper_contraction.cuh"

namespace {
constexpr weft::Offset k = 4096, m = 8, n = 4096;   // extents
constexpr weft::hopper::Product product = {
    .batch = 1, .m = m, .n = n, .k = k,
    .a = {.outer = k, .k = 1, .batch = 0, .isByEngine = true},
    .b = {.outer = k, .k = 1, .batch = 0, .isByEngine = true},
    .strideCm = n, .batchStrideC = 0, .isByEngine = true};
constexpr weft::hopper::Tile tile = {.m = 64, .n = 128, .stages = 6, .staging = 2, .rasterM = 8, .splits = 4,
    .isPingPong = true};
}  // namespace

extern "C" __global__ void __cluster_dims__(tile.splits) __launch_bounds__(384, 1)
projection(const __grid_constant__ weft::hopper::TensorMap a_map,
           const __grid_constant__ weft::hopper::TensorMap b_map,
           const __grid_constant__ weft::hopper::TensorMap c_map) {
  static_assert(weft::hopper::Plan<product, tile>::sharedBytes == 229520);
  static_assert(product.batch == 1 && product.m == 8 && product.n == 4096 && product.k == 4096, "plan.json: these extents");
  static_assert(tile.m == 64 && tile.n == 128 && tile.splits == 4 && tile.sharers == 1, "plan.json: 128 blocks and maps of these tiles");
  static_assert(k == 4096 && m == 8 && n == 4096, "plan.json: these extents");
  static_assert(product.a.outer == 4096 && product.a.k == 1 && product.a.batch == 0 && product.a.isByEngine == true, "plan.json: strides of operand a");
  static_assert(product.b.outer == 4096 && product.b.k == 1 && product.b.batch == 0 && product.b.isByEngine == true, "plan.json: strides of operand b");
  static_assert(product.strideCm == 4096 && product.batchStrideC == 0 && product.isByEngine == true, "plan.json: strides of the result");
  weft::hopper::contraction<weft::half, product, tile>({&a_map, nullptr}, {&b_map, nullptr}, {&c_map, nullptr},
      weft::hopper::NoPanelOperand{}, weft::hopper::Unchanged{});
}
