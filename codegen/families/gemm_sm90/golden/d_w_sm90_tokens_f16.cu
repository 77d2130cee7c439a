// d_w    (this header is not hashed)
//
//   ops        d_w = contract "tu,ti->ui" d_y, x, offsets
//   space      i=1024 n=9 u=3072 | t=4096 (reduced)
//   reads      d_y[t,u] f16   x[t,i] f16   offsets[n] i32    33.6 MB
//   writes     d_w[u,i] f16    6.29 MB
//   config     wgmma, ping-pong tiles of 128 x 128, 6 stages, 2 epilogue stages, group-M 8    launch <<<132, 384>>>
#include "weft/sm90_gemm.cuh"
#include "weft/wgmma_f16.cuh"

namespace {
constexpr weft::Offset i = 1024, t = 4096, u = 3072;  // extents
constexpr weft::sm90::GemmProblem gemm = {
    .batch = 1, .m = u, .n = i, .k = t,
    .a = {.outer = 1, .k = u, .batch = 0, .usesTma = true},
    .b = {.outer = 1, .k = i, .batch = 0, .usesTma = true},
    .strideCm = i, .batchStrideC = 0, .usesTma = true};
constexpr weft::sm90::Tile tile = {.m = 128, .n = 128, .stages = 6, .epilogueStages = 2, .groupM = 8, .splitK = 1,
    .isPingPong = true};
}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
gemm_f16_3072x1024x4096(const __grid_constant__ weft::sm90::TensorMap d_y_map,
                        const __grid_constant__ weft::sm90::TensorMap x_map, const int *__restrict__ offsets,
                        const __grid_constant__ weft::sm90::TensorMap d_w_map) {
  static_assert(weft::sm90::TileConfig<gemm, tile>::sharedBytes == 229520);
  static_assert(gemm.batch == 1 && gemm.m == 3072 && gemm.n == 1024 && gemm.k == 4096, "plan.json: these extents");
  static_assert(tile.m == 128 && tile.n == 128 && tile.splitK == 1 && tile.multicastB == 1, "plan.json: 132 blocks and maps of these tiles");
  static_assert(i == 1024 && t == 4096 && u == 3072, "plan.json: these extents");
  static_assert(gemm.a.outer == 1 && gemm.a.k == 3072 && gemm.a.batch == 0 && gemm.a.usesTma == true, "plan.json: strides of operand a");
  static_assert(gemm.b.outer == 1 && gemm.b.k == 1024 && gemm.b.batch == 0 && gemm.b.usesTma == true, "plan.json: strides of operand b");
  static_assert(gemm.strideCm == 1024 && gemm.batchStrideC == 0 && gemm.usesTma == true, "plan.json: strides of the result");
  const int tokens = weft::loadOne(offsets + 8);
  weft::sm90::runGemm<weft::half, gemm, tile>(weft::sm90::Args{
      .a = &d_y_map, .b = &x_map, .c = &d_w_map,
      .tokens = weft::sm90::SummedTokens{tokens}});
}
