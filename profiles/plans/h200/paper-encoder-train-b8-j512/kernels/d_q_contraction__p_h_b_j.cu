// d_q_contraction__p_h_b_j    kernel 29 of paper-encoder, backward    (this header is not hashed)
//
//   ops        %48 = contract "phbk,hbjk->phbj" %5, %46
//   space      p=64 h=16 b=8 j=512 | k=512 (reduced)
//   reads      k[p,h,b,k] f16   d_score[h,b,j,k] f16    75.5 MB
//   writes     d_q[p,h,b,j] f16    8.39 MB
//   flop       4.29 Gflop
//   config     wgmma, ping-pong tiles of 64 x 64, 12 stages, 1 epilogue stages, group-M 8    launch <<<132, 384>>>
//   not fused  softmax_dx, contract: F022 contraction-prologue (d_q)
//   not fused  contract, contract: F023 beside-contraction (d_k)
#include "weft/sm90_gemm.cuh"
#include "weft/wgmma_f16.cuh"

namespace {
constexpr weft::Offset p = 64, h = 16, b = 8, k = 512, j = 512;  // extents
constexpr weft::Offset k_2_p = 196608;              // stride of k_2 along p
constexpr weft::Offset k_2_b = 512;                 // stride of k_2 along b
constexpr weft::Offset d_q_p = 196608;              // stride of d_q along p
constexpr weft::Offset d_q_b = 512;                 // stride of d_q along b
constexpr weft::sm90::GemmProblem gemm = {
    .batch = h * b, .m = p, .n = j, .k = k,
    .a = {.outer = k_2_p, .k = 1, .batch = k_2_b, .usesTma = true},
    .b = {.outer = k, .k = 1, .batch = j * k, .usesTma = true},
    .strideCm = d_q_p, .batchStrideC = d_q_b, .usesTma = true};
constexpr weft::sm90::Tile tile = {.m = 64, .n = 64, .stages = 12, .epilogueStages = 1, .groupM = 8, .splitK = 1,
    .isPingPong = true};
constexpr float scale = 0.125f;
}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
gemm_f16_128x64x512x512(const __grid_constant__ weft::sm90::TensorMap k_2_map,
                        const __grid_constant__ weft::sm90::TensorMap d_score_map,
                        const __grid_constant__ weft::sm90::TensorMap d_q_map) {
  static_assert(weft::sm90::TileConfig<gemm, tile>::sharedBytes == 213216);
  static_assert(gemm.batch == 128 && gemm.m == 64 && gemm.n == 512 && gemm.k == 512, "plan.json: these extents");
  static_assert(tile.m == 64 && tile.n == 64 && tile.splitK == 1 && tile.multicastB == 1, "plan.json: 132 blocks and maps of these tiles");
  static_assert(p == 64 && h == 16 && b == 8 && k == 512 && j == 512, "plan.json: these extents");
  static_assert(k_2_p == 196608 && k_2_b == 512, "plan.json: strides of k_2");
  static_assert(d_q_p == 196608 && d_q_b == 512, "plan.json: strides of d_q");
  static_assert(gemm.a.outer == 196608 && gemm.a.k == 1 && gemm.a.batch == 512 && gemm.a.usesTma == true, "plan.json: strides of operand a");
  static_assert(gemm.b.outer == 512 && gemm.b.k == 1 && gemm.b.batch == 262144 && gemm.b.usesTma == true, "plan.json: strides of operand b");
  static_assert(gemm.strideCm == 196608 && gemm.batchStrideC == 512 && gemm.usesTma == true, "plan.json: strides of the result");
  const auto epilogueOp = [=](float (&accumulators)[8], const weft::sm90::Fragment &at) {
#pragma unroll
    for (int e = 0; e < 8; ++e)
      accumulators[e] = accumulators[e] * scale;
  };
  weft::sm90::runGemm<weft::half, gemm, tile>(weft::sm90::Args{
      .a = &k_2_map, .b = &d_score_map, .c = &d_q_map,
      .epilogue = epilogueOp});
}
