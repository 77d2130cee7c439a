// projection_bias_residual    (this header is not hashed)
//
//   ops        product = contract "bhjp,hpi->bji" x, w
//              biased = add product, bias
//              y = add biased, residual
//   space      b=8 i=1024 j=512 | h=16 p=64 (reduced)
//   reads      x[b,h,j,p] bf16   w[h,p,i] bf16   bias[i] bf16   residual[b,j,i] bf16    18.9 MB
//   writes     y[b,j,i] bf16    8.39 MB
//   config     wgmma, ping-pong tiles of 128 x 128, 6 stages, 2 staged panels, raster 8    launch <<<132, 384>>>
#include "weft/hopper_contraction.cuh"
#include "weft/hopper_strides.cuh"

namespace {
constexpr weft::Offset b = 8, h = 16, i = 1024, j = 512, p = 64;  // extents
constexpr weft::hopper::Product product = {
    .batch = 1, .m = b * j, .n = i, .k = h * p,
    .a = {.outer = p, .k = 1, .batch = 0, .isByEngine = true},
    .b = {.outer = 1, .k = i, .batch = 0, .isByEngine = true},
    .strideCm = i, .batchStrideC = 0, .isByEngine = true};
constexpr weft::hopper::Tile tile = {.m = 128, .n = 128, .stages = 6, .staging = 2, .rasterM = 8, .splits = 1,
    .isPingPong = true};
// of x, fastest first
constexpr weft::hopper::MapDimensions x_dimensions = {.columns = {{p, h}}, .rows = {{j, b}}, .batch = {{}},
    .boxRows = 128};
}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
projection_bias_residual(const __grid_constant__ weft::hopper::TensorMap x_map,
                         const __grid_constant__ weft::hopper::TensorMap w_map,
                         const weft::bfloat16 *__restrict__ bias,
                         const __grid_constant__ weft::hopper::TensorMap residual_map,
                         const __grid_constant__ weft::hopper::TensorMap y_map) {
  static_assert(weft::hopper::Plan<product, tile>::sharedBytes == 229520);
  static_assert(product.batch == 1 && product.m == 4096 && product.n == 1024 && product.k == 1024, "plan.json: these extents");
  static_assert(tile.m == 128 && tile.n == 128 && tile.splits == 1 && tile.sharers == 1, "plan.json: 132 blocks and maps of these tiles");
  static_assert(b == 8 && h == 16 && i == 1024 && j == 512 && p == 64, "plan.json: these extents");
  static_assert(product.a.outer == 64 && product.a.k == 1 && product.a.batch == 0 && product.a.isByEngine == true, "plan.json: strides of operand a");
  static_assert(product.b.outer == 1 && product.b.k == 1024 && product.b.batch == 0 && product.b.isByEngine == true, "plan.json: strides of operand b");
  static_assert(product.strideCm == 1024 && product.batchStrideC == 0 && product.isByEngine == true, "plan.json: strides of the result");
  static_assert(x_dimensions.columns.extent[0] == 64 && x_dimensions.columns.extent[1] == 16 && x_dimensions.columns.count() == 2 && x_dimensions.rows.extent[0] == 512 && x_dimensions.rows.extent[1] == 8 && x_dimensions.rows.count() == 2 && x_dimensions.batch.count() == 0 && x_dimensions.boxRows == 128, "plan.json: map of x, fastest first");
  const auto finish = [=](float (&sums)[8], const float (&residual_v)[8], const float (&bias_v)[8],
      const weft::hopper::Fragment &at) {
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const float biased = sums[e] + bias_v[e];
      const float y_2 = biased + residual_v[e];
      sums[e] = y_2;
    }
  };
  weft::hopper::contraction<weft::hopper::Elements<weft::hopper::Strided<weft::bfloat16, x_dimensions>, weft::bfloat16,
      weft::bfloat16>, product, tile>({&x_map, nullptr}, {&w_map, nullptr}, {&y_map, nullptr},
      weft::hopper::PanelOperand<weft::bfloat16>{{&residual_map, nullptr}},
      weft::hopper::ColumnOperand<weft::bfloat16>{bias}, finish);
}
