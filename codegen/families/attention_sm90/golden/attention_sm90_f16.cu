// attention    (this header is not hashed)
//
//   ops        scores = contract "bhgjp,bhkp->bhgjk" q, keys
//              output = online_softmax_contract "bhgjk,bhkw->bhgjw" scores, v
//   space      b=8 g=1 h=16 j=512 w=64 | k=512 p=64 (reduced)
//   reads      q[g,b,h,j,p] f16   keys[b,h,k,p] f16   v[b,h,k,w] f16    25.2 MB
//   writes     output[g,b,h,j,w] f16    8.39 MB
//   config     fused attention by wgmma, 192 query rows x 128 keys, 2 stages, 2 of queries, ordered consumers    launch <<<132, 512>>>
#include "weft/sm90_attention.cuh"
#include "weft/tile_coverage.cuh"
#include "weft/wgmma_f16_any_n.cuh"
#include "weft/wgmma_f16_rs.cuh"

namespace {
constexpr int b = 8, h = 16, j = 512, k = 512, p = 64, w = 64;  // extents
constexpr weft::sm90::AttentionProblem shape = {
    .queries = j, .keys = k, .headDim = p, .valueDim = w, .heads = b * h,
    .q = {.dimensions = 3, .divisors = {1}, .extents = {128}},
    .k = {.dimensions = 3, .divisors = {1}, .extents = {128}},
    .v = {.dimensions = 3, .divisors = {1}, .extents = {128}},
    .output = {.dimensions = 3, .divisors = {1}, .extents = {128}}};
constexpr weft::sm90::AttentionTile tile = {.queries = 192, .keys = 128, .stages = 2, .queryStages = 2,
    .isOrdered = true, .staysInQ = false, .headGroup = 0};
__device__ unsigned tilesTaken;
}  // namespace

extern "C" __global__ void __launch_bounds__(512, 1)
attention_f16_128x512x512x64(const __grid_constant__ weft::sm90::TensorMap q_map,
                             const __grid_constant__ weft::sm90::TensorMap keys_map,
                             const __grid_constant__ weft::sm90::TensorMap v_map,
                             const __grid_constant__ weft::sm90::TensorMap output_map) {
  static_assert(weft::sm90::AttentionConfig<shape, tile>::sharedBytes == 139408);
  static_assert(shape.queries == 512 && shape.keys == 512 && shape.headDim == 64 && shape.valueDim == 64 && shape.heads == 128, "plan.json: these extents");
  static_assert(shape.q.divisors[0] == 1 && shape.q.extents[0] == 128 && shape.k.divisors[0] == 1 && shape.k.extents[0] == 128 && shape.v.divisors[0] == 1 && shape.v.extents[0] == 128 && shape.output.divisors[0] == 1 && shape.output.extents[0] == 128, "plan.json: maps of these heads");
  static_assert(tile.queries == 192 && tile.keys == 128 && weft::sm90::AttentionConfig<shape, tile>::threads == 512, "plan.json: 132 blocks and maps of these tiles");
  static_assert(b == 8 && h == 16 && j == 512 && k == 512 && p == 64 && w == 64, "plan.json: these extents");
  static_assert(shape.q.dimensions == 3 && shape.k.dimensions == 3 && shape.v.dimensions == 3 && shape.output.dimensions == 3, "plan.json: strides of the result");
  static_assert(sizeof(tilesTaken) == sizeof(unsigned), "plan.json: device memory");
  weft::sm90::attention<weft::half, shape, tile>(weft::sm90::AttentionArgs{
      .q = &q_map, .k = &keys_map, .v = &v_map,
      .output = &output_map,
      .counter = &tilesTaken,
      .scale = 0.125f});
}
