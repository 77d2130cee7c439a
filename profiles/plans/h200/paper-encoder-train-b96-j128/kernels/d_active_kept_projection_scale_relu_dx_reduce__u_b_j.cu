// d_active_kept_projection_scale_relu_dx_reduce__u_b_j    kernel 16 of paper-encoder, backward    (this header is not hashed)
//
//   ops        %30 = contract "iu,bji->bju" %w2, %27
//              %31 = scale %30
//              %32 = relu_dx %31, %19
//              %33 = reduce %32 over b, j
//   space      u=4096 | i=1024 b=96 j=128 (reduced)
//   reads      w2[i,u] f16   d_feed_forward[b,j,i] f16   active_kept[u,b,j] f16    134 MB
//   writes     d_hidden[u,b,j] f16   d_b1[u] f16    101 MB
//   flop       103 Gflop
//   config     wgmma, ping-pong tiles of 128 x 128, 5 stages, 4 epilogue stages, group-M 4    launch <<<132, 384>>>
//   fused by   fuse: producer-consumer + reduction-consumer
//   not fused  contract, bias, relu, dropout, relu_dx: F031 forward-and-backward (hidden_product, d_hidden)
//   not fused  contract, scale, relu_dx, reduce, contract: F024 no-epilogue ('contract' is of class contraction; an epilogue is element-wise)
#include "weft/sm90_epilogue_reduction.cuh"
#include "weft/sm90_gemm.cuh"
#include "weft/wgmma_f16.cuh"

namespace {
constexpr weft::Offset i = 1024, u = 4096, b = 96, j = 128;  // extents
constexpr weft::sm90::GemmProblem gemm = {
    .batch = 1, .m = u, .n = b * j, .k = i,
    .a = {.outer = 1, .k = u, .batch = 0, .usesTma = true},
    .b = {.outer = i, .k = 1, .batch = 0, .usesTma = true},
    .strideCm = b * j, .batchStrideC = 0, .usesTma = true};
constexpr weft::sm90::Tile tile = {.m = 128, .n = 128, .stages = 5, .epilogueStages = 4, .groupM = 4, .splitK = 1,
    .isPingPong = true};
constexpr float factor = 1.1111112f;
__device__ weft::sm90::RowPartials<gemm, tile> d_b1_partials;
}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
gemm_scale_relu_dx_reduce_f16_4096x12288x1024(const __grid_constant__ weft::sm90::TensorMap w2_map,
                                              const __grid_constant__ weft::sm90::TensorMap d_feed_forward_map,
                                              const __grid_constant__ weft::sm90::TensorMap active_kept_map,
                                              const __grid_constant__ weft::sm90::TensorMap d_hidden_map,
                                              weft::half *__restrict__ d_b1) {
  static_assert(weft::sm90::TileConfig<gemm, tile>::sharedBytes == 229536);
  static_assert(gemm.batch == 1 && gemm.m == 4096 && gemm.n == 12288 && gemm.k == 1024, "plan.json: these extents");
  static_assert(tile.m == 128 && tile.n == 128 && tile.splitK == 1 && tile.multicastB == 1, "plan.json: 132 blocks and maps of these tiles");
  static_assert(i == 1024 && u == 4096 && b == 96 && j == 128, "plan.json: these extents");
  static_assert(gemm.a.outer == 1 && gemm.a.k == 4096 && gemm.a.batch == 0 && gemm.a.usesTma == true, "plan.json: strides of operand a");
  static_assert(gemm.b.outer == 1024 && gemm.b.k == 1 && gemm.b.batch == 0 && gemm.b.usesTma == true, "plan.json: strides of operand b");
  static_assert(gemm.strideCm == 12288 && gemm.batchStrideC == 0 && gemm.usesTma == true, "plan.json: strides of the result");
  static_assert(sizeof(d_b1_partials) == sizeof(weft::sm90::RowPartials<gemm, tile>), "plan.json: device memory");
  const auto epilogueOp = [=](float (&accumulators)[8], const float (&active_kept_v)[8], float (&summed)[1][8],
      const weft::sm90::Fragment &at) {
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const float d_active = accumulators[e] * factor;                                            // %31
      const float d_hidden_2 = active_kept_v[e] <= 0.0f ? 0.0f : d_active;                        // %32
      summed[0][e] = d_hidden_2;
      accumulators[e] = d_hidden_2;
    }
  };
  weft::sm90::runGemm<weft::half, gemm, tile>(weft::sm90::Args{
      .a = &w2_map, .b = &d_feed_forward_map, .c = &d_hidden_map,
      .perElement = &active_kept_map,
      .reductions = weft::sm90::epilogueReductions(
          weft::sm90::EpilogueReductionOutput{d_b1, &d_b1_partials}),
      .epilogue = epilogueOp});
}
