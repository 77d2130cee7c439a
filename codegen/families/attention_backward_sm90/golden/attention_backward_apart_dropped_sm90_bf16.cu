// causal_backward    (this header is not hashed)
//
//   ops        scores = contract "bhgjp,bhkp->bhgjk" q, keys
//              masked = mask scores
//              y = softmax_from_log_sums masked, log_sums
//              kept = dropout y
//              d_kept = contract "bhgjw,bhkw->bhgjk" d_output, v
//              d_y = dropout d_kept
//              centred = sub d_y, row_sums
//              d_s = mul centred, y
//              d_scores = mask d_s
//              d_v = contract "bhgjk,bhgjw->bhkw" kept, d_output
//              d_q = contract "bhgjk,bhkp->bhgjp" d_scores, keys
//              d_k = contract "bhgjk,bhgjp->bhkp" d_scores, q
//   space      b=2 h=12 | g=1 j=777 k=777 p=128 w=128 (reduced)
//   reads      q[g,b,h,j,p] bf16   keys[b,h,k,p] bf16   v[b,h,k,w] bf16   d_output[g,b,h,j,w] bf16   log_sums[g,b,h,j] f32   row_sums[g,b,h,j] f32    19.2 MB
//   writes     d_q[g,b,h,j,p] bf16   d_k[b,h,k,p] bf16   d_v[b,h,k,w] bf16    14.3 MB
//   config     fused attention backward by wgmma, tiles of 64 keys or queries x 32, of 24 heads together    launch <<<264, 256>>>
#include "weft/dropout.cuh"
#include "weft/score_gradients.cuh"
#include "weft/sm90_split_backward.cuh"
#include "weft/tile_coverage.cuh"
#include "weft/vector.cuh"
#include "weft/wgmma_bf16_any_n.cuh"
#include "weft/wgmma_bf16_rs.cuh"

namespace {
constexpr int b = 2, h = 12, j = 777, k = 777, p = 128, w = 128;  // extents
constexpr weft::sm90::AttentionBackwardProblem shape = {
    .queries = j, .keys = k, .headDim = p, .valueDim = w, .heads = b * h, .headsOfGroup = 1,
    .q = {.dimensions = 3, .divisors = {1}, .extents = {24}},
    .k = {.dimensions = 3, .divisors = {1}, .extents = {24}},
    .v = {.dimensions = 3, .divisors = {1}, .extents = {24}},
    .dOutput = {.dimensions = 3, .divisors = {1}, .extents = {24}},
    .dQ = {.dimensions = 3, .divisors = {1}, .extents = {24}},
    .dK = {.dimensions = 3, .divisors = {1}, .extents = {24}},
    .dV = {.dimensions = 3, .divisors = {1}, .extents = {24}}};
constexpr weft::sm90::SplitBackwardTile tile = {.rows = 64, .columns = 32, .stages = 3, .ownStages = 2,
    .headGroup = 24};
constexpr float exponentFactor = 0.18033688f;
constexpr float keepScale = 1.1111112f;
constexpr unsigned dropThreshold = 6554u;           // 0.1 of 65536 draws
__device__ unsigned tilesTaken;
}  // namespace

