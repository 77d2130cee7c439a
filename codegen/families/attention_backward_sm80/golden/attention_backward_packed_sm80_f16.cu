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
//              masked = mask padded
//              y = softmax_from_log_sums masked, log_sums_padded
//              d_kept = contract "bhgjw,bhkw->bhgjk" d_output_padded, v_padded
//              centred = sub d_kept, row_sums_padded
//              d_s = mul centred, y
//              d_padded = mask d_s
//              d_scores = mask d_padded, lengths
//              d_v = contract "bhgjk,bhgjw->bhkw" y, d_output_padded
//              d_v_packed = pack d_v, offsets
//              d_q = contract "bhgjk,bhkp->bhgjp" d_scores, keys_padded
//              d_q_packed = pack d_q, offsets
//              d_k = contract "bhgjk,bhgjp->bhkp" d_scores, q_padded
//              d_k_packed = pack d_k, offsets
//   space      b=16 h=12 l=8192 m=8192 n=8192 o=17 q=8192 s=8192 t=8192 u=8192 y=8192 z=8192 | g=1 j=512 k=512 p=64 w=64 (reduced)
//   reads      q[g,s,h,p] f16   keys[t,h,p] f16   v[u,h,w] f16   d_output[g,y,h,w] f16   log_sums[g,l,h] f32   row_sums[g,m,h] f32   offsets[o] i32   lengths[b] i32    51.1 MB
//   writes     d_q_packed[g,q,h,p] f16   d_k_packed[z,h,p] f16   d_v_packed[n,h,w] f16    37.7 MB
//   config     backward attention by mma.sync, 64 rows x 32 columns, 2 stages    launch <<<3072, 128>>>
#include "weft/score_gradients.cuh"
#include "weft/sm80_packed_attention_backward.cuh"
#include "weft/tile_coverage.cuh"
#include "weft/vector.cuh"

namespace {
constexpr int b = 16, h = 12, j = 512, k = 512, p = 64, s = 8192, w = 64;  // extents
constexpr float exponentFactor = 0.18033688f;
constexpr weft::sm80::BackwardShape shape = {
    .heads = b * h, .headsOfGroup = 1, .queries = j, .keys = k,
    .headDim = p, .valueDim = w,
    .rowQ = 768, .rowK = 768, .rowV = 768, .rowDOutput = 768,
    .rowDQ = 768, .rowDK = 768, .rowDV = 768,
    .isDQAligned = true, .isDKAligned = true, .isDVAligned = true,
    .scaleDQ = 0.125f, .scaleDK = 0.125f, .scaleDV = 1.0f, .rowFloats = 2};
constexpr weft::sm80::BackwardTile tile = {.rows = 64, .columns = 32, .stages = 2};
}  // namespace

