// rotated_cached_attention    (this header is not hashed)
//
//   ops        q_turned = rotary q, lengths
//              scores = contract "bhgjp,bhkp->bhgjk" q_turned, keys
//              causal = mask scores, lengths
//              output = online_softmax_contract "bhgjk,bhkw->bhgjw" causal, v
//   space      b=2 g=4 h=8 j=256 w=128 | k=1024 p=128 (reduced)
//   reads      q[b,h,g,j,p] f16   keys[b,h,k,p] f16   v[b,h,k,w] f16   lengths[b] i32    12.6 MB
//   writes     output[b,h,g,j,w] f16    4.19 MB
//   config     fused attention by mma.sync, 64 queries x 32 keys, 3 stages    launch <<<256, 128>>>
#include "weft/math.cuh"
#include "weft/rotated_chunks.cuh"
#include "weft/short_rotation.cuh"
#include "weft/sm80_attention.cuh"
#include "weft/sm80_rotated_queries.cuh"
#include "weft/tile_coverage.cuh"
#include "weft/vector.cuh"

namespace {
constexpr int b = 2, g = 4, h = 8, j = 256, k = 1024, p = 128, w = 128;  // extents
constexpr weft::sm80::AttentionShape shape = {
    .heads = b * h * g, .queries = j, .keys = k, .headDim = p, .valueDim = w,
    .rowQ = 128, .rowK = 128, .rowV = 128, .rowOutput = 128, .rowLogSums = 0,
    .isOutputAligned = true, .scale = 0.125f, .scalesLast = true,
    .zeroesUnseen = true};
constexpr weft::sm80::AttentionTile tile = {.queries = 64, .keys = 32, .stages = 3};
constexpr weft::RotatedColumns rotatedColumns = {.rotated = 128, .isHalved = true, .isReverse = false, .isShort = true};
}  // namespace

extern "C" __global__ void __launch_bounds__(128, 1)
attention_rotated_causal_f16_16x1024x1024x128(const weft::half *__restrict__ q, const weft::half *__restrict__ keys,
                                              const weft::half *__restrict__ v, const int *__restrict__ lengths,
                                              weft::half *__restrict__ output) {
  static_assert(weft::sm80::AttentionConfig<shape, tile>::sharedBytes == 65536);
  static_assert(shape.heads == 64 && shape.queries == 256 && shape.keys == 1024 && shape.headDim == 128 && shape.valueDim == 128, "plan.json: these extents");
  static_assert(64 * ((256 + tile.queries - 1) / tile.queries) == 256 && 2 * tile.queries == 128, "plan.json: 256 blocks of 128 threads");
  static_assert(b == 2 && g == 4 && h == 8 && j == 256 && k == 1024 && p == 128 && w == 128, "plan.json: these extents");
  static_assert(shape.rowQ == 128 && shape.rowK == 128 && shape.rowV == 128 && shape.rowOutput == 128 && shape.rowLogSums == 0 && shape.isOutputAligned == true && shape.scalesLast == true && shape.zeroesUnseen == true, "plan.json: strides of the result");
  static_assert(rotatedColumns.rotated == 128 && rotatedColumns.isHalved == true && rotatedColumns.isReverse == false && rotatedColumns.isShort == true, "plan.json: pairs of a rotary embedding");
  const auto score = [=](float s, int head, int query, int key) {
    const auto lengths_v = weft::loadOne(lengths + (head / (h * g)));
    const float causal = key <= query + lengths_v ? s : weft::negativeInfinity;
    return causal;
  };
  const auto coverage = [=](int head, int firstQuery, int lastQuery, int firstKey, int lastKey) {
    const auto lengths_v_2 = weft::loadOne(lengths + (head / (h * g)));
    const bool isEmpty = !(firstKey <= (lastQuery + lengths_v_2));
    const bool isFull = lastKey <= (firstQuery + lengths_v_2);
    return isEmpty ? weft::TileCoverage::empty : isFull ? weft::TileCoverage::full : weft::TileCoverage::mixed;
  };
  const auto placesOfHead = [=](int number) {
    return weft::sm80::HeadPlaces{.q = weft::Offset(number) * 32768, .k = weft::Offset(number / 4) * 131072,
        .v = weft::Offset(number / 4) * 131072, .output = weft::Offset(number) * 32768};
  };
  const auto positionOf = [=](int head_2, int query_2) {
    const int lengths_v_3 = weft::loadOne(lengths + weft::Offset(head_2 / 32));
    return query_2 + lengths_v_3;
  };
  const auto frequencyOf = [=](int column) {
    return weft::rotaryFrequency(column % 64, -0.2076205f);
  };
  weft::sm80::attention<weft::half, shape, tile>(weft::sm80::AttentionArgs{
      .q = q, .k = keys, .v = v,
      .output = output,
      .placesOfHead = weft::sm80::rotatedPlaces<rotatedColumns>(placesOfHead, positionOf, frequencyOf),
      .score = score,
      .coverage = coverage});
}
