// product_residual_row_sums    (this header is not hashed)
//
//   ops        product = contract "bji,iu->bju" x, w
//              biased = bias product, bias
//              kept = dropout biased
//              sum = residual kept, rest
//              square = mul sum, sum
//              row_sum = reduce sum
//              row_squares = reduce square
//   space      b=8 j=512 | i=1024 u=1024 (reduced)
//   reads      w[i,u] bf16   x[b,j,i] bf16   bias[u] bf16   rest[b,j,u] bf16    18.9 MB
//   writes     sum[b,j,u] bf16   row_sum[b,j] f32   row_squares[b,j] f32    8.42 MB
//   config     wgmma, cooperative tiles of 128 x 256, 3 stages, 4 staged panels, raster 8    launch <<<128, 384>>>
#include "weft/dropout.cuh"
#include "weft/hopper_contraction.cuh"
#include "weft/hopper_sums.cuh"

namespace {
constexpr weft::Offset b = 8, i = 1024, j = 512, u = 1024;  // extents
constexpr weft::hopper::Product product = {
    .batch = 1, .m = b * j, .n = u, .k = i,
    .a = {.outer = i, .k = 1, .batch = 0, .isByEngine = true},
    .b = {.outer = 1, .k = u, .batch = 0, .isByEngine = true},
    .strideCm = u, .batchStrideC = 0, .isByEngine = true};
constexpr weft::hopper::Tile tile = {.m = 128, .n = 256, .stages = 3, .staging = 4, .rasterM = 8, .splits = 1,
    .isPingPong = false};
constexpr unsigned dropThreshold = 6554u;           // 0.1 of 65536 draws
constexpr float keepScale = 1.1111112f;
__device__ weft::hopper::RowPartials<product, tile> row_sum_partials;
__device__ weft::hopper::RowPartials<product, tile> row_squares_partials;
}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
product_residual_row_sums(const __grid_constant__ weft::hopper::TensorMap w_map,
                          const __grid_constant__ weft::hopper::TensorMap x_map,
                          const weft::bfloat16 *__restrict__ bias,
                          const __grid_constant__ weft::hopper::TensorMap rest_map,
                          const __grid_constant__ weft::hopper::TensorMap sum_map, float *__restrict__ row_sum,
                          float *__restrict__ row_squares, const weft::DropoutKey *__restrict__ dropoutKey,
                          unsigned dropoutStream) {
  static_assert(weft::hopper::Plan<product, tile>::sharedBytes == 213120);
  static_assert(product.batch == 1 && product.m == 4096 && product.n == 1024 && product.k == 1024, "plan.json: these extents");
  static_assert(tile.m == 128 && tile.n == 256 && tile.splits == 1 && tile.sharers == 1, "plan.json: 128 blocks and maps of these tiles");
  static_assert(b == 8 && i == 1024 && j == 512 && u == 1024, "plan.json: these extents");
  static_assert(product.a.outer == 1024 && product.a.k == 1 && product.a.batch == 0 && product.a.isByEngine == true, "plan.json: strides of operand a");
  static_assert(product.b.outer == 1 && product.b.k == 1024 && product.b.batch == 0 && product.b.isByEngine == true, "plan.json: strides of operand b");
  static_assert(product.strideCm == 1024 && product.batchStrideC == 0 && product.isByEngine == true, "plan.json: strides of the result");
  static_assert(sizeof(row_sum_partials) == sizeof(weft::hopper::RowPartials<product, tile>) && sizeof(row_squares_partials) == sizeof(weft::hopper::RowPartials<product, tile>), "plan.json: device memory");
  const weft::DropoutKey key = *dropoutKey;                           // seed and step: a replay must not repeat masks
  const float scaleOfKept = weft::opaque(keepScale);
  const auto finish = [=](float (&sums)[8], const float (&rest_v)[8], const float (&bias_v)[8], float (&summed)[2][8],
      const weft::hopper::Fragment &at) {
    const auto kept = weft::keptFragment(key, dropoutStream, at.row / j, at.row % j, at.column, dropThreshold);
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const float biased = sums[e] + bias_v[e];
      const float kept_2 = (kept.at(e) ? biased : 0.0f) * scaleOfKept;
      const float sum_2 = kept_2 + rest_v[e];
      const float square = sum_2 * sum_2;
      summed[0][e] = sum_2;
      summed[1][e] = square;
      sums[e] = sum_2;
    }
  };
  weft::hopper::contraction<weft::bfloat16, product, tile>({&x_map, nullptr}, {&w_map, nullptr}, {&sum_map, nullptr},
      weft::hopper::PanelOperand<weft::bfloat16>{{&rest_map, nullptr}},
      weft::hopper::ColumnOperand<weft::bfloat16>{bias}, weft::hopper::NoPanelOutput{},
      weft::hopper::sumOutputs(weft::hopper::SumOutput{row_sum, &row_sum_partials},
      weft::hopper::SumOutput{row_squares, &row_squares_partials}), finish);
}
