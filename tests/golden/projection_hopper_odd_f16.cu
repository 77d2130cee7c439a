// projection    (this header is not hashed)
//
//   ops        c = contract "phi,bji->phbj" a, b
//   space      b=7 h=16 j=511 p=64 | i=1024 (reduced)
//   reads      a[p,h,i] f16   b[b,j,i] f16    9.42 MB
//   writes     c[p,h,b,j] f16    7.33 MB
//   flop       7.50 Gflop
//   config     wgmma, ping-pong tiles of 128 x 128, 6 stages, 2 staged panels, raster 8    launch <<<132, 384>>>
#include "weft/hopper_contraction.cuh"

namespace {
constexpr weft::Offset b = 7, h = 16, i = 1024, j = 511, p = 64;  // extents
constexpr weft::hopper::Product product = {
    .batch = 1, .m = h * p, .n = b * j, .k = i,
    .a = {.outer = i, .k = 1, .batch = 0, .isByEngine = true},
    .b = {.outer = i, .k = 1, .batch = 0, .isByEngine = true},
    .strideCm = b * j, .batchStrideC = 0, .isByEngine = false};
constexpr weft::hopper::Tile tile = {.m = 128, .n = 128, .stages = 6, .staging = 2, .rasterM = 8, .splits = 1,
    .isPingPong = true};
}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
projection(const __grid_constant__ weft::hopper::TensorMap a_map,
           const __grid_constant__ weft::hopper::TensorMap b_2_map, weft::half *__restrict__ c) {
  static_assert(weft::hopper::Plan<product, tile>::sharedBytes == 229520);
  static_assert(product.batch == 1 && product.m == 1024 && product.n == 3577 && product.k == 1024, "plan.json: these extents");
  static_assert(tile.m == 128 && tile.n == 128 && tile.splits == 1 && tile.sharers == 1, "plan.json: 132 blocks and maps of these tiles");
  static_assert(b == 7 && h == 16 && i == 1024 && j == 511 && p == 64, "plan.json: these extents");
  static_assert(product.a.outer == 1024 && product.a.k == 1 && product.a.batch == 0 && product.a.isByEngine == true, "plan.json: strides of operand a");
  static_assert(product.b.outer == 1024 && product.b.k == 1 && product.b.batch == 0 && product.b.isByEngine == true, "plan.json: strides of operand b");
  static_assert(product.strideCm == 3577 && product.batchStrideC == 0 && product.isByEngine == false, "plan.json: strides of the result");
  weft::hopper::contraction<weft::half, product, tile>({&a_map, nullptr}, {&b_2_map, nullptr}, {nullptr, c},
      weft::hopper::NoPanelOperand{}, weft::hopper::Unchanged{});
}
