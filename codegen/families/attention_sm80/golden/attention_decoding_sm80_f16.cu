// causal_attention    (this header is not hashed)
//
//   ops        scores = contract "bhgjp,bhkp->bhgjk" q, keys
//              causal = mask scores
//              output, log_sums = online_softmax_contract "bhgjk,bhkw->bhgjw" causal, v
//   space      b=1 g=4 h=8 j=2 w=128 | k=32768 p=128 (reduced)
//   reads      q[b,h,g,j,p] f16   keys[b,h,k,p] f16   v[b,h,k,w] f16    134 MB
//   writes     output[b,h,g,j,w] f16   log_sums[b,h,g,j] f32    16.6 kB
//   workspace  1.12 MB
//   config     fused attention by mma.sync, 16 rows of packed heads x 64 keys, 3 stages, 33 splits of keys    launch <<<264, 128>>>
#include "weft/sm80_attention.cuh"
#include "weft/sm80_attention_splits.cuh"
#include "weft/tile_coverage.cuh"

namespace {
constexpr int g = 4, h = 8, j = 2, k = 32768, p = 128, w = 128;  // extents
constexpr weft::sm80::AttentionShape shape = {
    .heads = h * g, .queries = j, .keys = k, .headDim = p, .valueDim = w,
    .rowQ = 128, .rowK = 128, .rowV = 128, .rowOutput = 128, .rowLogSums = 1,
    .isOutputAligned = true, .scale = 0.125f, .scalesLast = true};
constexpr weft::sm80::AttentionTile tile = {.queries = 16, .keys = 64, .stages = 3, .packedHeads = 4, .splits = 33};
__device__ weft::sm80::SplitArrivals<shape, tile> arrivals;
}  // namespace

extern "C" __global__ void __launch_bounds__(128, 2)
attention_causal_f16_8x8x32768x128(const weft::half *__restrict__ q, const weft::half *__restrict__ keys,
                                   const weft::half *__restrict__ v, weft::half *__restrict__ output,
                                   float *__restrict__ log_sums, float *__restrict__ rows) {
  static_assert(weft::sm80::AttentionConfig<shape, tile>::sharedBytes == 98304
      && weft::sm80::SplitConfig<shape, tile>::bytes == 1115136);
  static_assert(shape.heads == 32 && shape.queries == 2 && shape.keys == 32768 && shape.headDim == 128 && shape.valueDim == 128, "plan.json: these extents");
  static_assert(weft::sm80::AttentionConfig<shape, tile>::blocks == 264 && weft::sm80::AttentionConfig<shape, tile>::threads == 128 && tile.queries == 16 && tile.splits == 33, "plan.json: 264 blocks of 128 threads");
  static_assert(tile.packedHeads == 4, "plan.json: packed heads");
  static_assert(g == 4 && h == 8 && j == 2 && k == 32768 && p == 128 && w == 128, "plan.json: these extents");
  static_assert(shape.rowQ == 128 && shape.rowK == 128 && shape.rowV == 128 && shape.rowOutput == 128 && shape.rowLogSums == 1 && shape.isOutputAligned == true && shape.scalesLast == true, "plan.json: strides of the result");
  static_assert(sizeof(arrivals) == sizeof(weft::sm80::SplitArrivals<shape, tile>), "plan.json: device memory");
  const auto score = [=](float s, int head, int query, int key) {
    const float causal = key <= query + 32766 ? s : weft::negativeInfinity;
    return causal;
  };
  const auto coverage = [=](int head, int firstQuery, int lastQuery, int firstKey, int lastKey) {
    const bool isEmpty = !(firstKey <= (lastQuery + 32766));
    const bool isFull = lastKey <= (firstQuery + 32766);
    return isEmpty ? weft::TileCoverage::empty : isFull ? weft::TileCoverage::full : weft::TileCoverage::mixed;
  };
  const auto placesOfHead = [=](int number) {
    return weft::sm80::HeadPlaces{.q = weft::Offset(number) * 256, .k = weft::Offset(number / 4) * 4194304,
        .v = weft::Offset(number / 4) * 4194304, .output = weft::Offset(number) * 256,
        .logSums = weft::Offset(number) * 2};
  };
  weft::sm80::SplitPartials<shape, tile> partials = {rows, arrivals};
  weft::sm80::attention<weft::half, shape, tile>(weft::sm80::AttentionArgs{
      .q = q, .k = keys, .v = v,
      .output = output,
      .placesOfHead = placesOfHead,
      .logSums = log_sums,
      .score = score,
      .coverage = coverage,
      .partials = &partials});
}
