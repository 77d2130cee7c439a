// d_q_contraction__p_h_b_j    kernel 29 of paper-encoder, backward    (this header is not hashed)
//
//   ops        %48 = contract "phbk,hbjk->phbj" %5, %46
//   space      p=64 h=16 b=8 j=512 | k=512 (reduced)
//   reads      k[p,h,b,k] f16   d_score[h,b,j,k] f16    75.5 MB
//   writes     d_q[p,h,b,j] f16    8.39 MB
//   flop       4.29 Gflop
//   config     wgmma, ping-pong tiles of 64 x 64, 12 stages, 1 staged panels, raster 8    launch <<<132, 384>>>
//   not fused  softmax_dx, contract: F022 contraction-prologue (d_q)
//   not fused  contract, contract: F023 beside-contraction (d_k)
#include "weft/hopper_contraction.cuh"

namespace {
constexpr weft::Offset p = 64, h = 16, b = 8, k = 512, j = 512;  // extents
constexpr weft::Offset k_2_p = 196608;              // stride of k_2 along p
constexpr weft::Offset k_2_b = 512;                 // stride of k_2 along b
constexpr weft::Offset d_q_p = 196608;              // stride of d_q along p
constexpr weft::Offset d_q_b = 512;                 // stride of d_q along b
constexpr weft::hopper::Product product = {
    .batch = h * b, .m = p, .n = j, .k = k,
    .a = {.outer = k_2_p, .k = 1, .batch = k_2_b, .isByEngine = true},
    .b = {.outer = k, .k = 1, .batch = j * k, .isByEngine = true},
    .strideCm = d_q_p, .batchStrideC = d_q_b, .isByEngine = true};
constexpr weft::hopper::Tile tile = {.m = 64, .n = 64, .stages = 12, .staging = 1, .rasterM = 8, .splits = 1,
    .isPingPong = true};
constexpr float scale = 0.125f;
}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
d_q_contraction_p_h_b_j(const __grid_constant__ weft::hopper::TensorMap k_2_map,
                        const __grid_constant__ weft::hopper::TensorMap d_score_map,
                        const __grid_constant__ weft::hopper::TensorMap d_q_map) {
  static_assert(weft::hopper::Plan<product, tile>::sharedBytes == 213216);
  static_assert(product.batch == 128 && product.m == 64 && product.n == 512 && product.k == 512, "plan.json: these extents");
  static_assert(tile.m == 64 && tile.n == 64 && tile.splits == 1 && tile.sharers == 1, "plan.json: 132 blocks and maps of these tiles");
  static_assert(p == 64 && h == 16 && b == 8 && k == 512 && j == 512, "plan.json: these extents");
  static_assert(k_2_p == 196608 && k_2_b == 512, "plan.json: strides of k_2");
  static_assert(d_q_p == 196608 && d_q_b == 512, "plan.json: strides of d_q");
  static_assert(product.a.outer == 196608 && product.a.k == 1 && product.a.batch == 512 && product.a.isByEngine == true, "plan.json: strides of operand a");
  static_assert(product.b.outer == 512 && product.b.k == 1 && product.b.batch == 262144 && product.b.isByEngine == true, "plan.json: strides of operand b");
  static_assert(product.strideCm == 196608 && product.batchStrideC == 512 && product.isByEngine == true, "plan.json: strides of the result");
  const auto finish = [=](float (&sums)[8], const weft::hopper::Fragment &at) {
#pragma unroll
    for (int e = 0; e < 8; ++e)
      sums[e] = sums[e] * scale;
  };
  weft::hopper::contraction<weft::half, product, tile>({&k_2_map, nullptr}, {&d_score_map, nullptr},
      {&d_q_map, nullptr}, weft::hopper::NoPanelOperand{}, finish);
}
