// Fused attention backward on sm_90a: from q, k, v, the gradient of the output and what forward
// stored of every row, the gradients of q, k and v, without a score in memory (FlashAttention,
// algorithm 4).
//
//   a tile: 128 keys of one head, two consumer warpgroups of 64. Of every block of queries:
//
//     producer warp       q, d_output ──TMA──> two stages
//     row warp            row statistics ────> two stages
//     consumers           scores^T = k q^T, dKept^T = v d_output^T       WGMMA
//                         element-wise ops: kept, dScores                registers
//                         dV += kept^T d_output, dK += dScores^T q       WGMMA, left operand in
//                                                                        registers
//                         dScores^T ──> shared memory, both warpgroups'
//                         dQ of the block, 64 x 64 a warpgroup           WGMMA ──> shared memory
//     two sum warps,      dQ ──TMA, added──> device memory, in the order of key tiles
//     block after block                      (or as they come: `areSumsOrdered`)
//
// Scores stand transposed, rows are keys: what is made of them is then the left operand of both
// sums over queries as it lies in registers. Persistent blocks take tiles by a counter in device
// memory, first keys first. They walk queries from the last block to the first: under a causal mask
// the first keys, which have most to do and come first in the order of sums, then begin where all
// others begin, and nobody waits for a semaphore but at the start. When all tiles are taken,
// consumers round the sums of the queries' gradient. Where few groups of many heads leave blocks
// without a tile, tiles take some of a group's heads each, and the last one of those with the same
// keys adds up their parts.
#pragma once

#include "weft/grid_memory.cuh"
#include "weft/opaque.cuh"
#include "weft/pack.cuh"
#include "weft/score_gradients.cuh"
#include "weft/seen_keys.cuh"
#include "weft/sm90_attention_backward_roles.cuh"
#include "weft/sm90_attention_backward_tiles.cuh"
#include "weft/sm90_barrier.cuh"
#include "weft/sm90_fragment_shared.cuh"
#include "weft/sm90_gradient_parts.cuh"
#include "weft/sm90_heads.cuh"
#include "weft/sm90_ordered_sum.cuh"
#include "weft/sm90_registers.cuh"
#include "weft/sm90_tma.cuh"
#include "weft/sm90_unordered_sum.cuh"
#include "weft/sm90_zero_rows.cuh"
#include "weft/tile_coverage.cuh"
#include "weft/warp.cuh"
#include "weft/wgmma.cuh"

namespace weft::sm90 {

/// Functions as score_gradients.cuh has them: `row` of (head, query), `gradients` of (score, dKept,
/// row, head, query, key, isKept), the same without masks, `coverage` (tile_coverage.cuh), and
/// `dropout` of the first of the eight elements of a fragment whose rows are keys.
template <typename RowOf, typename Gradients, typename GradientsWithoutMasks,
          typename Coverage = FullCoverage, typename Dropout = NoDropout,
          typename StoreScores = NoScoreStore>
struct AttentionBackwardArgs {
  const TensorMap *q, *k, *v, *dOutput, *dQ, *dK, *dV;
  unsigned *counter;     // of tiles taken; zero between launches
  unsigned *semaphores;  // of Semaphores
  float *sums;           // AttentionBackwardConfig::sumFloats, and behind them partsFloats
  float dQScale, dKScale, dVScale;  // of products
  RowOf row;
  Gradients gradients;
  GradientsWithoutMasks gradientsWithoutMasks;
  Coverage coverage = {};
  Dropout dropout = {};
  unsigned *partSemaphores = nullptr;  // of Semaphores, of a group's parts
  StoreScores storeScores = {};        // of two queries and a key
  using Row = decltype(row(0, 0));
};

/// The blocks of queries that see a tile of keys, the last ones first; of every block the heads
/// that share the tile in turn, so that all tiles of a head of keys pass a block at the same time,
/// however many each of them sees. (Head after head, the tile with most blocks would hold up all
/// others at the beginning of every head: each has to await those in front of it.) The lanes of a
/// warp ask for the coverage of 32 blocks at once; all of them call advance() together. A block of
/// queries that sees no key at all belongs to the first tile, whose gradient of it is zero.
template <AttentionBackwardProblem problem, AttentionBackwardTile tile, typename Row,
          typename Coverage>
struct QueryBlocks {
  using C = AttentionBackwardConfig<problem, tile, Row>;
  static constexpr int lanes = 32, places = C::queryTiles * C::headsOfTile,
                       groups = (places + lanes - 1) / lanes;
  const Coverage &coverage;
  int keyHead, firstHead, keyTile;
  // Of the block. What the compiler does not know: it would take a loop of few blocks apart.
  int head = opaque(firstHead, 0) - 1;
  int index = C::queryTiles - 1;
  bool isMixed = false;
  int group = -1;  // of 32 places, counted from the last block, whose bits these are:
  unsigned seen = 0, mixed = 0;

  __device__ __forceinline__ int firstQuery() const { return index * tile.queries; }

  /// Goes to the next block; false if there is none.
  __device__ __forceinline__ bool advance() {
    if constexpr (SeesAll<Coverage>) {
      if (++head == endHead()) head = firstHead, --index;
      isMixed = C::hasTail && isAtEnd(index, keyTile);
      return index >= 0;
    } else {
      while (seen == 0) {
        if (++group >= groups) return false;
        askFor(group * lanes + int(threadIdx.x % lanes));
      }
      const int bit = ptx::lowestBit(seen);
      seen ^= 1u << bit;
      head = headAt(group * lanes + bit), index = queryAt(group * lanes + bit);
      isMixed = mixed >> bit & 1;
      return true;
    }
  }

