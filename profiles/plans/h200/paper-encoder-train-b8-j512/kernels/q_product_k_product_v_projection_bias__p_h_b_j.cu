// q_product_k_product_v_projection_bias__p_h_b_j    kernel 1 of paper-encoder, forward    (this header is not hashed)
//
//   ops        %1 = contract "phi,bji->phbj" %0, %x
//              %3 = bias %1, %2
//   space      p=64 h=48 b=8 j=512 | i=1024 (reduced)
//   reads      wq_wk_wv[i,p,h] f16   x[b,j,i] f16   bq_bk_bv[p,h] f16    14.7 MB
//   writes     q_k_v[p,h,b,j] f16    25.2 MB
//   flop       25.8 Gflop
//   config     wgmma, ping-pong tiles of 128 x 192, 4 stages, 4 staged panels, raster 8    launch <<<132, 384>>>
//   fused by   fuse: reduction-consumer
//   not fused  contract, bias, slice: F024 no-epilogue ('slice' is of class movement; an epilogue is element-wise)
//   not fused  contract, bias, slice: F024 no-epilogue ('slice' is of class movement; an epilogue is element-wise)
#include "weft/hopper_contraction.cuh"

namespace {
constexpr weft::Offset p = 64, h = 48, i = 1024, b = 8, j = 512;  // extents
constexpr weft::hopper::Product product = {
    .batch = 1, .m = p * h, .n = b * j, .k = i,
    .a = {.outer = 1, .k = p * h, .batch = 0, .isByEngine = true},
    .b = {.outer = i, .k = 1, .batch = 0, .isByEngine = true},
    .strideCm = b * j, .batchStrideC = 0, .isByEngine = true};
constexpr weft::hopper::Tile tile = {.m = 128, .n = 192, .stages = 4, .staging = 4, .rasterM = 8, .splits = 1,
    .isPingPong = true};
}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
q_product_k_product_v_projection_bias_p_h_b_j(const __grid_constant__ weft::hopper::TensorMap wq_wk_wv_map,
                                              const __grid_constant__ weft::hopper::TensorMap x_map,
                                              const weft::half *__restrict__ bq_bk_bv,
                                              const __grid_constant__ weft::hopper::TensorMap q_k_v_map) {
  static_assert(weft::hopper::Plan<product, tile>::sharedBytes == 229520);
  static_assert(product.batch == 1 && product.m == 3072 && product.n == 4096 && product.k == 1024, "plan.json: these extents");
  static_assert(tile.m == 128 && tile.n == 192 && tile.splits == 1 && tile.sharers == 1, "plan.json: 132 blocks and maps of these tiles");
  static_assert(p == 64 && h == 48 && i == 1024 && b == 8 && j == 512, "plan.json: these extents");
  static_assert(product.a.outer == 1 && product.a.k == 3072 && product.a.batch == 0 && product.a.isByEngine == true, "plan.json: strides of operand a");
  static_assert(product.b.outer == 1024 && product.b.k == 1 && product.b.batch == 0 && product.b.isByEngine == true, "plan.json: strides of operand b");
  static_assert(product.strideCm == 4096 && product.batchStrideC == 0 && product.isByEngine == true, "plan.json: strides of the result");
  const auto finish = [=](float (&sums)[8], const float (&bq_bk_bv_v)[8], const weft::hopper::Fragment &at) {
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const float q_k_v_2 = sums[e] + bq_bk_bv_v[e];                                              // %3
      sums[e] = q_k_v_2;
    }
  };
  weft::hopper::contraction<weft::half, product, tile>({&wq_wk_wv_map, nullptr}, {&x_map, nullptr},
      {&q_k_v_map, nullptr}, weft::hopper::NoPanelOperand{}, weft::hopper::RowOperand<weft::half>{bq_bk_bv}, finish);
}
