// score_contraction__h_b_j_k    kernel 5 of paper-encoder, forward    (this header is not hashed)
//
//   ops        %7 = contract "phbk,phbj->hbjk" %5, %4
//   space      h=16 b=8 k=512 j=512 | p=64 (reduced)
//   reads      k[p,h,b,k] f16   q[p,h,b,j] f16    16.8 MB
//   writes     score[h,b,j,k] f16    67.1 MB
//   flop       4.29 Gflop
//   config     wgmma, ping-pong tiles of 128 x 128, 6 stages, 2 staged panels, raster 8    launch <<<132, 384>>>
//   not fused  contract, softmax: F024 no-epilogue ('softmax' is of class normalization; an epilogue is element-wise)
//   not fused  slice, contract: F060 movement-op (q)
#include "weft/hopper_contraction.cuh"

namespace {
constexpr weft::Offset p = 64, h = 16, b = 8, k = 512, j = 512;  // extents
constexpr weft::Offset q_p = 196608;                // stride of q along p
constexpr weft::Offset q_b = 512;                   // stride of q along b
constexpr weft::Offset k_2_p = 196608;              // stride of k_2 along p
constexpr weft::Offset k_2_b = 512;                 // stride of k_2 along b
constexpr weft::hopper::Product product = {
    .batch = h * b, .m = j, .n = k, .k = p,
    .a = {.outer = 1, .k = q_p, .batch = q_b, .isByEngine = true},
    .b = {.outer = 1, .k = k_2_p, .batch = k_2_b, .isByEngine = true},
    .strideCm = k, .batchStrideC = j * k, .isByEngine = true};
constexpr weft::hopper::Tile tile = {.m = 128, .n = 128, .stages = 6, .staging = 2, .rasterM = 8, .splits = 1,
    .isPingPong = true};
constexpr float scale = 0.125f;
}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
score_contraction_h_b_j_k(const __grid_constant__ weft::hopper::TensorMap k_2_map,
                          const __grid_constant__ weft::hopper::TensorMap q_map,
                          const __grid_constant__ weft::hopper::TensorMap score_map) {
  static_assert(weft::hopper::Plan<product, tile>::sharedBytes == 229520);
  static_assert(product.batch == 128 && product.m == 512 && product.n == 512 && product.k == 64, "plan.json: these extents");
  static_assert(tile.m == 128 && tile.n == 128 && tile.splits == 1 && tile.sharers == 1, "plan.json: 132 blocks and maps of these tiles");
  static_assert(p == 64 && h == 16 && b == 8 && k == 512 && j == 512, "plan.json: these extents");
  static_assert(q_p == 196608 && q_b == 512, "plan.json: strides of q");
  static_assert(k_2_p == 196608 && k_2_b == 512, "plan.json: strides of k_2");
  static_assert(product.a.outer == 1 && product.a.k == 196608 && product.a.batch == 512 && product.a.isByEngine == true, "plan.json: strides of operand a");
  static_assert(product.b.outer == 1 && product.b.k == 196608 && product.b.batch == 512 && product.b.isByEngine == true, "plan.json: strides of operand b");
  static_assert(product.strideCm == 512 && product.batchStrideC == 262144 && product.isByEngine == true, "plan.json: strides of the result");
  const auto finish = [=](float (&sums)[8], const weft::hopper::Fragment &at) {
#pragma unroll
    for (int e = 0; e < 8; ++e)
      sums[e] = sums[e] * scale;
  };
  weft::hopper::contraction<weft::half, product, tile>({&q_map, nullptr}, {&k_2_map, nullptr}, {&score_map, nullptr},
      weft::hopper::NoPanelOperand{}, finish);
}
