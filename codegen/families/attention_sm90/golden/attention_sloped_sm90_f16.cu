// sloped_attention    (this header is not hashed)
//
//   ops        scores = contract "bhgjp,bhkp->bhgjk" q, keys
//              sloped = add scores, slopes
//              causal = mask sloped
//              output = online_softmax_contract "bhgjk,bhkw->bhgjw" causal, v
//   space      b=2 g=1 h=12 j=777 w=64 | k=777 p=64 (reduced)
//   reads      q[g,b,h,j,p] f16   keys[b,h,k,p] f16   v[b,h,k,w] f16   slopes[g,h] f32    7.16 MB
//   writes     output[g,b,h,j,w] f16    2.39 MB
//   config     fused attention by wgmma, 128 query rows x 128 keys, 2 stages, 2 of queries, ordered consumers, tiles of 8 heads together, longest first    launch <<<132, 384>>>
#include "weft/sm90_attention.cuh"
#include "weft/tile_coverage.cuh"
#include "weft/vector.cuh"
#include "weft/wgmma_f16_any_n.cuh"
#include "weft/wgmma_f16_rs.cuh"

namespace {
constexpr int b = 2, h = 12, j = 777, k = 777, p = 64, w = 64;  // extents
constexpr weft::sm90::AttentionProblem shape = {
    .queries = j, .keys = k, .headDim = p, .valueDim = w, .heads = b * h,
    .q = {.dimensions = 3, .divisors = {1}, .extents = {24}},
    .k = {.dimensions = 3, .divisors = {1}, .extents = {24}},
    .v = {.dimensions = 3, .divisors = {1}, .extents = {24}},
    .output = {.dimensions = 3, .divisors = {1}, .extents = {24}}};
constexpr weft::sm90::AttentionTile tile = {.queries = 128, .keys = 128, .stages = 2, .queryStages = 2,
    .isOrdered = true, .staysInQ = false, .headGroup = 8};
__device__ unsigned tilesTaken;
}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
attention_add_causal_f16_24x777x777x64(const __grid_constant__ weft::sm90::TensorMap q_map,
                                       const __grid_constant__ weft::sm90::TensorMap keys_map,
                                       const __grid_constant__ weft::sm90::TensorMap v_map,
                                       const float *__restrict__ slopes,
                                       const __grid_constant__ weft::sm90::TensorMap output_map) {
  static_assert(weft::sm90::AttentionConfig<shape, tile>::sharedBytes == 114832);
  static_assert(shape.queries == 777 && shape.keys == 777 && shape.headDim == 64 && shape.valueDim == 64 && shape.heads == 24, "plan.json: these extents");
  static_assert(shape.q.divisors[0] == 1 && shape.q.extents[0] == 24 && shape.k.divisors[0] == 1 && shape.k.extents[0] == 24 && shape.v.divisors[0] == 1 && shape.v.extents[0] == 24 && shape.output.divisors[0] == 1 && shape.output.extents[0] == 24, "plan.json: maps of these heads");
  static_assert(tile.queries == 128 && tile.keys == 128 && weft::sm90::AttentionConfig<shape, tile>::threads == 384, "plan.json: 132 blocks and maps of these tiles");
  static_assert(b == 2 && h == 12 && j == 777 && k == 777 && p == 64 && w == 64, "plan.json: these extents");
  static_assert(shape.q.dimensions == 3 && shape.k.dimensions == 3 && shape.v.dimensions == 3 && shape.output.dimensions == 3, "plan.json: strides of the result");
  static_assert(sizeof(tilesTaken) == sizeof(unsigned), "plan.json: device memory");
  const auto score = [=](float s, int head, int query, int key) {
    const auto slopes_v = weft::loadOne(slopes + (head % h));
    const float sloped = s + slopes_v * (key - query);
    const float causal = key <= query ? sloped : weft::negativeInfinity;
    return causal;
  };
  const auto unmaskedScore = [=](float s, int head, int query, int key) {
    const auto slopes_v_2 = weft::loadOne(slopes + (head % h));
    const float sloped_2 = s + slopes_v_2 * (key - query);
    return sloped_2;
  };
  const auto coverage = [=](int head, int firstQuery, int lastQuery, int firstKey, int lastKey) {
    const bool isEmpty = !(firstKey <= lastQuery);
    const bool isFull = lastKey <= firstQuery;
    return isEmpty ? weft::TileCoverage::empty : isFull ? weft::TileCoverage::full : weft::TileCoverage::mixed;
  };
  weft::sm90::attention<weft::half, shape, tile>(weft::sm90::AttentionArgs{
      .q = &q_map, .k = &keys_map, .v = &v_map,
      .output = &output_map,
      .counter = &tilesTaken,
      .scale = 0.125f,
      .score = score,
      .scoreWithoutMasks = unmaskedScore,
      .coverage = coverage});
}
