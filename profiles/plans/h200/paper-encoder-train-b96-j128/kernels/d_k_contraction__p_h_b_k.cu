// d_k_contraction__p_h_b_k    kernel 27 of paper-encoder, backward    (this header is not hashed)
//
//   ops        %47 = contract "hbjk,phbj->phbk" %46, %4
//   space      h=16 b=96 k=128 p=64 | j=128 (reduced)
//   reads      d_score[h,b,j,k] f16   q[p,h,b,j] f16    75.5 MB
//   writes     d_k[p,h,b,k] f16    25.2 MB
//   flop       3.22 Gflop
//   config     wgmma, ping-pong tiles of 64 x 64, 12 stages, 1 epilogue stages, group-M 8    launch <<<132, 384>>>
//   not fused  softmax_dx, contract: F022 contraction-prologue (d_k)
//   not fused  contract, contract: F023 beside-contraction (d_k)
#include "weft/sm90_gemm.cuh"
#include "weft/wgmma_f16.cuh"

namespace {
constexpr weft::Offset h = 16, b = 96, j = 128, k = 128, p = 64;  // extents
constexpr weft::Offset q_p = 589824;                // stride of q along p
constexpr weft::Offset q_b = 128;                   // stride of q along b
constexpr weft::Offset d_k_p = 589824;              // stride of d_k along p
constexpr weft::Offset d_k_b = 128;                 // stride of d_k along b
constexpr weft::sm90::GemmProblem gemm = {
    .batch = h * b, .m = p, .n = k, .k = j,
    .a = {.outer = q_p, .k = 1, .batch = q_b, .usesTma = true},
    .b = {.outer = 1, .k = k, .batch = j * k, .usesTma = true},
    .strideCm = d_k_p, .batchStrideC = d_k_b, .usesTma = true};
constexpr weft::sm90::Tile tile = {.m = 64, .n = 64, .stages = 12, .epilogueStages = 1, .groupM = 8, .splitK = 1,
    .isPingPong = true};
constexpr float scale = 0.125f;
}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
gemm_f16_1536x128x64x128(const __grid_constant__ weft::sm90::TensorMap d_score_map,
                         const __grid_constant__ weft::sm90::TensorMap q_map,
                         const __grid_constant__ weft::sm90::TensorMap d_k_map) {
  static_assert(weft::sm90::TileConfig<gemm, tile>::sharedBytes == 213216);
  static_assert(gemm.batch == 1536 && gemm.m == 64 && gemm.n == 128 && gemm.k == 128, "plan.json: these extents");
  static_assert(tile.m == 64 && tile.n == 64 && tile.splitK == 1 && tile.multicastB == 1, "plan.json: 132 blocks and maps of these tiles");
  static_assert(h == 16 && b == 96 && j == 128 && k == 128 && p == 64, "plan.json: these extents");
  static_assert(q_p == 589824 && q_b == 128, "plan.json: strides of q");
  static_assert(d_k_p == 589824 && d_k_b == 128, "plan.json: strides of d_k");
  static_assert(gemm.a.outer == 589824 && gemm.a.k == 1 && gemm.a.batch == 128 && gemm.a.usesTma == true, "plan.json: strides of operand a");
  static_assert(gemm.b.outer == 1 && gemm.b.k == 128 && gemm.b.batch == 16384 && gemm.b.usesTma == true, "plan.json: strides of operand b");
  static_assert(gemm.strideCm == 589824 && gemm.batchStrideC == 128 && gemm.usesTma == true, "plan.json: strides of the result");
  const auto epilogueOp = [=](float (&accumulators)[8], const weft::sm90::Fragment &at) {
#pragma unroll
    for (int e = 0; e < 8; ++e)
      accumulators[e] = accumulators[e] * scale;
  };
  weft::sm90::runGemm<weft::half, gemm, tile>(weft::sm90::Args{
      .a = &q_map, .b = &d_score_map, .c = &d_k_map,
      .epilogue = epilogueOp});
}
