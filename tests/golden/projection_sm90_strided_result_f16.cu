// projection    (this header is not hashed)
//
//   ops        c = contract "bji,hpi->bhjp" a, b
//   space      b=8 h=16 j=512 p=64 | i=1024 (reduced)
//   reads      a[b,j,i] f16   b[h,p,i] f16    10.5 MB
//   writes     c[b,h,j,p] f16    8.39 MB
//   flop       8.59 Gflop
//   config     wgmma, ping-pong tiles of 128 x 128, 6 stages, 2 epilogue stages, group-M 8    launch <<<132, 384>>>
#include "weft/sm90_gemm.cuh"
#include "weft/sm90_strides.cuh"

namespace {
constexpr weft::Offset b = 8, h = 16, i = 1024, j = 512, p = 64;  // extents
constexpr weft::sm90::GemmProblem gemm = {
    .batch = 1, .m = b * j, .n = h * p, .k = i,
    .a = {.outer = i, .k = 1, .batch = 0, .usesTma = true},
    .b = {.outer = i, .k = 1, .batch = 0, .usesTma = true},
    .strideCm = p, .batchStrideC = 0, .usesTma = true};
constexpr weft::sm90::Tile tile = {.m = 128, .n = 128, .stages = 6, .epilogueStages = 2, .groupM = 8, .splitK = 1,
    .isPingPong = true};
// of c, fastest first
constexpr weft::sm90::MapDimensions c_dimensions = {.columns = {{p, h}}, .rows = {{j, b}}, .batch = {{}},
    .boxRows = 64};
}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
gemm_f16_4096x1024x1024(const __grid_constant__ weft::sm90::TensorMap a_map,
                        const __grid_constant__ weft::sm90::TensorMap b_2_map,
                        const __grid_constant__ weft::sm90::TensorMap c_map) {
  static_assert(weft::sm90::TileConfig<gemm, tile>::sharedBytes == 229520);
  static_assert(gemm.batch == 1 && gemm.m == 4096 && gemm.n == 1024 && gemm.k == 1024, "plan.json: these extents");
  static_assert(tile.m == 128 && tile.n == 128 && tile.splitK == 1 && tile.multicastB == 1, "plan.json: 132 blocks and maps of these tiles");
  static_assert(b == 8 && h == 16 && i == 1024 && j == 512 && p == 64, "plan.json: these extents");
  static_assert(gemm.a.outer == 1024 && gemm.a.k == 1 && gemm.a.batch == 0 && gemm.a.usesTma == true, "plan.json: strides of operand a");
  static_assert(gemm.b.outer == 1024 && gemm.b.k == 1 && gemm.b.batch == 0 && gemm.b.usesTma == true, "plan.json: strides of operand b");
  static_assert(gemm.strideCm == 64 && gemm.batchStrideC == 0 && gemm.usesTma == true, "plan.json: strides of the result");
  static_assert(c_dimensions.columns.extent[0] == 64 && c_dimensions.columns.extent[1] == 16 && c_dimensions.columns.count() == 2 && c_dimensions.rows.extent[0] == 512 && c_dimensions.rows.extent[1] == 8 && c_dimensions.rows.count() == 2 && c_dimensions.batch.count() == 0 && c_dimensions.boxRows == 64, "plan.json: map of c, fastest first");
  using Elements = weft::sm90::Elements<weft::half, weft::half, weft::sm90::Strided<weft::half, c_dimensions>>;
  weft::sm90::runGemm<Elements, gemm, tile>(weft::sm90::Args{.a = &a_map, .b = &b_2_map, .c = &c_map});
}
