// d_w    (this header is not hashed)
//
//   ops        c = contract "mi,mu->iu" a, b
//   space      i=1024 u=3072 | m=4096 (reduced)
//   reads      a[m,i] f16   b[m,u] f16    33.6 MB
//   writes     c[i,u] f16    6.29 MB
//   flop       25.8 Gflop
//   config     wgmma, cooperative tiles of 128 x 128, 6 stages, 2 staged panels, raster 8, equal runs of slices for 132 blocks    launch <<<132, 384>>>
#include "weft/hopper_streams.cuh"

namespace {
constexpr weft::Offset i = 1024, m = 4096, u = 3072;  // extents
constexpr weft::hopper::Product product = {
    .batch = 1, .m = i, .n = u, .k = m,
    .a = {.outer = 1, .k = i, .batch = 0, .isByEngine = true},
    .b = {.outer = 1, .k = u, .batch = 0, .isByEngine = true},
    .strideCm = u, .batchStrideC = 0, .isByEngine = true};
constexpr weft::hopper::Tile tile = {.m = 128, .n = 128, .stages = 6, .staging = 2, .rasterM = 8, .splits = 1,
    .isPingPong = false};
__device__ weft::hopper::StreamPartials<product, tile, 132> c_partials;
}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
d_w(const __grid_constant__ weft::hopper::TensorMap a_map, const __grid_constant__ weft::hopper::TensorMap b_map,
    const __grid_constant__ weft::hopper::TensorMap c_map) {
  static_assert(weft::hopper::Plan<product, tile>::sharedBytes == 229520);
  static_assert(product.batch == 1 && product.m == 1024 && product.n == 3072 && product.k == 4096, "plan.json: these extents");
  static_assert(tile.m == 128 && tile.n == 128 && tile.splits == 1 && tile.sharers == 1, "plan.json: 132 blocks and maps of these tiles");
  static_assert(sizeof(c_partials) == sizeof(weft::hopper::StreamPartials<product, tile, 132>), "plan.json: 132 blocks");
  static_assert(i == 1024 && m == 4096 && u == 3072, "plan.json: these extents");
  static_assert(product.a.outer == 1 && product.a.k == 1024 && product.a.batch == 0 && product.a.isByEngine == true, "plan.json: strides of operand a");
  static_assert(product.b.outer == 1 && product.b.k == 3072 && product.b.batch == 0 && product.b.isByEngine == true, "plan.json: strides of operand b");
  static_assert(product.strideCm == 3072 && product.batchStrideC == 0 && product.isByEngine == true, "plan.json: strides of the result");
  weft::hopper::streamedContraction<weft::half, product, tile, 132>({&a_map, nullptr}, {&b_map, nullptr},
      {&c_map, nullptr}, c_partials, weft::hopper::Unchanged{});
}
