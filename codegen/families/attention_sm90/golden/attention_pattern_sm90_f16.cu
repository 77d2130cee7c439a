// block_attention    (this header is not hashed)
//
//   ops        scores = contract "bhgjp,bhkp->bhgjk" q, keys
//              in_blocks = mask scores
//              output = online_softmax_contract "bhgjk,bhkw->bhgjw" in_blocks, v
//   space      b=1 g=1 h=4 j=2048 w=64 | k=2048 p=64 (reduced)
//   reads      q[b,g,h,j,p] f16   keys[b,h,k,p] f16   v[b,h,k,w] f16    3.15 MB
//   writes     output[b,g,h,j,w] f16    1.05 MB
//   config     fused attention by wgmma, 128 query rows x 64 keys, 2 stages, 2 of queries, tiles of 4 heads together, longest first    launch <<<64, 384>>>
#include "weft/block_mask.cuh"
#include "weft/sm90_attention.cuh"
#include "weft/tile_coverage.cuh"
#include "weft/wgmma_f16_any_n.cuh"
#include "weft/wgmma_f16_rs.cuh"

namespace {
constexpr int h = 4, j = 2048, k = 2048, p = 64, w = 64;  // extents
constexpr weft::sm90::AttentionProblem shape = {
    .queries = j, .keys = k, .headDim = p, .valueDim = w, .heads = h,
    .q = {.dimensions = 3, .divisors = {1}, .extents = {4}},
    .k = {.dimensions = 3, .divisors = {1}, .extents = {4}},
    .v = {.dimensions = 3, .divisors = {1}, .extents = {4}},
    .output = {.dimensions = 3, .divisors = {1}, .extents = {4}}};
constexpr weft::sm90::AttentionTile tile = {.queries = 128, .keys = 64, .stages = 2, .queryStages = 2,
    .isOrdered = false, .staysInQ = false, .headGroup = 4, .longTiles = 2};
__device__ unsigned tilesTaken;
// tiles of queries, those first that see most keys
__device__ const weft::sm90::TileTable<16> tileOrder = {{15, 0, 14, 13, 10, 8, 7, 3, 12, 5, 4, 11, 9, 6, 2, 1}};
// 1208 of 4096 tiles
__device__ const weft::BlockMask<64, 4, 32, 32> blocks_0ba7996b = {{0xffffffffu, 0x82410007u, 0x8040048fu, 0x8800803du,
    0x90800839u, 0x90000273u, 0x850080e1u, 0xc00501c1u, 0xa8200381u, 0x90000f41u, 0x88000e13u, 0xa0019c01u, 0x8201b801u,
    0x84817001u, 0x8042e101u, 0x8881c011u, 0x88138401u, 0x81076001u, 0x840e0209u, 0x841c1081u, 0xc03a4001u, 0xc0f02001u,
    0x80e22201u, 0xc1c80401u, 0x83a10021u, 0x870000a5u, 0x8ea00009u, 0xdc100081u, 0xb81000c1u, 0xf0002211u, 0xe0441001u,
    0xffffffffu, 0xffffffffu, 0x83400007u, 0x8012001fu, 0x8028001fu, 0xc0001439u, 0xc0080171u, 0x901001e1u, 0xc14001c1u,
    0xa0041381u, 0x88008705u, 0x88010e81u, 0xc1001c11u, 0xa8003901u, 0x82007111u, 0xc100e041u, 0x8001c829u, 0xc0438011u,
    0x88278001u, 0xc80e0005u, 0x901c1005u, 0xc0b80003u, 0x82701011u, 0xa0e02003u, 0x85c10021u, 0xa3902001u, 0xd7100001u,
    0x8e04a001u, 0x9c100209u, 0xb8000431u, 0xf0089001u, 0xe0040045u, 0xffffffffu, 0xffffffffu, 0xc0040047u, 0x8220020fu,
    0x8402041du, 0x800010f9u, 0x80010473u, 0x890000e9u, 0x848801c1u, 0x81000785u, 0x82800781u, 0xa4000e81u, 0x80041f01u,
    0x80003929u, 0x80007055u, 0xc000e019u, 0x8089c101u, 0x80438105u, 0x90272001u, 0x818e0201u, 0xa01c0203u, 0x903a4001u,
    0x80700c05u, 0x84e10021u, 0xc1c10401u, 0x93800015u, 0x87130001u, 0x8e00d001u, 0x9c040211u, 0xb8810021u, 0xf0140011u,
    0xe2800401u, 0xffffffffu, 0xffffffffu, 0xa8000107u, 0x8000203fu, 0x8020025du, 0x90808039u, 0x80400371u, 0xc10080e1u,
    0x800007c9u, 0x810003b1u, 0x90030701u, 0x90000f21u, 0xa1001c21u, 0x82203841u, 0x84017801u, 0xa000e805u, 0x8083c801u,
    0xa0838101u, 0x81072041u, 0xa00e0089u, 0x841d0011u, 0x803804a1u, 0x82700841u, 0x81e00013u, 0x81c00407u, 0x83810085u,
    0x87003009u, 0x8e00000fu, 0x9c002045u, 0xb8042801u, 0xf8000105u, 0xe3020001u, 0xffffffffu}};
}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
attention_pattern_f16_4x2048x2048x64(const __grid_constant__ weft::sm90::TensorMap q_map,
                                     const __grid_constant__ weft::sm90::TensorMap keys_map,
                                     const __grid_constant__ weft::sm90::TensorMap v_map,
                                     const __grid_constant__ weft::sm90::TensorMap output_map) {
  static_assert(weft::sm90::AttentionConfig<shape, tile>::sharedBytes == 82064);
  static_assert(shape.queries == 2048 && shape.keys == 2048 && shape.headDim == 64 && shape.valueDim == 64 && shape.heads == 4, "plan.json: these extents");
  static_assert(shape.q.divisors[0] == 1 && shape.q.extents[0] == 4 && shape.k.divisors[0] == 1 && shape.k.extents[0] == 4 && shape.v.divisors[0] == 1 && shape.v.extents[0] == 4 && shape.output.divisors[0] == 1 && shape.output.extents[0] == 4, "plan.json: maps of these heads");
  static_assert(tile.queries == 128 && tile.keys == 64 && weft::sm90::AttentionConfig<shape, tile>::threads == 384, "plan.json: 64 blocks and maps of these tiles");
  static_assert(h == 4 && j == 2048 && k == 2048 && p == 64 && w == 64, "plan.json: these extents");
  static_assert(shape.q.dimensions == 3 && shape.k.dimensions == 3 && shape.v.dimensions == 3 && shape.output.dimensions == 3, "plan.json: strides of the result");
  static_assert(sizeof(tilesTaken) == sizeof(unsigned) && sizeof(tileOrder) == sizeof(const weft::sm90::TileTable<16>), "plan.json: device memory");
  const auto score = [=](float s, int head, int query, int key) {
    const float in_blocks = weft::hasBlock(blocks_0ba7996b, head * 1 + 0, query, key) ? s : weft::negativeInfinity;
    return in_blocks;
  };
  const auto coverage = [=](int head, int firstQuery, int lastQuery, int firstKey, int lastKey) {
    const weft::TileCoverage blocks = weft::blockCoverage(blocks_0ba7996b, (head * 1) + 0, firstQuery, lastQuery,
        firstKey, lastKey);
    const bool isEmpty = !(blocks != weft::TileCoverage::empty);
    const bool isFull = blocks == weft::TileCoverage::full;
    return isEmpty ? weft::TileCoverage::empty : isFull ? weft::TileCoverage::full : weft::TileCoverage::mixed;
  };
  weft::sm90::attention<weft::half, shape, tile>(weft::sm90::AttentionArgs{
      .q = &q_map, .k = &keys_map, .v = &v_map,
      .output = &output_map,
      .counter = &tilesTaken,
      .scale = 0.125f,
      .score = score,
      .coverage = coverage,
      .order = weft::sm90::TableOrder<16>{tileOrder}});
}
