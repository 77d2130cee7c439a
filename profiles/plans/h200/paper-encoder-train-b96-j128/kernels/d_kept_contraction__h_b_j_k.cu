// d_kept_contraction__h_b_j_k    kernel 25 of paper-encoder, backward    (this header is not hashed)
//
//   ops        %44 = contract "whbk,whbj->hbjk" %6, %42
//   space      h=16 b=96 k=128 j=128 | w=64 (reduced)
//   reads      v[w,h,b,k] f16   d_weighted[w,h,b,j] f16    50.3 MB
//   writes     d_kept[h,b,j,k] f16    50.3 MB
//   flop       3.22 Gflop
//   config     wgmma, ping-pong tiles of 128 x 128, 6 stages, 2 epilogue stages, group-M 1    launch <<<132, 384>>>
//   not fused  contract, dropout, softmax_dx: F024 no-epilogue ('softmax_dx' is of class normalization; an epilogue is element-wise)
//   not fused  contract, contract: F024 no-epilogue ('contract' is of class contraction; an epilogue is element-wise)
#include "weft/sm90_gemm.cuh"
#include "weft/wgmma_f16.cuh"

namespace {
constexpr weft::Offset w = 64, h = 16, b = 96, k = 128, j = 128;  // extents
constexpr weft::Offset v_w = 589824;                // stride of v along w
constexpr weft::Offset v_b = 128;                   // stride of v along b
constexpr weft::sm90::GemmProblem gemm = {
    .batch = h * b, .m = j, .n = k, .k = w,
    .a = {.outer = 1, .k = h * b * j, .batch = j, .usesTma = true},
    .b = {.outer = 1, .k = v_w, .batch = v_b, .usesTma = true},
    .strideCm = k, .batchStrideC = j * k, .usesTma = true};
constexpr weft::sm90::Tile tile = {.m = 128, .n = 128, .stages = 6, .epilogueStages = 2, .groupM = 1, .splitK = 1,
    .isPingPong = true};
}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
gemm_f16_1536x128x128x64(const __grid_constant__ weft::sm90::TensorMap v_map,
                         const __grid_constant__ weft::sm90::TensorMap d_weighted_map,
                         const __grid_constant__ weft::sm90::TensorMap d_kept_map) {
  static_assert(weft::sm90::TileConfig<gemm, tile>::sharedBytes == 229520);
  static_assert(gemm.batch == 1536 && gemm.m == 128 && gemm.n == 128 && gemm.k == 64, "plan.json: these extents");
  static_assert(tile.m == 128 && tile.n == 128 && tile.splitK == 1 && tile.multicastB == 1, "plan.json: 132 blocks and maps of these tiles");
  static_assert(w == 64 && h == 16 && b == 96 && k == 128 && j == 128, "plan.json: these extents");
  static_assert(v_w == 589824 && v_b == 128, "plan.json: strides of v");
  static_assert(gemm.a.outer == 1 && gemm.a.k == 196608 && gemm.a.batch == 128 && gemm.a.usesTma == true, "plan.json: strides of operand a");
  static_assert(gemm.b.outer == 1 && gemm.b.k == 589824 && gemm.b.batch == 128 && gemm.b.usesTma == true, "plan.json: strides of operand b");
  static_assert(gemm.strideCm == 128 && gemm.batchStrideC == 16384 && gemm.usesTma == true, "plan.json: strides of the result");
  weft::sm90::runGemm<weft::half, gemm, tile>(weft::sm90::Args{.a = &d_weighted_map, .b = &v_map, .c = &d_kept_map});
}
