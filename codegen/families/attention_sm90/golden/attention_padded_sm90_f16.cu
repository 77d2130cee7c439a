// padded_attention    (this header is not hashed)
//
//   ops        scores = contract "bhgjp,bhkp->bhgjk" q, keys
//              padded = mask scores, lengths
//              output = online_softmax_contract "bhgjk,bhkw->bhgjw" padded, v
//   space      b=16 g=1 h=12 j=256 w=64 | k=256 p=64 (reduced)
//   reads      q[g,b,h,j,p] f16   keys[b,h,k,p] f16   v[b,h,k,w] f16   lengths[b] i32    18.9 MB
//   writes     output[g,b,h,j,w] f16    6.29 MB
//   config     fused attention by wgmma, 64 query rows x 128 keys, 2 stages, 2 of queries    launch <<<264, 256>>>
#include "weft/sm90_attention.cuh"
#include "weft/tile_coverage.cuh"
#include "weft/vector.cuh"
#include "weft/wgmma_f16_any_n.cuh"
#include "weft/wgmma_f16_rs.cuh"

namespace {
constexpr int b = 16, h = 12, j = 256, k = 256, p = 64, w = 64;  // extents
constexpr weft::sm90::AttentionProblem shape = {
    .queries = j, .keys = k, .headDim = p, .valueDim = w, .heads = b * h,
    .q = {.dimensions = 3, .divisors = {1}, .extents = {192}},
    .k = {.dimensions = 3, .divisors = {1}, .extents = {192}},
    .v = {.dimensions = 3, .divisors = {1}, .extents = {192}},
    .output = {.dimensions = 3, .divisors = {1}, .extents = {192}},
    .zeroesUnseen = true};
constexpr weft::sm90::AttentionTile tile = {.queries = 64, .keys = 128, .stages = 2, .queryStages = 2,
    .isOrdered = false, .staysInQ = false, .headGroup = 0};
__device__ unsigned tilesTaken;
}  // namespace

extern "C" __global__ void __launch_bounds__(256, 2)
attention_padding_f16_192x256x256x64(const __grid_constant__ weft::sm90::TensorMap q_map,
                                     const __grid_constant__ weft::sm90::TensorMap keys_map,
                                     const __grid_constant__ weft::sm90::TensorMap v_map,
                                     const int *__restrict__ lengths,
                                     const __grid_constant__ weft::sm90::TensorMap output_map) {
  static_assert(weft::sm90::AttentionConfig<shape, tile>::sharedBytes == 90264);
  static_assert(shape.queries == 256 && shape.keys == 256 && shape.headDim == 64 && shape.valueDim == 64 && shape.heads == 192, "plan.json: these extents");
  static_assert(shape.q.divisors[0] == 1 && shape.q.extents[0] == 192 && shape.k.divisors[0] == 1 && shape.k.extents[0] == 192 && shape.v.divisors[0] == 1 && shape.v.extents[0] == 192 && shape.output.divisors[0] == 1 && shape.output.extents[0] == 192, "plan.json: maps of these heads");
  static_assert(tile.queries == 64 && tile.keys == 128 && weft::sm90::AttentionConfig<shape, tile>::threads == 256, "plan.json: 264 blocks and maps of these tiles");
  static_assert(b == 16 && h == 12 && j == 256 && k == 256 && p == 64 && w == 64, "plan.json: these extents");
  static_assert(shape.q.dimensions == 3 && shape.k.dimensions == 3 && shape.v.dimensions == 3 && shape.output.dimensions == 3 && shape.zeroesUnseen == true, "plan.json: strides of the result");
  static_assert(sizeof(tilesTaken) == sizeof(unsigned), "plan.json: device memory");
  const auto score = [=](float s, int head, int query, int key) {
    const auto lengths_v = weft::loadOne(lengths + (head / h));
    const float padded = key < lengths_v ? s : weft::negativeInfinity;
    return padded;
  };
  const auto coverage = [=](int head, int firstQuery, int lastQuery, int firstKey, int lastKey) {
    const auto lengths_v_2 = weft::loadOne(lengths + (head / h));
    const bool isEmpty = !(firstKey < lengths_v_2);
    const bool isFull = lastKey < lengths_v_2;
    return isEmpty ? weft::TileCoverage::empty : isFull ? weft::TileCoverage::full : weft::TileCoverage::mixed;
  };
  weft::sm90::attention<weft::half, shape, tile>(weft::sm90::AttentionArgs{
      .q = &q_map, .k = &keys_map, .v = &v_map,
      .output = &output_map,
      .counter = &tilesTaken,
      .scale = 0.125f,
      .score = score,
      .coverage = coverage});
}
