// attention_backward__b_k_h_w    kernel 24 of paper-encoder, backward    (this header is not hashed)
//
//   ops        %40 = contract "phbk,phbj->hbjk" %3, %1
//              %44 = contract "whbk,whbj->hbjk" %5, %39
//              %41 = softmax_from_log_sums %40, %7
//              %42 = dropout %41
//              %43 = contract "whbj,hbjk->whbk" %39, %42
//              %45 = dropout %44
//              %49 = sub %45, %48
//              %50 = mul %49, %41
//              %51 = contract "hbjk,phbj->phbk" %50, %1
//              %52 = contract "phbk,hbjk->phbj" %3, %50
//   space      h=16 b=96 | p=64 k=128 j=128 w=64 (reduced)
//   reads      k[k,b,h,p] f16   q[j,b,h,p] f16   weighted_log_sums[h,b,j] f32   d_weighted[h,b,j,w] f16   v[k,b,h,w] f16   weighted_row_sums[h,b,j] f32    102 MB
//   writes     d_v[b,k,h,w] f16   d_k[b,k,h,p] f16   d_q[h,b,j,p] f16    75.5 MB
//   workspace  50.3 MB
//   flop       16.3 Gflop
//   config     fused attention backward by wgmma, 128 keys x 128 queries, tiles of 132 heads together, first keys first    launch <<<132, 384>>>
//   fused by   fuse: producer-consumer + reduction-consumer + shared-input
//   not fused  softmax_from_log_sums, dropout, dropout, reduce, sub, mul: F001 iteration-space-mismatch (h,b,j,k against h,b,j,w)
//   not fused  contract, softmax_from_log_sums, dropout, contract, mul: F024 no-epilogue ('contract' is of class contraction; an epilogue is element-wise)
#include "weft/dropout.cuh"
#include "weft/score_gradients.cuh"
#include "weft/sm90_attention_backward.cuh"
#include "weft/tile_coverage.cuh"
#include "weft/vector.cuh"
#include "weft/wgmma_f16_any_n.cuh"
#include "weft/wgmma_f16_rs.cuh"

