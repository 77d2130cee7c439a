// v_projection_bias__w_h_b_k    kernel 3 of paper-encoder, forward    (this header is not hashed)
//
//   ops        %4 = contract "whi,bki->whbk" %wv, %x
//              %5 = bias %4, %bv
//   space      w=64 h=16 b=8 j=512 | i=1024 (reduced)
//   reads      wv[i,w,h] f16   x[b,j,i] f16   bv[w,h] f16    10.5 MB
//   writes     v[w,h,b,j] f16    8.39 MB
//   flop       8.59 Gflop
//   config     wgmma, ping-pong tiles of 128 x 128, 6 stages, 2 staged panels, raster 8    launch <<<132, 384>>>
//   fused by   fuse: reduction-consumer
//   not fused  bias, softmax, dropout: F010 extent-mismatch (w=64 against h=16)
//   not fused  contract, bias, contract: F024 no-epilogue ('contract' is of class contraction; an epilogue is element-wise)
#include "weft/hopper_contraction.cuh"

namespace {
constexpr weft::Offset w = 64, h = 16, i = 1024, b = 8, j = 512;  // extents
constexpr weft::hopper::Product product = {
    .batch = 1, .m = w * h, .n = b * j, .k = i,
    .a = {.outer = 1, .k = w * h, .batch = 0, .isByEngine = true},
    .b = {.outer = i, .k = 1, .batch = 0, .isByEngine = true},
    .strideCm = b * j, .batchStrideC = 0, .isByEngine = true};
constexpr weft::hopper::Tile tile = {.m = 128, .n = 128, .stages = 6, .staging = 2, .rasterM = 8, .splits = 1,
    .isPingPong = true};
}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
v_projection_bias_w_h_b_k(const __grid_constant__ weft::hopper::TensorMap wv_map,
                          const __grid_constant__ weft::hopper::TensorMap x_map, const weft::half *__restrict__ bv,
                          const __grid_constant__ weft::hopper::TensorMap v_map) {
  static_assert(weft::hopper::Plan<product, tile>::sharedBytes == 229520);
  const auto finish = [=](float (&sums)[8], const float (&bv_v)[8], const weft::hopper::Fragment &at) {
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const float v_2 = sums[e] + bv_v[e];                                                        // %5
      sums[e] = v_2;
    }
  };
  weft::hopper::contraction<weft::half, product, tile>({&wv_map, nullptr}, {&x_map, nullptr}, {&v_map, nullptr},
      weft::hopper::NoPanelOperand{}, weft::hopper::RowOperand<weft::half>{bv}, finish);
}
