// d_wo_contraction__w_h_i    kernel 24 of paper-encoder, backward    (this header is not hashed)
//
//   ops        %41 = contract "bji,whbj->whi" %39, %10
//   space      i=1024 w=64 h=16 | b=8 j=512 (reduced)
//   reads      d_attention[b,j,i] f16   weighted[w,h,b,j] f16    16.8 MB
//   writes     d_wo[w,h,i] f16    2.10 MB
//   flop       8.59 Gflop
//   config     wgmma, ping-pong tiles of 64 x 128, 8 stages, 2 epilogue stages, group-M 8    launch <<<128, 384>>>
//   not fused  contract, contract: F031 forward-and-backward (weighted, d_wo)
//   not fused  contract, contract: F023 beside-contraction (attention_product)
#include "weft/sm90_gemm.cuh"
#include "weft/wgmma_f16.cuh"

namespace {
constexpr weft::Offset b = 8, j = 512, i = 1024, w = 64, h = 16;  // extents
constexpr weft::sm90::GemmProblem gemm = {
    .batch = 1, .m = w * h, .n = i, .k = b * j,
    .a = {.outer = b * j, .k = 1, .batch = 0, .usesTma = true},
    .b = {.outer = 1, .k = i, .batch = 0, .usesTma = true},
    .strideCm = i, .batchStrideC = 0, .usesTma = true};
constexpr weft::sm90::Tile tile = {.m = 64, .n = 128, .stages = 8, .epilogueStages = 2, .groupM = 8, .splitK = 1,
    .isPingPong = true};
}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
gemm_f16_1024x1024x4096(const __grid_constant__ weft::sm90::TensorMap d_attention_map,
                        const __grid_constant__ weft::sm90::TensorMap weighted_map,
                        const __grid_constant__ weft::sm90::TensorMap d_wo_map) {
  static_assert(weft::sm90::TileConfig<gemm, tile>::sharedBytes == 229552);
  static_assert(gemm.batch == 1 && gemm.m == 1024 && gemm.n == 1024 && gemm.k == 4096, "plan.json: these extents");
  static_assert(tile.m == 64 && tile.n == 128 && tile.splitK == 1 && tile.multicastB == 1, "plan.json: 128 blocks and maps of these tiles");
  static_assert(b == 8 && j == 512 && i == 1024 && w == 64 && h == 16, "plan.json: these extents");
  static_assert(gemm.a.outer == 4096 && gemm.a.k == 1 && gemm.a.batch == 0 && gemm.a.usesTma == true, "plan.json: strides of operand a");
  static_assert(gemm.b.outer == 1 && gemm.b.k == 1024 && gemm.b.batch == 0 && gemm.b.usesTma == true, "plan.json: strides of operand b");
  static_assert(gemm.strideCm == 1024 && gemm.batchStrideC == 0 && gemm.usesTma == true, "plan.json: strides of the result");
  weft::sm90::runGemm<weft::half, gemm, tile>(weft::sm90::Args{
      .a = &weighted_map, .b = &d_attention_map, .c = &d_wo_map});
}
