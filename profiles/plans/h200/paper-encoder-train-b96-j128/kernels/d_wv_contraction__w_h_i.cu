// d_wv_contraction__w_h_i    kernel 33 of paper-encoder, forward    (this header is not hashed)
//
//   ops        %56 = contract "whbk,bki->whi" %43, %x
//   space      w=64 h=16 i=1024 | b=96 k=128 (reduced)
//   reads      d_v[w,h,b,k] f16   x[b,k,i] f16    50.3 MB
//   writes     d_wv[w,h,i] f16    2.10 MB
//   flop       25.8 Gflop
//   config     wgmma, ping-pong tiles of 64 x 128, 8 stages, 2 staged panels, raster 8    launch <<<128, 384>>>
//   not fused  contract, contract: F024 no-epilogue ('contract' is of class contraction; an epilogue is element-wise)
//   not fused  contract, contract: F023 beside-contraction (q_product_k_product_v_product)
#include "weft/hopper_contraction.cuh"

namespace {
constexpr weft::Offset w = 64, h = 16, b = 96, k = 128, i = 1024;  // extents
constexpr weft::hopper::Product product = {
    .batch = 1, .m = w * h, .n = i, .k = b * k,
    .a = {.outer = b * k, .k = 1, .batch = 0, .isByEngine = true},
    .b = {.outer = 1, .k = i, .batch = 0, .isByEngine = true},
    .strideCm = i, .batchStrideC = 0, .isByEngine = true};
constexpr weft::hopper::Tile tile = {.m = 64, .n = 128, .stages = 8, .staging = 2, .rasterM = 8, .splits = 1,
    .isPingPong = true};
}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
d_wv_contraction_w_h_i(const __grid_constant__ weft::hopper::TensorMap d_v_map,
                       const __grid_constant__ weft::hopper::TensorMap x_map,
                       const __grid_constant__ weft::hopper::TensorMap d_wv_map) {
  static_assert(weft::hopper::Plan<product, tile>::sharedBytes == 229552);
  weft::hopper::contraction<weft::half, product, tile>({&d_v_map, nullptr}, {&x_map, nullptr}, {&d_wv_map, nullptr},
      weft::hopper::NoPanelOperand{}, weft::hopper::Unchanged{});
}
