// product_window_padding    (this header is not hashed)
//
//   ops        gemm = contract "bji,iu->bju" x, w
//              window = mask gemm
//              padding = mask window, lengths
//              biased = bias padding, bias
//   space      b=8 j=512 u=4096 | i=1024 (reduced)
//   reads      w[i,u] f16   x[b,j,i] f16   lengths[b] i32   bias[u] f16    16.8 MB
//   writes     biased[b,j,u] f16    33.6 MB
//   config     mma.sync, tile 128 x 128 x 32, 4 stages, 2 x 2 warps, group-M 8    launch <<<1024, 128>>>
#include "weft/fragment.cuh"
#include "weft/sm80_epilogue.cuh"
#include "weft/sm80_gemm.cuh"

namespace {
constexpr weft::Offset b = 8, i = 1024, j = 512, u = 4096;  // extents
constexpr weft::sm80::GemmProblem gemm = {
    .batch = 1, .m = b * j, .n = u, .k = i,
    .a = {.outer = i, .k = 1, .batch = 0, .isAligned = true},
    .b = {.outer = 1, .k = u, .batch = 0, .isAligned = true},
    .strideCm = u, .batchStrideC = 0, .isAligned = true};
constexpr weft::sm80::Tile tile = {.m = 128, .n = 128, .k = 32, .stages = 4, .warpsM = 2, .warpsN = 2, .groupM = 8};
constexpr float scale = 0.25f;
}  // namespace

extern "C" __global__ void __launch_bounds__(128, 1)
gemm_mask_x2_bias_f16_4096x4096x1024(const weft::half *__restrict__ w, const weft::half *__restrict__ x,
                                     const int *__restrict__ lengths, const weft::half *__restrict__ bias,
                                     weft::half *__restrict__ biased) {
  static_assert(weft::sm80::TileConfig<gemm, tile>::sharedBytes == 65536);
  static_assert(gemm.batch == 1 && gemm.m == 4096 && gemm.n == 4096 && gemm.k == 1024, "plan.json: these extents");
  static_assert(1 * ((4096 + tile.m - 1) / tile.m) * ((4096 + tile.n - 1) / tile.n) == 1024, "plan.json: 1024 blocks");
  static_assert(32 * tile.warpsM * tile.warpsN == 128, "plan.json: 128 threads a block");
  static_assert(b == 8 && i == 1024 && j == 512 && u == 4096, "plan.json: these extents");
  static_assert(gemm.a.outer == 1024 && gemm.a.k == 1 && gemm.a.batch == 0 && gemm.a.isAligned == true, "plan.json: strides of operand a");
  static_assert(gemm.b.outer == 1 && gemm.b.k == 4096 && gemm.b.batch == 0 && gemm.b.isAligned == true, "plan.json: strides of operand b");
  static_assert(gemm.strideCm == 4096 && gemm.batchStrideC == 0 && gemm.isAligned == true, "plan.json: strides of the result");
  const auto epilogueOp = [=](float (&accumulators)[8], const weft::sm80::Fragment &at) {
    const auto bias_v = weft::fragmentColumns<gemm.n>(bias, at);
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const int column = at.column + weft::columnInFragment(e);
      const int row = at.row + weft::rowInFragment(e);
      const int lengths_v = weft::loadOne(lengths + (weft::atMost(row, gemm.m - 1) / int(j)));
      const float window = column >= (row % int(j)) + 3584 - 9 && column <= (row % int(j)) + 3584 + 4
          ? (accumulators[e] * scale) : -2.0f;
      const float padding = column < lengths_v ? window : weft::negativeInfinity;
      const float biased_2 = padding + bias_v.at[e];
      accumulators[e] = biased_2;
    }
  };
  weft::sm80::runGemm<weft::half, gemm, tile>(weft::sm80::Args{
      .a = x, .b = w, .c = biased,
      .epilogue = weft::sm80::limitFragmentsInFlight<4>(epilogueOp)});
}
