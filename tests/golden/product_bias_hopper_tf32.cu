// product_bias    (this header is not hashed)
//
//   ops        product = contract "bji,iu->bju" x, w in tf32
//              biased = bias product, bias
//   space      b=8 j=512 u=1024 | i=1024 (reduced)
//   reads      w[u,i] f32   x[b,j,i] f32   bias[u] f32    21.0 MB
//   writes     biased[b,j,u] f32    16.8 MB
//   config     wgmma, ping-pong tiles of 128 x 128, 6 stages, 2 staged panels, raster 8    launch <<<132, 384>>>
#include "weft/fragment.cuh"
#include "weft/hopper_contraction.cuh"
#include "weft/hopper_tf32.cuh"

namespace {
constexpr weft::Offset b = 8, i = 1024, j = 512, u = 1024;  // extents
constexpr weft::hopper::Product product = {
    .batch = 1, .m = b * j, .n = u, .k = i,
    .a = {.outer = i, .k = 1, .batch = 0, .isByEngine = true},
    .b = {.outer = i, .k = 1, .batch = 0, .isByEngine = true},
    .strideCm = u, .batchStrideC = 0, .isByEngine = false, .operandBytes = 4, .isPaired = true};
constexpr weft::hopper::Tile tile = {.m = 128, .n = 128, .stages = 6, .staging = 2, .rasterM = 8, .splits = 1,
    .isPingPong = true};
}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
product_bias(const __grid_constant__ weft::hopper::TensorMap w_map,
             const __grid_constant__ weft::hopper::TensorMap x_map, const float *__restrict__ bias,
             float *__restrict__ biased) {
  static_assert(weft::hopper::Plan<product, tile>::sharedBytes == 229520);
  static_assert(product.batch == 1 && product.m == 4096 && product.n == 1024 && product.k == 1024, "plan.json: these extents");
  static_assert(tile.m == 128 && tile.n == 128 && tile.splits == 1 && tile.sharers == 1, "plan.json: 132 blocks and maps of these tiles");
  static_assert(b == 8 && i == 1024 && j == 512 && u == 1024, "plan.json: these extents");
  static_assert(product.a.outer == 1024 && product.a.k == 1 && product.a.batch == 0 && product.a.isByEngine == true, "plan.json: strides of operand a");
  static_assert(product.b.outer == 1024 && product.b.k == 1 && product.b.batch == 0 && product.b.isByEngine == true, "plan.json: strides of operand b");
  static_assert(product.strideCm == 1024 && product.batchStrideC == 0 && product.isByEngine == false && product.operandBytes == 4 && product.isPaired == true, "plan.json: strides of the result");
  const auto finish = [=](float (&sums)[8], const weft::hopper::Fragment &at) {
    const auto bias_v = weft::fragmentColumns<product.n>(bias, at);
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const float biased_2 = sums[e] + bias_v.at[e];
      sums[e] = biased_2;
    }
  };
  weft::hopper::contraction<weft::hopper::Elements<weft::tfloat32, weft::tfloat32, float>, product,
      tile>({&x_map, nullptr}, {&w_map, nullptr}, {nullptr, biased}, weft::hopper::NoPanelOperand{},
      weft::hopper::NoVectorOperand{}, weft::hopper::ByThreads{finish});
}
