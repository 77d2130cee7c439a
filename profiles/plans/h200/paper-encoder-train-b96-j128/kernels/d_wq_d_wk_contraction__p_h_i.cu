// d_wq_d_wk_contraction__p_h_i    kernel 30 of paper-encoder, forward    (this header is not hashed)
//
//   ops        %50 = contract "phbj,bji->phi" %49, %x
//   space      p=64 h=32 i=1024 | b=96 j=128 (reduced)
//   reads      d_q_d_k[p,h,b,j] f16   x[b,j,i] f16    75.5 MB
//   writes     d_wq_d_wk[p,h,i] f16    4.19 MB
//   flop       51.5 Gflop
//   config     wgmma, ping-pong tiles of 64 x 256, 4 stages, 4 staged panels, raster 8    launch <<<128, 384>>>
//   not fused  concat, contract: F060 movement-op (d_q_d_k)
//   not fused  contract, contract: F023 beside-contraction (d_wq_d_wk)
#include "weft/hopper_contraction.cuh"

namespace {
constexpr weft::Offset p = 64, h = 32, b = 96, j = 128, i = 1024;  // extents
constexpr weft::hopper::Product product = {
    .batch = 1, .m = p * h, .n = i, .k = b * j,
    .a = {.outer = b * j, .k = 1, .batch = 0, .isByEngine = true},
    .b = {.outer = 1, .k = i, .batch = 0, .isByEngine = true},
    .strideCm = i, .batchStrideC = 0, .isByEngine = true};
constexpr weft::hopper::Tile tile = {.m = 64, .n = 256, .stages = 4, .staging = 4, .rasterM = 8, .splits = 1,
    .isPingPong = true};
}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
d_wq_d_wk_contraction_p_h_i(const __grid_constant__ weft::hopper::TensorMap d_q_d_k_map,
                            const __grid_constant__ weft::hopper::TensorMap x_map,
                            const __grid_constant__ weft::hopper::TensorMap d_wq_d_wk_map) {
  static_assert(weft::hopper::Plan<product, tile>::sharedBytes == 229520);
  weft::hopper::contraction<weft::half, product, tile>({&d_q_d_k_map, nullptr}, {&x_map, nullptr},
      {&d_wq_d_wk_map, nullptr}, weft::hopper::NoPanelOperand{}, weft::hopper::Unchanged{});
}
