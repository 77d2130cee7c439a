// causal_local_softmax    (this header is not hashed)
//
//   ops        score = contract "phbk,phbj->hbjk" keys, q
//              causal = mask score
//              exponentials, maxima, sums = local_softmax causal
//   space      b=8 h=16 j=512 n=8 | k=512 p=64 (reduced)
//   reads      keys[p,h,b,k] f16   q[p,h,b,j] f16    16.8 MB
//   writes     exponentials[h,b,j,k] f16   maxima[h,b,n,j] f32   sums[h,b,n,j] f32    71.3 MB
//   config     wgmma, ping-pong tiles of 128 x 128, 6 stages, 2 epilogue stages, group-M 8    launch <<<132, 384>>>
#include "weft/sm90_gemm.cuh"
#include "weft/sm90_softmax.cuh"
#include "weft/wgmma_f16.cuh"

namespace {
constexpr weft::Offset b = 8, h = 16, j = 512, k = 512, n = 8, p = 64;  // extents
constexpr weft::sm90::GemmProblem gemm = {
    .batch = b * h, .m = j, .n = k, .k = p,
    .a = {.outer = 1, .k = h * b * j, .batch = j, .usesTma = true},
    .b = {.outer = 1, .k = h * b * k, .batch = k, .usesTma = true},
    .strideCm = k, .batchStrideC = j * k, .usesTma = true};
constexpr weft::sm90::Tile tile = {.m = 128, .n = 128, .stages = 6, .epilogueStages = 2, .groupM = 8, .splitK = 1,
    .isPingPong = true};
constexpr float scale = 0.125f;
constexpr weft::SubVectors subVectors = {.length = 64,
    .maxima = {.batch = n * j, .row = 1, .subVector = j},
    .sums = {.batch = n * j, .row = 1, .subVector = j}};
}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
gemm_mask_local_softmax_f16_128x512x512x64(const __grid_constant__ weft::sm90::TensorMap keys_map,
                                           const __grid_constant__ weft::sm90::TensorMap q_map,
                                           const __grid_constant__ weft::sm90::TensorMap exponentials_map,
                                           float *__restrict__ maxima, float *__restrict__ sums) {
  static_assert(weft::sm90::TileConfig<gemm, tile>::sharedBytes == 229520);
  static_assert(gemm.batch == 128 && gemm.m == 512 && gemm.n == 512 && gemm.k == 64, "plan.json: these extents");
  static_assert(tile.m == 128 && tile.n == 128 && tile.splitK == 1 && tile.multicastB == 1, "plan.json: 132 blocks and maps of these tiles");
  static_assert(b == 8 && h == 16 && j == 512 && k == 512 && n == 8 && p == 64, "plan.json: these extents");
  static_assert(gemm.a.outer == 1 && gemm.a.k == 65536 && gemm.a.batch == 512 && gemm.a.usesTma == true, "plan.json: strides of operand a");
  static_assert(gemm.b.outer == 1 && gemm.b.k == 65536 && gemm.b.batch == 512 && gemm.b.usesTma == true, "plan.json: strides of operand b");
  static_assert(gemm.strideCm == 512 && gemm.batchStrideC == 262144 && gemm.usesTma == true, "plan.json: strides of the result");
  static_assert(subVectors.length == 64 && subVectors.maxima.batch == 4096 && subVectors.maxima.row == 1 && subVectors.maxima.subVector == 512 && subVectors.sums.batch == 4096 && subVectors.sums.row == 1 && subVectors.sums.subVector == 512, "plan.json: sub-vectors");
  const auto epilogueOp = [=](float (&accumulators)[8], const weft::sm90::Fragment &at) {
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const int column = at.column + weft::columnInFragment(e);
      const int row = at.row + weft::rowInFragment(e);
      const float causal = column <= row ? (accumulators[e] * scale) : weft::negativeInfinity;
      accumulators[e] = causal;
    }
  };
  weft::sm90::runGemm<weft::half, gemm, tile>(weft::sm90::Args{
      .a = &q_map, .b = &keys_map, .c = &exponentials_map,
      .softmax = weft::sm90::localSoftmax<subVectors>(maxima, sums),
      .epilogue = epilogueOp});
}