  /// Of the key tiles in front of `before`, those that a block of queries sees.
  __device__ __forceinline__ int seenInFront(int ofHead, int query, int before) const {
    if constexpr (SeesAll<Coverage>) return before;
    int count = 0;
#pragma unroll 1
    for (int first = 0; first < before; first += lanes) {
      const int key = first + int(threadIdx.x % lanes);
      const bool sees = key < before && covered(ofHead, query, key) != TileCoverage::empty;
      count += ptx::countBits(__ballot_sync(~0u, sees));
    }
    return count;
  }

  /// Behind the last head: a group's last part may have fewer.
  __device__ __forceinline__ int endHead() const {
    if constexpr (problem.headsOfGroup % C::headsOfTile == 0) return firstHead + C::headsOfTile;
    else return smaller(firstHead + C::headsOfTile, (keyHead + 1) * problem.headsOfGroup);
  }

private:
  __device__ __forceinline__ int headAt(int place) const {
    return firstHead + place % C::headsOfTile;
  }
  __device__ __forceinline__ static int queryAt(int place) {
    return C::queryTiles - 1 - place / C::headsOfTile;
  }
  __device__ __forceinline__ static bool isAtEnd(int query, int key) {
    return (problem.queries % tile.queries != 0 && query == C::queryTiles - 1) ||
           (problem.keys % tile.keys != 0 && key == C::keyTiles - 1);
  }
  __device__ __forceinline__ TileCoverage covered(int ofHead, int query, int key) const {
    const int firstQuery = query * tile.queries, firstKey = key * tile.keys;
    return coverage(ofHead, firstQuery, smaller(firstQuery + tile.queries, problem.queries) - 1,
                    firstKey, smaller(firstKey + tile.keys, problem.keys) - 1);
  }
  __device__ __forceinline__ void askFor(int place) {
    const int query = queryAt(place), ofHead = headAt(place);
    TileCoverage found = TileCoverage::empty;
    if (place < places && ofHead < endHead()) {
      found = covered(ofHead, query, keyTile);
      if (keyTile == 0 && found == TileCoverage::empty) {
        bool isSeen = false;
#pragma unroll 1
        for (int other = 1; other < C::keyTiles && !isSeen; ++other)
          isSeen = covered(ofHead, query, other) != TileCoverage::empty;
        if (!isSeen) found = TileCoverage::mixed;
      }
    }
    seen = __ballot_sync(~0u, found != TileCoverage::empty);
    mixed =
        __ballot_sync(~0u, found == TileCoverage::mixed || (C::hasTail && isAtEnd(query, keyTile)));
  }
};

template <AttentionBackwardProblem problem, AttentionBackwardTile tile, typename Args>
__device__ __forceinline__ auto queryBlocks(const Args &args, int index) {
  using Row = typename Args::Row;
  using C = AttentionBackwardConfig<problem, tile, Row>;
  const AttentionBackwardPlace at = attentionBackwardTile<problem, tile, Row>(index);
  return QueryBlocks<problem, tile, Row, decltype(args.coverage)>{
      args.coverage, at.keyHead, at.keyHead * problem.headsOfGroup + at.part * C::headsOfTile,
      at.keyTile};
}

template <AttentionBackwardProblem problem, AttentionBackwardTile tile, typename Shared,
          typename Args>
__device__ __forceinline__ void produceOperands(const Shared &shared, const Args &args) {
  using C = AttentionBackwardConfig<problem, tile, typename Args::Row>;
  const bool isLeader = threadIdx.x == 0;
  unsigned count = 0;    // blocks passed before
  unsigned changed = 0;  // tiles whose last keys were zeroed
#pragma unroll 1
  for (unsigned tiles = 0;; ++tiles) {
    // The first one by the counter, too: whoever has a later tile may wait for this one's sums, so
    // that it has to be with a block that runs.
    int index = 0;
    if (isLeader) index = ptx::count(args.counter, C::tiles + gridDim.x - 1);
    index = __shfl_sync(~0u, index, 0);
    const StageOfPass<2> place(tiles);
    auto blocks = queryBlocks<problem, tile>(args, smaller(index, C::tiles - 1));
    bool hasBlock = blocks.advance();
    if (isLeader) {
      wait(shared.tileEmpty(place.stage), place.parity ^ 1);
      asm volatile("st.shared::cta.s32 [%0], %1;" ::"r"(shared.tileNumber(place.stage)),
                   "r"(hasBlock ? index : index + nothingSeen)
                   : "memory");
      arrive(shared.tileFull(place.stage));
    }
    if (index >= C::tiles) break;
    int keys = tile.keys;  // of the tile that any query sees; the others are zeroed
    if constexpr (problem.zeroesUnseen)
      keys = seenKeysOfHeads(args.coverage, blocks.firstHead, blocks.endHead() - blocks.firstHead,
                             0, problem.queries - 1, problem.keys) -
             blocks.keyTile * tile.keys;
    const bool isPart = problem.zeroesUnseen &&
                        keys < smaller(tile.keys, problem.keys - blocks.keyTile * tile.keys);
    if (isLeader) {
      wait(shared.keysEmpty(), tiles % 2 ^ 1);
      const SharedAddress full = isPart ? shared.lastKeys() : shared.keysFull();
      arriveExpecting(full, C::keyBytes + C::valueBytes);
      const int firstKey = blocks.keyTile * tile.keys,
                groupHead = blocks.keyHead * problem.headsOfGroup;
#pragma unroll
      for (int panel = 0; panel < C::headPanels; ++panel)
        loadHead<problem.k>(shared.k() + panel * tile.keys * rowBytes, args.k, full, panel * 64,
                            firstKey, groupHead);
#pragma unroll
      for (int panel = 0; panel < C::valuePanels; ++panel)
        loadHead<problem.v>(shared.v() + panel * tile.keys * rowBytes, args.v, full, panel * 64,
                            firstKey, groupHead);
    }
    if (isPart)
      zeroLastRows<C::headPanels, tile.keys>(shared.k(), larger(keys, 0), shared.lastKeys(),
                                             shared.keysFull(), changed);
#pragma unroll 1
    for (; hasBlock; hasBlock = blocks.advance()) {
      const StageOfPass<C::stages> block(count++);
      if (!isLeader) continue;
      wait(shared.blockEmpty(block.stage), block.parity ^ 1);
      arriveExpecting(shared.qFull(block.stage), C::queryBytes);
#pragma unroll
      for (int panel = 0; panel < C::headPanels; ++panel)
        loadHead<problem.q>(shared.q(block.stage) + panel * tile.queries * rowBytes, args.q,
                            shared.qFull(block.stage), panel * 64, blocks.firstQuery(),
                            blocks.head);
      arriveExpecting(shared.dOutputFull(block.stage), C::dOutputBytes);
#pragma unroll
      for (int panel = 0; panel < C::valuePanels; ++panel)
        loadHead<problem.dOutput>(shared.dOutput(block.stage) + panel * tile.queries * rowBytes,
                                  args.dOutput, shared.dOutputFull(block.stage), panel * 64,
                                  blocks.firstQuery(), blocks.head);
    }
  }
}

/// Tells consumers of blocks and brings what they read of rows. Rows past the last query repeat it:
/// their scores are left out.
template <AttentionBackwardProblem problem, AttentionBackwardTile tile, typename Shared,
          typename Args>
__device__ __forceinline__ void produceRows(const Shared &shared, const Args &args) {
  using C = AttentionBackwardConfig<problem, tile, typename Args::Row>;
  const int lane = threadIdx.x % 32;
  unsigned count = 0;
#pragma unroll 1
  for (unsigned tiles = 0;; ++tiles) {
    const int index = takeTile(shared, tiles) % nothingSeen;
    if (index >= C::tiles) break;
    auto blocks = queryBlocks<problem, tile>(args, index);
    bool hasBlock = blocks.advance();
#pragma unroll 1
    while (hasBlock) {
      const int head = blocks.head, firstQuery = blocks.firstQuery();
      const bool isMixed = blocks.isMixed;
      hasBlock = blocks.advance();
      const StageOfPass<C::stages> block(count++);
      wait(shared.blockEmpty(block.stage), block.parity ^ 1);
      if (lane == 0)
        tell(shared.block(block.stage),
             {head, firstQuery,
              (isMixed ? BackwardBlock::mixed : 0) | (hasBlock ? 0 : BackwardBlock::last)});
#pragma unroll
      for (int row = 0; row < tile.queries; row += 32)
        storeRow(shared.rows(block.stage) + (row + lane) * int(sizeof(typename Args::Row)),
                 args.row(head, smaller(firstQuery + row + lane, problem.queries - 1)));
      arrive(shared.rowsFull(block.stage));
    }
  }
}

/// Begins to store a unit that the lanes of a warp have rounded, of a block of queries.
template <AttentionBackwardProblem problem, AttentionBackwardTile tile, typename Args>
__device__ __forceinline__ void storeRounded(const Args &args, SharedAddress panel, int unit,
                                             int head, int firstQuery) {
  using C = AttentionBackwardConfig<problem, tile, typename Args::Row>;
  fenceForAsync();
  __syncwarp();
  if (threadIdx.x % 32 != 0) return;
  const int first = firstQuery + unit / C::headPanels * 64;
  if (first < problem.queries)
    storeHead<problem.dQ>(args.dQ, panel, unit % C::headPanels * 64, first, head);
  commitStores();
}

/// Rounds a block's gradient of queries, which no other tile adds to, from its units.
template <typename T, AttentionBackwardProblem problem, AttentionBackwardTile tile, typename Shared,
          typename Args>
__device__ __forceinline__ void roundUnits(const Shared &shared, const Args &args, int head,
                                           int firstQuery) {
  using C = AttentionBackwardConfig<problem, tile, typename Args::Row>;
  const int lane = threadIdx.x % 32;
  const bool isLeader = lane == 0;
#pragma unroll 1
  for (int unit = 0; unit < C::units; ++unit) {
    if (isLeader) waitForStoresToRead<0>();  // the panel's place is free
    __syncwarp();
    const int columnBlocks = C::columnsOfUnit(unit) / 16;
#pragma unroll 1
    for (int step = 0; step < 4 * columnBlocks; ++step) {
      const int warp = step % 4, block = step / 4;
      float values[8];
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float four[4];
        loadAccumulators(
            four, shared.unit(unit) + ((block * 2 + half) * warpgroup + warp * 32 + lane) * 16);
#pragma unroll
        for (int i = 0; i < 4; ++i) values[half * 4 + i] = four[i] * args.dQScale;
      }
      storeFragmentShared<T>(
          shared.panel() + swizzled(warp * 16 + lane % 16, block * 2 + lane / 16), values);
    }
    storeRounded<problem, tile>(args, shared.panel(), unit, head, firstQuery);
  }
}

