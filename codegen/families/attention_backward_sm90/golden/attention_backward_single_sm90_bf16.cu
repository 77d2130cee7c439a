// causal_backward    (this header is not hashed)
//
//   ops        scores = contract "bhgjp,bhkp->bhgjk" q, keys
//              masked = mask scores
//              y = softmax_from_log_sums masked, log_sums
//              d_kept = contract "bhgjw,bhkw->bhgjk" d_output, v
//              centred = sub d_kept, row_sums
//              d_s = mul centred, y
//              d_scores = mask d_s
//              d_v = contract "bhgjk,bhgjw->bhkw" y, d_output
//              d_q = contract "bhgjk,bhkp->bhgjp" d_scores, keys
//              d_k = contract "bhgjk,bhgjp->bhkp" d_scores, q
//   space      b=1 h=4 | g=2 j=2048 k=2048 p=256 w=256 (reduced)
//   reads      q[b,h,g,j,p] bf16   keys[b,h,k,p] bf16   v[b,h,k,w] bf16   d_output[b,h,g,j,w] bf16   log_sums[b,h,g,j] f32   row_sums[b,h,g,j] f32    25.3 MB
//   writes     d_q[b,h,g,j,p] bf16   d_k[b,h,k,p] bf16   d_v[b,h,k,w] bf16    16.8 MB
//   config     fused attention backward by wgmma, tiles of 128 keys, values or queries x 64, of 4 heads together    launch <<<132, 384>>>
#include "weft/score_gradients.cuh"
#include "weft/sm90_single_backward.cuh"
#include "weft/tile_coverage.cuh"
#include "weft/vector.cuh"
#include "weft/wgmma_bf16_any_n.cuh"
#include "weft/wgmma_bf16_rs.cuh"

