// projection_bias_residual    (this header is not hashed)
//
//   ops        gemm = contract "bhjp,hpi->bji" x, w
//              biased = add gemm, bias
//              y = add biased, residual
//   space      b=8 i=1024 j=512 | h=16 p=64 (reduced)
//   reads      x[b,h,j,p] bf16   w[h,p,i] bf16   bias[i] bf16   residual[b,j,i] bf16    18.9 MB
//   writes     y[b,j,i] bf16    8.39 MB
//   config     wgmma, ping-pong tiles of 128 x 128, 6 stages, 2 epilogue stages, group-M 8    launch <<<132, 384>>>
#include "weft/sm90_gemm.cuh"
#include "weft/sm90_strides.cuh"

namespace {
constexpr weft::Offset b = 8, h = 16, i = 1024, j = 512, p = 64;  // extents
constexpr weft::sm90::GemmProblem gemm = {
    .batch = 1, .m = b * j, .n = i, .k = h * p,
    .a = {.outer = p, .k = 1, .batch = 0, .usesTma = true},
    .b = {.outer = 1, .k = i, .batch = 0, .usesTma = true},
    .strideCm = i, .batchStrideC = 0, .usesTma = true};
constexpr weft::sm90::Tile tile = {.m = 128, .n = 128, .stages = 6, .epilogueStages = 2, .groupM = 8, .splitK = 1,
    .isPingPong = true};
// of x, fastest first
constexpr weft::sm90::MapDimensions x_dimensions = {.columns = {{p, h}}, .rows = {{j, b}}, .batch = {{}},
    .boxRows = 128};
}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
gemm_add_x2_bf16_4096x1024x1024(const __grid_constant__ weft::sm90::TensorMap x_map,
                                const __grid_constant__ weft::sm90::TensorMap w_map,
                                const weft::bfloat16 *__restrict__ bias,
                                const __grid_constant__ weft::sm90::TensorMap residual_map,
                                const __grid_constant__ weft::sm90::TensorMap y_map) {
  static_assert(weft::sm90::TileConfig<gemm, tile>::sharedBytes == 229520);
  static_assert(gemm.batch == 1 && gemm.m == 4096 && gemm.n == 1024 && gemm.k == 1024, "plan.json: these extents");
  static_assert(tile.m == 128 && tile.n == 128 && tile.splitK == 1 && tile.multicastB == 1, "plan.json: 132 blocks and maps of these tiles");
  static_assert(b == 8 && h == 16 && i == 1024 && j == 512 && p == 64, "plan.json: these extents");
  static_assert(gemm.a.outer == 64 && gemm.a.k == 1 && gemm.a.batch == 0 && gemm.a.usesTma == true, "plan.json: strides of operand a");
  static_assert(gemm.b.outer == 1 && gemm.b.k == 1024 && gemm.b.batch == 0 && gemm.b.usesTma == true, "plan.json: strides of operand b");
  static_assert(gemm.strideCm == 1024 && gemm.batchStrideC == 0 && gemm.usesTma == true, "plan.json: strides of the result");
  static_assert(x_dimensions.columns.extent[0] == 64 && x_dimensions.columns.extent[1] == 16 && x_dimensions.columns.count() == 2 && x_dimensions.rows.extent[0] == 512 && x_dimensions.rows.extent[1] == 8 && x_dimensions.rows.count() == 2 && x_dimensions.batch.count() == 0 && x_dimensions.boxRows == 128, "plan.json: map of x, fastest first");
  const auto epilogueOp = [=](float (&accumulators)[8], const float (&residual_v)[8], const float (&bias_v)[8],
      const weft::sm90::Fragment &at) {
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const float biased = accumulators[e] + bias_v[e];
      const float y_2 = biased + residual_v[e];
      accumulators[e] = y_2;
    }
  };
  using Elements = weft::sm90::Elements<weft::sm90::Strided<weft::bfloat16, x_dimensions>, weft::bfloat16,
      weft::bfloat16>;
  weft::sm90::runGemm<Elements, gemm, tile>(weft::sm90::Args{
      .a = &x_map, .b = &w_map, .c = &y_map,
      .perElement = &residual_map,
      .perColumn = bias,
      .epilogue = epilogueOp});
}
