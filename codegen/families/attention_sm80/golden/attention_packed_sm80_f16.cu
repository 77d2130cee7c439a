// packed_attention    (this header is not hashed)
//
//   ops        q_padded = unpack q, offsets
//              keys_padded = unpack keys, offsets
//              v_padded = unpack v, offsets
//              scores = contract "bhgjp,bhkp->bhgjk" q_padded, keys_padded
//              padded = mask scores, lengths
//              causal = mask padded
//              output = online_softmax_contract "bhgjk,bhkw->bhgjw" causal, v_padded
//              output_packed = pack output, offsets
//   space      b=16 g=1 h=12 j=512 o=17 s=8192 t=8192 u=8192 w=64 y=8192 | k=512 p=64 (reduced)
//   reads      q[g,s,h,p] f16   keys[t,h,p] f16   v[u,h,w] f16   offsets[o] i32   lengths[b] i32    37.7 MB
//   writes     output_packed[g,y,h,w] f16    12.6 MB
//   config     fused attention by mma.sync, 64 queries x 32 keys, 2 stages    launch <<<1536, 128>>>
#include "weft/sm80_attention.cuh"
#include "weft/tile_coverage.cuh"
#include "weft/vector.cuh"

namespace {
constexpr int b = 16, h = 12, j = 512, k = 512, p = 64, w = 64, y = 8192;  // extents
constexpr weft::sm80::AttentionShape shape = {
    .heads = b * h, .queries = j, .keys = k, .headDim = p, .valueDim = w,
    .rowQ = 768, .rowK = 768, .rowV = 768, .rowOutput = 768, .rowLogSums = 0,
    .isOutputAligned = true, .scale = 0.125f, .scalesLast = true,
    .isPacked = true};
constexpr weft::sm80::AttentionTile tile = {.queries = 64, .keys = 32, .stages = 2};
}  // namespace

extern "C" __global__ void __launch_bounds__(128, 1)
attention_packed_padding_causal_f16_192x512x512x64(const weft::half *__restrict__ q,
                                                   const weft::half *__restrict__ keys,
                                                   const weft::half *__restrict__ v, const int *__restrict__ offsets,
                                                   const int *__restrict__ lengths,
                                                   weft::half *__restrict__ output_packed) {
  static_assert(weft::sm80::AttentionConfig<shape, tile>::sharedBytes == 24576);
  static_assert(shape.heads == 192 && shape.queries == 512 && shape.keys == 512 && shape.headDim == 64 && shape.valueDim == 64, "plan.json: these extents");
  static_assert(192 * ((512 + tile.queries - 1) / tile.queries) == 1536 && 2 * tile.queries == 128, "plan.json: 1536 blocks of 128 threads");
  static_assert(b == 16 && h == 12 && j == 512 && k == 512 && p == 64 && w == 64 && y == 8192, "plan.json: these extents");
  static_assert(shape.rowQ == 768 && shape.rowK == 768 && shape.rowV == 768 && shape.rowOutput == 768 && shape.rowLogSums == 0 && shape.isOutputAligned == true && shape.scalesLast == true && shape.isPacked == true, "plan.json: strides of the result");
  const auto score = [=](float s_2, int head, int query, int key) {
    const auto lengths_v = weft::loadOne(lengths + (head / h));
    const float padded = key < lengths_v ? s_2 : weft::negativeInfinity;
    const float causal = key <= query ? padded : weft::negativeInfinity;
    return causal;
  };
  const auto coverage = [=](int head, int firstQuery, int lastQuery, int firstKey, int lastKey) {
    const auto lengths_v_2 = weft::loadOne(lengths + (head / h));
    const bool isEmpty = !(firstKey < lengths_v_2 && firstKey <= lastQuery);
    const bool isFull = lastKey < lengths_v_2 && lastKey <= firstQuery;
    return isEmpty ? weft::TileCoverage::empty : isFull ? weft::TileCoverage::full : weft::TileCoverage::mixed;
  };
  const weft::PackedSequences<16, 12, 1, j, y> sequences = {offsets};
  const auto placesOfHead = [=](int number) {
    const weft::Offset first = sequences.of(number).first;
    return weft::sm80::HeadPlaces{.q = weft::Offset(number % 12) * 64 + first * 768,
        .k = weft::Offset(number % 12) * 64 + first * 768, .v = weft::Offset(number % 12) * 64 + first * 768,
        .output = weft::Offset(number % 12) * 64 + first * 768};
  };
  weft::sm80::attention<weft::half, shape, tile>(weft::sm80::AttentionArgs{
      .q = q, .k = keys, .v = v,
      .output = output_packed,
      .placesOfHead = placesOfHead,
      .score = score,
      .coverage = coverage,
      .sequences = sequences});
  const auto outputRow = [=](int head, int token) {
    return output_packed + weft::Offset(head % 12) * 64 + weft::Offset(token) * 768;
  };
  weft::zeroUnused<w, b * h, shape.isOutputAligned>(sequences, outputRow, threadIdx.x, 128);
}
