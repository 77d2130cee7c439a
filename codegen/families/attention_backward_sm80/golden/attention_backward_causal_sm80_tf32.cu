// causal_backward    (this header is not hashed)
//
//   ops        scores = contract "bhgjp,bhkp->bhgjk" q, keys in tf32
//              masked = mask scores
//              y = softmax_from_log_sums masked, log_sums
//              d_kept = contract "bhgjw,bhkw->bhgjk" d_output, v in tf32
//              centred = sub d_kept, row_sums
//              d_s = mul centred, y
//              d_scores = mask d_s
//              d_v = contract "bhgjk,bhgjw->bhkw" y, d_output in tf32
//              d_q = contract "bhgjk,bhkp->bhgjp" d_scores, keys in tf32
//              d_k = contract "bhgjk,bhgjp->bhkp" d_scores, q in tf32
//   space      b=8 h=12 | g=1 j=197 k=333 p=40 w=64 (reduced)
//   reads      q[g,b,h,j,p] f32   keys[b,h,k,p] f32   v[b,h,k,w] f32   d_output[g,b,h,j,w] f32   log_sums[g,b,h,j] f32   row_sums[g,b,h,j] f32    21.3 MB
//   writes     d_q[g,b,h,j,p] f32   d_k[b,h,k,p] f32   d_v[b,h,k,w] f32    16.3 MB
//   config     backward attention by mma.sync, 64 rows x 32 columns, 2 stages    launch <<<960, 128>>>
#include "weft/score_gradients.cuh"
#include "weft/sm80_tf32_attention_backward.cuh"
#include "weft/tile_coverage.cuh"
#include "weft/vector.cuh"

namespace {
constexpr int b = 8, h = 12, j = 197, k = 333, p = 40, w = 64;  // extents
constexpr float exponentFactor = 0.18033688f;
constexpr weft::sm80::BackwardShape shape = {
    .heads = b * h, .headsOfGroup = 1, .queries = j, .keys = k,
    .headDim = p, .valueDim = w,
    .rowQ = 40, .rowK = 40, .rowV = 64, .rowDOutput = 64,
    .rowDQ = 40, .rowDK = 40, .rowDV = 64,
    .isDQAligned = true, .isDKAligned = true, .isDVAligned = true,
    .scaleDQ = 0.125f, .scaleDK = 0.125f, .scaleDV = 1.0f, .rowFloats = 2};
constexpr weft::sm80::BackwardTile tile = {.rows = 64, .columns = 32, .stages = 2};
}  // namespace

extern "C" __global__ void __launch_bounds__(128, 1)
attention_backward_causal_tf32_96x197x333x40x64(const float *__restrict__ q, const float *__restrict__ keys,
                                                const float *__restrict__ v, const float *__restrict__ d_output,
                                                const float *__restrict__ log_sums,
                                                const float *__restrict__ row_sums, float *__restrict__ d_q,
                                                float *__restrict__ d_k, float *__restrict__ d_v) {
  static_assert(weft::sm80::Tf32BackwardConfig<shape, tile>::sharedBytes == 55808);
  static_assert(shape.heads == 96 && shape.headsOfGroup == 1 && shape.queries == 197 && shape.keys == 333 && shape.headDim == 40 && shape.valueDim == 64, "plan.json: these extents");
  static_assert(96 * ((333 + tile.rows - 1) / tile.rows) + 96 * ((197 + tile.rows - 1) / tile.rows) == 960 && 2 * tile.rows == 128, "plan.json: 960 blocks of 128 threads");
  static_assert(b == 8 && h == 12 && j == 197 && k == 333 && p == 40 && w == 64, "plan.json: these extents");
  static_assert(shape.rowQ == 40 && shape.rowK == 40 && shape.rowV == 64 && shape.rowDOutput == 64 && shape.rowDQ == 40 && shape.rowDK == 40 && shape.rowDV == 64 && shape.isDQAligned == true && shape.isDKAligned == true && shape.isDVAligned == true && shape.rowFloats == 2, "plan.json: strides of the result");
  const auto rowOf = [=](int head, int query) {
    const auto log_sums_v = query < j ? weft::loadOne(log_sums + (head / h) * 2364 + (head % h) * 197 + query) : 0.0f;
    const auto row_sums_v = query < j ? weft::loadOne(row_sums + (head / h) * 2364 + (head % h) * 197 + query) : 0.0f;
    return weft::ScoreRow<2>{{weft::negatedLogSum(log_sums_v), row_sums_v}};
  };
  const auto gradients = [=](float s, float dKept, const weft::ScoreRow<2> &row, int head, int query, int key,
      bool isKept) {
    const float masked = key <= query + 136 ? s : weft::negativeInfinity;
    const float y = weft::probabilityOf(masked, exponentFactor, row.at[0]);
    const float centred = dKept - row.at[1];
    const float d_s = centred * y;
    const float d_scores = key <= query + 136 ? d_s : 0.0f;
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
    const bool isEmpty = !(firstKey <= (lastQuery + 136));
    const bool isFull = lastKey <= (firstQuery + 136);
    return isEmpty ? weft::TileCoverage::empty : isFull ? weft::TileCoverage::full : weft::TileCoverage::mixed;
  };
  const auto placesOfHead = [=](int number) {
    return weft::sm80::BackwardPlaces{.q = weft::Offset(number) * 7880, .k = weft::Offset(number) * 13320,
        .v = weft::Offset(number) * 21312, .dOutput = weft::Offset(number) * 12608, .dQ = weft::Offset(number) * 7880,
        .dK = weft::Offset(number) * 13320, .dV = weft::Offset(number) * 21312};
  };
  weft::sm80::tf32AttentionBackward<shape, tile>(weft::sm80::BackwardArgs{
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
      .dropout = weft::NoDropout{},
      .dropoutTransposed = weft::NoDropout{}});
}
