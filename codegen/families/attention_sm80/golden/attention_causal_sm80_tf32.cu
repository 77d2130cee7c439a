// causal_attention    (this header is not hashed)
//
//   ops        scores = contract "bhgjp,bhkp->bhgjk" q, keys in tf32
//              causal = mask scores
//              output, log_sums = online_softmax_contract "bhgjk,bhkw->bhgjw" causal, v in tf32
//   space      b=8 g=1 h=12 j=197 w=64 | k=333 p=40 (reduced)
//   reads      q[g,b,h,j,p] f32   keys[b,h,k,p] f32   v[b,h,k,w] f32    16.3 MB
//   writes     output[g,b,h,j,w] f32   log_sums[g,b,h,j] f32    4.92 MB
//   config     fused attention by mma.sync, 64 queries x 32 keys, 3 stages    launch <<<384, 128>>>
#include "weft/sm80_tf32_attention.cuh"
#include "weft/tile_coverage.cuh"

namespace {
constexpr int b = 8, h = 12, j = 197, k = 333, p = 40, w = 64;  // extents
constexpr weft::sm80::AttentionShape shape = {
    .heads = b * h, .queries = j, .keys = k, .headDim = p, .valueDim = w,
    .rowQ = 40, .rowK = 40, .rowV = 64, .rowOutput = 64, .rowLogSums = 1,
    .isOutputAligned = true, .scale = 0.125f, .scalesLast = true};
constexpr weft::sm80::AttentionTile tile = {.queries = 64, .keys = 32, .stages = 3};
}  // namespace

extern "C" __global__ void __launch_bounds__(128, 1)
attention_causal_tf32_96x197x333x40x64(const float *__restrict__ q, const float *__restrict__ keys,
                                       const float *__restrict__ v, float *__restrict__ output,
                                       float *__restrict__ log_sums) {
  static_assert(weft::sm80::Tf32AttentionConfig<shape, tile>::sharedBytes == 52736);
  static_assert(shape.heads == 96 && shape.queries == 197 && shape.keys == 333 && shape.headDim == 40 && shape.valueDim == 64, "plan.json: these extents");
  static_assert(96 * ((197 + tile.queries - 1) / tile.queries) == 384 && 2 * tile.queries == 128, "plan.json: 384 blocks of 128 threads");
  static_assert(b == 8 && h == 12 && j == 197 && k == 333 && p == 40 && w == 64, "plan.json: these extents");
  static_assert(shape.rowQ == 40 && shape.rowK == 40 && shape.rowV == 64 && shape.rowOutput == 64 && shape.rowLogSums == 1 && shape.isOutputAligned == true && shape.scalesLast == true, "plan.json: strides of the result");
  const auto score = [=](float s, int head, int query, int key) {
    const float causal = key <= query + 136 ? s : weft::negativeInfinity;
    return causal;
  };
  const auto coverage = [=](int head, int firstQuery, int lastQuery, int firstKey, int lastKey) {
    const bool isEmpty = !(firstKey <= (lastQuery + 136));
    const bool isFull = lastKey <= (firstQuery + 136);
    return isEmpty ? weft::TileCoverage::empty : isFull ? weft::TileCoverage::full : weft::TileCoverage::mixed;
  };
  const auto placesOfHead = [=](int number) {
    return weft::sm80::HeadPlaces{.q = weft::Offset(number) * 7880, .k = weft::Offset(number) * 13320,
        .v = weft::Offset(number) * 21312, .output = weft::Offset(number) * 12608,
        .logSums = weft::Offset(number) * 197};
  };
  weft::sm80::tf32Attention<shape, tile>(weft::sm80::AttentionArgs{
      .q = q, .k = keys, .v = v,
      .output = output,
      .placesOfHead = placesOfHead,
      .logSums = log_sums,
      .score = score,
      .coverage = coverage});
}
