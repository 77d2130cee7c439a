// d_x_q_product_d_x_k_product_d_x_v_projection_add__b_j_i    kernel 30 of paper-encoder, backward    (this header is not hashed)
//
//   ops        %55 = contract "phi,phbj->bji" %54, %49
//              %59 = add %38, %55
//   space      i=1024 b=96 j=128 | p=64 h=48 (reduced)
//   reads      wq_wk_wv_2[p,h,i] f16   d_q_d_k_d_v[p,h,b,j] f16   d_residual1[b,j,i] f16    107 MB
//   writes     d_x[b,j,i] f16    25.2 MB
//   flop       77.3 Gflop
//   config     wgmma, ping-pong tiles of 128 x 128, 5 stages, 4 staged panels, raster 4    launch <<<132, 384>>>
//   fused by   fuse: reduction-consumer
//   not fused  add, layer_norm_dx, dropout, add: F030 would-create-cycle (d_weighted)
//   not fused  concat, contract: F060 movement-op (d_q_d_k_d_v)
#include "weft/hopper_contraction.cuh"

namespace {
constexpr weft::Offset p = 64, h = 48, i = 1024, b = 96, j = 128;  // extents
constexpr weft::hopper::Product product = {
    .batch = 1, .m = b * j, .n = i, .k = p * h,
    .a = {.outer = 1, .k = b * j, .batch = 0, .isByEngine = true},
    .b = {.outer = 1, .k = i, .batch = 0, .isByEngine = true},
    .strideCm = i, .batchStrideC = 0, .isByEngine = true};
constexpr weft::hopper::Tile tile = {.m = 128, .n = 128, .stages = 5, .staging = 4, .rasterM = 4, .splits = 1,
    .isPingPong = true};
}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
d_x_q_product_d_x_k_product_d_x_v_projection_add_b_j_i(const __grid_constant__ weft::hopper::TensorMap wq_wk_wv_2_map,
                                                       const __grid_constant__ weft::hopper::TensorMap d_q_d_k_d_v_map,
                                                       const __grid_constant__ weft::hopper::TensorMap d_residual1_map,
                                                       const __grid_constant__ weft::hopper::TensorMap d_x_map) {
  static_assert(weft::hopper::Plan<product, tile>::sharedBytes == 229536);
  static_assert(product.batch == 1 && product.m == 12288 && product.n == 1024 && product.k == 3072, "plan.json: these extents");
  static_assert(tile.m == 128 && tile.n == 128 && tile.splits == 1 && tile.sharers == 1, "plan.json: 132 blocks and maps of these tiles");
  static_assert(p == 64 && h == 48 && i == 1024 && b == 96 && j == 128, "plan.json: these extents");
  static_assert(product.a.outer == 1 && product.a.k == 12288 && product.a.batch == 0 && product.a.isByEngine == true, "plan.json: strides of operand a");
  static_assert(product.b.outer == 1 && product.b.k == 1024 && product.b.batch == 0 && product.b.isByEngine == true, "plan.json: strides of operand b");
  static_assert(product.strideCm == 1024 && product.batchStrideC == 0 && product.isByEngine == true, "plan.json: strides of the result");
  const auto finish = [=](float (&sums)[8], const float (&d_residual1_v)[8], const weft::hopper::Fragment &at) {
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const float d_x_2 = d_residual1_v[e] + sums[e];                                             // %59
      sums[e] = d_x_2;
    }
  };
  weft::hopper::contraction<weft::half, product, tile>({&d_q_d_k_d_v_map, nullptr}, {&wq_wk_wv_2_map, nullptr},
      {&d_x_map, nullptr}, weft::hopper::PanelOperand<weft::half>{{&d_residual1_map, nullptr}},
      weft::hopper::NoVectorOperand{}, finish);
}