/// Adds up the gradients of queries: of every second block from block `own` on. It asks for the
/// semaphore of a block while consumers still make its units; where sums have no order, for its
/// place when they are there, since others wait for the first one's copy.
template <typename T, AttentionBackwardProblem problem, AttentionBackwardTile tile, typename Shared,
          typename Args>
__device__ __forceinline__ void sumUnits(const Shared &shared, const Args &args, int own) {
  using C = AttentionBackwardConfig<problem, tile, typename Args::Row>;
  const bool isLeader = threadIdx.x % 32 == 0;
  unsigned count = 0;
#pragma unroll 1
  for (unsigned tiles = 0;; ++tiles) {
    const int index = takeTile(shared, tiles) % nothingSeen;
    if (index >= C::tiles) break;
    auto blocks = queryBlocks<problem, tile>(args, index);
#pragma unroll 1
    for (; blocks.advance(); ++count) {
      if (int(count % 2) != own) continue;
      const int parity = int(count / 2 % 2);
      if constexpr (C::keyTiles == 1) {
        wait(shared.unitsFull(own), parity);
        roundUnits<T, problem, tile>(shared, args, blocks.head, blocks.firstQuery());
        if (isLeader) {
          waitForStoresToRead<0>();  // the other warp takes the panel's place next
          arrive(shared.unitsEmpty());
        }
      } else {
        int arrived = 0;
        if constexpr (tile.areSumsOrdered)
          arrived = blocks.seenInFront(blocks.head, blocks.index, blocks.keyTile);
        if (isLeader) {
          const int place = blocks.head * C::queryTiles + blocks.index;
          float *sums = args.sums + static_cast<Offset>(place) * (C::units * C::unitFloats);
          if constexpr (tile.areSumsOrdered)
            waitForSemaphore(args.semaphores + place, unsigned(arrived));
          wait(shared.unitsFull(own), parity);
          if constexpr (!tile.areSumsOrdered) {
            static_assert(C::keyTiles <= mostUnordered);
            arrived = int(takePlace(args.semaphores + place));
            if (arrived > 0) waitForFirst(args.semaphores + place);
          }
#pragma unroll
          for (int unit = 0; unit < C::units; ++unit) {
            float *to = sums + unit * C::unitFloats;
            if (arrived == 0) storeFloats(to, shared.unit(unit), C::columnsOfUnit(unit) * 256);
            else addFloats(to, shared.unit(unit), C::columnsOfUnit(unit) * 256);
          }
          commitStores();
          waitForStoresToRead<0>();
          arrive(shared.unitsEmpty());
          waitForStores<0>();
          if constexpr (tile.areSumsOrdered)
            releaseSemaphore(args.semaphores + place, unsigned(arrived) + 1);
          else countAdded(args.semaphores + place);
        }
        __syncwarp();
      }
    }
  }
  if (isLeader) waitForStoresToRead<0>();
}

