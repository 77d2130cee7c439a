// d_weighted_projection__w_h_b_j    kernel 23 of paper-encoder, backward    (this header is not hashed)
//
//   ops        %42 = contract "whi,bji->whbj" %wo, %39
//   space      w=64 h=16 b=96 j=128 | i=1024 (reduced)
//   reads      wo[i,w,h] f16   d_attention[b,j,i] f16    27.3 MB
//   writes     d_weighted[w,h,b,j] f16    25.2 MB
//   flop       25.8 Gflop
//   config     wgmma, ping-pong tiles of 128 x 128, 6 stages, 2 staged panels, raster 4    launch <<<132, 384>>>
//   not fused  reduce, contract: F021 contraction-epilogue-off (hopper-contraction: 'reduce' does not depend on the contraction's result; cublaslt: 'reduce' to 'd_bo' leaves not just the axes of one side of the product; ampere-contraction: 'reduce' does not depend on the contraction's result)
//   not fused  contract, contract: F024 no-epilogue ('contract' is of class contraction; an epilogue is element-wise)
#include "weft/hopper_contraction.cuh"

namespace {
constexpr weft::Offset w = 64, h = 16, i = 1024, b = 96, j = 128;  // extents
constexpr weft::hopper::Product product = {
    .batch = 1, .m = w * h, .n = b * j, .k = i,
    .a = {.outer = 1, .k = w * h, .batch = 0, .isByEngine = true},
    .b = {.outer = i, .k = 1, .batch = 0, .isByEngine = true},
    .strideCm = b * j, .batchStrideC = 0, .isByEngine = true};
constexpr weft::hopper::Tile tile = {.m = 128, .n = 128, .stages = 6, .staging = 2, .rasterM = 4, .splits = 1,
    .isPingPong = true};
}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
d_weighted_projection_w_h_b_j(const __grid_constant__ weft::hopper::TensorMap wo_map,
                              const __grid_constant__ weft::hopper::TensorMap d_attention_map,
                              const __grid_constant__ weft::hopper::TensorMap d_weighted_map) {
  static_assert(weft::hopper::Plan<product, tile>::sharedBytes == 229520);
  static_assert(product.batch == 1 && product.m == 1024 && product.n == 12288 && product.k == 1024, "plan.json: these extents");
  static_assert(tile.m == 128 && tile.n == 128 && tile.splits == 1 && tile.sharers == 1, "plan.json: 132 blocks and maps of these tiles");
  static_assert(w == 64 && h == 16 && i == 1024 && b == 96 && j == 128, "plan.json: these extents");
  static_assert(product.a.outer == 1 && product.a.k == 1024 && product.a.batch == 0 && product.a.isByEngine == true, "plan.json: strides of operand a");
  static_assert(product.b.outer == 1024 && product.b.k == 1 && product.b.batch == 0 && product.b.isByEngine == true, "plan.json: strides of operand b");
  static_assert(product.strideCm == 12288 && product.batchStrideC == 0 && product.isByEngine == true, "plan.json: strides of the result");
  weft::hopper::contraction<weft::half, product, tile>({&wo_map, nullptr}, {&d_attention_map, nullptr},
      {&d_weighted_map, nullptr}, weft::hopper::NoPanelOperand{}, weft::hopper::Unchanged{});
}
