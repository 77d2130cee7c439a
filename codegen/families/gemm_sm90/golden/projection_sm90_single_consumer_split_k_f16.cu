// projection    (this header is not hashed)
//
//   ops        c = contract "mk,kn->mn" a, b
//   space      m=8 n=4096 | k=4096 (reduced)
//   reads      a[m,k] f16   b[k,n] f16    33.6 MB
//   writes     c[m,n] f16    65.5 kB
//   flop       268 Mflop
//   config     wgmma, single-consumer tiles of 8 x 64, 24 stages, k over 2 blocks    launch <<<128, 160>>>
#include "weft/sm90_single_consumer.cuh"
#include "weft/wgmma_f16_small_n.cuh"

namespace {
constexpr weft::Offset k = 4096, m = 8, n = 4096;   // extents
constexpr weft::sm90::GemmProblem gemm = {
    .batch = 1, .m = m, .n = n, .k = k,
    .a = {.outer = k, .k = 1, .batch = 0, .usesTma = true},
    .b = {.outer = 1, .k = n, .batch = 0, .usesTma = true},
    .strideCm = n, .batchStrideC = 0, .usesTma = true};
constexpr weft::sm90::SingleConsumerTile tile = {.m = 8, .n = 64, .stages = 24, .splitK = 2};
}  // namespace

extern "C" __global__ void __cluster_dims__(tile.splitK) __launch_bounds__(160, 1)
gemm_f16_8x4096x4096(const __grid_constant__ weft::sm90::TensorMap a_map,
                     const __grid_constant__ weft::sm90::TensorMap b_map, weft::half *c) {
  static_assert(weft::sm90::SingleConsumerConfig<gemm, tile>::sharedBytes == 223624);
  static_assert(gemm.batch == 1 && gemm.m == 8 && gemm.n == 4096 && gemm.k == 4096, "plan.json: these extents");
  static_assert(tile.m == 8 && tile.n == 64 && tile.splitK == 2, "plan.json: 128 blocks and maps of these tiles");
  static_assert(k == 4096 && m == 8 && n == 4096, "plan.json: these extents");
  static_assert(gemm.a.outer == 4096 && gemm.a.k == 1 && gemm.a.batch == 0 && gemm.a.usesTma == true, "plan.json: strides of operand a");
  static_assert(gemm.b.outer == 1 && gemm.b.k == 4096 && gemm.b.batch == 0 && gemm.b.usesTma == true, "plan.json: strides of operand b");
  static_assert(gemm.strideCm == 4096 && gemm.batchStrideC == 0 && gemm.usesTma == true, "plan.json: strides of the result");
  weft::sm90::singleConsumerGemm<weft::half, gemm, tile>(weft::sm90::SingleConsumerArgs{
      .a = &a_map, .b = &b_map, .c = c,
      .epilogue = weft::sm90::Factor{0.125f}});
}