/// Rounds the sums of the queries' gradient, a block of queries a warp, when all that add to them
/// have been taken. Stages lie where keys, values, queries and gradients of the output lay.
template <typename T, AttentionBackwardProblem problem, AttentionBackwardTile tile, typename Shared,
          typename Args>
__device__ __forceinline__ void roundSums(const Shared &shared, const Args &args, int ofWarp) {
  using C = AttentionBackwardConfig<problem, tile, typename Args::Row>;
  constexpr int warps = C::consumers * 4;
  static_assert(warps * subtileBytes <=
                C::keyBytes + C::valueBytes + C::stages * (C::queryBytes + C::dOutputBytes));
  const int lane = threadIdx.x % 32;
  const bool isLeader = lane == 0;
  const SharedAddress panel = shared.k() + ofWarp * subtileBytes;
  const auto blocks = queryBlocks<problem, tile>(args, 0);
#pragma unroll 1
  for (int place = int(blockIdx.x) * warps + ofWarp; place < C::semaphores;
       place += int(gridDim.x) * warps) {
    const int head = place / C::queryTiles, query = place % C::queryTiles;
    // The first tile adds to every block.
    const int arrived = larger(blocks.seenInFront(head, query, C::keyTiles), 1);
    if (isLeader)
      waitForSemaphore(args.semaphores + place,
                       tile.areSumsOrdered ? unsigned(arrived) : allAdded(unsigned(arrived)));
    __syncwarp();
    const float *sums = args.sums + static_cast<Offset>(place) * (C::units * C::unitFloats);
#pragma unroll 1
    for (int unit = 0; unit < C::units; ++unit) {
      if (isLeader) waitForStoresToRead<0>();
      __syncwarp();
      const int columnBlocks = C::columnsOfUnit(unit) / 16;
#pragma unroll 1
      for (int warp = 0; warp < 4; ++warp) {
        float fours[4][2][4];  // all under way at once
#pragma unroll
        for (int block = 0; block < 4; ++block) {
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            const int four = (block * 2 + half) * warpgroup + warp * 32 + lane;
            if (block < columnBlocks)
              ptx::loadFromGrid(fours[block][half], sums + unit * C::unitFloats + four * 4);
          }
        }
#pragma unroll
        for (int block = 0; block < 4; ++block) {
          if (block < columnBlocks) {
            float values[8];
#pragma unroll
            for (int i = 0; i < 8; ++i) values[i] = fours[block][i / 4][i % 4] * args.dQScale;
            storeFragmentShared<T>(panel + swizzled(warp * 16 + lane % 16, block * 2 + lane / 16),
                                   values);
          }
        }
      }
      storeRounded<problem, tile>(args, panel, unit, head, query * tile.queries);
    }
    if (isLeader) resetSemaphore(args.semaphores + place);
  }
  if (isLeader) waitForStoresToRead<0>();
}