extern "C" __global__ void __launch_bounds__(256, 2)
attention_backward_causal_bf16_24x777x777x128(const __grid_constant__ weft::sm90::TensorMap q_map,
                                              const __grid_constant__ weft::sm90::TensorMap keys_map,
                                              const __grid_constant__ weft::sm90::TensorMap v_map,
                                              const __grid_constant__ weft::sm90::TensorMap d_output_map,
                                              const float *__restrict__ log_sums, const float *__restrict__ row_sums,
                                              const __grid_constant__ weft::sm90::TensorMap d_q_map,
                                              const __grid_constant__ weft::sm90::TensorMap d_k_map,
                                              const __grid_constant__ weft::sm90::TensorMap d_v_map,
                                              const weft::DropoutKey *__restrict__ dropoutKey,
                                              unsigned dropoutStream) {
  static_assert(shape.queries == 777 && shape.keys == 777 && shape.headDim == 128 && shape.valueDim == 128 && shape.heads == 24 && shape.headsOfGroup == 1, "plan.json: these extents");
  static_assert(shape.q.divisors[0] == 1 && shape.q.extents[0] == 24 && shape.k.divisors[0] == 1 && shape.k.extents[0] == 24 && shape.v.divisors[0] == 1 && shape.v.extents[0] == 24 && shape.dOutput.divisors[0] == 1 && shape.dOutput.extents[0] == 24 && shape.dQ.divisors[0] == 1 && shape.dQ.extents[0] == 24 && shape.dK.divisors[0] == 1 && shape.dK.extents[0] == 24 && shape.dV.divisors[0] == 1 && shape.dV.extents[0] == 24, "plan.json: maps of these heads");
  static_assert(tile.columns == 32 && tile.rows == 64, "plan.json: 264 blocks and maps of these tiles");
  static_assert(b == 2 && h == 12 && j == 777 && k == 777 && p == 128 && w == 128, "plan.json: these extents");
  static_assert(shape.q.dimensions == 3 && shape.k.dimensions == 3 && shape.v.dimensions == 3 && shape.dOutput.dimensions == 3 && shape.dQ.dimensions == 3 && shape.dK.dimensions == 3 && shape.dV.dimensions == 3, "plan.json: strides of the result");
  static_assert(sizeof(tilesTaken) == sizeof(unsigned), "plan.json: device memory");
  const auto rowOf = [=](int head, int query) {
    const auto log_sums_v = query < j ? weft::loadOne(log_sums + (head / h) * 9324 + (head % h) * 777 + query) : 0.0f;
    const auto row_sums_v = query < j ? weft::loadOne(row_sums + (head / h) * 9324 + (head % h) * 777 + query) : 0.0f;
    return weft::ScoreRow<2>{{weft::negatedLogSum(log_sums_v), row_sums_v}};
  };
  const auto gradients = [=](float s, float dKept, const weft::ScoreRow<2> &row, int head, int query, int key,
      bool isKept) {
    const float masked = key <= query ? s : weft::negativeInfinity;
    const float y = weft::probabilityOf(masked, exponentFactor, row.at[0]);
    const float kept = isKept ? y * keepScale : 0.0f;
    const float d_y = isKept ? dKept * keepScale : 0.0f;
    const float centred = d_y - row.at[1];
    const float d_s = centred * y;
    const float d_scores = key <= query ? d_s : 0.0f;
    return weft::ScoreGradients{kept, d_scores};
  };
  const auto unmaskedGradients = [=](float s, float dKept, const weft::ScoreRow<2> &row, int head, int query, int key,
      bool isKept) {
    const float y_2 = weft::probabilityOf(s, exponentFactor, row.at[0]);
    const float kept_2 = isKept ? y_2 * keepScale : 0.0f;
    const float d_y_2 = isKept ? dKept * keepScale : 0.0f;
    const float centred_2 = d_y_2 - row.at[1];
    const float d_s_2 = centred_2 * y_2;
    return weft::ScoreGradients{kept_2, d_s_2};
  };
  const auto coverage = [=](int head, int firstQuery, int lastQuery, int firstKey, int lastKey) {
    const bool isEmpty = !(firstKey <= lastQuery);
    const bool isFull = lastKey <= firstQuery;
    return isEmpty ? weft::TileCoverage::empty : isFull ? weft::TileCoverage::full : weft::TileCoverage::mixed;
  };
  const weft::DropoutKey dropoutSeedAndStep = *dropoutKey;                           // a replay must not repeat masks
  const auto keptOf = [=](int head, int query, int key) {
    return weft::keptFragment(dropoutSeedAndStep, dropoutStream, (head / h) * h + head % h, query, key, dropThreshold);
  };
  const auto keptOfTransposed = [=](int head, int query, int key) {
    return weft::keptTransposedFragment(dropoutSeedAndStep, dropoutStream, (head / h) * h + head % h, query, key,
        dropThreshold);
  };
  static_assert(weft::sm90::SplitBackwardConfig<shape, tile, weft::ScoreRow<2>>::sharedBytes == 115656
      && weft::sm90::SplitBackwardConfig<shape, tile, weft::ScoreRow<2>>::threads == 256
      && weft::sm90::SplitBackwardConfig<shape, tile, weft::ScoreRow<2>>::tiles == 624);
  weft::sm90::splitBackward<weft::bfloat16, shape, tile>(weft::sm90::SplitBackwardArgs{
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
      .coverage = coverage,
      .dropout = keptOf,
      .dropoutTransposed = keptOfTransposed});
}
