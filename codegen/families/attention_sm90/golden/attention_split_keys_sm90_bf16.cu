// causal_attention    (this header is not hashed)
//
//   ops        scores = contract "bhgjp,bhkp->bhgjk" q, keys
//              causal = mask scores
//              output, log_sums = online_softmax_contract "bhgjk,bhkw->bhgjw" causal, v
//   space      b=1 g=4 h=8 j=64 w=128 | k=32768 p=128 (reduced)
//   reads      q[b,h,g,j,p] bf16   keys[b,h,k,p] bf16   v[b,h,k,w] bf16    135 MB
//   writes     output[b,h,g,j,w] bf16   log_sums[b,h,g,j] f32    532 kB
//   workspace  8.91 MB
//   config     fused attention by wgmma, 128 rows of packed heads x 112 keys, 2 stages, 1 of queries, 8 splits of keys    launch <<<128, 384>>>
#include "weft/sm90_split_keys.cuh"
#include "weft/tile_coverage.cuh"
#include "weft/wgmma_bf16_any_n.cuh"
#include "weft/wgmma_bf16_rs.cuh"

namespace {
constexpr int g = 4, h = 8, j = 64, k = 32768, p = 128, w = 128;  // extents
constexpr weft::sm90::AttentionProblem shape = {
    .queries = j, .keys = k, .headDim = p, .valueDim = w, .heads = h * g * 8,
    .q = {.dimensions = 3, .divisors = {32}, .extents = {8}},
    .k = {.dimensions = 3, .divisors = {32}, .extents = {8}},
    .v = {.dimensions = 3, .divisors = {32}, .extents = {8}},
    .output = {.dimensions = 3, .divisors = {32}, .extents = {8}}};
constexpr weft::sm90::AttentionTile tile = {.queries = 128, .keys = 112, .stages = 2, .queryStages = 1,
    .isOrdered = false, .staysInQ = false, .headGroup = 0, .packedHeads = 4};
__device__ unsigned tilesTaken;
__device__ weft::sm90::SplitArrivals<shape, tile, 8> arrivals;
}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
attention_causal_bf16_8x256x32768x128(const __grid_constant__ weft::sm90::TensorMap q_map,
                                      const __grid_constant__ weft::sm90::TensorMap keys_map,
                                      const __grid_constant__ weft::sm90::TensorMap v_map,
                                      const __grid_constant__ weft::sm90::TensorMap output_map,
                                      float *__restrict__ log_sums, float *__restrict__ sums) {
  static_assert(weft::sm90::AttentionConfig<shape, tile>::sharedBytes == 180352
      && weft::sm90::SplitConfig<shape, tile, 8>::bytes == 8912896);
  static_assert(shape.queries == 64 && shape.keys == 32768 && shape.headDim == 128 && shape.valueDim == 128 && shape.heads == 256, "plan.json: these extents");
  static_assert(shape.q.divisors[0] == 32 && shape.q.extents[0] == 8 && shape.k.divisors[0] == 32 && shape.k.extents[0] == 8 && shape.v.divisors[0] == 32 && shape.v.extents[0] == 8 && shape.output.divisors[0] == 32 && shape.output.extents[0] == 8, "plan.json: maps of these heads");
  static_assert(tile.queries == 128 && tile.keys == 112 && weft::sm90::AttentionConfig<shape, tile>::threads == 384 && tile.packedHeads == 4 && weft::sm90::AttentionConfig<shape, tile>::tiles == 128, "plan.json: 128 blocks and maps of these tiles");
  static_assert(g == 4 && h == 8 && j == 64 && k == 32768 && p == 128 && w == 128, "plan.json: these extents");
  static_assert(shape.q.dimensions == 3 && shape.k.dimensions == 3 && shape.v.dimensions == 3 && shape.output.dimensions == 3, "plan.json: strides of the result");
  static_assert(sizeof(tilesTaken) == sizeof(unsigned) && sizeof(arrivals) == sizeof(weft::sm90::SplitArrivals<shape, tile, 8>), "plan.json: device memory");
  const auto score = [=](float s, int head, int query, int key) {
    const float causal = key <= query + 32704 ? s : weft::negativeInfinity;
    return causal;
  };
  const auto coverage = [=](int head, int firstQuery, int lastQuery, int firstKey, int lastKey) {
    const bool isEmpty = !(firstKey <= (lastQuery + 32704));
    const bool isFull = lastKey <= (firstQuery + 32704);
    return isEmpty ? weft::TileCoverage::empty : isFull ? weft::TileCoverage::full : weft::TileCoverage::mixed;
  };
  weft::sm90::attentionInSplits<weft::bfloat16, shape, tile, 8>({sums, arrivals}, weft::sm90::AttentionArgs{
      .q = &q_map, .k = &keys_map, .v = &v_map,
      .output = &output_map,
      .counter = &tilesTaken,
      .scale = 0.125f,
      .logSums = log_sums,
      .score = score,
      .coverage = weft::sm90::splitCoverage<tile, 8>(coverage)});
}