namespace {
constexpr int g = 2, h = 4, j = 2048, k = 2048, p = 256, w = 256;  // extents
constexpr weft::sm90::AttentionBackwardProblem shape = {
    .queries = j, .keys = k, .headDim = p, .valueDim = w, .heads = h * g, .headsOfGroup = 2,
    .q = {.dimensions = 3, .divisors = {1}, .extents = {8}},
    .k = {.dimensions = 3, .divisors = {2}, .extents = {4}},
    .v = {.dimensions = 3, .divisors = {2}, .extents = {4}},
    .dOutput = {.dimensions = 3, .divisors = {1}, .extents = {8}},
    .dQ = {.dimensions = 3, .divisors = {1}, .extents = {8}},
    .dK = {.dimensions = 3, .divisors = {2}, .extents = {4}},
    .dV = {.dimensions = 3, .divisors = {2}, .extents = {4}}};
constexpr weft::sm90::SplitBackwardTile tile = {.rows = 128, .columns = 64, .stages = 3, .ownStages = 1,
    .headGroup = 4};
constexpr float exponentFactor = 0.18033688f;
__device__ unsigned tilesTaken;
}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
attention_backward_causal_bf16_4x4096x2048x256(const __grid_constant__ weft::sm90::TensorMap q_map,
                                               const __grid_constant__ weft::sm90::TensorMap keys_map,
                                               const __grid_constant__ weft::sm90::TensorMap v_map,
                                               const __grid_constant__ weft::sm90::TensorMap d_output_map,
                                               const float *__restrict__ log_sums, const float *__restrict__ row_sums,
                                               const __grid_constant__ weft::sm90::TensorMap d_q_map,
                                               const __grid_constant__ weft::sm90::TensorMap d_k_map,
                                               const __grid_constant__ weft::sm90::TensorMap d_v_map) {
  static_assert(shape.queries == 2048 && shape.keys == 2048 && shape.headDim == 256 && shape.valueDim == 256 && shape.heads == 8 && shape.headsOfGroup == 2, "plan.json: these extents");
  static_assert(shape.q.divisors[0] == 1 && shape.q.extents[0] == 8 && shape.k.divisors[0] == 2 && shape.k.extents[0] == 4 && shape.v.divisors[0] == 2 && shape.v.extents[0] == 4 && shape.dOutput.divisors[0] == 1 && shape.dOutput.extents[0] == 8 && shape.dQ.divisors[0] == 1 && shape.dQ.extents[0] == 8 && shape.dK.divisors[0] == 2 && shape.dK.extents[0] == 4 && shape.dV.divisors[0] == 2 && shape.dV.extents[0] == 4, "plan.json: maps of these heads");
  static_assert(tile.columns == 64 && tile.rows == 128, "plan.json: 132 blocks and maps of these tiles");
  static_assert(g == 2 && h == 4 && j == 2048 && k == 2048 && p == 256 && w == 256, "plan.json: these extents");
  static_assert(shape.q.dimensions == 3 && shape.k.dimensions == 3 && shape.v.dimensions == 3 && shape.dOutput.dimensions == 3 && shape.dQ.dimensions == 3 && shape.dK.dimensions == 3 && shape.dV.dimensions == 3, "plan.json: strides of the result");
  static_assert(sizeof(tilesTaken) == sizeof(unsigned), "plan.json: device memory");
  const auto rowOf = [=](int head, int query) {
    const auto log_sums_v = query < j ? weft::loadOne(log_sums + (head / g) * 4096 + (head % g) * 2048 + query) : 0.0f;
    const auto row_sums_v = query < j ? weft::loadOne(row_sums + (head / g) * 4096 + (head % g) * 2048 + query) : 0.0f;
    return weft::ScoreRow<2>{{weft::negatedLogSum(log_sums_v), row_sums_v}};
  };
  const auto gradients = [=](float s, float dKept, const weft::ScoreRow<2> &row, int head, int query, int key,
      bool isKept) {
    const float masked = key <= query ? s : weft::negativeInfinity;
    const float y = weft::probabilityOf(masked, exponentFactor, row.at[0]);
    const float centred = dKept - row.at[1];
    const float d_s = centred * y;
    const float d_scores = key <= query ? d_s : 0.0f;
    return weft::ScoreGradients{y, d_scores};
  };
  const auto unmaskedGradients = [=](float s, float dKept, const weft::ScoreRow<2> &row, int head, int query, int key,
      bool isKept) {
    const float y_2 = weft::probabilityOf(s, exponentFactor, row.at[0]);
    const float centred_2 = dKept - row.at[1];
    const float d_s_2 = centred_2 * y_2;
    return weft::ScoreGradients{y_2, d_s_2};
  };
  const auto coverage = [=](int head, int firstQuery, int lastQuery, int firstKey, int lastKey) {
    const bool isEmpty = !(firstKey <= lastQuery);
    const bool isFull = lastKey <= firstQuery;
    return isEmpty ? weft::TileCoverage::empty : isFull ? weft::TileCoverage::full : weft::TileCoverage::mixed;
  };
  static_assert(weft::sm90::SingleBackwardConfig<shape, tile, weft::ScoreRow<2>>::sharedBytes == 231120
      && weft::sm90::SingleBackwardConfig<shape, tile, weft::ScoreRow<2>>::threads == 384
      && weft::sm90::SingleBackwardConfig<shape, tile, weft::ScoreRow<2>>::tiles == 256);
  weft::sm90::singleBackward<weft::bfloat16, shape, tile>(weft::sm90::SplitBackwardArgs{
      .q = &q_map, .k = &keys_map, .v = &v_map,
      .dOutput = &d_output_map,
      .dQ = &d_q_map,
      .dK = &d_k_map,
      .dV = &d_v_map,
      .counter = &tilesTaken,
      .dQScale = 0.125f,
      .dKScale = 0.125f,
      .dVScale = 1.0f,
      .row = rowOf,
      .gradients = gradients,
      .gradientsWithoutMasks = unmaskedGradients,
      .coverage = coverage});
}
