// d_active_kept_projection_scale_relu_dx__b_j_u    kernel 16 of paper-encoder, forward    (this header is not hashed)
//
//   ops        %30 = contract "iu,bji->bju" %w2, %27
//              %31 = scale %30
//              %32 = relu_dx %31, %19
//   space      u=4096 b=96 j=128 | i=1024 (reduced)
//   reads      w2[u,i] f16   d_feed_forward[b,j,i] f16   active_kept[b,j,u] f16    134 MB
//   writes     d_hidden[b,j,u] f16    101 MB
//   flop       103 Gflop
//   config     wgmma, ping-pong tiles of 128 x 192, 4 stages, 4 staged panels, raster 8    launch <<<132, 384>>>
//   fused by   fuse: producer-consumer + reduction-consumer
//   not fused  contract, bias, relu, dropout, relu_dx: F031 forward-and-backward (hidden_product, d_hidden)
//   not fused  contract, scale, relu_dx, reduce, contract: F024 no-epilogue ('contract' is of class contraction; an epilogue is element-wise)
#include "weft/hopper_contraction.cuh"

namespace {
constexpr weft::Offset i = 1024, u = 4096, b = 96, j = 128;  // extents
constexpr weft::hopper::Product product = {
    .batch = 1, .m = b * j, .n = u, .k = i,
    .a = {.outer = i, .k = 1, .batch = 0, .isByEngine = true},
    .b = {.outer = i, .k = 1, .batch = 0, .isByEngine = true},
    .strideCm = u, .batchStrideC = 0, .isByEngine = true};
constexpr weft::hopper::Tile tile = {.m = 128, .n = 192, .stages = 4, .staging = 4, .rasterM = 8, .splits = 1,
    .isPingPong = true};
constexpr float factor = 1.1111112f;
}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
d_active_kept_projection_scale_relu_dx_b_j_u(const __grid_constant__ weft::hopper::TensorMap w2_map,
                                             const __grid_constant__ weft::hopper::TensorMap d_feed_forward_map,
                                             const __grid_constant__ weft::hopper::TensorMap active_kept_map,
                                             const __grid_constant__ weft::hopper::TensorMap d_hidden_map) {
  static_assert(weft::hopper::Plan<product, tile>::sharedBytes == 229520);
  const auto finish = [=](float (&sums)[8], const float (&active_kept_v)[8], const weft::hopper::Fragment &at) {
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const float d_active = sums[e] * factor;                                                    // %31
      const float d_hidden_2 = active_kept_v[e] <= 0.0f ? 0.0f : d_active;                        // %32
      sums[e] = d_hidden_2;
    }
  };
  weft::hopper::contraction<weft::half, product, tile>({&d_feed_forward_map, nullptr}, {&w2_map, nullptr},
      {&d_hidden_map, nullptr}, weft::hopper::PanelOperand<weft::half>{{&active_kept_map, nullptr}},
      weft::hopper::NoVectorOperand{}, finish);
}
