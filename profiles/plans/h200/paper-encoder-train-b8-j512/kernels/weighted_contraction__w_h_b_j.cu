// weighted_contraction__w_h_b_j    kernel 7 of paper-encoder, forward    (this header is not hashed)
//
//   ops        %10 = contract "whbk,hbjk->whbj" %6, %9
//   space      w=64 h=16 b=8 j=512 | k=512 (reduced)
//   reads      v[w,h,b,k] f16   kept[h,b,j,k] f16    75.5 MB
//   writes     weighted[w,h,b,j] f16    8.39 MB
//   flop       4.29 Gflop
//   config     wgmma, ping-pong tiles of 64 x 64, 12 stages, 1 epilogue stages, group-M 8    launch <<<132, 384>>>
//   not fused  dropout, contract: F022 contraction-prologue (weighted)
//   not fused  contract, contract: F023 beside-contraction (weighted)
#include "weft/sm90_gemm.cuh"
#include "weft/wgmma_f16.cuh"

namespace {
constexpr weft::Offset w = 64, h = 16, b = 8, k = 512, j = 512;  // extents
constexpr weft::Offset v_w = 196608;                // stride of v along w
constexpr weft::Offset v_b = 512;                   // stride of v along b
constexpr weft::sm90::GemmProblem gemm = {
    .batch = h * b, .m = w, .n = j, .k = k,
    .a = {.outer = v_w, .k = 1, .batch = v_b, .usesTma = true},
    .b = {.outer = k, .k = 1, .batch = j * k, .usesTma = true},
    .strideCm = h * b * j, .batchStrideC = j, .usesTma = true};
constexpr weft::sm90::Tile tile = {.m = 64, .n = 64, .stages = 12, .epilogueStages = 1, .groupM = 8, .splitK = 1,
    .isPingPong = true};
}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
gemm_f16_128x64x512x512(const __grid_constant__ weft::sm90::TensorMap v_map,
                        const __grid_constant__ weft::sm90::TensorMap kept_map,
                        const __grid_constant__ weft::sm90::TensorMap weighted_map) {
  static_assert(weft::sm90::TileConfig<gemm, tile>::sharedBytes == 213216);
  static_assert(gemm.batch == 128 && gemm.m == 64 && gemm.n == 512 && gemm.k == 512, "plan.json: these extents");
  static_assert(tile.m == 64 && tile.n == 64 && tile.splitK == 1 && tile.multicastB == 1, "plan.json: 132 blocks and maps of these tiles");
  static_assert(w == 64 && h == 16 && b == 8 && k == 512 && j == 512, "plan.json: these extents");
  static_assert(v_w == 196608 && v_b == 512, "plan.json: strides of v");
  static_assert(gemm.a.outer == 196608 && gemm.a.k == 1 && gemm.a.batch == 512 && gemm.a.usesTma == true, "plan.json: strides of operand a");
  static_assert(gemm.b.outer == 512 && gemm.b.k == 1 && gemm.b.batch == 262144 && gemm.b.usesTma == true, "plan.json: strides of operand b");
  static_assert(gemm.strideCm == 65536 && gemm.batchStrideC == 512 && gemm.usesTma == true, "plan.json: strides of the result");
  weft::sm90::runGemm<weft::half, gemm, tile>(weft::sm90::Args{.a = &v_map, .b = &kept_map, .c = &weighted_map});
}
