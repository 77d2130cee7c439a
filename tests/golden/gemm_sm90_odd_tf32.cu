// contract    (this header is not hashed)
//
//   ops        c = contract "bmk,bnk->bmn" a, b in tf32
//   space      b=3 m=1000 n=777 | k=555 (reduced)
//   reads      a[b,m,k] f32   b[b,n,k] f32    11.8 MB
//   writes     c[b,m,n] f32    9.32 MB
//   flop       2.59 Gflop
//   config     wgmma, ping-pong tiles of 128 x 128, 6 stages, 2 epilogue stages, group-M 8    launch <<<132, 384>>>
#include "weft/sm90_gemm.cuh"
#include "weft/sm90_tf32.cuh"

namespace {
constexpr weft::Offset b = 3, k = 555, m = 1000, n = 777;  // extents
constexpr weft::sm90::GemmProblem gemm = {
    .batch = b, .m = m, .n = n, .k = k,
    .a = {.outer = k, .k = 1, .batch = m * k, .usesTma = false},
    .b = {.outer = k, .k = 1, .batch = n * k, .usesTma = false},
    .strideCm = n, .batchStrideC = m * n, .usesTma = false, .operandBytes = 4, .isPaired = false};
constexpr weft::sm90::Tile tile = {.m = 128, .n = 128, .stages = 6, .epilogueStages = 2, .groupM = 8, .splitK = 1,
    .isPingPong = true};
}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
gemm_tf32_3x1000x777x555(const weft::tfloat32 *__restrict__ a, const weft::tfloat32 *__restrict__ b_2,
                         float *__restrict__ c) {
  static_assert(weft::sm90::TileConfig<gemm, tile>::sharedBytes == 229520);
  static_assert(gemm.batch == 3 && gemm.m == 1000 && gemm.n == 777 && gemm.k == 555, "plan.json: these extents");
  static_assert(tile.m == 128 && tile.n == 128 && tile.splitK == 1 && tile.multicastB == 1, "plan.json: 132 blocks and maps of these tiles");
  static_assert(b == 3 && k == 555 && m == 1000 && n == 777, "plan.json: these extents");
  static_assert(gemm.a.outer == 555 && gemm.a.k == 1 && gemm.a.batch == 555000 && gemm.a.usesTma == false, "plan.json: strides of operand a");
  static_assert(gemm.b.outer == 555 && gemm.b.k == 1 && gemm.b.batch == 431235 && gemm.b.usesTma == false, "plan.json: strides of operand b");
  static_assert(gemm.strideCm == 777 && gemm.batchStrideC == 777000 && gemm.usesTma == false && gemm.operandBytes == 4 && gemm.isPaired == false, "plan.json: strides of the result");
  using Elements = weft::sm90::Elements<weft::tfloat32, weft::tfloat32, float>;
  weft::sm90::runGemm<Elements, gemm, tile>(weft::sm90::Args{.a = a, .b = b_2, .c = c});
}
