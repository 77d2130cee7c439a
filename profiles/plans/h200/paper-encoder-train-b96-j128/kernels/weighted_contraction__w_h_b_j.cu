// weighted_contraction__w_h_b_j    kernel 7 of paper-encoder, forward    (this header is not hashed)
//
//   ops        %10 = contract "whbk,hbjk->whbj" %6, %9
//   space      w=64 h=16 b=96 j=128 | k=128 (reduced)
//   reads      v[w,h,b,k] f16   kept[h,b,j,k] f16    75.5 MB
//   writes     weighted[w,h,b,j] f16    25.2 MB
//   flop       3.22 Gflop
//   config     wgmma, ping-pong tiles of 64 x 64, 12 stages, 1 staged panels, raster 8    launch <<<132, 384>>>
//   not fused  dropout, contract: F022 contraction-prologue (weighted)
//   not fused  contract, contract: F023 beside-contraction (weighted)
#include "weft/hopper_contraction.cuh"

namespace {
constexpr weft::Offset w = 64, h = 16, b = 96, k = 128, j = 128;  // extents
constexpr weft::Offset v_w = 589824;                // stride of v along w
constexpr weft::Offset v_b = 128;                   // stride of v along b
constexpr weft::hopper::Product product = {
    .batch = h * b, .m = w, .n = j, .k = k,
    .a = {.outer = v_w, .k = 1, .batch = v_b, .isByEngine = true},
    .b = {.outer = k, .k = 1, .batch = j * k, .isByEngine = true},
    .strideCm = h * b * j, .batchStrideC = j, .isByEngine = true};
constexpr weft::hopper::Tile tile = {.m = 64, .n = 64, .stages = 12, .staging = 1, .rasterM = 8, .splits = 1,
    .isPingPong = true};
}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
weighted_contraction_w_h_b_j(const __grid_constant__ weft::hopper::TensorMap v_map,
                             const __grid_constant__ weft::hopper::TensorMap kept_map,
                             const __grid_constant__ weft::hopper::TensorMap weighted_map) {
  static_assert(weft::hopper::Plan<product, tile>::sharedBytes == 213216);
  static_assert(product.batch == 1536 && product.m == 64 && product.n == 128 && product.k == 128, "plan.json: these extents");
  static_assert(tile.m == 64 && tile.n == 64 && tile.splits == 1 && tile.sharers == 1, "plan.json: 132 blocks and maps of these tiles");
  static_assert(w == 64 && h == 16 && b == 96 && k == 128 && j == 128, "plan.json: these extents");
  static_assert(v_w == 589824 && v_b == 128, "plan.json: strides of v");
  static_assert(product.a.outer == 589824 && product.a.k == 1 && product.a.batch == 128 && product.a.isByEngine == true, "plan.json: strides of operand a");
  static_assert(product.b.outer == 128 && product.b.k == 1 && product.b.batch == 16384 && product.b.isByEngine == true, "plan.json: strides of operand b");
  static_assert(product.strideCm == 196608 && product.batchStrideC == 128 && product.isByEngine == true, "plan.json: strides of the result");
  weft::hopper::contraction<weft::half, product, tile>({&v_map, nullptr}, {&kept_map, nullptr},
      {&weighted_map, nullptr}, weft::hopper::NoPanelOperand{}, weft::hopper::Unchanged{});
}
