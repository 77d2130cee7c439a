// block_backward    (this header is not hashed)
//
//   ops        scores = contract "bhgjp,bhkp->bhgjk" q, keys
//              in_blocks = mask scores
//              y = softmax_from_log_sums in_blocks, log_sums
//              d_kept = contract "bhgjw,bhkw->bhgjk" d_output, v
//              centred = sub d_kept, row_sums
//              d_s = mul centred, y
//              d_scores = mask d_s
//              d_v = contract "bhgjk,bhgjw->bhkw" y, d_output
//              d_q = contract "bhgjk,bhkp->bhgjp" d_scores, keys
//              d_k = contract "bhgjk,bhgjp->bhkp" d_scores, q
//   space      b=1 h=4 | g=2 j=1024 k=1024 p=64 w=64 (reduced)
//   reads      q[b,h,g,j,p] f16   keys[b,h,k,p] f16   v[b,h,k,w] f16   d_output[b,h,g,j,w] f16   log_sums[b,h,g,j] f32   row_sums[b,h,g,j] f32    3.21 MB
//   writes     d_q[b,h,g,j,p] f16   d_k[b,h,k,p] f16   d_v[b,h,k,w] f16    2.10 MB
//   config     fused attention backward by wgmma, tiles of 64 keys or queries x 64, of 4 heads together    launch <<<192, 256>>>
#include "weft/block_mask.cuh"
#include "weft/score_gradients.cuh"
#include "weft/sm90_split_backward.cuh"
#include "weft/tile_coverage.cuh"
#include "weft/vector.cuh"
#include "weft/wgmma_f16_any_n.cuh"
#include "weft/wgmma_f16_rs.cuh"

namespace {
constexpr int g = 2, h = 4, j = 1024, k = 1024, p = 64, w = 64;  // extents
constexpr weft::sm90::AttentionBackwardProblem shape = {
    .queries = j, .keys = k, .headDim = p, .valueDim = w, .heads = h * g, .headsOfGroup = 2,
    .q = {.dimensions = 3, .divisors = {1}, .extents = {8}},
    .k = {.dimensions = 3, .divisors = {2}, .extents = {4}},
    .v = {.dimensions = 3, .divisors = {2}, .extents = {4}},
    .dOutput = {.dimensions = 3, .divisors = {1}, .extents = {8}},
    .dQ = {.dimensions = 3, .divisors = {1}, .extents = {8}},
    .dK = {.dimensions = 3, .divisors = {2}, .extents = {4}},
    .dV = {.dimensions = 3, .divisors = {2}, .extents = {4}}};
constexpr weft::sm90::SplitBackwardTile tile = {.rows = 64, .columns = 64, .stages = 4, .ownStages = 2, .headGroup = 4,
    .longKeyTiles = 1, .longQueryTiles = 1};
constexpr float exponentFactor = 0.18033688f;
__device__ unsigned tilesTaken;
// tiles of keys, those first that most queries see
__device__ const weft::sm90::TileTable<16> keyOrder = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}};
// tiles of queries, those first that see most keys
__device__ const weft::sm90::TileTable<16> queryOrder = {{0, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1}};
// 46 of 256 tiles
__device__ const weft::BlockMask<64, 1, 16, 16> blocks_410ce28e = {{0xffffu, 0x3u, 0x5u, 0x9u, 0x11u, 0x21u, 0x41u,
    0x81u, 0x101u, 0x201u, 0x401u, 0x801u, 0x1001u, 0x2001u, 0x4001u, 0x8001u}};
}  // namespace

