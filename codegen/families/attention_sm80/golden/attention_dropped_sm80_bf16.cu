// dropped_attention    (this header is not hashed)
//
//   ops        scores = contract "bhgjp,bhkp->bhgjk" q, keys
//              causal = mask scores
//              output, log_sums = online_softmax_contract "bhgjk,bhkw->bhgjw" causal, v
//   space      b=2 g=4 h=8 j=512 w=128 | k=640 p=128 (reduced)
//   reads      q[b,h,g,j,p] bf16   keys[b,h,k,p] bf16   v[b,h,k,w] bf16    13.6 MB
//   writes     output[b,h,g,j,w] bf16   log_sums[b,h,g,j] f32    8.52 MB
//   config     fused attention by mma.sync, 128 queries x 32 keys, 2 stages    launch <<<256, 256>>>
#include "weft/dropout.cuh"
#include "weft/sm80_attention.cuh"
#include "weft/tile_coverage.cuh"

namespace {
constexpr int b = 2, g = 4, h = 8, j = 512, k = 640, p = 128, w = 128;  // extents
constexpr weft::sm80::AttentionShape shape = {
    .heads = b * h * g, .queries = j, .keys = k, .headDim = p, .valueDim = w,
    .rowQ = 128, .rowK = 128, .rowV = 128, .rowOutput = 128, .rowLogSums = 1,
    .isOutputAligned = true, .scale = 0.125f, .scalesLast = true};
constexpr weft::sm80::AttentionTile tile = {.queries = 128, .keys = 32, .stages = 2};
constexpr unsigned dropThreshold = 6554u;           // 0.1 of 65536 draws
}  // namespace

extern "C" __global__ void __launch_bounds__(256, 1)
attention_causal_bf16_16x2048x640x128(const weft::bfloat16 *__restrict__ q, const weft::bfloat16 *__restrict__ keys,
                                      const weft::bfloat16 *__restrict__ v, weft::bfloat16 *__restrict__ output,
                                      float *__restrict__ log_sums, const weft::DropoutKey *__restrict__ dropoutKey,
                                      unsigned dropoutStream) {
  static_assert(weft::sm80::AttentionConfig<shape, tile>::sharedBytes == 65536);
  static_assert(shape.heads == 64 && shape.queries == 512 && shape.keys == 640 && shape.headDim == 128 && shape.valueDim == 128, "plan.json: these extents");
  static_assert(64 * ((512 + tile.queries - 1) / tile.queries) == 256 && 2 * tile.queries == 256, "plan.json: 256 blocks of 256 threads");
  static_assert(b == 2 && g == 4 && h == 8 && j == 512 && k == 640 && p == 128 && w == 128, "plan.json: these extents");
  static_assert(shape.rowQ == 128 && shape.rowK == 128 && shape.rowV == 128 && shape.rowOutput == 128 && shape.rowLogSums == 1 && shape.isOutputAligned == true && shape.scalesLast == true, "plan.json: strides of the result");
  const auto score = [=](float s, int head, int query, int key) {
    const float causal = key <= query + 128 ? s : weft::negativeInfinity;
    return causal;
  };
  const auto coverage = [=](int head, int firstQuery, int lastQuery, int firstKey, int lastKey) {
    const bool isEmpty = !(firstKey <= (lastQuery + 128));
    const bool isFull = lastKey <= (firstQuery + 128);
    return isEmpty ? weft::TileCoverage::empty : isFull ? weft::TileCoverage::full : weft::TileCoverage::mixed;
  };
  const auto placesOfHead = [=](int number) {
    return weft::sm80::HeadPlaces{.q = weft::Offset(number) * 65536, .k = weft::Offset(number / 4) * 81920,
        .v = weft::Offset(number / 4) * 81920, .output = weft::Offset(number) * 65536,
        .logSums = weft::Offset(number) * 512};
  };
  const weft::DropoutKey dropoutSeedAndStep = *dropoutKey;                           // a replay must not repeat masks
  const auto kept = [=](int head, int query, int key) {
    return weft::keptFragment(dropoutSeedAndStep, dropoutStream, ((head / (h * g)) * h + head / g % h) * g + head % g,
        query, key, dropThreshold);
  };
  weft::sm80::attention<weft::bfloat16, shape, tile>(weft::sm80::AttentionArgs{
      .q = q, .k = keys, .v = v,
      .output = output,
      .placesOfHead = placesOfHead,
      .logSums = log_sums,
      .score = score,
      .coverage = coverage,
      .dropout = kept,
      .keepScale = 1.1111112f});
}
