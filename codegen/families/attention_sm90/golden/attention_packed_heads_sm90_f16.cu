// causal_attention    (this header is not hashed)
//
//   ops        scores = contract "bhgjp,bhkp->bhgjk" q, keys
//              causal = mask scores
//              output, log_sums = online_softmax_contract "bhgjk,bhkw->bhgjw" causal, v
//   space      b=16 g=4 h=8 j=16 w=128 | k=4096 p=128 (reduced)
//   reads      q[b,h,g,j,p] f16   keys[b,h,k,p] f16   v[b,h,k,w] f16    271 MB
//   writes     output[b,h,g,j,w] f16   log_sums[b,h,g,j] f32    2.13 MB
//   config     fused attention by wgmma, 64 rows of packed heads x 128 keys, 2 stages, 1 of queries, tiles of 512 heads together, longest first    launch <<<128, 256>>>
#include "weft/sm90_attention.cuh"
#include "weft/tile_coverage.cuh"
#include "weft/wgmma_f16_any_n.cuh"
#include "weft/wgmma_f16_rs.cuh"

namespace {
constexpr int b = 16, g = 4, h = 8, j = 16, k = 4096, p = 128, w = 128;  // extents
constexpr weft::sm90::AttentionProblem shape = {
    .queries = j, .keys = k, .headDim = p, .valueDim = w, .heads = b * h * g,
    .q = {.dimensions = 3, .divisors = {4}, .extents = {128}},
    .k = {.dimensions = 3, .divisors = {4}, .extents = {128}},
    .v = {.dimensions = 3, .divisors = {4}, .extents = {128}},
    .output = {.dimensions = 3, .divisors = {4}, .extents = {128}}};
constexpr weft::sm90::AttentionTile tile = {.queries = 64, .keys = 128, .stages = 2, .queryStages = 1,
    .isOrdered = false, .staysInQ = false, .headGroup = 512, .packedHeads = 4};
__device__ unsigned tilesTaken;
}  // namespace

extern "C" __global__ void __launch_bounds__(256, 1)
attention_causal_f16_128x64x4096x128(const __grid_constant__ weft::sm90::TensorMap q_map,
                                     const __grid_constant__ weft::sm90::TensorMap keys_map,
                                     const __grid_constant__ weft::sm90::TensorMap v_map,
                                     const __grid_constant__ weft::sm90::TensorMap output_map,
                                     float *__restrict__ log_sums) {
  static_assert(weft::sm90::AttentionConfig<shape, tile>::sharedBytes == 163968);
  static_assert(shape.queries == 16 && shape.keys == 4096 && shape.headDim == 128 && shape.valueDim == 128 && shape.heads == 512, "plan.json: these extents");
  static_assert(shape.q.divisors[0] == 4 && shape.q.extents[0] == 128 && shape.k.divisors[0] == 4 && shape.k.extents[0] == 128 && shape.v.divisors[0] == 4 && shape.v.extents[0] == 128 && shape.output.divisors[0] == 4 && shape.output.extents[0] == 128, "plan.json: maps of these heads");
  static_assert(tile.queries == 64 && tile.keys == 128 && weft::sm90::AttentionConfig<shape, tile>::threads == 256 && tile.packedHeads == 4, "plan.json: 128 blocks and maps of these tiles");
  static_assert(b == 16 && g == 4 && h == 8 && j == 16 && k == 4096 && p == 128 && w == 128, "plan.json: these extents");
  static_assert(shape.q.dimensions == 3 && shape.k.dimensions == 3 && shape.v.dimensions == 3 && shape.output.dimensions == 3, "plan.json: strides of the result");
  static_assert(sizeof(tilesTaken) == sizeof(unsigned), "plan.json: device memory");
  const auto score = [=](float s, int head, int query, int key) {
    const float causal = key <= query + 4080 ? s : weft::negativeInfinity;
    return causal;
  };
  const auto coverage = [=](int head, int firstQuery, int lastQuery, int firstKey, int lastKey) {
    const bool isEmpty = !(firstKey <= (lastQuery + 4080));
    const bool isFull = lastKey <= (firstQuery + 4080);
    return isEmpty ? weft::TileCoverage::empty : isFull ? weft::TileCoverage::full : weft::TileCoverage::mixed;
  };
  weft::sm90::attention<weft::half, shape, tile>(weft::sm90::AttentionArgs{
      .q = &q_map, .k = &keys_map, .v = &v_map,
      .output = &output_map,
      .counter = &tilesTaken,
      .scale = 0.125f,
      .logSums = log_sums,
      .score = score,
      .coverage = coverage});
}
