// attention_backward    (this header is not hashed)
//
//   ops        scores = contract "bhgjp,bhkp->bhgjk" q, keys
//              y = softmax_from_log_sums scores, log_sums
//              kept = dropout y
//              d_kept = contract "bhgjw,bhkw->bhgjk" d_output, v
//              d_y = dropout d_kept
//              centred = sub d_y, row_sums
//              d_s = mul centred, y
//              d_v = contract "bhgjk,bhgjw->bhkw" kept, d_output
//              d_q = contract "bhgjk,bhkp->bhgjp" d_s, keys
//              d_k = contract "bhgjk,bhgjp->bhkp" d_s, q
//   space      b=2 h=12 | g=1 j=777 k=777 p=64 w=64 (reduced)
//   reads      q[g,b,h,j,p] f16   keys[b,h,k,p] f16   v[b,h,k,w] f16   d_output[g,b,h,j,w] f16   log_sums[g,b,h,j] f32   row_sums[g,b,h,j] f32    9.70 MB
//   writes     d_q[g,b,h,j,p] f16   d_k[b,h,k,p] f16   d_v[b,h,k,w] f16    7.16 MB
//   workspace  5.51 MB
//   config     fused attention backward by wgmma, 128 keys x 128 queries, tiles of 24 heads together, first keys first    launch <<<132, 384>>>
#include "weft/dropout.cuh"
#include "weft/score_gradients.cuh"
#include "weft/sm90_attention_backward.cuh"
#include "weft/tile_coverage.cuh"
#include "weft/vector.cuh"
#include "weft/wgmma_f16_any_n.cuh"
#include "weft/wgmma_f16_rs.cuh"

