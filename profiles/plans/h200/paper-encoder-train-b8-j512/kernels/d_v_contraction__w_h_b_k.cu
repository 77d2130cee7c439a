// d_v_contraction__w_h_b_k    kernel 25 of paper-encoder, backward    (this header is not hashed)
//
//   ops        %43 = contract "whbj,hbjk->whbk" %42, %9
//   space      w=64 h=16 b=8 k=512 | j=512 (reduced)
//   reads      d_weighted[w,h,b,j] f16   kept[h,b,j,k] f16    75.5 MB
//   writes     d_v[w,h,b,k] f16    8.39 MB
//   flop       4.29 Gflop
//   config     wgmma, ping-pong tiles of 64 x 64, 12 stages, 1 staged panels, raster 8    launch <<<132, 384>>>
//   not fused  dropout, contract: F022 contraction-prologue (d_v)
//   not fused  contract, contract: F023 beside-contraction (weighted)
#include "weft/hopper_contraction.cuh"

namespace {
constexpr weft::Offset w = 64, h = 16, b = 8, j = 512, k = 512;  // extents
constexpr weft::Offset d_v_w = 196608;              // stride of d_v along w
constexpr weft::Offset d_v_b = 512;                 // stride of d_v along b
constexpr weft::hopper::Product product = {
    .batch = h * b, .m = w, .n = k, .k = j,
    .a = {.outer = h * b * j, .k = 1, .batch = j, .isByEngine = true},
    .b = {.outer = 1, .k = k, .batch = j * k, .isByEngine = true},
    .strideCm = d_v_w, .batchStrideC = d_v_b, .isByEngine = true};
constexpr weft::hopper::Tile tile = {.m = 64, .n = 64, .stages = 12, .staging = 1, .rasterM = 8, .splits = 1,
    .isPingPong = true};
}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
d_v_contraction_w_h_b_k(const __grid_constant__ weft::hopper::TensorMap d_weighted_map,
                        const __grid_constant__ weft::hopper::TensorMap kept_map,
                        const __grid_constant__ weft::hopper::TensorMap d_v_map) {
  static_assert(weft::hopper::Plan<product, tile>::sharedBytes == 213216);
  static_assert(product.batch == 128 && product.m == 64 && product.n == 512 && product.k == 512, "plan.json: these extents");
  static_assert(tile.m == 64 && tile.n == 64 && tile.splits == 1 && tile.sharers == 1, "plan.json: 132 blocks and maps of these tiles");
  static_assert(w == 64 && h == 16 && b == 8 && j == 512 && k == 512, "plan.json: these extents");
  static_assert(d_v_w == 196608 && d_v_b == 512, "plan.json: strides of d_v");
  static_assert(product.a.outer == 65536 && product.a.k == 1 && product.a.batch == 512 && product.a.isByEngine == true, "plan.json: strides of operand a");
  static_assert(product.b.outer == 1 && product.b.k == 512 && product.b.batch == 262144 && product.b.isByEngine == true, "plan.json: strides of operand b");
  static_assert(product.strideCm == 196608 && product.batchStrideC == 512 && product.isByEngine == true, "plan.json: strides of the result");
  weft::hopper::contraction<weft::half, product, tile>({&d_weighted_map, nullptr}, {&kept_map, nullptr},
      {&d_v_map, nullptr}, weft::hopper::NoPanelOperand{}, weft::hopper::Unchanged{});
}
