// scaled_context    (this header is not hashed)
//
//   ops        prob = mul exponentials, inverse
//              product = contract "hbjk,phbk->phbj" prob, v
//   space      b=8 h=16 j=512 p=64 | k=512 (reduced)
//   reads      exponentials[h,b,j,k] f16   inverse[h,b,j] f32   v[p,h,b,k] f16    75.8 MB
//   writes     product[p,h,b,j] f16    8.39 MB
//   config     wgmma, ping-pong tiles of 64 x 128, 8 stages, 2 staged panels, raster 8    launch <<<132, 384>>>
#include "weft/hopper_prologue.cuh"

namespace {
constexpr weft::Offset b = 8, h = 16, j = 512, k = 512, p = 64;  // extents
constexpr weft::hopper::Product product = {
    .batch = b * h, .m = p, .n = j, .k = k,
    .a = {.outer = h * b * k, .k = 1, .batch = k, .isByEngine = true},
    .b = {.outer = k, .k = 1, .batch = j * k, .isByEngine = true},
    .strideCm = h * b * j, .batchStrideC = j, .isByEngine = true};
constexpr weft::hopper::Tile tile = {.m = 64, .n = 128, .stages = 8, .staging = 2, .rasterM = 8, .splits = 1,
    .isPingPong = true};
}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
scaled_context(const __grid_constant__ weft::hopper::TensorMap exponentials_map, const float *__restrict__ inverse,
               const __grid_constant__ weft::hopper::TensorMap v_map,
               const __grid_constant__ weft::hopper::TensorMap product_2_map) {
  static_assert(weft::hopper::MakingPlan<product, tile, false>::sharedBytes == 229616);
  static_assert(product.batch == 128 && product.m == 64 && product.n == 512 && product.k == 512, "plan.json: these extents");
  static_assert(tile.m == 64 && tile.n == 128 && tile.splits == 1 && tile.sharers == 1, "plan.json: 132 blocks and maps of these tiles");
  static_assert(b == 8 && h == 16 && j == 512 && k == 512 && p == 64, "plan.json: these extents");
  static_assert(product.a.outer == 65536 && product.a.k == 1 && product.a.batch == 512 && product.a.isByEngine == true, "plan.json: strides of operand a");
  static_assert(product.b.outer == 512 && product.b.k == 1 && product.b.batch == 262144 && product.b.isByEngine == true, "plan.json: strides of operand b");
  static_assert(product.strideCm == 65536 && product.batchStrideC == 512 && product.isByEngine == true, "plan.json: strides of the result");
  const auto make = [=](float (&exponentials_v)[8], const weft::OperandPlace &at) {
    const float inverse_v = weft::loadOne(inverse + at.batch * j + weft::insideOperand(at.outer, product.n));
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const float prob = exponentials_v[e] * inverse_v;
      exponentials_v[e] = prob;
    }
  };
  weft::hopper::contractionOfMadeB<weft::half, weft::half, product, tile>({&v_map, nullptr},
      {&exponentials_map, nullptr}, {&product_2_map, nullptr}, make, weft::hopper::NoPanelOperand{},
      weft::hopper::NoVectorOperand{}, weft::hopper::NoPanelOutput{}, weft::hopper::Unchanged{});
}
