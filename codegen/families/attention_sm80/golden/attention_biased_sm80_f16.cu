// biased_attention    (this header is not hashed)
//
//   ops        scores = contract "bhgjp,bhkp->bhgjk" q, keys
//              biased = add scores, bias
//              causal = mask biased
//              output = online_softmax_contract "bhgjk,bhkw->bhgjw" causal, v
//   space      b=8 g=1 h=12 j=197 w=64 | k=333 p=40 (reduced)
//   reads      q[g,b,h,j,p] f16   keys[b,h,k,p] f16   v[b,h,k,w] f16   bias[g,h,j,k] f16    9.74 MB
//   writes     output[g,b,h,j,w] f16    2.42 MB
//   config     fused attention by mma.sync, 64 queries x 64 keys, 3 stages    launch <<<384, 128>>>
#include "weft/sm80_attention.cuh"
#include "weft/tile_coverage.cuh"
#include "weft/vector.cuh"

namespace {
constexpr int b = 8, h = 12, j = 197, k = 333, p = 40, w = 64;  // extents
constexpr weft::sm80::AttentionShape shape = {
    .heads = b * h, .queries = j, .keys = k, .headDim = p, .valueDim = w,
    .rowQ = 40, .rowK = 40, .rowV = 64, .rowOutput = 64, .rowLogSums = 0,
    .isOutputAligned = true, .scale = 0.125f, .scalesLast = false};
constexpr weft::sm80::AttentionTile tile = {.queries = 64, .keys = 64, .stages = 3};
}  // namespace

extern "C" __global__ void __launch_bounds__(128, 1)
attention_add_causal_f16_96x197x333x40x64(const weft::half *__restrict__ q, const weft::half *__restrict__ keys,
                                          const weft::half *__restrict__ v, const weft::half *__restrict__ bias,
                                          weft::half *__restrict__ output) {
  static_assert(weft::sm80::AttentionConfig<shape, tile>::sharedBytes == 53248);
  static_assert(shape.heads == 96 && shape.queries == 197 && shape.keys == 333 && shape.headDim == 40 && shape.valueDim == 64, "plan.json: these extents");
  static_assert(96 * ((197 + tile.queries - 1) / tile.queries) == 384 && 2 * tile.queries == 128, "plan.json: 384 blocks of 128 threads");
  static_assert(b == 8 && h == 12 && j == 197 && k == 333 && p == 40 && w == 64, "plan.json: these extents");
  static_assert(shape.rowQ == 40 && shape.rowK == 40 && shape.rowV == 64 && shape.rowOutput == 64 && shape.rowLogSums == 0 && shape.isOutputAligned == true && shape.scalesLast == false, "plan.json: strides of the result");
  const auto score = [=](float s, int head, int query, int key) {
    const auto bias_v = weft::loadOne(bias + (head % h) * 65601 + weft::smaller(query, j - 1) * 333
        + weft::smaller(key, k - 1));
    const float biased = s + bias_v;
    const float causal = key <= query + 136 ? biased : weft::negativeInfinity;
    return causal;
  };
  const auto unmaskedScore = [=](float s, int head, int query, int key) {
    const auto bias_v_2 = weft::loadOne(bias + (head % h) * 65601 + weft::smaller(query, j - 1) * 333
        + weft::smaller(key, k - 1));
    const float biased_2 = s + bias_v_2;
    return biased_2;
  };
  const auto coverage = [=](int head, int firstQuery, int lastQuery, int firstKey, int lastKey) {
    const bool isEmpty = !(firstKey <= (lastQuery + 136));
    const bool isFull = lastKey <= (firstQuery + 136);
    return isEmpty ? weft::TileCoverage::empty : isFull ? weft::TileCoverage::full : weft::TileCoverage::mixed;
  };
  const auto placesOfHead = [=](int number) {
    return weft::sm80::HeadPlaces{.q = weft::Offset(number) * 7880, .k = weft::Offset(number) * 13320,
        .v = weft::Offset(number) * 21312, .output = weft::Offset(number) * 12608};
  };
  weft::sm80::attention<weft::half, shape, tile>(weft::sm80::AttentionArgs{
      .q = q, .k = keys, .v = v,
      .output = output,
      .placesOfHead = placesOfHead,
      .score = score,
      .scoreWithoutMasks = unmaskedScore,
      .coverage = coverage});
}
