// rms_summed_projection    (this header is not hashed)
//
//   ops        normal = rms_normalize x, squares
//              gained = mul normal, gamma
//              gemm = contract "bji,iu->bju" gained, w
//   space      b=8 j=512 u=3072 | i=1024 (reduced)
//   reads      x[b,j,i] bf16   squares[b,j] f32   gamma[i] bf16   w[i,u] bf16    14.7 MB
//   writes     gemm[b,j,u] bf16    25.2 MB
//   config     wgmma, ping-pong tiles of 128 x 128, 6 stages, 2 epilogue stages, group-M 8    launch <<<132, 384>>>
#include "weft/math.cuh"
#include "weft/sm90_prologue.cuh"

namespace {
constexpr weft::Offset b = 8, i = 1024, j = 512, u = 3072;  // extents
constexpr weft::sm90::GemmProblem gemm = {
    .batch = 1, .m = b * j, .n = u, .k = i,
    .a = {.outer = i, .k = 1, .batch = 0, .usesTma = true},
    .b = {.outer = 1, .k = u, .batch = 0, .usesTma = true},
    .strideCm = u, .batchStrideC = 0, .usesTma = true};
constexpr weft::sm90::Tile tile = {.m = 128, .n = 128, .stages = 6, .epilogueStages = 2, .groupM = 8, .splitK = 1,
    .isPingPong = true};
constexpr float count = 1024.0f;
constexpr float epsilon = 1e-05f;
}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
rms_normalize_mul_gemm_bf16_4096x3072x1024(const __grid_constant__ weft::sm90::TensorMap x_map,
                                           const float *__restrict__ squares,
                                           const weft::bfloat16 *__restrict__ gamma,
                                           const __grid_constant__ weft::sm90::TensorMap w_map,
                                           const __grid_constant__ weft::sm90::TensorMap gemm_2_map) {
  static_assert(weft::sm90::PrologueConfig<gemm, tile, true>::sharedBytes == 229568);
  static_assert(gemm.batch == 1 && gemm.m == 4096 && gemm.n == 3072 && gemm.k == 1024, "plan.json: these extents");
  static_assert(tile.m == 128 && tile.n == 128 && tile.splitK == 1 && tile.multicastB == 1, "plan.json: 132 blocks and maps of these tiles");
  static_assert(b == 8 && i == 1024 && j == 512 && u == 3072, "plan.json: these extents");
  static_assert(gemm.a.outer == 1024 && gemm.a.k == 1 && gemm.a.batch == 0 && gemm.a.usesTma == true, "plan.json: strides of operand a");
  static_assert(gemm.b.outer == 1 && gemm.b.k == 3072 && gemm.b.batch == 0 && gemm.b.usesTma == true, "plan.json: strides of operand b");
  static_assert(gemm.strideCm == 3072 && gemm.batchStrideC == 0 && gemm.usesTma == true, "plan.json: strides of the result");
  const auto transform = [=](float (&x_v)[8], const weft::OperandPlace &at) {
    const float squares_v = weft::loadOne(squares + weft::insideOperand(at.outer, gemm.m));
    const auto gamma_v = weft::alongOperand<gemm.k, 1, true>(gamma, at.k);
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const float normal = x_v[e] * weft::rsqrt(squares_v / count + epsilon);
      const float gained = normal * gamma_v.at[e];
      x_v[e] = gained;
    }
  };
  weft::sm90::prologueGemm<weft::bfloat16, weft::bfloat16, gemm, tile>(weft::sm90::Args{
      .a = &x_map, .b = &w_map, .c = &gemm_2_map,
      .transformA = transform});
}
