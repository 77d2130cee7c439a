// rms_summed_projection    (this header is not hashed)
//
//   ops        normal = rms_normalize x, squares
//              gained = mul normal, gamma
//              product = contract "bji,iu->bju" gained, w
//   space      b=8 j=512 u=3072 | i=1024 (reduced)
//   reads      x[b,j,i] bf16   squares[b,j] f32   gamma[i] bf16   w[i,u] bf16    14.7 MB
//   writes     product[b,j,u] bf16    25.2 MB
//   config     wgmma, ping-pong tiles of 128 x 128, 6 stages, 2 staged panels, raster 8    launch <<<132, 384>>>
#include "weft/hopper_prologue.cuh"
#include "weft/math.cuh"

namespace {
constexpr weft::Offset b = 8, i = 1024, j = 512, u = 3072;  // extents
constexpr weft::hopper::Product product = {
    .batch = 1, .m = b * j, .n = u, .k = i,
    .a = {.outer = i, .k = 1, .batch = 0, .isByEngine = true},
    .b = {.outer = 1, .k = u, .batch = 0, .isByEngine = true},
    .strideCm = u, .batchStrideC = 0, .isByEngine = true};
constexpr weft::hopper::Tile tile = {.m = 128, .n = 128, .stages = 6, .staging = 2, .rasterM = 8, .splits = 1,
    .isPingPong = true};
constexpr float count = 1024.0f;
constexpr float epsilon = 1e-05f;
}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
rms_summed_projection(const __grid_constant__ weft::hopper::TensorMap x_map, const float *__restrict__ squares,
                      const weft::bfloat16 *__restrict__ gamma, const __grid_constant__ weft::hopper::TensorMap w_map,
                      const __grid_constant__ weft::hopper::TensorMap product_2_map) {
  static_assert(weft::hopper::MakingPlan<product, tile, true>::sharedBytes == 229568);
  static_assert(product.batch == 1 && product.m == 4096 && product.n == 3072 && product.k == 1024, "plan.json: these extents");
  static_assert(tile.m == 128 && tile.n == 128 && tile.splits == 1 && tile.sharers == 1, "plan.json: 132 blocks and maps of these tiles");
  static_assert(b == 8 && i == 1024 && j == 512 && u == 3072, "plan.json: these extents");
  static_assert(product.a.outer == 1024 && product.a.k == 1 && product.a.batch == 0 && product.a.isByEngine == true, "plan.json: strides of operand a");
  static_assert(product.b.outer == 1 && product.b.k == 3072 && product.b.batch == 0 && product.b.isByEngine == true, "plan.json: strides of operand b");
  static_assert(product.strideCm == 3072 && product.batchStrideC == 0 && product.isByEngine == true, "plan.json: strides of the result");
  const auto make = [=](float (&x_v)[8], const weft::OperandPlace &at) {
    const float squares_v = weft::loadOne(squares + weft::insideOperand(at.outer, product.m));
    const auto gamma_v = weft::alongOperand<product.k, 1, true>(gamma, at.k);
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const float normal = x_v[e] * weft::rsqrt(squares_v / count + epsilon);
      const float gained = normal * gamma_v.at[e];
      x_v[e] = gained;
    }
  };
  weft::hopper::contractionOfMadeA<weft::bfloat16, weft::bfloat16, product, tile>({&x_map, nullptr}, {&w_map, nullptr},
      {&product_2_map, nullptr}, make, weft::hopper::NoPanelOperand{}, weft::hopper::NoVectorOperand{},
      weft::hopper::NoPanelOutput{}, weft::hopper::Unchanged{});
}