constexpr int backwardConsumerBarrier = 1, dScoresBarrier = 4,
              applyBarrier = 5;  // named barriers from these on

/// What one consumer warpgroup makes of a part of a block: 64 queries and its own 64 keys. The
/// products of a part start while those of the part in front of it, or of the block in front, are
/// still under way: tensor cores have work while element-wise ops run.
template <typename T, AttentionBackwardProblem problem, AttentionBackwardTile tile, typename Shared,
          typename Args>
struct BackwardParts {
  using C = AttentionBackwardConfig<problem, tile, typename Args::Row>;
  using Stage = StageOfPass<C::stages>;
  static constexpr T *type = nullptr;
  static constexpr int partRows = 64, steps = partRows / 16;
  /// Scores and gradients of what is kept, as accumulators lie.
  struct Products {
    float scores[partRows / 2], dKept[partRows / 2];
  };
  /// What sums over queries read: left operands.
  struct Operands {
    unsigned kept[steps][4], dScores[steps][4];
  };
  const Shared &shared;
  const Args &args;
  int consumer, warp, lane;
  int firstRow;  // of the thread: a key

  __device__ __forceinline__ unsigned long long describe(SharedAddress place,
                                                         int subtileStride) const {
    return describeWithin(shared.start, place, subtileStride);
  }

  /// Products of 64 keys with 64 queries: `columns` of both in panels.
  template <int columns>
  __device__ __forceinline__ void start(float (&products)[partRows / 2], SharedAddress ofKeys,
                                        SharedAddress ofQueries, int part) const {
#pragma unroll
    for (int step = 0; step < columns / 16; ++step)
      wgmma<false, false>(type, type, products,
                          describe(ofKeys + consumer * subtileBytes +
                                       step / 4 * tile.keys * rowBytes + step % 4 * 32,
                                   0),
                          describe(ofQueries + part * subtileBytes +
                                       step / 4 * tile.queries * rowBytes + step % 4 * 32,
                                   0),
                          step > 0);
  }
  __device__ __forceinline__ void startScores(Products &products, SharedAddress q, int part) const {
    start<C::headColumns>(products.scores, shared.k(), q, part);
  }
  __device__ __forceinline__ void startDKept(Products &products, SharedAddress dOutput,
                                             int part) const {
    start<C::valueColumns>(products.dKept, shared.v(), dOutput, part);
  }

  /// Of the queries of a step of 16 that the thread has.
  struct StepRows {
    typename Args::Row of[2][2];
  };
  __device__ __forceinline__ StepRows rowsOf(const Stage &block, int part, int step) const {
    StepRows rows;
#pragma unroll
    for (int right = 0; right < 2; ++right)
      loadRows(rows.of[right],
               shared.rows(block.stage) + (part * partRows + step * 16 + right * 8 + lane % 4 * 2) *
                                              int(sizeof(typename Args::Row)));
    return rows;
  }

  using Found = GradientsOf<Args>;
  /// Element-wise ops. Pair after pair, packed at once, for few registers. The rows of a step are
  /// loaded a step ahead: `rows` are those of the first.
  template <typename Function>
  __device__ __forceinline__ void each(Operands &operands, const Products &products, StepRows rows,
                                       const Stage &block, int part, const BackwardBlock &info,
                                       const Function &function) const {
#pragma unroll
    for (int step = 0; step < steps; ++step) {
      const StepRows own = rows;
      if (step + 1 < steps) rows = rowsOf(block, part, step + 1);
      const int first = part * partRows + step * 16 + lane % 4 * 2;
      const auto isKept = args.dropout(info.head, info.firstColumn + first, firstRow);
#pragma unroll
      for (int w = 0; w < 4; ++w) {
        Found found[2];
#pragma unroll
        for (int e = 0; e < 2; ++e)
          found[e] =
              function(products.scores[step * 8 + w * 2 + e], products.dKept[step * 8 + w * 2 + e],
                       own.of[w / 2][e], info.firstColumn + first + w / 2 * 8 + e,
                       firstRow + w % 2 * 8, isKept.at(w * 2 + e));
        operands.kept[step][w] = packPair(type, found[0].kept, found[1].kept);
        operands.dScores[step][w] = packPair(type, found[0].dScore, found[1].dScore);
        asm volatile("" : "+r"(operands.kept[step][w]), "+r"(operands.dScores[step][w]));
        args.storeScores(info.head, info.firstColumn + first + w / 2 * 8, firstRow + w % 2 * 8,
                         storedPair(type, found, operands.dScores[step][w]));
      }
    }
  }
  __device__ __forceinline__ void apply(Operands &operands, Products &products,
                                        const StepRows &rows, const Stage &block, int part,
                                        const BackwardBlock &info) const {
    fenceAccumulators(products.scores);
    fenceAccumulators(products.dKept);
    constexpr bool hasMixed = !SeesAll<decltype(args.coverage)> || C::hasTail;
    if (hasMixed && info.flags & BackwardBlock::mixed)
      each(operands, products, rows, block, part, info,
           [&](float score, float dKept, const typename Args::Row &row, int query, int key,
               bool isKept) {
             if ((problem.queries % tile.queries != 0 && query >= problem.queries) ||
                 (problem.keys % tile.keys != 0 && key >= problem.keys))
               return Found{};
             return args.gradients(score, dKept, row, info.head, query, key, isKept);
           });
    else
      each(operands, products, rows, block, part, info,
           [&](float score, float dKept, const typename Args::Row &row, int query, int key,
               bool isKept) {
             return args.gradientsWithoutMasks(score, dKept, row, info.head, query, key, isKept);
           });
  }