namespace {
constexpr int b = 2, h = 12, j = 777, k = 777, p = 64, w = 64;  // extents
constexpr weft::sm90::AttentionBackwardProblem shape = {
    .queries = j, .keys = k, .headDim = p, .valueDim = w, .heads = b * h, .headsOfGroup = 1,
    .q = {.dimensions = 3, .divisors = {1}, .extents = {24}},
    .k = {.dimensions = 3, .divisors = {1}, .extents = {24}},
    .v = {.dimensions = 3, .divisors = {1}, .extents = {24}},
    .dOutput = {.dimensions = 3, .divisors = {1}, .extents = {24}},
    .dQ = {.dimensions = 3, .divisors = {1}, .extents = {24}},
    .dK = {.dimensions = 3, .divisors = {1}, .extents = {24}},
    .dV = {.dimensions = 3, .divisors = {1}, .extents = {24}}};
constexpr weft::sm90::AttentionBackwardTile tile = {.queries = 128, .keys = 128, .headGroup = 24};
constexpr float exponentFactor = 0.18033688f;
constexpr float keepScale = 1.1111112f;
constexpr unsigned dropThreshold = 6554u;           // 0.1 of 65536 draws
__device__ unsigned tilesTaken;
__device__ weft::sm90::Semaphores<168> semaphores;
}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
attention_backward_f16_24x777x777x64(const __grid_constant__ weft::sm90::TensorMap q_map,
                                     const __grid_constant__ weft::sm90::TensorMap keys_map,
                                     const __grid_constant__ weft::sm90::TensorMap v_map,
                                     const __grid_constant__ weft::sm90::TensorMap d_output_map,
                                     const float *__restrict__ log_sums, const float *__restrict__ row_sums,
                                     const __grid_constant__ weft::sm90::TensorMap d_q_map,
                                     const __grid_constant__ weft::sm90::TensorMap d_k_map,
                                     const __grid_constant__ weft::sm90::TensorMap d_v_map, float *__restrict__ sums,
                                     const weft::DropoutKey *__restrict__ dropoutKey, unsigned dropoutStream) {
  static_assert(shape.queries == 777 && shape.keys == 777 && shape.headDim == 64 && shape.valueDim == 64 && shape.heads == 24 && shape.headsOfGroup == 1, "plan.json: these extents");
  static_assert(shape.q.divisors[0] == 1 && shape.q.extents[0] == 24 && shape.k.divisors[0] == 1 && shape.k.extents[0] == 24 && shape.v.divisors[0] == 1 && shape.v.extents[0] == 24 && shape.dOutput.divisors[0] == 1 && shape.dOutput.extents[0] == 24 && shape.dQ.divisors[0] == 1 && shape.dQ.extents[0] == 24 && shape.dK.divisors[0] == 1 && shape.dK.extents[0] == 24 && shape.dV.divisors[0] == 1 && shape.dV.extents[0] == 24, "plan.json: maps of these heads");
  static_assert(tile.queries == 128 && tile.keys == 128, "plan.json: 132 blocks and maps of these tiles");
  static_assert(b == 2 && h == 12 && j == 777 && k == 777 && p == 64 && w == 64, "plan.json: these extents");
  static_assert(shape.q.dimensions == 3 && shape.k.dimensions == 3 && shape.v.dimensions == 3 && shape.dOutput.dimensions == 3 && shape.dQ.dimensions == 3 && shape.dK.dimensions == 3 && shape.dV.dimensions == 3, "plan.json: strides of the result");
  static_assert(sizeof(tilesTaken) == sizeof(unsigned) && sizeof(semaphores) == sizeof(weft::sm90::Semaphores<168>), "plan.json: device memory");
  const auto rowOf = [=](int head, int query) {
    const auto log_sums_v = query < j ? weft::loadOne(log_sums + (head / h) * 9324 + (head % h) * 777 + query) : 0.0f;
    const auto row_sums_v = query < j ? weft::loadOne(row_sums + (head / h) * 9324 + (head % h) * 777 + query) : 0.0f;
    return weft::ScoreRow<2>{{weft::negatedLogSum(log_sums_v), row_sums_v}};
  };
  const auto gradients = [=](float s, float dKept, const weft::ScoreRow<2> &row, int head, int query, int key,
      bool isKept) {
    const float y = weft::probabilityOf(s, exponentFactor, row.at[0]);
    const float kept = isKept ? y * keepScale : 0.0f;
    const float d_y = isKept ? dKept * keepScale : 0.0f;
    const float centred = d_y - row.at[1];
    const float d_s = centred * y;
    return weft::ScoreGradients{kept, d_s};
  };
  const weft::DropoutKey dropoutSeedAndStep = *dropoutKey;                           // a replay must not repeat masks
  const auto keptOf = [=](int head, int query, int key) {
    return weft::keptFragment(dropoutSeedAndStep, dropoutStream, (head / h) * h + head % h, query, key, dropThreshold);
  };
  const auto keptOfTransposed = [=](int head, int query, int key) {
    return weft::keptTransposedFragment(dropoutSeedAndStep, dropoutStream, (head / h) * h + head % h, query, key,
        dropThreshold);
  };
  static_assert(weft::sm90::AttentionBackwardConfig<shape, tile, weft::ScoreRow<2>>::sharedBytes == 207064
      && weft::sm90::AttentionBackwardConfig<shape, tile, weft::ScoreRow<2>>::threads == 384
      && weft::sm90::AttentionBackwardConfig<shape, tile, weft::ScoreRow<2>>::semaphores == 168
      && weft::sm90::AttentionBackwardConfig<shape, tile, weft::ScoreRow<2>>::sumFloats * 4 == 5505024);
  weft::sm90::attentionBackward<weft::half, shape, tile>(weft::sm90::AttentionBackwardArgs{
      .q = &q_map, .k = &keys_map, .v = &v_map,
      .dOutput = &d_output_map,
      .dQ = &d_q_map,
      .dK = &d_k_map,
      .dV = &d_v_map,
      .counter = &tilesTaken,
      .semaphores = semaphores.of,
      .sums = sums,
      .dQScale = 0.125f,
      .dKScale = 0.125f,
      .dVScale = 1.0f,
      .row = rowOf,
      .gradients = gradients,
      .gradientsWithoutMasks = gradients,
      .dropout = keptOfTransposed});
}
