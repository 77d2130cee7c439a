// d_kept_contraction__h_b_j_k    kernel 26 of paper-encoder, backward    (this header is not hashed)
//
//   ops        %44 = contract "whbk,whbj->hbjk" %6, %42
//   space      h=16 b=8 k=512 j=512 | w=64 (reduced)
//   reads      v[w,h,b,k] f16   d_weighted[w,h,b,j] f16    16.8 MB
//   writes     d_kept[h,b,j,k] f16    67.1 MB
//   flop       4.29 Gflop
//   config     wgmma, ping-pong tiles of 64 x 128, 8 stages, 2 epilogue stages, group-M 8    launch <<<132, 384>>>
//   not fused  contract, dropout, softmax_dx: F024 no-epilogue ('softmax_dx' is of class normalization; an epilogue is element-wise)
//   not fused  contract, contract: F024 no-epilogue ('contract' is of class contraction; an epilogue is element-wise)
#include "weft/sm90_gemm.cuh"
#include "weft/wgmma_f16.cuh"

namespace {
constexpr weft::Offset w = 64, h = 16, b = 8, k = 512, j = 512;  // extents
constexpr weft::Offset v_w = 196608;                // stride of v along w
constexpr weft::Offset v_b = 512;                   // stride of v along b
constexpr weft::sm90::GemmProblem gemm = {
    .batch = h * b, .m = j, .n = k, .k = w,
    .a = {.outer = 1, .k = h * b * j, .batch = j, .usesTma = true},
    .b = {.outer = 1, .k = v_w, .batch = v_b, .usesTma = true},
    .strideCm = k, .batchStrideC = j * k, .usesTma = true};
constexpr weft::sm90::Tile tile = {.m = 64, .n = 128, .stages = 8, .epilogueStages = 2, .groupM = 8, .splitK = 1,
    .isPingPong = true};
}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
gemm_f16_128x512x512x64(const __grid_constant__ weft::sm90::TensorMap v_map,
                        const __grid_constant__ weft::sm90::TensorMap d_weighted_map,
                        const __grid_constant__ weft::sm90::TensorMap d_kept_map) {
  static_assert(weft::sm90::TileConfig<gemm, tile>::sharedBytes == 229552);
  static_assert(gemm.batch == 128 && gemm.m == 512 && gemm.n == 512 && gemm.k == 64, "plan.json: these extents");
  static_assert(tile.m == 64 && tile.n == 128 && tile.splitK == 1 && tile.multicastB == 1, "plan.json: 132 blocks and maps of these tiles");
  static_assert(w == 64 && h == 16 && b == 8 && k == 512 && j == 512, "plan.json: these extents");
  static_assert(v_w == 196608 && v_b == 512, "plan.json: strides of v");
  static_assert(gemm.a.outer == 1 && gemm.a.k == 65536 && gemm.a.batch == 512 && gemm.a.usesTma == true, "plan.json: strides of operand a");
  static_assert(gemm.b.outer == 1 && gemm.b.k == 196608 && gemm.b.batch == 512 && gemm.b.usesTma == true, "plan.json: strides of operand b");
  static_assert(gemm.strideCm == 512 && gemm.batchStrideC == 262144 && gemm.usesTma == true, "plan.json: strides of the result");
  weft::sm90::runGemm<weft::half, gemm, tile>(weft::sm90::Args{.a = &d_weighted_map, .b = &v_map, .c = &d_kept_map});
}
