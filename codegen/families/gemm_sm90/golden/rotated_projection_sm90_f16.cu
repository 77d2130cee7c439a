// rotated_projection    (this header is not hashed)
//
//   ops        heads = contract "gpi,bji->bjgp" w, x
//              turned = rotary heads
//   space      b=1 g=48 j=2048 p=128 | i=4096 (reduced)
//   reads      w[g,p,i] f16   x[b,j,i] f16    67.1 MB
//   writes     turned[b,j,g,p] f16    25.2 MB
//   config     wgmma, cooperative tiles of 128 x 256, 4 stages, 2 epilogue stages, group-M 8    launch <<<132, 384>>>
#include "weft/math.cuh"
#include "weft/short_rotation.cuh"
#include "weft/sm90_gemm.cuh"
#include "weft/sm90_rotary.cuh"
#include "weft/wgmma_f16.cuh"

namespace {
constexpr weft::Offset g = 48, i = 4096, j = 2048, p = 128;  // extents
constexpr weft::sm90::GemmProblem gemm = {
    .batch = 1, .m = j, .n = g * p, .k = i,
    .a = {.outer = i, .k = 1, .batch = 0, .usesTma = true},
    .b = {.outer = i, .k = 1, .batch = 0, .usesTma = true},
    .strideCm = g * p, .batchStrideC = 0, .usesTma = true};
constexpr weft::sm90::Tile tile = {.m = 128, .n = 256, .stages = 4, .epilogueStages = 2, .groupM = 8, .splitK = 1,
    .isPingPong = false};
constexpr float frequencyScale = -0.2076205f;       // -2 log2(10000) / 128
constexpr weft::sm90::RotaryPairs pairs = {.extent = p, .rotated = 128, .isHalved = true, .isReverse = false,
    .isShort = true};
}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
gemm_rotary_f16_6144x2048x4096(const __grid_constant__ weft::sm90::TensorMap w_map,
                               const __grid_constant__ weft::sm90::TensorMap x_map,
                               const __grid_constant__ weft::sm90::TensorMap turned_map) {
  static_assert(weft::sm90::TileConfig<gemm, tile>::sharedBytes == 229488);
  static_assert(gemm.batch == 1 && gemm.m == 2048 && gemm.n == 6144 && gemm.k == 4096, "plan.json: these extents");
  static_assert(tile.m == 128 && tile.n == 256 && tile.splitK == 1 && tile.multicastB == 1, "plan.json: 132 blocks and maps of these tiles");
  static_assert(g == 48 && i == 4096 && j == 2048 && p == 128, "plan.json: these extents");
  static_assert(gemm.a.outer == 4096 && gemm.a.k == 1 && gemm.a.batch == 0 && gemm.a.usesTma == true, "plan.json: strides of operand a");
  static_assert(gemm.b.outer == 4096 && gemm.b.k == 1 && gemm.b.batch == 0 && gemm.b.usesTma == true, "plan.json: strides of operand b");
  static_assert(gemm.strideCm == 6144 && gemm.batchStrideC == 0 && gemm.usesTma == true, "plan.json: strides of the result");
  static_assert(pairs.extent == 128 && pairs.rotated == 128 && pairs.isHalved == true && pairs.isReverse == false && pairs.isShort == true, "plan.json: pairs of a rotary embedding");
  const auto position = [=](const weft::sm90::Fragment &at) {
    return at.row;
  };
  const auto frequency = [=](const int pair) {
    return weft::rotaryFrequency(pair, frequencyScale);
  };
  const auto isRotated = [=](const weft::sm90::Fragment &at) {
    return (at.column / int(p)) < 40;
  };
  weft::sm90::runGemm<weft::half, gemm, tile>(weft::sm90::Args{
      .a = &x_map, .b = &w_map, .c = &turned_map,
      .epilogue = weft::sm90::rotated<pairs>(position, frequency, isRotated, weft::sm90::Unchanged{})});
}
