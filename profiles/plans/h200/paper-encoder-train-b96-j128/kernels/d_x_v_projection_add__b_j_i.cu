// d_x_v_projection_add__b_j_i    kernel 35 of paper-encoder, forward    (this header is not hashed)
//
//   ops        %57 = contract "whi,whbk->bki" %wv, %43
//              %60 = add %38, %57
//   space      i=1024 b=96 k=128 | w=64 h=16 (reduced)
//   reads      wv[w,h,i] f16   d_v[w,h,b,k] f16   d_residual1[b,k,i] f16    52.4 MB
//   writes     d_x_sum[b,k,i] f16    25.2 MB
//   flop       25.8 Gflop
//   config     wgmma, ping-pong tiles of 128 x 128, 5 stages, 4 staged panels, raster 4    launch <<<132, 384>>>
//   fused by   fuse: reduction-consumer
//   not fused  add, layer_norm_dx, dropout, add: F030 would-create-cycle (d_weighted)
//   not fused  layer_norm_dx, dropout, add: F030 would-create-cycle (d_weighted)
#include "weft/hopper_contraction.cuh"

namespace {
constexpr weft::Offset w = 64, h = 16, i = 1024, b = 96, k = 128;  // extents
constexpr weft::hopper::Product product = {
    .batch = 1, .m = b * k, .n = i, .k = w * h,
    .a = {.outer = 1, .k = b * k, .batch = 0, .isByEngine = true},
    .b = {.outer = 1, .k = i, .batch = 0, .isByEngine = true},
    .strideCm = i, .batchStrideC = 0, .isByEngine = true};
constexpr weft::hopper::Tile tile = {.m = 128, .n = 128, .stages = 5, .staging = 4, .rasterM = 4, .splits = 1,
    .isPingPong = true};
}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
d_x_v_projection_add_b_j_i(const __grid_constant__ weft::hopper::TensorMap wv_map,
                           const __grid_constant__ weft::hopper::TensorMap d_v_map,
                           const __grid_constant__ weft::hopper::TensorMap d_residual1_map,
                           const __grid_constant__ weft::hopper::TensorMap d_x_sum_map) {
  static_assert(weft::hopper::Plan<product, tile>::sharedBytes == 229536);
  const auto finish = [=](float (&sums)[8], const float (&d_residual1_v)[8], const weft::hopper::Fragment &at) {
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const float d_x_sum_2 = d_residual1_v[e] + sums[e];                                         // %60
      sums[e] = d_x_sum_2;
    }
  };
  weft::hopper::contraction<weft::half, product, tile>({&d_v_map, nullptr}, {&wv_map, nullptr},
      {&d_x_sum_map, nullptr}, weft::hopper::PanelOperand<weft::half>{{&d_residual1_map, nullptr}},
      weft::hopper::NoVectorOperand{}, finish);
}
