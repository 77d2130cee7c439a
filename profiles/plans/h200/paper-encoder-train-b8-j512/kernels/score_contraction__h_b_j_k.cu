// score_contraction__h_b_j_k    kernel 5 of paper-encoder, forward    (this header is not hashed)
//
//   ops        %7 = contract "phbk,phbj->hbjk" %5, %4
//   space      h=16 b=8 k=512 j=512 | p=64 (reduced)
//   reads      k[p,h,b,k] f16   q[p,h,b,j] f16    16.8 MB
//   writes     score[h,b,j,k] f16    67.1 MB
//   flop       4.29 Gflop
//   config     wgmma, ping-pong tiles of 128 x 128, 6 stages, 2 epilogue stages, group-M 8    launch <<<132, 384>>>
//   not fused  contract, softmax: F024 no-epilogue ('softmax' is of class normalization; an epilogue is element-wise)
//   not fused  slice, contract: F060 movement-op (q)
#include "weft/sm90_gemm.cuh"
#include "weft/wgmma_f16.cuh"

namespace {
constexpr weft::Offset p = 64, h = 16, b = 8, k = 512, j = 512;  // extents
constexpr weft::Offset q_p = 196608;                // stride of q along p
constexpr weft::Offset q_b = 512;                   // stride of q along b
constexpr weft::Offset k_2_p = 196608;              // stride of k_2 along p
constexpr weft::Offset k_2_b = 512;                 // stride of k_2 along b
constexpr weft::sm90::GemmProblem gemm = {
    .batch = h * b, .m = j, .n = k, .k = p,
    .a = {.outer = 1, .k = q_p, .batch = q_b, .usesTma = true},
    .b = {.outer = 1, .k = k_2_p, .batch = k_2_b, .usesTma = true},
    .strideCm = k, .batchStrideC = j * k, .usesTma = true};
constexpr weft::sm90::Tile tile = {.m = 128, .n = 128, .stages = 6, .epilogueStages = 2, .groupM = 8, .splitK = 1,
    .isPingPong = true};
constexpr float scale = 0.125f;
}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
gemm_f16_128x512x512x64(const __grid_constant__ weft::sm90::TensorMap k_2_map,
                        const __grid_constant__ weft::sm90::TensorMap q_map,
                        const __grid_constant__ weft::sm90::TensorMap score_map) {
  static_assert(weft::sm90::TileConfig<gemm, tile>::sharedBytes == 229520);
  static_assert(gemm.batch == 128 && gemm.m == 512 && gemm.n == 512 && gemm.k == 64, "plan.json: these extents");
  static_assert(tile.m == 128 && tile.n == 128 && tile.splitK == 1 && tile.multicastB == 1, "plan.json: 132 blocks and maps of these tiles");
  static_assert(p == 64 && h == 16 && b == 8 && k == 512 && j == 512, "plan.json: these extents");
  static_assert(q_p == 196608 && q_b == 512, "plan.json: strides of q");
  static_assert(k_2_p == 196608 && k_2_b == 512, "plan.json: strides of k_2");
  static_assert(gemm.a.outer == 1 && gemm.a.k == 196608 && gemm.a.batch == 512 && gemm.a.usesTma == true, "plan.json: strides of operand a");
  static_assert(gemm.b.outer == 1 && gemm.b.k == 196608 && gemm.b.batch == 512 && gemm.b.usesTma == true, "plan.json: strides of operand b");
  static_assert(gemm.strideCm == 512 && gemm.batchStrideC == 262144 && gemm.usesTma == true, "plan.json: strides of the result");
  const auto epilogueOp = [=](float (&accumulators)[8], const weft::sm90::Fragment &at) {
#pragma unroll
    for (int e = 0; e < 8; ++e)
      accumulators[e] = accumulators[e] * scale;
  };
  weft::sm90::runGemm<weft::half, gemm, tile>(weft::sm90::Args{
      .a = &q_map, .b = &k_2_map, .c = &score_map,
      .epilogue = epilogueOp});
}
