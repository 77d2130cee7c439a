// projection    (this header is not hashed)
//
//   ops        c = contract "mk,kn->mn" a, b in tf32
//   space      m=1000 n=777 | k=512 (reduced)
//   reads      a[m,k] f32   b[k,n] f32    3.64 MB
//   writes     c[m,n] f32    3.11 MB
//   flop       796 Mflop
//   config     mma.sync, tile 128 x 128 x 32, 3 stages, 2 x 2 warps, group-M 8    launch <<<56, 128>>>
#include "weft/sm80_tf32.cuh"

namespace {
constexpr weft::Offset k = 512, m = 1000, n = 777;  // extents
constexpr weft::sm80::GemmProblem gemm = {
    .batch = 1, .m = m, .n = n, .k = k,
    .a = {.outer = k, .k = 1, .batch = 0, .isAligned = true},
    .b = {.outer = 1, .k = n, .batch = 0, .isAligned = false},
    .strideCm = n, .batchStrideC = 0, .isAligned = false};
constexpr weft::sm80::Tile tile = {.m = 128, .n = 128, .k = 32, .stages = 3, .warpsM = 2, .warpsN = 2, .groupM = 8};
}  // namespace

extern "C" __global__ void __launch_bounds__(128, 1)
gemm_tf32_1000x777x512(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c) {
  static_assert(weft::sm80::Tf32TileConfig<gemm, tile>::sharedBytes == 98304);
  static_assert(gemm.batch == 1 && gemm.m == 1000 && gemm.n == 777 && gemm.k == 512, "plan.json: these extents");
  static_assert(1 * ((1000 + tile.m - 1) / tile.m) * ((777 + tile.n - 1) / tile.n) == 56, "plan.json: 56 blocks");
  static_assert(32 * tile.warpsM * tile.warpsN == 128, "plan.json: 128 threads a block");
  static_assert(k == 512 && m == 1000 && n == 777, "plan.json: these extents");
  static_assert(gemm.a.outer == 512 && gemm.a.k == 1 && gemm.a.batch == 0 && gemm.a.isAligned == true, "plan.json: strides of operand a");
  static_assert(gemm.b.outer == 1 && gemm.b.k == 777 && gemm.b.batch == 0 && gemm.b.isAligned == false, "plan.json: strides of operand b");
  static_assert(gemm.strideCm == 777 && gemm.batchStrideC == 0 && gemm.isAligned == false, "plan.json: strides of the result");
  weft::sm80::sm80Tf32Gemm<gemm, tile>(weft::sm80::Args{.a = a, .b = b, .c = c});
}