namespace {
constexpr int p = 64, h = 16, b = 96, k = 128, j = 128, w = 64;  // extents
constexpr weft::sm90::AttentionBackwardProblem shape = {
    .queries = j, .keys = k, .headDim = p, .valueDim = w, .heads = h * b, .headsOfGroup = 1,
    .q = {.dimensions = 4, .divisors = {1, 96}, .extents = {96, 16}},
    .k = {.dimensions = 4, .divisors = {1, 96}, .extents = {96, 16}},
    .v = {.dimensions = 4, .divisors = {1, 96}, .extents = {96, 16}},
    .dOutput = {.dimensions = 3, .divisors = {1}, .extents = {1536}},
    .dQ = {.dimensions = 3, .divisors = {1}, .extents = {1536}},
    .dK = {.dimensions = 4, .divisors = {1, 96}, .extents = {96, 16}},
    .dV = {.dimensions = 4, .divisors = {1, 96}, .extents = {96, 16}}};
constexpr weft::sm90::AttentionBackwardTile tile = {.queries = 128, .keys = 128, .headGroup = 132};
constexpr float exponentFactor = 0.18033688f;
constexpr float keepScale = 1.1111112f;
constexpr unsigned dropThreshold = 6554u;           // 0.1 of 65536 draws
__device__ unsigned tilesTaken;
__device__ weft::sm90::Turns<1536> turns;
}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
attention_backward_f16_1536x128x128x64(const __grid_constant__ weft::sm90::TensorMap k_2_map,
                                       const __grid_constant__ weft::sm90::TensorMap q_map,
                                       const float *__restrict__ weighted_log_sums,
                                       const __grid_constant__ weft::sm90::TensorMap d_weighted_map,
                                       const __grid_constant__ weft::sm90::TensorMap v_map,
                                       const float *__restrict__ weighted_row_sums,
                                       const __grid_constant__ weft::sm90::TensorMap d_v_map,
                                       const __grid_constant__ weft::sm90::TensorMap d_k_map,
                                       const __grid_constant__ weft::sm90::TensorMap d_q_map,
                                       float *__restrict__ sums, const weft::DropoutKey *__restrict__ dropoutKey,
                                       unsigned dropoutStream) {
  static_assert(shape.queries == 128 && shape.keys == 128 && shape.headDim == 64 && shape.valueDim == 64 && shape.heads == 1536 && shape.headsOfGroup == 1, "plan.json: these extents");
  static_assert(shape.q.divisors[0] == 1 && shape.q.extents[0] == 96 && shape.q.divisors[1] == 96 && shape.q.extents[1] == 16 && shape.k.divisors[0] == 1 && shape.k.extents[0] == 96 && shape.k.divisors[1] == 96 && shape.k.extents[1] == 16 && shape.v.divisors[0] == 1 && shape.v.extents[0] == 96 && shape.v.divisors[1] == 96 && shape.v.extents[1] == 16 && shape.dOutput.divisors[0] == 1 && shape.dOutput.extents[0] == 1536 && shape.dQ.divisors[0] == 1 && shape.dQ.extents[0] == 1536 && shape.dK.divisors[0] == 1 && shape.dK.extents[0] == 96 && shape.dK.divisors[1] == 96 && shape.dK.extents[1] == 16 && shape.dV.divisors[0] == 1 && shape.dV.extents[0] == 96 && shape.dV.divisors[1] == 96 && shape.dV.extents[1] == 16, "plan.json: maps of these heads");
  static_assert(tile.queries == 128 && tile.keys == 128, "plan.json: 132 blocks and maps of these tiles");
  static_assert(p == 64 && h == 16 && b == 96 && k == 128 && j == 128 && w == 64, "plan.json: these extents");
  static_assert(shape.q.dimensions == 4 && shape.k.dimensions == 4 && shape.v.dimensions == 4 && shape.dOutput.dimensions == 3 && shape.dQ.dimensions == 3 && shape.dK.dimensions == 4 && shape.dV.dimensions == 4, "plan.json: strides of the result");
  static_assert(sizeof(tilesTaken) == sizeof(unsigned) && sizeof(turns) == sizeof(weft::sm90::Turns<1536>), "plan.json: device memory");
  const auto rowOf = [=](int head, int query) {
    const auto weighted_log_sums_v = query < j ? weft::loadOne(weighted_log_sums + (head / b) * 12288
        + (head % b) * 128 + query) : 0.0f;
    const auto weighted_row_sums_v = query < j ? weft::loadOne(weighted_row_sums + (head / b) * 12288
        + (head % b) * 128 + query) : 0.0f;
    return weft::ScoreRow<2>{{weft::negatedLogSum(weighted_log_sums_v), weighted_row_sums_v}};
  };
  const auto gradients = [=](float s, float dKept, const weft::ScoreRow<2> &row, int head, int query, int key,
      bool isKept) {
    const float probability_again = weft::probabilityOf(s, exponentFactor, row.at[0]);            // %41
    const float kept_again = isKept ? probability_again * keepScale : 0.0f;                       // %42
    const float d_probability = isKept ? dKept * keepScale : 0.0f;                                // %45
    const float d_probability_centered = d_probability - row.at[1];                               // %49
    const float d_score = d_probability_centered * probability_again;                             // %50
    return weft::ScoreGradients{kept_again, d_score};
  };
  const weft::DropoutKey dropoutSeedAndStep = *dropoutKey;                           // a replay must not repeat masks
  const auto keptOf = [=](int head, int query, int key) {
    return weft::keptFragment(dropoutSeedAndStep, dropoutStream, (head / b) * b + head % b, query, key, dropThreshold);
  };
  const auto keptOfTransposed = [=](int head, int query, int key) {
    return weft::keptTransposedFragment(dropoutSeedAndStep, dropoutStream, (head / b) * b + head % b, query, key,
        dropThreshold);
  };
  static_assert(weft::sm90::AttentionBackwardConfig<shape, tile, weft::ScoreRow<2>>::sharedBytes == 207064
      && weft::sm90::AttentionBackwardConfig<shape, tile, weft::ScoreRow<2>>::threads == 384
      && weft::sm90::AttentionBackwardConfig<shape, tile, weft::ScoreRow<2>>::turns == 1536
      && weft::sm90::AttentionBackwardConfig<shape, tile, weft::ScoreRow<2>>::sumFloats * 4 == 50331648);
  weft::sm90::attentionBackward<weft::half, shape, tile>(weft::sm90::AttentionBackwardArgs{
      .q = &q_map, .k = &k_2_map, .v = &v_map,
      .dOutput = &d_weighted_map,
      .dQ = &d_q_map,
      .dK = &d_k_map,
      .dV = &d_v_map,
      .counter = &tilesTaken,
      .turns = turns.of,
      .sums = sums,
      .dQScale = 0.125f,
      .dKScale = 0.125f,
      .dVScale = 1.0f,
      .row = rowOf,
      .gradients = gradients,
      .gradientsWithoutMasks = gradients,
      .dropout = keptOfTransposed});
}
