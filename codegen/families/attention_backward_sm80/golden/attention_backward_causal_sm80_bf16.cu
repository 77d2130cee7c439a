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
//   space      b=2 h=8 | g=4 j=512 k=512 p=128 w=128 (reduced)
//   reads      q[b,h,g,j,p] bf16   keys[b,h,k,p] bf16   v[b,h,k,w] bf16   d_output[b,h,g,j,w] bf16   log_sums[b,h,g,j] f32   row_sums[b,h,g,j] f32    21.2 MB
//   writes     d_q[b,h,g,j,p] bf16   d_k[b,h,k,p] bf16   d_v[b,h,k,w] bf16    12.6 MB
//   config     backward attention by mma.sync, 64 rows x 32 columns, 2 stages    launch <<<640, 128>>>
#include "weft/dropout.cuh"
#include "weft/score_gradients.cuh"
#include "weft/sm80_attention_backward.cuh"
#include "weft/tile_coverage.cuh"
#include "weft/vector.cuh"

namespace {
constexpr int b = 2, g = 4, h = 8, j = 512, k = 512, p = 128, w = 128;  // extents
constexpr float exponentFactor = 0.18033688f;
constexpr float keepScale = 1.1111112f;
constexpr unsigned dropThreshold = 6554u;           // 0.1 of 65536 draws
constexpr weft::sm80::BackwardShape shape = {
    .heads = b * h * g, .headsOfGroup = g, .queries = j, .keys = k,
    .headDim = p, .valueDim = w,
    .rowQ = 128, .rowK = 128, .rowV = 128, .rowDOutput = 128,
    .rowDQ = 128, .rowDK = 128, .rowDV = 128,
    .isDQAligned = true, .isDKAligned = true, .isDVAligned = true,
    .scaleDQ = 0.125f, .scaleDK = 0.125f, .scaleDV = 1.0f, .rowFloats = 2};
constexpr weft::sm80::BackwardTile tile = {.rows = 64, .columns = 32, .stages = 2};
}  // namespace

extern "C" __global__ void __launch_bounds__(128, 1)
attention_backward_causal_bf16_16x2048x512x128(const weft::bfloat16 *__restrict__ q,
                                               const weft::bfloat16 *__restrict__ keys,
                                               const weft::bfloat16 *__restrict__ v,
                                               const weft::bfloat16 *__restrict__ d_output,
                                               const float *__restrict__ log_sums, const float *__restrict__ row_sums,
                                               weft::bfloat16 *__restrict__ d_q, weft::bfloat16 *__restrict__ d_k,
                                               weft::bfloat16 *__restrict__ d_v,
                                               const weft::DropoutKey *__restrict__ dropoutKey,
                                               unsigned dropoutStream) {
  static_assert(weft::sm80::BackwardConfig<shape, tile>::sharedBytes == 66048);
  static_assert(shape.heads == 64 && shape.headsOfGroup == 4 && shape.queries == 512 && shape.keys == 512 && shape.headDim == 128 && shape.valueDim == 128, "plan.json: these extents");
  static_assert(16 * ((512 + tile.rows - 1) / tile.rows) + 64 * ((512 + tile.rows - 1) / tile.rows) == 640 && 2 * tile.rows == 128, "plan.json: 640 blocks of 128 threads");
  static_assert(b == 2 && g == 4 && h == 8 && j == 512 && k == 512 && p == 128 && w == 128, "plan.json: these extents");
  static_assert(shape.rowQ == 128 && shape.rowK == 128 && shape.rowV == 128 && shape.rowDOutput == 128 && shape.rowDQ == 128 && shape.rowDK == 128 && shape.rowDV == 128 && shape.isDQAligned == true && shape.isDKAligned == true && shape.isDVAligned == true && shape.rowFloats == 2, "plan.json: strides of the result");
  const auto rowOf = [=](int head, int query) {
    const auto log_sums_v = query < j ? weft::loadOne(log_sums + (head / (h * g)) * 16384 + (head / g % h) * 2048
        + (head % g) * 512 + query) : 0.0f;
    const auto row_sums_v = query < j ? weft::loadOne(row_sums + (head / (h * g)) * 16384 + (head / g % h) * 2048
        + (head % g) * 512 + query) : 0.0f;
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
    return weft::keptFragment(dropoutSeedAndStep, dropoutStream, ((head / (h * g)) * h + head / g % h) * g + head % g,
        query, key, dropThreshold);
  };
  const auto keptOfTransposed = [=](int head, int query, int key) {
    return weft::keptTransposedFragment(dropoutSeedAndStep, dropoutStream,
        ((head / (h * g)) * h + head / g % h) * g + head % g, query, key, dropThreshold);
  };
  const auto placesOfHead = [=](int number) {
    return weft::sm80::BackwardPlaces{.q = weft::Offset(number) * 65536, .k = weft::Offset(number / 4) * 65536,
        .v = weft::Offset(number / 4) * 65536, .dOutput = weft::Offset(number) * 65536,
        .dQ = weft::Offset(number) * 65536, .dK = weft::Offset(number / 4) * 65536,
        .dV = weft::Offset(number / 4) * 65536};
  };
  weft::sm80::attentionBackward<weft::bfloat16, shape, tile>(weft::sm80::BackwardArgs{
      .q = q, .k = keys, .v = v,
      .dOutput = d_output,
      .dQ = d_q,
      .dK = d_k,
      .dV = d_v,
      .placesOfHead = placesOfHead,
      .rowOf = rowOf,
      .gradients = gradients,
      .gradientsWithoutMasks = unmaskedGradients,
      .coverage = coverage,
      .dropout = keptOf,
      .dropoutTransposed = keptOfTransposed});
}