  /// dV += kept^T d_output, dK += dScores^T q.
  template <int headSums, int valueSums>
  __device__ __forceinline__ void startSums(float (&dK)[headSums], float (&dV)[valueSums],
                                            const Operands &operands, const Stage &block,
                                            int part) const {
#pragma unroll
    for (int step = 0; step < steps; ++step)
      wgmma<true>(type, type, dV, operands.kept[step],
                  describe(shared.dOutput(block.stage) + part * subtileBytes + step * 16 * rowBytes,
                           tile.queries * rowBytes),
                  true);
#pragma unroll
    for (int step = 0; step < steps; ++step)
      wgmma<true>(type, type, dK, operands.dScores[step],
                  describe(shared.q(block.stage) + part * subtileBytes + step * 16 * rowBytes,
                           tile.queries * rowBytes),
                  true);
  }
  /// For both warpgroups.
  __device__ __forceinline__ void store(const Operands &operands, SharedAddress dScores,
                                        int part) const {
#pragma unroll
    for (int step = 0; step < steps; ++step)
      storeMatrices(dScores + part * tile.keys * rowBytes + consumer * subtileBytes +
                        swizzled(warp * 16 + lane % 16, step * 2 + lane / 16),
                    operands.dScores[step]);
  }
  /// A unit of the gradient of queries.
  template <int columns>
  __device__ __forceinline__ void startUnit(float (&dQ)[columns / 2], SharedAddress dScores,
                                            int unit) const {
#pragma unroll
    for (int step = 0; step < tile.keys / 16; ++step)
      wgmma<true, true>(
          type, type, dQ,
          describe(dScores + unit / C::headPanels * tile.keys * rowBytes + step * 16 * rowBytes,
                   tile.keys * rowBytes),
          describe(shared.k() + unit % C::headPanels * tile.keys * rowBytes + step * 16 * rowBytes,
                   tile.keys * rowBytes),
          step > 0);
  }
  template <int columns>
  __device__ __forceinline__ void storeUnit(float (&dQ)[columns / 2], int unit) const {
    fenceAccumulators(dQ);
#pragma unroll
    for (int four = 0; four < columns / 8; ++four) {
      const float values[4] = {dQ[four * 4], dQ[four * 4 + 1], dQ[four * 4 + 2], dQ[four * 4 + 3]};
      storeFloats(shared.unit(unit) + (four * warpgroup + warp * 32 + lane) * 16, values);
    }
  }
};

template <typename T, AttentionBackwardProblem problem, AttentionBackwardTile tile, typename Shared,
          typename Args>
