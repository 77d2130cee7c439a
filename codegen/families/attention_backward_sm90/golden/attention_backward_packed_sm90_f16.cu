// packed_backward    (this header is not hashed)
//
//   ops        q_padded = unpack q, offsets
//              keys_padded = unpack keys, offsets
//              v_padded = unpack v, offsets
//              d_output_padded = unpack d_output, offsets
//              log_sums_padded = unpack log_sums, offsets
//              row_sums_padded = unpack row_sums, offsets
//              scores = contract "bhgjp,bhkp->bhgjk" q_padded, keys_padded
//              padded = mask scores, lengths
//              y = softmax_from_log_sums padded, log_sums_padded
//              d_kept = contract "bhgjw,bhkw->bhgjk" d_output_padded, v_padded
//              centred = sub d_kept, row_sums_padded
//              d_s = mul centred, y
//              d_scores = mask d_s, lengths
//              d_v = contract "bhgjk,bhgjw->bhkw" y, d_output_padded
//              d_v_packed = pack d_v, offsets
//              d_q = contract "bhgjk,bhkp->bhgjp" d_scores, keys_padded
//              d_q_packed = pack d_q, offsets
//              d_k = contract "bhgjk,bhgjp->bhkp" d_scores, q_padded
//              d_k_packed = pack d_k, offsets
//   space      b=16 h=12 l=8192 m=8192 n=8192 o=17 q=8192 s=8192 t=8192 u=8192 y=8192 z=8192 | g=1 j=512 k=512 p=64 w=64 (reduced)
//   reads      q[g,s,h,p] f16   keys[t,h,p] f16   v[u,h,w] f16   d_output[g,y,h,w] f16   log_sums[g,l,h] f32   row_sums[g,m,h] f32   offsets[o] i32   lengths[b] i32    51.1 MB
//   writes     d_q_packed[g,q,h,p] f16   d_k_packed[z,h,p] f16   d_v_packed[n,h,w] f16    37.7 MB
//   workspace  25.2 MB
//   config     fused attention backward by wgmma, 128 keys x 128 queries, tiles of 96 heads together, first keys first    launch <<<132, 384>>>
#include "weft/score_gradients.cuh"
#include "weft/sm90_packed_attention_backward.cuh"
#include "weft/tile_coverage.cuh"
#include "weft/vector.cuh"
#include "weft/wgmma_f16_any_n.cuh"
#include "weft/wgmma_f16_rs.cuh"

