// projection    (this header is not hashed)
//
//   ops        c = contract "phi,bji->phbj" a, b
//   space      b=7 h=16 j=511 p=64 | i=1024 (reduced)
//   reads      a[p,h,i] f16   b[b,j,i] f16    9.42 MB
//   writes     c[p,h,b,j] f16    7.33 MB
//   flop       7.50 Gflop
//   config     mma.sync, tile 128 x 128 x 32, 4 stages, 2 x 2 warps, group-M 8    launch <<<224, 128>>>
#include "weft/sm80_gemm.cuh"

namespace {
constexpr weft::Offset b = 7, h = 16, i = 1024, j = 511, p = 64;  // extents
constexpr weft::sm80::GemmProblem gemm = {
    .batch = 1, .m = h * p, .n = b * j, .k = i,
    .a = {.outer = i, .k = 1, .batch = 0, .isAligned = true},
    .b = {.outer = i, .k = 1, .batch = 0, .isAligned = true},
    .strideCm = b * j, .batchStrideC = 0, .isAligned = false};
constexpr weft::sm80::Tile tile = {.m = 128, .n = 128, .k = 32, .stages = 4, .warpsM = 2, .warpsN = 2, .groupM = 8};
constexpr float scale = 0.125f;
}  // namespace

extern "C" __global__ void __launch_bounds__(128, 1)
gemm_f16_1024x3577x1024(const weft::half *__restrict__ a, const weft::half *__restrict__ b_2,
                        weft::half *__restrict__ c) {
  static_assert(weft::sm80::TileConfig<gemm, tile>::sharedBytes == 65536);
  static_assert(gemm.batch == 1 && gemm.m == 1024 && gemm.n == 3577 && gemm.k == 1024, "plan.json: these extents");
  static_assert(1 * ((1024 + tile.m - 1) / tile.m) * ((3577 + tile.n - 1) / tile.n) == 224, "plan.json: 224 blocks");
  static_assert(32 * tile.warpsM * tile.warpsN == 128, "plan.json: 128 threads a block");
  static_assert(b == 7 && h == 16 && i == 1024 && j == 511 && p == 64, "plan.json: these extents");
  static_assert(gemm.a.outer == 1024 && gemm.a.k == 1 && gemm.a.batch == 0 && gemm.a.isAligned == true, "plan.json: strides of operand a");
  static_assert(gemm.b.outer == 1024 && gemm.b.k == 1 && gemm.b.batch == 0 && gemm.b.isAligned == true, "plan.json: strides of operand b");
  static_assert(gemm.strideCm == 3577 && gemm.batchStrideC == 0 && gemm.isAligned == false, "plan.json: strides of the result");
  const auto epilogueOp = [=](float (&accumulators)[8], const weft::sm80::Fragment &) {
#pragma unroll
    for (int e = 0; e < 8; ++e)
      accumulators[e] = accumulators[e] * scale;
  };
  weft::sm80::runGemm<weft::half, gemm, tile>(weft::sm80::Args{.a = a, .b = b_2, .c = c, .epilogue = epilogueOp});
}
