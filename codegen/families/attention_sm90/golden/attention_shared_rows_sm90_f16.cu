// attention    (this header is not hashed)
//
//   ops        scores = contract "bhgjp,bhkp->bhgjk" q, keys
//              output = online_softmax_contract "bhgjk,bhkw->bhgjw" scores, v
//   space      b=1 g=1 h=12 j=616 w=64 | k=616 p=64 (reduced)
//   reads      q[b,g,h,j,p] f16   keys[b,h,k,p] f16   v[b,h,k,w] f16    2.84 MB
//   writes     output[b,g,h,j,w] f16    946 kB
//   config     fused attention by wgmma, 64 query rows x 128 keys, 4 stages, 1 of queries, blocks of keys by 2 consumers in turn    launch <<<120, 384>>>
#include "weft/sm90_attention.cuh"
#include "weft/tile_coverage.cuh"
#include "weft/wgmma_f16_any_n.cuh"
#include "weft/wgmma_f16_rs.cuh"

namespace {
constexpr int h = 12, j = 616, k = 616, p = 64, w = 64;  // extents
constexpr weft::sm90::AttentionProblem shape = {
    .queries = j, .keys = k, .headDim = p, .valueDim = w, .heads = h,
    .q = {.dimensions = 3, .divisors = {1}, .extents = {12}},
    .k = {.dimensions = 3, .divisors = {1}, .extents = {12}},
    .v = {.dimensions = 3, .divisors = {1}, .extents = {12}},
    .output = {.dimensions = 3, .divisors = {1}, .extents = {12}}};
constexpr weft::sm90::AttentionTile tile = {.queries = 64, .keys = 128, .stages = 4, .queryStages = 1,
    .isOrdered = false, .staysInQ = false, .headGroup = 0, .keyConsumers = 2};
__device__ unsigned tilesTaken;
}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
attention_f16_12x616x616x64(const __grid_constant__ weft::sm90::TensorMap q_map,
                            const __grid_constant__ weft::sm90::TensorMap keys_map,
                            const __grid_constant__ weft::sm90::TensorMap v_map,
                            const __grid_constant__ weft::sm90::TensorMap output_map) {
  static_assert(weft::sm90::AttentionConfig<shape, tile>::sharedBytes == 166096);
  static_assert(shape.queries == 616 && shape.keys == 616 && shape.headDim == 64 && shape.valueDim == 64 && shape.heads == 12, "plan.json: these extents");
  static_assert(shape.q.divisors[0] == 1 && shape.q.extents[0] == 12 && shape.k.divisors[0] == 1 && shape.k.extents[0] == 12 && shape.v.divisors[0] == 1 && shape.v.extents[0] == 12 && shape.output.divisors[0] == 1 && shape.output.extents[0] == 12, "plan.json: maps of these heads");
  static_assert(tile.queries == 64 && tile.keys == 128 && weft::sm90::AttentionConfig<shape, tile>::threads == 384 && tile.keyConsumers == 2, "plan.json: 120 blocks and maps of these tiles");
  static_assert(h == 12 && j == 616 && k == 616 && p == 64 && w == 64, "plan.json: these extents");
  static_assert(shape.q.dimensions == 3 && shape.k.dimensions == 3 && shape.v.dimensions == 3 && shape.output.dimensions == 3, "plan.json: strides of the result");
  static_assert(sizeof(tilesTaken) == sizeof(unsigned), "plan.json: device memory");
  weft::sm90::attention<weft::half, shape, tile>(weft::sm90::AttentionArgs{
      .q = &q_map, .k = &keys_map, .v = &v_map,
      .output = &output_map,
      .counter = &tilesTaken,
      .scale = 0.125f});
}