namespace {
constexpr int b = 16, h = 12, j = 512, k = 512, p = 64, s = 8192, w = 64;  // extents
constexpr weft::sm90::AttentionBackwardProblem shape = {
    .queries = j, .keys = k, .headDim = p, .valueDim = w, .heads = b * h, .headsOfGroup = 1,
    .q = {.dimensions = 3, .divisors = {1}, .extents = {12}},
    .k = {.dimensions = 3, .divisors = {1}, .extents = {12}},
    .v = {.dimensions = 3, .divisors = {1}, .extents = {12}},
    .dOutput = {.dimensions = 3, .divisors = {1}, .extents = {12}},
    .dQ = {.dimensions = 3, .divisors = {1}, .extents = {12}},
    .dK = {.dimensions = 3, .divisors = {1}, .extents = {12}},
    .dV = {.dimensions = 3, .divisors = {1}, .extents = {12}}};
constexpr weft::sm90::AttentionBackwardTile tile = {.queries = 128, .keys = 128, .headGroup = 96};
constexpr float exponentFactor = 0.18033688f;
__device__ unsigned tilesTaken;
__device__ weft::sm90::Semaphores<768> semaphores;
}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
attention_backward_padding_f16_192x512x512x64(const __grid_constant__ weft::sm90::TensorMap q_2_map,
                                              const __grid_constant__ weft::sm90::TensorMap keys_map,
                                              const __grid_constant__ weft::sm90::TensorMap v_map,
                                              const __grid_constant__ weft::sm90::TensorMap d_output_map,
                                              const float *__restrict__ log_sums, const float *__restrict__ row_sums,
                                              const int *__restrict__ offsets, const int *__restrict__ lengths,
                                              const __grid_constant__ weft::sm90::TensorMap d_q_packed_map,
                                              weft::half *__restrict__ d_q_packed,
                                              const __grid_constant__ weft::sm90::TensorMap d_k_packed_map,
                                              weft::half *__restrict__ d_k_packed,
                                              const __grid_constant__ weft::sm90::TensorMap d_v_packed_map,
                                              weft::half *__restrict__ d_v_packed, float *__restrict__ sums) {
  static_assert(shape.queries == 512 && shape.keys == 512 && shape.headDim == 64 && shape.valueDim == 64 && shape.heads == 192 && shape.headsOfGroup == 1, "plan.json: these extents");
  static_assert(shape.q.divisors[0] == 1 && shape.q.extents[0] == 12 && shape.k.divisors[0] == 1 && shape.k.extents[0] == 12 && shape.v.divisors[0] == 1 && shape.v.extents[0] == 12 && shape.dOutput.divisors[0] == 1 && shape.dOutput.extents[0] == 12 && shape.dQ.divisors[0] == 1 && shape.dQ.extents[0] == 12 && shape.dK.divisors[0] == 1 && shape.dK.extents[0] == 12 && shape.dV.divisors[0] == 1 && shape.dV.extents[0] == 12, "plan.json: maps of these heads");
  static_assert(tile.queries == 128 && tile.keys == 128, "plan.json: 132 blocks and maps of these tiles");
  static_assert(b == 16 && h == 12 && j == 512 && k == 512 && p == 64 && s == 8192 && w == 64, "plan.json: these extents");
  static_assert(shape.q.dimensions == 3 && shape.k.dimensions == 3 && shape.v.dimensions == 3 && shape.dOutput.dimensions == 3 && shape.dQ.dimensions == 3 && shape.dK.dimensions == 3 && shape.dV.dimensions == 3, "plan.json: strides of the result");
  static_assert(sizeof(tilesTaken) == sizeof(unsigned) && sizeof(semaphores) == sizeof(weft::sm90::Semaphores<768>), "plan.json: device memory");
  const auto rowOf = [=](int head, int token) {
    const auto log_sums_v = weft::loadOne(log_sums + weft::Offset(head % 12) + weft::Offset(token) * 12);
    const auto row_sums_v = weft::loadOne(row_sums + weft::Offset(head % 12) + weft::Offset(token) * 12);
    return weft::ScoreRow<2>{{weft::negatedLogSum(log_sums_v), row_sums_v}};
  };
  const auto gradients = [=](float s_2, float dKept, const weft::ScoreRow<2> &row, int head, int query, int key,
      bool isKept) {
    const auto lengths_v = weft::loadOne(lengths + (head / h));
    const float padded = key < lengths_v ? s_2 : weft::negativeInfinity;
    const float y_2 = weft::probabilityOf(padded, exponentFactor, row.at[0]);
    const float centred = dKept - row.at[1];
    const float d_s = centred * y_2;
    const float d_scores = key < lengths_v ? d_s : 0.0f;
    return weft::ScoreGradients{y_2, d_scores};
  };
  const auto unmaskedGradients = [=](float s_2, float dKept, const weft::ScoreRow<2> &row, int head, int query,
      int key, bool isKept) {
    const float y_3 = weft::probabilityOf(s_2, exponentFactor, row.at[0]);
    const float centred_2 = dKept - row.at[1];
    const float d_s_2 = centred_2 * y_3;
    return weft::ScoreGradients{y_3, d_s_2};
  };
  const auto coverage = [=](int head, int firstQuery, int lastQuery, int firstKey, int lastKey) {
    const auto lengths_v_2 = weft::loadOne(lengths + (head / h));
    const bool isEmpty = !(firstKey < lengths_v_2);
    const bool isFull = lastKey < lengths_v_2;
    return isEmpty ? weft::TileCoverage::empty : isFull ? weft::TileCoverage::full : weft::TileCoverage::mixed;
  };
  static_assert(weft::sm90::AttentionBackwardConfig<shape, tile, weft::ScoreRow<2>>::sharedBytes == 207064
      && weft::sm90::AttentionBackwardConfig<shape, tile, weft::ScoreRow<2>>::threads == 384
      && weft::sm90::AttentionBackwardConfig<shape, tile, weft::ScoreRow<2>>::semaphores == 768
      && weft::sm90::AttentionBackwardConfig<shape, tile, weft::ScoreRow<2>>::sumFloats * 4 == 25165824);
  const weft::PackedSequences<16, 12, 1, j, s> sequences = {offsets};
  const auto d_q_packed_row = [=](int head, int token) {
    return d_q_packed + weft::Offset(head % 12) * 64 + weft::Offset(token) * 768;
  };
  weft::zeroUnused<p, b * h, true>(sequences, d_q_packed_row, threadIdx.x, 384);
  const auto d_k_packed_row = [=](int head, int token) {
    return d_k_packed + weft::Offset(head % 12) * 64 + weft::Offset(token) * 768;
  };
  weft::zeroUnused<p, b * h, true>(sequences, d_k_packed_row, threadIdx.x, 384);
  const auto d_v_packed_row = [=](int head, int token) {
    return d_v_packed + weft::Offset(head % 12) * 64 + weft::Offset(token) * 768;
  };
  weft::zeroUnused<w, b * h, true>(sequences, d_v_packed_row, threadIdx.x, 384);
  weft::sm90::packedAttentionBackward<weft::half, shape, tile>(sequences, weft::sm90::AttentionBackwardArgs{
      .q = &q_2_map, .k = &keys_map, .v = &v_map,
      .dOutput = &d_output_map,
      .dQ = &d_q_packed_map,
      .dK = &d_k_packed_map,
      .dV = &d_v_packed_map,
      .counter = &tilesTaken,
      .semaphores = semaphores.of,
      .sums = sums,
      .dQScale = 0.125f,
      .dKScale = 0.125f,
      .dVScale = 1.0f,
      .row = rowOf,
      .gradients = gradients,
      .gradientsWithoutMasks = unmaskedGradients,
      .coverage = coverage});
}
