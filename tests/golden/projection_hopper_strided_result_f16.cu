// projection    (this header is not hashed)
//
//   ops        c = contract "bji,hpi->bhjp" a, b
//   space      b=8 h=16 j=512 p=64 | i=1024 (reduced)
//   reads      a[b,j,i] f16   b[h,p,i] f16    10.5 MB
//   writes     c[b,h,j,p] f16    8.39 MB
//   flop       8.59 Gflop
//   config     wgmma, ping-pong tiles of 128 x 128, 6 stages, 2 staged panels, raster 8    launch <<<132, 384>>>
#include "weft/hopper_contraction.cuh"
#include "weft/hopper_strides.cuh"

namespace {
constexpr weft::Offset b = 8, h = 16, i = 1024, j = 512, p = 64;  // extents
constexpr weft::hopper::Product product = {
    .batch = 1, .m = b * j, .n = h * p, .k = i,
    .a = {.outer = i, .k = 1, .batch = 0, .isByEngine = true},
    .b = {.outer = i, .k = 1, .batch = 0, .isByEngine = true},
    .strideCm = p, .batchStrideC = 0, .isByEngine = true};
constexpr weft::hopper::Tile tile = {.m = 128, .n = 128, .stages = 6, .staging = 2, .rasterM = 8, .splits = 1,
    .isPingPong = true};
// of c, fastest first
constexpr weft::hopper::MapDimensions c_dimensions = {.columns = {{p, h}}, .rows = {{j, b}}, .batch = {{}},
    .boxRows = 64};
}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
projection(const __grid_constant__ weft::hopper::TensorMap a_map,
           const __grid_constant__ weft::hopper::TensorMap b_2_map,
           const __grid_constant__ weft::hopper::TensorMap c_map) {
  static_assert(weft::hopper::Plan<product, tile>::sharedBytes == 229520);
  static_assert(product.batch == 1 && product.m == 4096 && product.n == 1024 && product.k == 1024, "plan.json: these extents");
  static_assert(tile.m == 128 && tile.n == 128 && tile.splits == 1 && tile.sharers == 1, "plan.json: 132 blocks and maps of these tiles");
  static_assert(b == 8 && h == 16 && i == 1024 && j == 512 && p == 64, "plan.json: these extents");
  static_assert(product.a.outer == 1024 && product.a.k == 1 && product.a.batch == 0 && product.a.isByEngine == true, "plan.json: strides of operand a");
  static_assert(product.b.outer == 1024 && product.b.k == 1 && product.b.batch == 0 && product.b.isByEngine == true, "plan.json: strides of operand b");
  static_assert(product.strideCm == 64 && product.batchStrideC == 0 && product.isByEngine == true, "plan.json: strides of the result");
  static_assert(c_dimensions.columns.extent[0] == 64 && c_dimensions.columns.extent[1] == 16 && c_dimensions.columns.count() == 2 && c_dimensions.rows.extent[0] == 512 && c_dimensions.rows.extent[1] == 8 && c_dimensions.rows.count() == 2 && c_dimensions.batch.count() == 0 && c_dimensions.boxRows == 64, "plan.json: map of c, fastest first");
  weft::hopper::contraction<weft::hopper::Elements<weft::half, weft::half,
      weft::hopper::Strided<weft::half, c_dimensions>>, product,
      tile>({&a_map, nullptr}, {&b_2_map, nullptr}, {&c_map, nullptr}, weft::hopper::NoPanelOperand{},
      weft::hopper::Unchanged{});
}
