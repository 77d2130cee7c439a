// k_projection_bias__p_h_b_k    kernel 2 of paper-encoder, forward    (this header is not hashed)
//
//   ops        %2 = contract "phi,bki->phbk" %wk, %x
//              %3 = bias %2, %bk
//   space      p=64 h=16 b=96 j=128 | i=1024 (reduced)
//   reads      wk[i,p,h] f16   x[b,j,i] f16   bk[p,h] f16    27.3 MB
//   writes     k[p,h,b,j] f16    25.2 MB
//   flop       25.8 Gflop
//   config     wgmma, ping-pong tiles of 128 x 128, 6 stages, 2 staged panels, raster 8    launch <<<132, 384>>>
//   fused by   fuse: reduction-consumer
//   not fused  contract, bias, contract: F024 no-epilogue ('contract' is of class contraction; an epilogue is element-wise)
//   not fused  contract, bias, contract: F031 forward-and-backward (k_product, d_q)
#include "weft/hopper_contraction.cuh"

namespace {
constexpr weft::Offset p = 64, h = 16, i = 1024, b = 96, j = 128;  // extents
constexpr weft::hopper::Product product = {
    .batch = 1, .m = p * h, .n = b * j, .k = i,
    .a = {.outer = 1, .k = p * h, .batch = 0, .isByEngine = true},
    .b = {.outer = i, .k = 1, .batch = 0, .isByEngine = true},
    .strideCm = b * j, .batchStrideC = 0, .isByEngine = true};
constexpr weft::hopper::Tile tile = {.m = 128, .n = 128, .stages = 6, .staging = 2, .rasterM = 8, .splits = 1,
    .isPingPong = true};
}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
k_projection_bias_p_h_b_k(const __grid_constant__ weft::hopper::TensorMap wk_map,
                          const __grid_constant__ weft::hopper::TensorMap x_map, const weft::half *__restrict__ bk,
                          const __grid_constant__ weft::hopper::TensorMap k_map) {
  static_assert(weft::hopper::Plan<product, tile>::sharedBytes == 229520);
  const auto finish = [=](float (&sums)[8], const float (&bk_v)[8], const weft::hopper::Fragment &at) {
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const float k_2 = sums[e] + bk_v[e];                                                        // %3
      sums[e] = k_2;
    }
  };
  weft::hopper::contraction<weft::half, product, tile>({&wk_map, nullptr}, {&x_map, nullptr}, {&k_map, nullptr},
      weft::hopper::NoPanelOperand{}, weft::hopper::RowOperand<weft::half>{bk}, finish);
}
