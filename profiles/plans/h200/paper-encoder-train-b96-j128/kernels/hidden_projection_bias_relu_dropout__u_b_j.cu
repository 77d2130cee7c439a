// hidden_projection_bias_relu_dropout__u_b_j    kernel 10 of paper-encoder, forward    (this header is not hashed)
//
//   ops        %16 = contract "ui,bji->bju" %w1, %15
//              %17 = bias %16, %b1
//              %18 = relu %17
//              %19 = dropout %18
//   space      u=4096 b=96 j=128 | i=1024 (reduced)
//   reads      w1[u,i] f16   norm1[b,j,i] f16   b1[u] f16    33.6 MB
//   writes     active_kept[u,b,j] f16    101 MB
//   flop       103 Gflop
//   config     wgmma, ping-pong tiles of 128 x 192, 4 stages, 4 staged panels, raster 8    launch <<<132, 384>>>
//   fused by   fuse: producer-consumer + reduction-consumer
//   not fused  contract, bias, relu, dropout, contract: F024 no-epilogue ('contract' is of class contraction; an epilogue is element-wise)
//   not fused  contract, bias, relu, dropout, contract: F031 forward-and-backward (hidden_product, d_w2)
#include "weft/dropout.cuh"
#include "weft/hopper_contraction.cuh"
#include "weft/math.cuh"

namespace {
constexpr weft::Offset u = 4096, i = 1024, b = 96, j = 128;  // extents
constexpr weft::hopper::Product product = {
    .batch = 1, .m = u, .n = b * j, .k = i,
    .a = {.outer = i, .k = 1, .batch = 0, .isByEngine = true},
    .b = {.outer = i, .k = 1, .batch = 0, .isByEngine = true},
    .strideCm = b * j, .batchStrideC = 0, .isByEngine = true};
constexpr weft::hopper::Tile tile = {.m = 128, .n = 192, .stages = 4, .staging = 4, .rasterM = 8, .splits = 1,
    .isPingPong = true};
constexpr unsigned dropThreshold = 6554u;           // 0.1 of 65536 draws
constexpr float keepScale = 1.1111112f;
}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
hidden_projection_bias_relu_dropout_u_b_j(const __grid_constant__ weft::hopper::TensorMap w1_map,
                                          const __grid_constant__ weft::hopper::TensorMap norm1_map,
                                          const weft::half *__restrict__ b1,
                                          const __grid_constant__ weft::hopper::TensorMap active_kept_map,
                                          const weft::DropoutKey *__restrict__ dropoutKey, unsigned dropoutStream) {
  static_assert(weft::hopper::Plan<product, tile>::sharedBytes == 229520);
  static_assert(product.batch == 1 && product.m == 4096 && product.n == 12288 && product.k == 1024, "plan.json: these extents");
  static_assert(tile.m == 128 && tile.n == 192 && tile.splits == 1 && tile.sharers == 1, "plan.json: 132 blocks and maps of these tiles");
  static_assert(u == 4096 && i == 1024 && b == 96 && j == 128, "plan.json: these extents");
  static_assert(product.a.outer == 1024 && product.a.k == 1 && product.a.batch == 0 && product.a.isByEngine == true, "plan.json: strides of operand a");
  static_assert(product.b.outer == 1024 && product.b.k == 1 && product.b.batch == 0 && product.b.isByEngine == true, "plan.json: strides of operand b");
  static_assert(product.strideCm == 12288 && product.batchStrideC == 0 && product.isByEngine == true, "plan.json: strides of the result");
  const weft::DropoutKey key = *dropoutKey;                           // seed and step: a replay must not repeat masks
  const float scaleOfKept = weft::opaque(keepScale);
  const auto finish = [=](float (&sums)[8], const float (&b1_v)[8], const weft::hopper::Fragment &at) {
    const auto kept = weft::keptTransposedFragment(key, dropoutStream, at.column / j, at.column % j, at.row,
        dropThreshold);
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const float hidden = sums[e] + b1_v[e];                                                     // %17
      const float active = weft::relu(hidden);                                                    // %18
      const float active_kept_2 = (kept.at(e) ? active : 0.0f) * scaleOfKept;                     // %19
      sums[e] = active_kept_2;
    }
  };
  weft::hopper::contraction<weft::half, product, tile>({&w1_map, nullptr}, {&norm1_map, nullptr},
      {&active_kept_map, nullptr}, weft::hopper::NoPanelOperand{}, weft::hopper::RowOperand<weft::half>{b1}, finish);
}
