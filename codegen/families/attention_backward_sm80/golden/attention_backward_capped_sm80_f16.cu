// capped_backward    (this header is not hashed)
//
//   ops        scores = contract "bhgjp,bhkp->bhgjk" q, keys
//              small = scale scores
//              soft = tanh small
//              capped = scale soft
//              masked = mask capped
//              y = softmax_from_log_sums masked, log_sums
//              d_kept = contract "bhgjw,bhkw->bhgjk" d_output, v
//              centred = sub d_kept, row_sums
//              d_s = mul centred, y
//              d_capped = mask d_s
//              d_soft = scale d_capped
//              d_small = tanh_dx d_soft, soft
//              d_scores = scale d_small
//              d_v = contract "bhgjk,bhgjw->bhkw" y, d_output
//              d_q = contract "bhgjk,bhkp->bhgjp" d_scores, keys
//              d_k = contract "bhgjk,bhgjp->bhkp" d_scores, q
//   space      b=8 h=12 | g=1 j=197 k=333 p=40 w=64 (reduced)
//   reads      q[g,b,h,j,p] f16   keys[b,h,k,p] f16   v[b,h,k,w] f16   d_output[g,b,h,j,w] f16   log_sums[g,b,h,j] f32   row_sums[g,b,h,j] f32    10.7 MB
//   writes     d_q[g,b,h,j,p] f16   d_k[b,h,k,p] f16   d_v[b,h,k,w] f16    8.16 MB
//   config     backward attention by mma.sync, 128 rows x 64 columns, 3 stages    launch <<<480, 256>>>
#include "weft/math.cuh"
#include "weft/score_gradients.cuh"
#include "weft/sm80_attention_backward.cuh"
#include "weft/tile_coverage.cuh"
#include "weft/vector.cuh"

namespace {
constexpr int b = 8, h = 12, j = 197, k = 333, p = 40, w = 64;  // extents
constexpr float scale = 0.125f;
constexpr float factor = 0.125f;
constexpr float factor_2 = 8.0f;
constexpr float exponentFactor = 1.442695f;
constexpr weft::sm80::BackwardShape shape = {
    .heads = b * h, .headsOfGroup = 1, .queries = j, .keys = k,
    .headDim = p, .valueDim = w,
    .rowQ = 40, .rowK = 40, .rowV = 64, .rowDOutput = 64,
    .rowDQ = 40, .rowDK = 40, .rowDV = 64,
    .isDQAligned = true, .isDKAligned = true, .isDVAligned = true,
    .scaleDQ = 0.125f, .scaleDK = 0.125f, .scaleDV = 1.0f, .rowFloats = 2};
constexpr weft::sm80::BackwardTile tile = {.rows = 128, .columns = 64, .stages = 3};
}  // namespace

extern "C" __global__ void __launch_bounds__(256, 1)
attention_backward_scale_tanh_scale_window_f16_96x197x333x40x64(const weft::half *__restrict__ q,
                                                                const weft::half *__restrict__ keys,
                                                                const weft::half *__restrict__ v,
                                                                const weft::half *__restrict__ d_output,
                                                                const float *__restrict__ log_sums,
                                                                const float *__restrict__ row_sums,
                                                                weft::half *__restrict__ d_q,
                                                                weft::half *__restrict__ d_k,
                                                                weft::half *__restrict__ d_v) {
  static_assert(weft::sm80::BackwardConfig<shape, tile>::sharedBytes == 78336);
  static_assert(shape.heads == 96 && shape.headsOfGroup == 1 && shape.queries == 197 && shape.keys == 333 && shape.headDim == 40 && shape.valueDim == 64, "plan.json: these extents");
  static_assert(96 * ((333 + tile.rows - 1) / tile.rows) + 96 * ((197 + tile.rows - 1) / tile.rows) == 480 && 2 * tile.rows == 256, "plan.json: 480 blocks of 256 threads");
  static_assert(b == 8 && h == 12 && j == 197 && k == 333 && p == 40 && w == 64, "plan.json: these extents");
  static_assert(shape.rowQ == 40 && shape.rowK == 40 && shape.rowV == 64 && shape.rowDOutput == 64 && shape.rowDQ == 40 && shape.rowDK == 40 && shape.rowDV == 64 && shape.isDQAligned == true && shape.isDKAligned == true && shape.isDVAligned == true && shape.rowFloats == 2, "plan.json: strides of the result");
  const auto rowOf = [=](int head, int query) {
    const auto log_sums_v = query < j ? weft::loadOne(log_sums + (head / h) * 2364 + (head % h) * 197 + query) : 0.0f;
    const auto row_sums_v = query < j ? weft::loadOne(row_sums + (head / h) * 2364 + (head % h) * 197 + query) : 0.0f;
    return weft::ScoreRow<2>{{weft::negatedLogSum(log_sums_v), row_sums_v}};
  };
  const auto gradients = [=](float s, float dKept, const weft::ScoreRow<2> &row, int head, int query, int key,
      bool isKept) {
    const float scores = s * scale;
    const float small = scores * factor;
    const float soft = weft::tanh(small);
    const float capped = soft * factor_2;
    const float masked = key >= query + 136 - 40 && key <= query + 136 + 3 ? capped : weft::negativeInfinity;
    const float y = weft::probabilityOf(masked, exponentFactor, row.at[0]);
    const float centred = dKept - row.at[1];
    const float d_s = centred * y;
    const float d_capped = key >= query + 136 - 40 && key <= query + 136 + 3 ? d_s : 0.0f;
    const float d_soft = d_capped * factor_2;
    const float d_small = d_soft * (1.0f - soft * soft);
    const float d_scores = d_small * factor;
    return weft::ScoreGradients{y, d_scores};
  };
  const auto unmaskedGradients = [=](float s, float dKept, const weft::ScoreRow<2> &row, int head, int query, int key,
      bool isKept) {
    const float scores_2 = s * scale;
    const float small_2 = scores_2 * factor;
    const float soft_2 = weft::tanh(small_2);
    const float capped_2 = soft_2 * factor_2;
    const float y_2 = weft::probabilityOf(capped_2, exponentFactor, row.at[0]);
    const float centred_2 = dKept - row.at[1];
    const float d_s_2 = centred_2 * y_2;
    const float d_soft_2 = d_s_2 * factor_2;
    const float d_small_2 = d_soft_2 * (1.0f - soft_2 * soft_2);
    const float d_scores_2 = d_small_2 * factor;
    return weft::ScoreGradients{y_2, d_scores_2};
  };
  const auto coverage = [=](int head, int firstQuery, int lastQuery, int firstKey, int lastKey) {
    const bool isEmpty = !(((firstQuery + 136) - 40) <= lastKey && firstKey <= ((lastQuery + 136) + 3));
    const bool isFull = ((lastQuery + 136) - 40) <= firstKey && lastKey <= ((firstQuery + 136) + 3);
    return isEmpty ? weft::TileCoverage::empty : isFull ? weft::TileCoverage::full : weft::TileCoverage::mixed;
  };
  const auto placesOfHead = [=](int number) {
    return weft::sm80::BackwardPlaces{.q = weft::Offset(number) * 7880, .k = weft::Offset(number) * 13320,
        .v = weft::Offset(number) * 21312, .dOutput = weft::Offset(number) * 12608, .dQ = weft::Offset(number) * 7880,
        .dK = weft::Offset(number) * 13320, .dV = weft::Offset(number) * 21312};
  };
  weft::sm80::attentionBackward<weft::half, shape, tile>(weft::sm80::BackwardArgs{
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