__device__ __forceinline__ void consumeBlocks(const Shared &shared, const Args &args,
                                              int consumer) {
  using C = AttentionBackwardConfig<problem, tile, typename Args::Row>;
  using Parts = BackwardParts<T, problem, tile, Shared, Args>;
  using Stage = StageOfPass<C::stages>;
  const int thread = threadIdx.x % warpgroup, warp = thread / 32, lane = thread % 32;
  const bool isLeader = thread == 0;
  unsigned count = 0;
  // One warpgroup at a time applies element-wise ops: the other has the tensor cores meanwhile.
  const auto awaitOther = [&] { synchronize(applyBarrier + consumer, 2 * warpgroup); };
  const auto letOther = [&] { arriveAt(applyBarrier + (consumer ^ 1), 2 * warpgroup); };
  if (consumer == 1) letOther();
#pragma unroll 1
  for (unsigned tiles = 0;; ++tiles) {
    const int taken = takeTile(shared, tiles), index = taken % nothingSeen;
    if (index >= C::tiles) break;
    const AttentionBackwardPlace at =
        attentionBackwardTile<problem, tile, typename Args::Row>(index);
    const int firstKey = at.keyTile * tile.keys + consumer * 64;
    const Parts parts{shared, args, consumer, warp, lane, firstKey + warp * 16 + lane / 4};
    float dK[C::headColumns / 2], dV[C::valueColumns / 2];
#pragma unroll
    for (int i = 0; i < C::headColumns / 2; ++i) dK[i] = 0;
#pragma unroll
    for (int i = 0; i < C::valueColumns / 2; ++i) dV[i] = 0;
    wait(shared.keysFull(), int(tiles % 2));

    typename Parts::Products products;  // of a part
    // As far as registers are free, while the last block's are still under way. Behind a tile's
    // last block there are none: the same instructions read keys and values, for nothing.
    const auto startFirst = [&](const Stage &block, bool isThere) {
      if (isThere) wait(shared.qFull(block.stage), block.parity);
      fenceWgmma();
      parts.startScores(products, isThere ? shared.q(block.stage) : shared.k(), 0);
      if constexpr (C::startsBoth) {
        if (isThere) wait(shared.dOutputFull(block.stage), block.parity);
        parts.startDKept(products, isThere ? shared.dOutput(block.stage) : shared.v(), 0);
      }
      commitWgmma();
    };
    // `isThere`: in front of a tile's first block there is none; its instructions run for nothing,
    // and nobody is told.
    const auto freeBlock = [&](const Stage &block, bool isThere) {
      fenceAccumulators(dK);
      fenceAccumulators(dV);
      if (isThere) signal(shared.blockEmpty(block.stage));  // of what this warp read of rows, too
    };
    // The gradient of queries of block `number`, when the other warpgroup's part of its scores is
    // there. `between` runs while the last unit is made, and waits for it.
    const bool hasUnit = C::units >= C::consumers || consumer < C::units;
    constexpr int lastColumns = C::columnsOfUnit(C::headPanels - 1);
    const auto makeUnit = [&]<int columns, bool isFirst, bool isLast>(
                              unsigned number, bool isThere, int unit, const auto &between) {
      const Stage place(number);
      float dQ[columns / 2];
      if (hasUnit) {
        fenceWgmma();
        parts.template startUnit<columns>(dQ, isThere ? shared.dScores(place.stage) : shared.k(),
                                          unit);
      }
      commitWgmma();
      if constexpr (isLast) between();
      else waitForWgmma<0>();
      if (isLast && isThere) signal(shared.dScoresEmpty(place.stage));
      if (isFirst) wait(shared.unitsEmpty(), int((isThere ? number : number + 1) % 2 ^ 1));
      if (hasUnit) parts.template storeUnit<columns>(dQ, unit);
    };
    const auto makeUnits = [&](unsigned number, bool isThere, const auto &between) {
      const Stage place(number);
      if (isThere) wait(shared.dScoresFull(place.stage), place.parity);
      const auto makeColumns = [&]<bool isFirst, bool isLast>(int unit) {
        if (lastColumns == 64 || unit % C::headPanels < C::headPanels - 1)
          makeUnit.template operator()<64, isFirst, isLast>(number, isThere, unit, between);
        else
          makeUnit.template operator()<lastColumns, isFirst, isLast>(number, isThere, unit,
                                                                     between);
      };
      if constexpr (C::unitsOfConsumer == 1) {
        makeColumns.template operator()<true, true>(consumer);
      } else {
        static_assert(C::units == 2 * C::consumers);
        makeColumns.template operator()<true, false>(consumer);
        makeColumns.template operator()<false, true>(C::consumers + consumer);
      }
      fenceForAsync();
      if (isThere) signal(shared.unitsFull(place.stage));
    };
    const auto storeScores = [&](const typename Parts::Operands &operands, unsigned number,
                                 int part) {
      const Stage place(number);
      if (part == 0) wait(shared.dScoresEmpty(place.stage), place.parity ^ 1);
      parts.store(operands, shared.dScores(place.stage), part);
      if (part < C::parts - 1) return;
      fenceForAsync();
      signal(shared.dScoresFull(place.stage));
    };
    bool hasBlock = taken < nothingSeen, isFirst = true;
    startFirst(Stage(count), hasBlock);
#pragma unroll 1
    while (hasBlock) {
      const Stage block(count), nextBlock(count + 1);
      if constexpr (!C::startsBoth) {
        wait(shared.dOutputFull(block.stage), block.parity);
        fenceWgmma();
        parts.startDKept(products, shared.dOutput(block.stage), 0);
        commitWgmma();
      }
      wait(shared.rowsFull(block.stage), block.parity);
      const BackwardBlock info = told(shared.block(block.stage));
      hasBlock = !(info.flags & BackwardBlock::last);
      typename Parts::Operands operands;
      typename Parts::StepRows rows = parts.rowsOf(block, 0, 0);
      waitForWgmma<0>();
      freeBlock(nextBlock, !isFirst);  // the stage of the block in front, too
      awaitOther();
      parts.apply(operands, products, rows, block, 0, info);
      letOther();
      storeScores(operands, count, 0);
      fenceWgmma();
      parts.startSums(dK, dV, operands, block, 0);
      commitWgmma();
      if constexpr (C::parts == 1) {
        makeUnits(count - 1, !isFirst, [&] {
          waitForWgmma<1>();  // the sums: their operands' registers are free
          startFirst(nextBlock, hasBlock);
          waitForWgmma<1>();
        });
      } else {
        typename Parts::Operands ofSecond;
        fenceWgmma();
        parts.startScores(products, shared.q(block.stage), 1);
        parts.startDKept(products, shared.dOutput(block.stage), 1);
        commitWgmma();
        rows = parts.rowsOf(block, 1, 0);
        const auto applySecond = [&] {
          awaitOther();
          parts.apply(ofSecond, products, rows, block, 1, info);
          letOther();
          storeScores(ofSecond, count, 1);
        };
        makeUnits(count - 1, !isFirst, [&] {
          waitForWgmma<1>();
          applySecond();
          waitForWgmma<0>();
        });
        fenceWgmma();
        parts.startSums(dK, dV, ofSecond, block, 1);
        commitWgmma();
        startFirst(nextBlock, hasBlock);
        waitForWgmma<1>();  // no sums under way where the loop closes: ptxas would serialize all
      }
      isFirst = false;
      ++count;
    }
    waitForWgmma<0>();
    if (!isFirst) {
      freeBlock(Stage(count - 1), true);
      makeUnits(count - 1, true, [] { waitForWgmma<0>(); });
    }

    // Keys and values have been read by all: gradients leave through their places.
    synchronize(dScoresBarrier, C::consumers * warpgroup);
    if constexpr (C::groupParts > 1) {
      const int keys = at.keyHead * C::keyTiles + at.keyTile;
      constexpr int ofWarpgroup = C::partFloats / C::consumers, ofKeys = 64 * C::headColumns;
      float *parts = args.sums + C::sumFloats +
                     static_cast<Offset>(keys) * (C::groupParts * C::partFloats) +
                     consumer * ofWarpgroup;
      storePart(parts + at.part * C::partFloats, dK, thread);
      storePart(parts + at.part * C::partFloats + ofKeys, dV, thread);
      synchronize(backwardConsumerBarrier + consumer, warpgroup);
      if (isLeader)
        storeWord(
            shared.partsBefore(consumer),
            ptx::arrive(args.partSemaphores + keys * C::consumers + consumer, C::groupParts - 1));
      synchronize(backwardConsumerBarrier + consumer, warpgroup);
      if (loadWord(shared.partsBefore(consumer)) < C::groupParts - 1) {
        if (isLeader) arrive(shared.keysEmpty());
        continue;
      }
#pragma unroll
      for (int i = 0; i < C::headColumns / 2; ++i) dK[i] = 0;
#pragma unroll
      for (int i = 0; i < C::valueColumns / 2; ++i) dV[i] = 0;
#pragma unroll 1
      for (int part = 0; part < C::groupParts; ++part) {
        addPart(dK, parts + part * C::partFloats, thread);
        addPart(dV, parts + part * C::partFloats + ofKeys, thread);
      }
    }
    const auto stage = [&]<int columns>(SharedAddress place, const float(&sums)[columns / 2],
                                        float scale) {
#pragma unroll
      for (int block = 0; block < columns / 16; ++block) {
        float values[8];
#pragma unroll
        for (int i = 0; i < 8; ++i) values[i] = sums[block * 8 + i] * scale;
        storeFragmentShared<T>(place + consumer * subtileBytes + block / 4 * tile.keys * rowBytes +
                                   swizzled(warp * 16 + lane % 16, block % 4 * 2 + lane / 16),
                               values);
      }
    };
    stage.template operator()<C::headColumns>(shared.k(), dK, args.dKScale);
    stage.template operator()<C::valueColumns>(shared.v(), dV, args.dVScale);
    fenceForAsync();
    synchronize(backwardConsumerBarrier + consumer, warpgroup);
    if (isLeader) {
      if (firstKey < problem.keys) {
#pragma unroll
        for (int panel = 0; panel < C::headPanels; ++panel)
          storeHead<problem.dK>(args.dK,
                                shared.k() + consumer * subtileBytes + panel * tile.keys * rowBytes,
                                panel * 64, firstKey, at.keyHead * problem.headsOfGroup);
#pragma unroll
        for (int panel = 0; panel < C::valuePanels; ++panel)
          storeHead<problem.dV>(args.dV,
                                shared.v() + consumer * subtileBytes + panel * tile.keys * rowBytes,
                                panel * 64, firstKey, at.keyHead * problem.headsOfGroup);
      }
      commitStores();
      waitForStoresToRead<0>();
      arrive(shared.keysEmpty());
    }
  }
  if (consumer == 0) awaitOther();  // the arrival that is left
  if constexpr (C::keyTiles > 1) {
    synchronize(dScoresBarrier, C::consumers * warpgroup);  // gradients have left both places
    roundSums<T, problem, tile>(shared, args, consumer * 4 + warp);
  }
}

