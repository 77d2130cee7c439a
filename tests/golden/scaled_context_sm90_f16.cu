// scaled_context    (this header is not hashed)
//
//   ops        prob = mul exponentials, inverse
//              gemm = contract "hbjk,phbk->phbj" prob, v
//   space      b=8 h=16 j=512 p=64 | k=512 (reduced)
//   reads      exponentials[h,b,j,k] f16   inverse[h,b,j] f32   v[p,h,b,k] f16    75.8 MB
//   writes     gemm[p,h,b,j] f16    8.39 MB
//   config     wgmma, ping-pong tiles of 64 x 128, 8 stages, 2 epilogue stages, group-M 8    launch <<<132, 384>>>
#include "weft/sm90_prologue.cuh"

namespace {
constexpr weft::Offset b = 8, h = 16, j = 512, k = 512, p = 64;  // extents
constexpr weft::sm90::GemmProblem gemm = {
    .batch = b * h, .m = p, .n = j, .k = k,
    .a = {.outer = h * b * k, .k = 1, .batch = k, .usesTma = true},
    .b = {.outer = k, .k = 1, .batch = j * k, .usesTma = true},
    .strideCm = h * b * j, .batchStrideC = j, .usesTma = true};
constexpr weft::sm90::Tile tile = {.m = 64, .n = 128, .stages = 8, .epilogueStages = 2, .groupM = 8, .splitK = 1,
    .isPingPong = true};
}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
mul_gemm_f16_128x512x64x512(const __grid_constant__ weft::sm90::TensorMap exponentials_map,
                            const float *__restrict__ inverse, const __grid_constant__ weft::sm90::TensorMap v_map,
                            const __grid_constant__ weft::sm90::TensorMap gemm_2_map) {
  static_assert(weft::sm90::PrologueConfig<gemm, tile, false>::sharedBytes == 229616);
  static_assert(gemm.batch == 128 && gemm.m == 64 && gemm.n == 512 && gemm.k == 512, "plan.json: these extents");
  static_assert(tile.m == 64 && tile.n == 128 && tile.splitK == 1 && tile.multicastB == 1, "plan.json: 132 blocks and maps of these tiles");
  static_assert(b == 8 && h == 16 && j == 512 && k == 512 && p == 64, "plan.json: these extents");
  static_assert(gemm.a.outer == 65536 && gemm.a.k == 1 && gemm.a.batch == 512 && gemm.a.usesTma == true, "plan.json: strides of operand a");
  static_assert(gemm.b.outer == 512 && gemm.b.k == 1 && gemm.b.batch == 262144 && gemm.b.usesTma == true, "plan.json: strides of operand b");
  static_assert(gemm.strideCm == 65536 && gemm.batchStrideC == 512 && gemm.usesTma == true, "plan.json: strides of the result");
  const auto transform = [=](float (&exponentials_v)[8], const weft::OperandPlace &at) {
    const float inverse_v = weft::loadOne(inverse + at.batch * j + weft::insideOperand(at.outer, gemm.n));
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const float prob = exponentials_v[e] * inverse_v;
      exponentials_v[e] = prob;
    }
  };
  weft::sm90::prologueGemm<weft::half, weft::half, gemm, tile>(weft::sm90::Args{
      .a = &v_map, .b = &exponentials_map, .c = &gemm_2_map,
      .transformB = transform});
}
