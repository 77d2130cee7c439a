// product_bias_gelu_kept    (this header is not hashed)
//
//   ops        product = contract "bji,iu->bju" x, w
//              biased = bias product, bias
//              active = gelu biased
//   space      b=8 j=512 u=4096 | i=1024 (reduced)
//   reads      w[i,u] f16   x[b,j,i] f16   bias[u] f16    16.8 MB
//   writes     active[b,j,u] f16   biased[b,j,u] f16    67.1 MB
//   config     wgmma, ping-pong tiles of 128 x 128, 5 stages, 4 staged panels, raster 8    launch <<<132, 384>>>
#include "weft/hopper_contraction.cuh"
#include "weft/math.cuh"

namespace {
constexpr weft::Offset b = 8, i = 1024, j = 512, u = 4096;  // extents
constexpr weft::hopper::Product product = {
    .batch = 1, .m = b * j, .n = u, .k = i,
    .a = {.outer = i, .k = 1, .batch = 0, .isByEngine = true},
    .b = {.outer = 1, .k = u, .batch = 0, .isByEngine = true},
    .strideCm = u, .batchStrideC = 0, .isByEngine = true};
constexpr weft::hopper::Tile tile = {.m = 128, .n = 128, .stages = 5, .staging = 4, .rasterM = 8, .splits = 1,
    .isPingPong = true};
constexpr float scale = 0.0625f;
}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
product_bias_gelu_kept(const __grid_constant__ weft::hopper::TensorMap w_map,
                       const __grid_constant__ weft::hopper::TensorMap x_map, const weft::half *__restrict__ bias,
                       const __grid_constant__ weft::hopper::TensorMap active_map,
                       const __grid_constant__ weft::hopper::TensorMap biased_map) {
  static_assert(weft::hopper::Plan<product, tile>::sharedBytes == 229536);
  static_assert(product.batch == 1 && product.m == 4096 && product.n == 4096 && product.k == 1024, "plan.json: these extents");
  static_assert(tile.m == 128 && tile.n == 128 && tile.splits == 1 && tile.sharers == 1, "plan.json: 132 blocks and maps of these tiles");
  static_assert(b == 8 && i == 1024 && j == 512 && u == 4096, "plan.json: these extents");
  static_assert(product.a.outer == 1024 && product.a.k == 1 && product.a.batch == 0 && product.a.isByEngine == true, "plan.json: strides of operand a");
  static_assert(product.b.outer == 1 && product.b.k == 4096 && product.b.batch == 0 && product.b.isByEngine == true, "plan.json: strides of operand b");
  static_assert(product.strideCm == 4096 && product.batchStrideC == 0 && product.isByEngine == true, "plan.json: strides of the result");
  const auto finish = [=](float (&sums)[8], const float (&bias_v)[8], float (&biased_v)[8],
      const weft::hopper::Fragment &at) {
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const float biased_2 = (sums[e] * scale) + bias_v[e];
      const float active_2 = weft::geluForHalf(biased_2);
      biased_v[e] = biased_2;
      sums[e] = active_2;
    }
  };
  weft::hopper::contraction<weft::half, product, tile>({&x_map, nullptr}, {&w_map, nullptr}, {&active_map, nullptr},
      weft::hopper::NoPanelOperand{}, weft::hopper::ColumnOperand<weft::half>{bias},
      weft::hopper::PanelOutput<weft::half>{{&biased_map, nullptr}}, finish);
}
