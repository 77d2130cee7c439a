// d_k_contraction__p_h_b_k    kernel 28 of paper-encoder, backward    (this header is not hashed)
//
//   ops        %47 = contract "hbjk,phbj->phbk" %46, %4
//   space      h=16 b=8 k=512 p=64 | j=512 (reduced)
//   reads      d_score[h,b,j,k] f16   q[p,h,b,j] f16    75.5 MB
//   writes     d_k[p,h,b,k] f16    8.39 MB
//   flop       4.29 Gflop
//   config     wgmma, ping-pong tiles of 64 x 64, 12 stages, 1 staged panels, raster 8    launch <<<132, 384>>>
//   not fused  softmax_dx, contract: F022 contraction-prologue (d_k)
//   not fused  contract, contract: F023 beside-contraction (d_k)
#include "weft/hopper_contraction.cuh"

namespace {
constexpr weft::Offset h = 16, b = 8, j = 512, k = 512, p = 64;  // extents
constexpr weft::Offset q_p = 196608;                // stride of q along p
constexpr weft::Offset q_b = 512;                   // stride of q along b
constexpr weft::Offset d_k_p = 196608;              // stride of d_k along p
constexpr weft::Offset d_k_b = 512;                 // stride of d_k along b
constexpr weft::hopper::Product product = {
    .batch = h * b, .m = p, .n = k, .k = j,
    .a = {.outer = q_p, .k = 1, .batch = q_b, .isByEngine = true},
    .b = {.outer = 1, .k = k, .batch = j * k, .isByEngine = true},
    .strideCm = d_k_p, .batchStrideC = d_k_b, .isByEngine = true};
constexpr weft::hopper::Tile tile = {.m = 64, .n = 64, .stages = 12, .staging = 1, .rasterM = 8, .splits = 1,
    .isPingPong = true};
constexpr float scale = 0.125f;
}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
d_k_contraction_p_h_b_k(const __grid_constant__ weft::hopper::TensorMap d_score_map,
                        const __grid_constant__ weft::hopper::TensorMap q_map,
                        const __grid_constant__ weft::hopper::TensorMap d_k_map) {
  static_assert(weft::hopper::Plan<product, tile>::sharedBytes == 213216);
  static_assert(product.batch == 128 && product.m == 64 && product.n == 512 && product.k == 512, "plan.json: these extents");
  static_assert(tile.m == 64 && tile.n == 64 && tile.splits == 1 && tile.sharers == 1, "plan.json: 132 blocks and maps of these tiles");
  static_assert(h == 16 && b == 8 && j == 512 && k == 512 && p == 64, "plan.json: these extents");
  static_assert(q_p == 196608 && q_b == 512, "plan.json: strides of q");
  static_assert(d_k_p == 196608 && d_k_b == 512, "plan.json: strides of d_k");
  static_assert(product.a.outer == 196608 && product.a.k == 1 && product.a.batch == 512 && product.a.isByEngine == true, "plan.json: strides of operand a");
  static_assert(product.b.outer == 1 && product.b.k == 512 && product.b.batch == 262144 && product.b.isByEngine == true, "plan.json: strides of operand b");
  static_assert(product.strideCm == 196608 && product.batchStrideC == 512 && product.isByEngine == true, "plan.json: strides of the result");
  const auto finish = [=](float (&sums)[8], const weft::hopper::Fragment &at) {
#pragma unroll
    for (int e = 0; e < 8; ++e)
      sums[e] = sums[e] * scale;
  };
  weft::hopper::contraction<weft::half, product, tile>({&q_map, nullptr}, {&d_score_map, nullptr}, {&d_k_map, nullptr},
      weft::hopper::NoPanelOperand{}, finish);
}
