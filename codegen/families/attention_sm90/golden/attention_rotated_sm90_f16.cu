// rotated_cached_attention    (this header is not hashed)
//
//   ops        q_turned = rotary q, lengths
//              scores = contract "bhgjp,bhkp->bhgjk" q_turned, keys
//              causal = mask scores, lengths
//              output = online_softmax_contract "bhgjk,bhkw->bhgjw" causal, v
//   space      b=2 g=4 h=8 j=256 w=128 | k=1024 p=128 (reduced)
//   reads      q[b,h,g,j,p] f16   keys[b,h,k,p] f16   v[b,h,k,w] f16   lengths[b] i32    12.6 MB
//   writes     output[b,h,g,j,w] f16    4.19 MB
//   config     fused attention by wgmma, 128 query rows x 128 keys, 2 stages, 1 of queries, ordered consumers, tiles of 16 heads together, longest first    launch <<<128, 384>>>
#include "weft/math.cuh"
#include "weft/rotated_chunks.cuh"
#include "weft/short_rotation.cuh"
#include "weft/sm90_attention.cuh"
#include "weft/sm90_rotated_queries.cuh"
#include "weft/tile_coverage.cuh"
#include "weft/vector.cuh"
#include "weft/wgmma_f16_any_n.cuh"
#include "weft/wgmma_f16_rs.cuh"

namespace {
constexpr int b = 2, g = 4, h = 8, j = 256, k = 1024, p = 128, w = 128;  // extents
constexpr weft::sm90::AttentionProblem shape = {
    .queries = j, .keys = k, .headDim = p, .valueDim = w, .heads = b * h * g,
    .q = {.dimensions = 3, .divisors = {1}, .extents = {64}},
    .k = {.dimensions = 3, .divisors = {4}, .extents = {16}},
    .v = {.dimensions = 3, .divisors = {4}, .extents = {16}},
    .output = {.dimensions = 3, .divisors = {1}, .extents = {64}},
    .zeroesUnseen = true};
constexpr weft::sm90::AttentionTile tile = {.queries = 128, .keys = 128, .stages = 2, .queryStages = 1,
    .isOrdered = true, .staysInQ = false, .headGroup = 16};
constexpr weft::RotatedColumns rotatedColumns = {.rotated = 128, .isHalved = true, .isReverse = false, .isShort = true};
__device__ unsigned tilesTaken;
}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
attention_rotated_causal_f16_16x1024x1024x128(const __grid_constant__ weft::sm90::TensorMap q_map,
                                              const __grid_constant__ weft::sm90::TensorMap keys_map,
                                              const __grid_constant__ weft::sm90::TensorMap v_map,
                                              const int *__restrict__ lengths,
                                              const __grid_constant__ weft::sm90::TensorMap output_map) {
  static_assert(weft::sm90::AttentionConfig<shape, tile>::sharedBytes == 196744);
  static_assert(shape.queries == 256 && shape.keys == 1024 && shape.headDim == 128 && shape.valueDim == 128 && shape.heads == 64, "plan.json: these extents");
  static_assert(shape.q.divisors[0] == 1 && shape.q.extents[0] == 64 && shape.k.divisors[0] == 4 && shape.k.extents[0] == 16 && shape.v.divisors[0] == 4 && shape.v.extents[0] == 16 && shape.output.divisors[0] == 1 && shape.output.extents[0] == 64, "plan.json: maps of these heads");
  static_assert(tile.queries == 128 && tile.keys == 128 && weft::sm90::AttentionConfig<shape, tile>::threads == 384, "plan.json: 128 blocks and maps of these tiles");
  static_assert(b == 2 && g == 4 && h == 8 && j == 256 && k == 1024 && p == 128 && w == 128, "plan.json: these extents");
  static_assert(shape.q.dimensions == 3 && shape.k.dimensions == 3 && shape.v.dimensions == 3 && shape.output.dimensions == 3 && shape.zeroesUnseen == true, "plan.json: strides of the result");
  static_assert(rotatedColumns.rotated == 128 && rotatedColumns.isHalved == true && rotatedColumns.isReverse == false && rotatedColumns.isShort == true, "plan.json: pairs of a rotary embedding");
  static_assert(sizeof(tilesTaken) == sizeof(unsigned), "plan.json: device memory");
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
  const auto positionOf = [=](int head_2, int query_2) {
    const int lengths_v_3 = weft::loadOne(lengths + weft::Offset(head_2 / 32));
    return query_2 + lengths_v_3;
  };
  const auto frequencyOf = [=](int column) {
    return weft::rotaryFrequency(column % 64, -0.2076205f);
  };
  weft::sm90::attention<weft::half, shape, tile>(weft::sm90::rotated<weft::half>(weft::sm90::queryRotation<rotatedColumns>(positionOf, frequencyOf), weft::sm90::AttentionArgs{
      .q = &q_map, .k = &keys_map, .v = &v_map,
      .output = &output_map,
      .counter = &tilesTaken,
      .scale = 0.125f,
      .score = score,
      .coverage = coverage}));
}
