// scaled_product    (this header is not hashed)
//
//   ops        product = contract "bmk,bnk->bmn" a, b
//              half = mul product, scale_a
//              whole = mul half, scale_b
//              biased = bias whole, bias
//              c = cast biased
//   space      b=1 m=4096 n=1024 | k=2048 (reduced)
//   reads      a[b,m,k] f8e4m3   b[b,n,k] f8e5m2   scale_a[] f32   scale_b[] f32   bias[n] f16    10.5 MB
//   writes     c[b,m,n] f16    8.39 MB
//   config     wgmma, ping-pong tiles of 128 x 128, 6 stages, 2 staged panels, raster 8    launch <<<132, 384>>>
#include "weft/float8.cuh"
#include "weft/hopper_contraction.cuh"

namespace {
constexpr weft::Offset b = 1, k = 2048, m = 4096, n = 1024;  // extents
constexpr weft::hopper::Product product = {
    .batch = 1, .m = m, .n = n, .k = k,
    .a = {.outer = k, .k = 1, .batch = 0, .isByEngine = true},
    .b = {.outer = k, .k = 1, .batch = 0, .isByEngine = true},
    .strideCm = n, .batchStrideC = 0, .isByEngine = true, .operandBytes = 1};
constexpr weft::hopper::Tile tile = {.m = 128, .n = 128, .stages = 6, .staging = 2, .rasterM = 8, .splits = 1,
    .isPingPong = true};
}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
scaled_product(const __grid_constant__ weft::hopper::TensorMap a_map,
               const __grid_constant__ weft::hopper::TensorMap b_2_map, const float *__restrict__ scale_a,
               const float *__restrict__ scale_b, const weft::half *__restrict__ bias,
               const __grid_constant__ weft::hopper::TensorMap c_map) {
  static_assert(weft::hopper::Plan<product, tile>::sharedBytes == 229520);
  static_assert(product.batch == 1 && product.m == 4096 && product.n == 1024 && product.k == 2048, "plan.json: these extents");
  static_assert(tile.m == 128 && tile.n == 128 && tile.splits == 1 && tile.sharers == 1, "plan.json: 132 blocks and maps of these tiles");
  static_assert(b == 1 && k == 2048 && m == 4096 && n == 1024, "plan.json: these extents");
  static_assert(product.a.outer == 2048 && product.a.k == 1 && product.a.batch == 0 && product.a.isByEngine == true, "plan.json: strides of operand a");
  static_assert(product.b.outer == 2048 && product.b.k == 1 && product.b.batch == 0 && product.b.isByEngine == true, "plan.json: strides of operand b");
  static_assert(product.strideCm == 1024 && product.batchStrideC == 0 && product.isByEngine == true && product.operandBytes == 1, "plan.json: strides of the result");
  const float scale_a_v = weft::loadOne(scale_a);
  const float scale_b_v = weft::loadOne(scale_b);
  const auto finish = [=](float (&sums)[8], const float (&bias_v)[8], const weft::hopper::Fragment &at) {
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const float half_2 = sums[e] * scale_a_v;
      const float whole = half_2 * scale_b_v;
      const float biased = whole + bias_v[e];
      const float c_2 = biased;
      sums[e] = c_2;
    }
  };
  weft::hopper::contraction<weft::hopper::Elements<weft::float8e4m3, weft::float8e5m2, weft::half>, product,
      tile>({&a_map, nullptr}, {&b_2_map, nullptr}, {&c_map, nullptr}, weft::hopper::NoPanelOperand{},
      weft::hopper::ColumnOperand<weft::half>{bias}, finish);
}
