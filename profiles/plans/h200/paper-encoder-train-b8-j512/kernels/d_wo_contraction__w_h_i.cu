// d_wo_contraction__w_h_i    kernel 23 of paper-encoder, backward    (this header is not hashed)
//
//   ops        %41 = contract "bji,whbj->whi" %39, %10
//   space      i=1024 w=64 h=16 | b=8 j=512 (reduced)
//   reads      d_attention[b,j,i] f16   weighted[w,h,b,j] f16    16.8 MB
//   writes     d_wo[w,h,i] f16    2.10 MB
//   flop       8.59 Gflop
//   config     wgmma, ping-pong tiles of 64 x 128, 8 stages, 2 staged panels, raster 8    launch <<<128, 384>>>
//   not fused  contract, contract: F031 forward-and-backward (weighted, d_wo)
//   not fused  contract, contract: F023 beside-contraction (attention_product)
#include "weft/hopper_contraction.cuh"

namespace {
constexpr weft::Offset b = 8, j = 512, i = 1024, w = 64, h = 16;  // extents
constexpr weft::hopper::Product product = {
    .batch = 1, .m = w * h, .n = i, .k = b * j,
    .a = {.outer = b * j, .k = 1, .batch = 0, .isByEngine = true},
    .b = {.outer = 1, .k = i, .batch = 0, .isByEngine = true},
    .strideCm = i, .batchStrideC = 0, .isByEngine = true};
constexpr weft::hopper::Tile tile = {.m = 64, .n = 128, .stages = 8, .staging = 2, .rasterM = 8, .splits = 1,
    .isPingPong = true};
}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
d_wo_contraction_w_h_i(const __grid_constant__ weft::hopper::TensorMap d_attention_map,
                       const __grid_constant__ weft::hopper::TensorMap weighted_map,
                       const __grid_constant__ weft::hopper::TensorMap d_wo_map) {
  static_assert(weft::hopper::Plan<product, tile>::sharedBytes == 229552);
  static_assert(product.batch == 1 && product.m == 1024 && product.n == 1024 && product.k == 4096, "plan.json: these extents");
  static_assert(tile.m == 64 && tile.n == 128 && tile.splits == 1 && tile.sharers == 1, "plan.json: 128 blocks and maps of these tiles");
  static_assert(b == 8 && j == 512 && i == 1024 && w == 64 && h == 16, "plan.json: these extents");
  static_assert(product.a.outer == 4096 && product.a.k == 1 && product.a.batch == 0 && product.a.isByEngine == true, "plan.json: strides of operand a");
  static_assert(product.b.outer == 1 && product.b.k == 1024 && product.b.batch == 0 && product.b.isByEngine == true, "plan.json: strides of operand b");
  static_assert(product.strideCm == 1024 && product.batchStrideC == 0 && product.isByEngine == true, "plan.json: strides of the result");
  weft::hopper::contraction<weft::half, product, tile>({&weighted_map, nullptr}, {&d_attention_map, nullptr},
      {&d_wo_map, nullptr}, weft::hopper::NoPanelOperand{}, weft::hopper::Unchanged{});
}
