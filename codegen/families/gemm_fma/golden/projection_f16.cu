// projection    (this header is not hashed)
//
//   ops        c = contract "phi,bji->phbj" a, b
//   space      b=8 h=16 j=512 p=64 | i=1024 (reduced)
//   reads      a[p,h,i] f16   b[b,j,i] f16    10.5 MB
//   writes     c[p,h,b,j] f16    8.39 MB
//   flop       8.59 Gflop
//   config     plain FMA, tile 128 x 128 x 16, 8 x 8 a thread, 2 stages    launch <<<256, 256>>>
#include "weft/fma_gemm.cuh"

namespace {
constexpr weft::Offset b = 8, h = 16, i = 1024, j = 512, p = 64;  // extents
constexpr weft::FmaGemmShape shape = {
    .batch = 1, .m = h * p, .n = b * j, .k = i,
    .batchStrideA = 0, .strideAm = i, .strideAk = 1,
    .batchStrideB = 0, .strideBk = 1, .strideBn = i,
    .batchStrideC = 0, .strideCm = b * j, .strideCn = 1,
    .isAlignedA = true, .isAlignedB = true, .isAlignedC = true};
constexpr float scale = 1.0f;
constexpr weft::FmaGemmTile tile = {.m = 128, .n = 128, .k = 16, .threadM = 8, .threadN = 8, .stages = 2, .groups = 1};
}  // namespace

extern "C" __global__ void __launch_bounds__(256, 1)
gemm_f16_1024x4096x1024(const weft::half *__restrict__ a, const weft::half *__restrict__ b_2,
                        weft::half *__restrict__ c) {
  static_assert(weft::FmaTileConfig<tile>::sharedBytes == 32768);
  static_assert(shape.batch == 1 && shape.m == 1024 && shape.n == 4096 && shape.k == 1024, "plan.json: these extents");
  static_assert(1 * ((1024 + tile.m - 1) / tile.m) * ((4096 + tile.n - 1) / tile.n) == 256, "plan.json: 256 blocks");
  static_assert(tile.m / tile.threadM * (tile.n / tile.threadN) * tile.groups == 256, "plan.json: 256 threads a block");
  static_assert(b == 8 && h == 16 && i == 1024 && j == 512 && p == 64, "plan.json: these extents");
  static_assert(shape.batchStrideA == 0 && shape.strideAm == 1024 && shape.strideAk == 1 && shape.batchStrideB == 0 && shape.strideBk == 1 && shape.strideBn == 1024 && shape.batchStrideC == 0 && shape.strideCm == 4096 && shape.strideCn == 1 && shape.isAlignedA == true && shape.isAlignedB == true && shape.isAlignedC == true, "plan.json: strides of operands and result");
  weft::fmaGemm<shape, tile>(weft::FmaGemmArgs{.a = a, .b = b_2, .c = c, .scale = scale});
}
