// attention__b_j_h_w    kernel 5 of paper-encoder, forward    (this header is not hashed)
//
//   ops        %6 = contract "phbk,phbj->hbjk" %3, %1
//              %7, %7 = online_softmax_contract "hbjk,whbk->whbj" %6, %5
//   space      h=16 b=8 j=512 w=64 | p=64 k=512 (reduced)
//   reads      k[k,b,h,p] f16   q[j,b,h,p] f16   v[k,b,h,w] f16    25.2 MB
//   writes     weighted[b,j,h,w] f16   weighted_log_sums[h,b,j] f32    8.65 MB
//   flop       8.72 Gflop
//   config     fused attention by wgmma, 64 query rows x 128 keys, 2 stages, 2 of queries    launch <<<264, 256>>>
//   fused by   fuse: reduction-consumer
//   not fused  contract, bias, contract: F024 no-epilogue ('contract' is of class contraction; an epilogue is element-wise)
//   not fused  contract, bias, contract: F024 no-epilogue ('contract' is of class contraction; an epilogue is element-wise)
#include "weft/dropout.cuh"
#include "weft/sm90_attention.cuh"
#include "weft/tile_coverage.cuh"
#include "weft/wgmma_f16_any_n.cuh"
#include "weft/wgmma_f16_rs.cuh"

namespace {
constexpr int p = 64, h = 16, b = 8, k = 512, j = 512, w = 64;  // extents
constexpr weft::sm90::AttentionProblem shape = {
    .queries = j, .keys = k, .headDim = p, .valueDim = w, .heads = h * b,
    .q = {.dimensions = 4, .divisors = {1, 8}, .extents = {8, 16}},
    .k = {.dimensions = 4, .divisors = {1, 8}, .extents = {8, 16}},
    .v = {.dimensions = 4, .divisors = {1, 8}, .extents = {8, 16}},
    .output = {.dimensions = 4, .divisors = {1, 8}, .extents = {8, 16}}};
constexpr weft::sm90::AttentionTile tile = {.queries = 64, .keys = 128, .stages = 2, .queryStages = 2,
    .isOrdered = false, .staysInQ = false, .headGroup = 0};
constexpr unsigned dropThreshold = 6554u;           // 0.1 of 65536 draws
__device__ unsigned tilesTaken;
}  // namespace

extern "C" __global__ void __launch_bounds__(256, 2)
attention_f16_128x512x512x64(const __grid_constant__ weft::sm90::TensorMap k_2_map,
                             const __grid_constant__ weft::sm90::TensorMap q_map,
                             const __grid_constant__ weft::sm90::TensorMap v_map,
                             const __grid_constant__ weft::sm90::TensorMap weighted_map,
                             float *__restrict__ weighted_log_sums, const weft::DropoutKey *__restrict__ dropoutKey,
                             unsigned dropoutStream) {
  static_assert(weft::sm90::AttentionConfig<shape, tile>::sharedBytes == 90256);
  static_assert(shape.queries == 512 && shape.keys == 512 && shape.headDim == 64 && shape.valueDim == 64 && shape.heads == 128, "plan.json: these extents");
  static_assert(shape.q.divisors[0] == 1 && shape.q.extents[0] == 8 && shape.q.divisors[1] == 8 && shape.q.extents[1] == 16 && shape.k.divisors[0] == 1 && shape.k.extents[0] == 8 && shape.k.divisors[1] == 8 && shape.k.extents[1] == 16 && shape.v.divisors[0] == 1 && shape.v.extents[0] == 8 && shape.v.divisors[1] == 8 && shape.v.extents[1] == 16 && shape.output.divisors[0] == 1 && shape.output.extents[0] == 8 && shape.output.divisors[1] == 8 && shape.output.extents[1] == 16, "plan.json: maps of these heads");
  static_assert(tile.queries == 64 && tile.keys == 128 && weft::sm90::AttentionConfig<shape, tile>::threads == 256, "plan.json: 264 blocks and maps of these tiles");
  static_assert(p == 64 && h == 16 && b == 8 && k == 512 && j == 512 && w == 64, "plan.json: these extents");
  static_assert(shape.q.dimensions == 4 && shape.k.dimensions == 4 && shape.v.dimensions == 4 && shape.output.dimensions == 4, "plan.json: strides of the result");
  static_assert(sizeof(tilesTaken) == sizeof(unsigned), "plan.json: device memory");
  const weft::DropoutKey dropoutSeedAndStep = *dropoutKey;                           // a replay must not repeat masks
  const auto kept = [=](int head, int query, int key) {
    return weft::keptFragment(dropoutSeedAndStep, dropoutStream, (head / b) * b + head % b, query, key, dropThreshold);
  };
  weft::sm90::attention<weft::half, shape, tile>(weft::sm90::AttentionArgs{
      .q = &q_map, .k = &k_2_map, .v = &v_map,
      .output = &weighted_map,
      .counter = &tilesTaken,
      .scale = 0.125f,
      .logSums = weighted_log_sums,
      .dropout = kept,
      .keepScale = 1.1111112f});
}