/// The whole kernel.
template <typename T, AttentionBackwardProblem problem, AttentionBackwardTile tile, typename Args>
__device__ __forceinline__ void attentionBackward(const Args &args) {
  using C = AttentionBackwardConfig<problem, tile, typename Args::Row>;
  extern __shared__ __align__(1024) unsigned char memory[];
  const AttentionBackwardShared<problem, tile, typename Args::Row> shared{sharedAddress(memory)};
  constexpr int helpers = 3;  // warps beside the producer that take tiles
  if (threadIdx.x == 0) {
    for (const TensorMap *map : {args.q, args.k, args.v, args.dOutput, args.dQ, args.dK, args.dV})
      prefetchMap(map);
    initializeBarrier(shared.keysFull(), 1);
    initializeBarrier(shared.keysEmpty(), C::consumers);
    for (int stage = 0; stage < C::stages; ++stage) {
      initializeBarrier(shared.qFull(stage), 1);
      initializeBarrier(shared.dOutputFull(stage), 1);
      initializeBarrier(shared.rowsFull(stage), 32);
      initializeBarrier(shared.blockEmpty(stage), C::consumers * 4);
    }
    if constexpr (problem.zeroesUnseen) initializeBarrier(shared.lastKeys(), 1);
    initializeBarrier(shared.unitsEmpty(), 1);
    for (int place = 0; place < 2; ++place) {
      initializeBarrier(shared.dScoresFull(place), C::consumers * 4);
      initializeBarrier(shared.dScoresEmpty(place), C::consumers * 4);
      initializeBarrier(shared.unitsFull(place), C::consumers * 4);
      initializeBarrier(shared.tileFull(place), 1);
      initializeBarrier(shared.tileEmpty(place), C::consumers * 4 + helpers);
    }
    publishBarriers();
  }
  storeMaskedScores<problem.heads, problem.queries, problem.keys, tile.queries, tile.keys, false,
                    C::threads>(args.coverage, args.storeScores);
  ptx::barrier();
  const int role = __shfl_sync(~0u, threadIdx.x / warpgroup, 0);
  if (role == 0) {
    lowerRegisters<C::producerRegisters>();
    const int warp = __shfl_sync(~0u, threadIdx.x / 32, 0);
    if (warp == 0) produceOperands<problem, tile>(shared, args);
    else if (warp == 1) produceRows<problem, tile>(shared, args);
    else sumUnits<T, problem, tile>(shared, args, warp - 2);
  } else {
    raiseRegisters<C::consumerRegisters>();
    consumeBlocks<T, problem, tile>(shared, args, role - 1);
  }
}

}  // namespace weft::sm90
