// product_bias_dropout_residual    (this header is not hashed)
//
//   ops        product = contract "bji,iu->bju" x, w
//              biased = bias product, bias
//              kept = dropout biased
//              sum = residual kept, rest
//   space      b=8 j=512 u=1024 | i=1024 (reduced)
//   reads      w[i,u] bf16   x[b,j,i] bf16   bias[u] bf16   rest[b,j,u] bf16    18.9 MB
//   writes     sum[b,j,u] bf16    8.39 MB
//   config     wgmma, ping-pong tiles of 128 x 128, 6 stages, 2 staged panels, raster 8    launch <<<132, 384>>>
#include "weft/dropout.cuh"
#include "weft/hopper_contraction.cuh"

namespace {
constexpr weft::Offset b = 8, i = 1024, j = 512, u = 1024;  // extents
constexpr weft::hopper::Product product = {
    .batch = 1, .m = b * j, .n = u, .k = i,
    .a = {.outer = i, .k = 1, .batch = 0, .isByEngine = true},
    .b = {.outer = 1, .k = u, .batch = 0, .isByEngine = true},
    .strideCm = u, .batchStrideC = 0, .isByEngine = true};
constexpr weft::hopper::Tile tile = {.m = 128, .n = 128, .stages = 6, .staging = 2, .rasterM = 8, .splits = 1,
    .isPingPong = true};
constexpr unsigned dropThreshold = 6554u;           // 0.1 of 65536 draws
constexpr float keepScale = 1.1111112f;
}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
product_bias_dropout_residual(const __grid_constant__ weft::hopper::TensorMap w_map,
                              const __grid_constant__ weft::hopper::TensorMap x_map,
                              const weft::bfloat16 *__restrict__ bias,
                              const __grid_constant__ weft::hopper::TensorMap rest_map,
                              const __grid_constant__ weft::hopper::TensorMap sum_map,
                              const weft::DropoutKey *__restrict__ dropoutKey, unsigned dropoutStream) {
  static_assert(weft::hopper::Plan<product, tile>::sharedBytes == 229520);
  static_assert(product.batch == 1 && product.m == 4096 && product.n == 1024 && product.k == 1024, "plan.json: these extents");
  static_assert(tile.m == 128 && tile.n == 128 && tile.splits == 1 && tile.sharers == 1, "plan.json: 132 blocks and maps of these tiles");
  static_assert(b == 8 && i == 1024 && j == 512 && u == 1024, "plan.json: these extents");
  static_assert(product.a.outer == 1024 && product.a.k == 1 && product.a.batch == 0 && product.a.isByEngine == true, "plan.json: strides of operand a");
  static_assert(product.b.outer == 1 && product.b.k == 1024 && product.b.batch == 0 && product.b.isByEngine == true, "plan.json: strides of operand b");
  static_assert(product.strideCm == 1024 && product.batchStrideC == 0 && product.isByEngine == true, "plan.json: strides of the result");
  const weft::DropoutKey key = *dropoutKey;                           // seed and step: a replay must not repeat masks
  const float scaleOfKept = weft::opaque(keepScale);
  const auto finish = [=](float (&sums)[8], const float (&rest_v)[8], const float (&bias_v)[8],
      const weft::hopper::Fragment &at) {
    const auto kept = weft::keptFragment(key, dropoutStream, at.row / j, at.row % j, at.column, dropThreshold);
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const float biased = sums[e] + bias_v[e];
      const float kept_2 = (kept.at(e) ? biased : 0.0f) * scaleOfKept;
      const float sum_2 = kept_2 + rest_v[e];
      sums[e] = sum_2;
    }
  };
  weft::hopper::contraction<weft::bfloat16, product, tile>({&x_map, nullptr}, {&w_map, nullptr}, {&sum_map, nullptr},
      weft::hopper::PanelOperand<weft::bfloat16>{{&rest_map, nullptr}},
      weft::hopper::ColumnOperand<weft::bfloat16>{bias}, finish);
}