extern "C" __global__ void __launch_bounds__(256, 2)
attention_backward_pattern_f16_4x2048x1024x64(const __grid_constant__ weft::sm90::TensorMap q_map,
                                              const __grid_constant__ weft::sm90::TensorMap keys_map,
                                              const __grid_constant__ weft::sm90::TensorMap v_map,
                                              const __grid_constant__ weft::sm90::TensorMap d_output_map,
                                              const float *__restrict__ log_sums, const float *__restrict__ row_sums,
                                              const __grid_constant__ weft::sm90::TensorMap d_q_map,
                                              const __grid_constant__ weft::sm90::TensorMap d_k_map,
                                              const __grid_constant__ weft::sm90::TensorMap d_v_map) {
  static_assert(shape.queries == 1024 && shape.keys == 1024 && shape.headDim == 64 && shape.valueDim == 64 && shape.heads == 8 && shape.headsOfGroup == 2, "plan.json: these extents");
  static_assert(shape.q.divisors[0] == 1 && shape.q.extents[0] == 8 && shape.k.divisors[0] == 2 && shape.k.extents[0] == 4 && shape.v.divisors[0] == 2 && shape.v.extents[0] == 4 && shape.dOutput.divisors[0] == 1 && shape.dOutput.extents[0] == 8 && shape.dQ.divisors[0] == 1 && shape.dQ.extents[0] == 8 && shape.dK.divisors[0] == 2 && shape.dK.extents[0] == 4 && shape.dV.divisors[0] == 2 && shape.dV.extents[0] == 4, "plan.json: maps of these heads");
  static_assert(tile.columns == 64 && tile.rows == 64, "plan.json: 192 blocks and maps of these tiles");
  static_assert(g == 2 && h == 4 && j == 1024 && k == 1024 && p == 64 && w == 64, "plan.json: these extents");
  static_assert(shape.q.dimensions == 3 && shape.k.dimensions == 3 && shape.v.dimensions == 3 && shape.dOutput.dimensions == 3 && shape.dQ.dimensions == 3 && shape.dK.dimensions == 3 && shape.dV.dimensions == 3, "plan.json: strides of the result");
  static_assert(sizeof(tilesTaken) == sizeof(unsigned) && sizeof(keyOrder) == sizeof(const weft::sm90::TileTable<16>) && sizeof(queryOrder) == sizeof(const weft::sm90::TileTable<16>), "plan.json: device memory");
  const auto rowOf = [=](int head, int query) {
    const auto log_sums_v = query < j ? weft::loadOne(log_sums + (head / g) * 2048 + (head % g) * 1024 + query) : 0.0f;
    const auto row_sums_v = query < j ? weft::loadOne(row_sums + (head / g) * 2048 + (head % g) * 1024 + query) : 0.0f;
    return weft::ScoreRow<2>{{weft::negatedLogSum(log_sums_v), row_sums_v}};
  };
  const auto gradients = [=](float s, float dKept, const weft::ScoreRow<2> &row, int head, int query, int key,
      bool isKept) {
    const float in_blocks = weft::hasBlock(blocks_410ce28e, 0, query, key) ? s : weft::negativeInfinity;
    const float y = weft::probabilityOf(in_blocks, exponentFactor, row.at[0]);
    const float centred = dKept - row.at[1];
    const float d_s = centred * y;
    const float d_scores = weft::hasBlock(blocks_410ce28e, 0, query, key) ? d_s : 0.0f;
    return weft::ScoreGradients{y, d_scores};
  };
  const auto unmaskedGradients = [=](float s, float dKept, const weft::ScoreRow<2> &row, int head, int query, int key,
      bool isKept) {
    const float y_2 = weft::probabilityOf(s, exponentFactor, row.at[0]);
    const float centred_2 = dKept - row.at[1];
    const float d_s_2 = centred_2 * y_2;
    return weft::ScoreGradients{y_2, d_s_2};
  };
  const auto coverage = [=](int head, int firstQuery, int lastQuery, int firstKey, int lastKey) {
    const weft::TileCoverage blocks = weft::blockCoverage(blocks_410ce28e, 0, firstQuery, lastQuery, firstKey, lastKey);
    const bool isEmpty = !(blocks != weft::TileCoverage::empty);
    const bool isFull = blocks == weft::TileCoverage::full;
    return isEmpty ? weft::TileCoverage::empty : isFull ? weft::TileCoverage::full : weft::TileCoverage::mixed;
  };
  static_assert(weft::sm90::SplitBackwardConfig<shape, tile, weft::ScoreRow<2>>::sharedBytes == 100592
      && weft::sm90::SplitBackwardConfig<shape, tile, weft::ScoreRow<2>>::threads == 256
      && weft::sm90::SplitBackwardConfig<shape, tile, weft::ScoreRow<2>>::tiles == 192);
  weft::sm90::splitBackward<weft::half, shape, tile>(weft::sm90::SplitBackwardArgs{
      .q = &q_map, .k = &keys_map, .v = &v_map,
      .dOutput = &d_output_map,
      .dQ = &d_q_map,
      .dK = &d_k_map,
      .dV = &d_v_map,
      .counter = &tilesTaken,
      .dQScale = 0.125f,
      .dKScale = 0.125f,
      .dVScale = 1.0f,
      .row = rowOf,
      .gradients = gradients,
      .gradientsWithoutMasks = unmaskedGradients,
      .coverage = coverage,
      .keyOrder = weft::sm90::TableOrder<16>{keyOrder},
      .queryOrder = weft::sm90::TableOrder<16>{queryOrder}});
}
