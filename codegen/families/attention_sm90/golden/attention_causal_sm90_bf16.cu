// causal_attention    (this header is not hashed)
//
//   ops        scores = contract "bhgjp,bhkp->bhgjk" q, keys
//              causal = mask scores
//              output, log_sums = online_softmax_contract "bhgjk,bhkw->bhgjw" causal, v
//   space      b=1 g=4 h=8 j=2048 w=128 | k=2048 p=128 (reduced)
//   reads      q[b,h,g,j,p] bf16   keys[b,h,k,p] bf16   v[b,h,k,w] bf16    25.2 MB
//   writes     output[b,h,g,j,w] bf16   log_sums[b,h,g,j] f32    17.0 MB
//   config     fused attention by wgmma, 128 query rows x 128 keys, 2 stages, 1 of queries, ordered consumers, tiles of 16 heads together, longest first    launch <<<132, 384>>>
#include "weft/sm90_attention.cuh"
#include "weft/tile_coverage.cuh"
#include "weft/wgmma_bf16_any_n.cuh"
#include "weft/wgmma_bf16_rs.cuh"

namespace {
constexpr int g = 4, h = 8, j = 2048, k = 2048, p = 128, w = 128;  // extents
constexpr weft::sm90::AttentionProblem shape = {
    .queries = j, .keys = k, .headDim = p, .valueDim = w, .heads = h * g,
    .q = {.dimensions = 3, .divisors = {1}, .extents = {32}},
    .k = {.dimensions = 3, .divisors = {4}, .extents = {8}},
    .v = {.dimensions = 3, .divisors = {4}, .extents = {8}},
    .output = {.dimensions = 3, .divisors = {1}, .extents = {32}}};
constexpr weft::sm90::AttentionTile tile = {.queries = 128, .keys = 128, .stages = 2, .queryStages = 1,
    .isOrdered = true, .staysInQ = false, .headGroup = 16};
__device__ unsigned tilesTaken;
}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
attention_causal_bf16_8x8192x2048x128(const __grid_constant__ weft::sm90::TensorMap q_map,
                                      const __grid_constant__ weft::sm90::TensorMap keys_map,
                                      const __grid_constant__ weft::sm90::TensorMap v_map,
                                      const __grid_constant__ weft::sm90::TensorMap output_map,
                                      float *__restrict__ log_sums) {
  static_assert(weft::sm90::AttentionConfig<shape, tile>::sharedBytes == 196736);
  static_assert(shape.queries == 2048 && shape.keys == 2048 && shape.headDim == 128 && shape.valueDim == 128 && shape.heads == 32, "plan.json: these extents");
  static_assert(shape.q.divisors[0] == 1 && shape.q.extents[0] == 32 && shape.k.divisors[0] == 4 && shape.k.extents[0] == 8 && shape.v.divisors[0] == 4 && shape.v.extents[0] == 8 && shape.output.divisors[0] == 1 && shape.output.extents[0] == 32, "plan.json: maps of these heads");
  static_assert(tile.queries == 128 && tile.keys == 128 && weft::sm90::AttentionConfig<shape, tile>::threads == 384, "plan.json: 132 blocks and maps of these tiles");
  static_assert(g == 4 && h == 8 && j == 2048 && k == 2048 && p == 128 && w == 128, "plan.json: these extents");
  static_assert(shape.q.dimensions == 3 && shape.k.dimensions == 3 && shape.v.dimensions == 3 && shape.output.dimensions == 3, "plan.json: strides of the result");
  static_assert(sizeof(tilesTaken) == sizeof(unsigned), "plan.json: device memory");
  const auto score = [=](float s, int head, int query, int key) {
    const float causal = key <= query ? s : weft::negativeInfinity;
    return causal;
  };
  const auto coverage = [=](int head, int firstQuery, int lastQuery, int firstKey, int lastKey) {
    const bool isEmpty = !(firstKey <= lastQuery);
    const bool isFull = lastKey <= firstQuery;
    return isEmpty ? weft::TileCoverage::empty : isFull ? weft::TileCoverage::full : weft::TileCoverage::mixed;
  };
  weft::sm90::attention<weft::bfloat16, shape, tile>(weft::sm90::AttentionArgs{
      .q = &q_map, .k = &keys_map, .v = &v_map,
      .output = &output_map,
      .counter = &tilesTaken,
      .scale = 0.125f,
      .logSums = log_sums,
      .score = score,
      .coverage = coverage});
}
