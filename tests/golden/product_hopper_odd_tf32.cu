// contract    (this header is not hashed)
//
//   ops        c = contract "bmk,bnk->bmn" a, b in tf32
//   space      b=3 m=1000 n=777 | k=555 (reduced)
//   reads      a[b,m,k] f32   b[b,n,k] f32    11.8 MB
//   writes     c[b,m,n] f32    9.32 MB
//   flop       2.59 Gflop
//   config     wgmma, ping-pong tiles of 128 x 128, 6 stages, 2 staged panels, raster 8    launch <<<132, 384>>>
#include "weft/hopper_contraction.cuh"
#include "weft/hopper_tf32.cuh"

namespace {
constexpr weft::Offset b = 3, k = 555, m = 1000, n = 777;  // extents
constexpr weft::hopper::Product product = {
    .batch = b, .m = m, .n = n, .k = k,
    .a = {.outer = k, .k = 1, .batch = m * k, .isByEngine = false},
    .b = {.outer = k, .k = 1, .batch = n * k, .isByEngine = false},
    .strideCm = n, .batchStrideC = m * n, .isByEngine = false, .operandBytes = 4, .isPaired = false};
constexpr weft::hopper::Tile tile = {.m = 128, .n = 128, .stages = 6, .staging = 2, .rasterM = 8, .splits = 1,
    .isPingPong = true};
}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
contract(const weft::tfloat32 *__restrict__ a, const weft::tfloat32 *__restrict__ b_2, float *__restrict__ c) {
  static_assert(weft::hopper::Plan<product, tile>::sharedBytes == 229520);
  static_assert(product.batch == 3 && product.m == 1000 && product.n == 777 && product.k == 555, "plan.json: these extents");
  static_assert(tile.m == 128 && tile.n == 128 && tile.splits == 1 && tile.sharers == 1, "plan.json: 132 blocks and maps of these tiles");
  static_assert(b == 3 && k == 555 && m == 1000 && n == 777, "plan.json: these extents");
  static_assert(product.a.outer == 555 && product.a.k == 1 && product.a.batch == 555000 && product.a.isByEngine == false, "plan.json: strides of operand a");
  static_assert(product.b.outer == 555 && product.b.k == 1 && product.b.batch == 431235 && product.b.isByEngine == false, "plan.json: strides of operand b");
  static_assert(product.strideCm == 777 && product.batchStrideC == 777000 && product.isByEngine == false && product.operandBytes == 4 && product.isPaired == false, "plan.json: strides of the result");
  weft::hopper::contraction<weft::hopper::Elements<weft::tfloat32, weft::tfloat32, float>, product, tile>({nullptr, a},
      {nullptr, b_2}, {nullptr, c}, weft::hopper::NoPanelOperand{}, weft::hopper::Unchanged{});
}
