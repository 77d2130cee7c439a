// attention_projection_bias__b_j_i    kernel 8 of paper-encoder, forward    (this header is not hashed)
//
//   ops        %11 = contract "whi,whbj->bji" %wo, %10
//              %12 = bias %11, %bo
//   space      i=1024 b=8 j=512 | w=64 h=16 (reduced)
//   reads      wo[w,h,i] f16   weighted[w,h,b,j] f16   bo[i] f16    10.5 MB
//   writes     attention[b,j,i] f16    8.39 MB
//   flop       8.59 Gflop
//   config     wgmma, ping-pong tiles of 128 x 128, 6 stages, 2 staged panels, raster 8    launch <<<132, 384>>>
//   fused by   fuse: reduction-consumer
//   not fused  contract, bias, dropout, residual, layer_norm: F024 no-epilogue ('layer_norm' is of class normalization; an epilogue is element-wise)
//   not fused  contract, bias, dropout, residual, layer_norm_dw: F031 forward-and-backward (attention_product, d_gamma1)
#include "weft/hopper_contraction.cuh"

namespace {
constexpr weft::Offset w = 64, h = 16, i = 1024, b = 8, j = 512;  // extents
constexpr weft::hopper::Product product = {
    .batch = 1, .m = b * j, .n = i, .k = w * h,
    .a = {.outer = 1, .k = b * j, .batch = 0, .isByEngine = true},
    .b = {.outer = 1, .k = i, .batch = 0, .isByEngine = true},
    .strideCm = i, .batchStrideC = 0, .isByEngine = true};
constexpr weft::hopper::Tile tile = {.m = 128, .n = 128, .stages = 6, .staging = 2, .rasterM = 8, .splits = 1,
    .isPingPong = true};
}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
attention_projection_bias_b_j_i(const __grid_constant__ weft::hopper::TensorMap wo_map,
                                const __grid_constant__ weft::hopper::TensorMap weighted_map,
                                const weft::half *__restrict__ bo,
                                const __grid_constant__ weft::hopper::TensorMap attention_map) {
  static_assert(weft::hopper::Plan<product, tile>::sharedBytes == 229520);
  const auto finish = [=](float (&sums)[8], const float (&bo_v)[8], const weft::hopper::Fragment &at) {
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const float attention_2 = sums[e] + bo_v[e];                                                // %12
      sums[e] = attention_2;
    }
  };
  weft::hopper::contraction<weft::half, product, tile>({&weighted_map, nullptr}, {&wo_map, nullptr},
      {&attention_map, nullptr}, weft::hopper::NoPanelOperand{}, weft::hopper::ColumnOperand<weft::half>{bo}, finish);
}