extern "C" __global__ void __launch_bounds__(128, 1)
attention_backward_padding_causal_f16_192x512x512x64(const weft::half *__restrict__ q_2,
                                                     const weft::half *__restrict__ keys,
                                                     const weft::half *__restrict__ v,
                                                     const weft::half *__restrict__ d_output,
                                                     const float *__restrict__ log_sums,
                                                     const float *__restrict__ row_sums,
                                                     const int *__restrict__ offsets, const int *__restrict__ lengths,
                                                     weft::half *__restrict__ d_q_packed,
                                                     weft::half *__restrict__ d_k_packed,
                                                     weft::half *__restrict__ d_v_packed) {
  static_assert(weft::sm80::BackwardConfig<shape, tile>::sharedBytes == 33280);
  static_assert(shape.heads == 192 && shape.headsOfGroup == 1 && shape.queries == 512 && shape.keys == 512 && shape.headDim == 64 && shape.valueDim == 64, "plan.json: these extents");
  static_assert(192 * ((512 + tile.rows - 1) / tile.rows) + 192 * ((512 + tile.rows - 1) / tile.rows) == 3072 && 2 * tile.rows == 128, "plan.json: 3072 blocks of 128 threads");
  static_assert(b == 16 && h == 12 && j == 512 && k == 512 && p == 64 && s == 8192 && w == 64, "plan.json: these extents");
  static_assert(shape.rowQ == 768 && shape.rowK == 768 && shape.rowV == 768 && shape.rowDOutput == 768 && shape.rowDQ == 768 && shape.rowDK == 768 && shape.rowDV == 768 && shape.isDQAligned == true && shape.isDKAligned == true && shape.isDVAligned == true && shape.rowFloats == 2, "plan.json: strides of the result");
  const auto rowOf = [=](int head, int token) {
    const auto log_sums_v = weft::loadOne(log_sums + weft::Offset(head % 12) + weft::Offset(token) * 12);
    const auto row_sums_v = weft::loadOne(row_sums + weft::Offset(head % 12) + weft::Offset(token) * 12);
    return weft::ScoreRow<2>{{weft::negatedLogSum(log_sums_v), row_sums_v}};
  };
  const auto gradients = [=](float s_2, float dKept, const weft::ScoreRow<2> &row, int head, int query, int key,
      bool isKept) {
    const auto lengths_v = weft::loadOne(lengths + (head / h));
    const float padded = key < lengths_v ? s_2 : weft::negativeInfinity;
    const float masked = key <= query ? padded : weft::negativeInfinity;
    const float y_2 = weft::probabilityOf(masked, exponentFactor, row.at[0]);
    const float centred = dKept - row.at[1];
    const float d_s = centred * y_2;
    const float d_padded = key <= query ? d_s : 0.0f;
    const float d_scores = key < lengths_v ? d_padded : 0.0f;
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
    const bool isEmpty = !(firstKey < lengths_v_2 && firstKey <= lastQuery);
    const bool isFull = lastKey < lengths_v_2 && lastKey <= firstQuery;
    return isEmpty ? weft::TileCoverage::empty : isFull ? weft::TileCoverage::full : weft::TileCoverage::mixed;
  };
  const weft::PackedSequences<16, 12, 1, j, s> sequences = {offsets};
  const auto placesOfHead = [=](int number) {
    return weft::sm80::BackwardPlaces{.q = weft::Offset(number % 12) * 64, .k = weft::Offset(number % 12) * 64,
        .v = weft::Offset(number % 12) * 64, .dOutput = weft::Offset(number % 12) * 64,
        .dQ = weft::Offset(number % 12) * 64, .dK = weft::Offset(number % 12) * 64,
        .dV = weft::Offset(number % 12) * 64};
  };
  weft::sm80::packedAttentionBackward<weft::half, shape, tile>(sequences, weft::sm80::BackwardArgs{
      .q = q_2, .k = keys, .v = v,
      .dOutput = d_output,
      .dQ = d_q_packed,
      .dK = d_k_packed,
      .dV = d_v_packed,
      .placesOfHead = placesOfHead,
      .rowOf = rowOf,
      .gradients = gradients,
      .gradientsWithoutMasks = unmaskedGradients,
      .coverage = coverage,
      .dropout = weft::NoDropout{},
      .dropoutTransposed = weft::NoDropout{}});
  const auto d_q_packed_row = [=](int head, int token) {
    return d_q_packed + weft::Offset(head % 12) * 64 + weft::Offset(token) * 768;
  };
  weft::zeroUnused<p, b * h, shape.isDQAligned>(sequences, d_q_packed_row, threadIdx.x, 128);
  const auto d_k_packed_row = [=](int head, int token) {
    return d_k_packed + weft::Offset(head % 12) * 64 + weft::Offset(token) * 768;
  };
  weft::zeroUnused<p, b * h, shape.isDKAligned>(sequences, d_k_packed_row, threadIdx.x, 128);
  const auto d_v_packed_row = [=](int head, int token) {
    return d_v_packed + weft::Offset(head % 12) * 64 + weft::Offset(token) * 768;
  };
  weft::zeroUnused<w, b * h, shape.isDVAligned>(sequences, d_v_packed_row, threadIdx.x, 128);
}
