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
//     sum warp            dQ ──TMA, added──> device memory, in the order of key tiles; the last one
//                         rounds the sums and stores them
//
// Scores stand transposed, rows are keys: what is made of them is then the left operand of both
// sums over queries as it lies in registers. Persistent blocks take tiles by a counter in device
// memory, first keys first.
#pragma once

#include "weft/grid_memory.cuh"
#include "weft/opaque.cuh"
#include "weft/pack.cuh"
#include "weft/score_gradients.cuh"
#include "weft/sm90_attention_backward_tiles.cuh"
#include "weft/sm90_barrier.cuh"
#include "weft/sm90_fragment_shared.cuh"
#include "weft/sm90_heads.cuh"
#include "weft/sm90_ordered_sum.cuh"
#include "weft/sm90_registers.cuh"
#include "weft/sm90_tma.cuh"
#include "weft/tile_coverage.cuh"
#include "weft/warp.cuh"
#include "weft/wgmma.cuh"

namespace weft::sm90 {

/// Functions as score_gradients.cuh has them: `row` of (head, query), `gradients` of (score, dKept,
/// row, head, query, key, isKept), the same without masks, `coverage` (tile_coverage.cuh), and
/// `dropout` of the first of the eight elements of a fragment whose rows are keys.
template <typename RowOf, typename Gradients, typename GradientsWithoutMasks,
          typename Coverage = FullCoverage, typename Dropout = NoDropout>
struct AttentionBackwardArgs {
  const TensorMap *q, *k, *v, *dOutput, *dQ, *dK, *dV;
  unsigned *counter;                // of tiles taken; zero between launches
  unsigned *turns;                  // of Turns
  float *sums;                      // AttentionBackwardConfig::sumFloats
  float dQScale, dKScale, dVScale;  // of products
  RowOf row;
  Gradients gradients;
  GradientsWithoutMasks gradientsWithoutMasks;
  Coverage coverage = {};
  Dropout dropout = {};
  using Row = decltype(row(0, 0));
};

template <typename Coverage>
concept SeesAll = __is_base_of(FullCoverage, Coverage);
template <typename Dropout>
concept KeepsAll = __is_base_of(NoDropout, Dropout);

/// The blocks of queries that see a tile of keys, of all heads that share it. The lanes of a warp
/// ask for the coverage of 32 blocks at once; all of them call advance() together. A block of
/// queries that sees no key at all belongs to the first tile, whose gradient of it is zero.
template <AttentionBackwardProblem problem, AttentionBackwardTile tile, typename Row,
          typename Coverage>
struct QueryBlocks {
  using C = AttentionBackwardConfig<problem, tile, Row>;
  static constexpr int lanes = 32, groups = (C::queryTiles + lanes - 1) / lanes;
  const Coverage &coverage;
  int firstHead, keyTile;
  // Of the block. What the compiler does not know: it would take a loop of few blocks apart.
  int head = opaque(firstHead, 0) - 1;
  int index = C::queryTiles - 1;
  bool isMixed = false;
  int group = groups;  // of 32 blocks, whose bits these are:
  unsigned seen = 0, mixed = 0;

  __device__ __forceinline__ int firstQuery() const { return index * tile.queries; }

  /// Goes to the next block; false if there is none.
  __device__ __forceinline__ bool advance() {
    if constexpr (SeesAll<Coverage>) {
      if (++index == C::queryTiles) index = 0, ++head;
      isMixed = C::hasTail && isAtEnd(index, keyTile);
      return head < firstHead + problem.headsOfGroup;
    } else {
      while (seen == 0) {
        if (++group >= groups) {
          group = 0;
          if (++head >= firstHead + problem.headsOfGroup) return false;
        }
        askFor(group * lanes + int(threadIdx.x % lanes));
      }
      const int bit = ptx::lowestBit(seen);
      seen ^= 1u << bit;
      index = group * lanes + bit;
      isMixed = mixed >> bit & 1;
      return true;
    }
  }

  /// The key tiles that add to the block's sums before this one, and whether any does behind it.
  __device__ __forceinline__ void findTurn(int &turn, bool &isLast) const {
    if constexpr (SeesAll<Coverage>) {
      turn = keyTile;
      isLast = keyTile == C::keyTiles - 1;
    } else {
      turn = 0;
      bool isSeenBehind = false;
#pragma unroll 1
      for (int first = 0; first < C::keyTiles; first += lanes) {
        const int other = first + int(threadIdx.x % lanes);
        const bool sees = other < C::keyTiles && covered(head, index, other) != TileCoverage::empty;
        const unsigned all = __ballot_sync(~0u, sees && other != keyTile);
        const int before = keyTile - first;  // of this group
        const unsigned lower = before <= 0 ? 0u : before >= lanes ? ~0u : (1u << before) - 1;
        turn += ptx::countBits(all & lower);
        isSeenBehind = isSeenBehind || (all & ~lower) != 0;
      }
      isLast = !isSeenBehind;
    }
  }

private:
  __device__ __forceinline__ static bool isAtEnd(int query, int key) {
    return (problem.queries % tile.queries != 0 && query == C::queryTiles - 1) ||
           (problem.keys % tile.keys != 0 && key == C::keyTiles - 1);
  }
  __device__ __forceinline__ TileCoverage covered(int ofHead, int query, int key) const {
    const int firstQuery = query * tile.queries, firstKey = key * tile.keys;
    return coverage(ofHead, firstQuery, smaller(firstQuery + tile.queries, problem.queries) - 1,
                    firstKey, smaller(firstKey + tile.keys, problem.keys) - 1);
  }
  __device__ __forceinline__ void askFor(int query) {
    TileCoverage found = TileCoverage::empty;
    if (query < C::queryTiles) {
      found = covered(head, query, keyTile);
      if (keyTile == 0 && found == TileCoverage::empty) {
        bool isSeen = false;
#pragma unroll 1
        for (int other = 1; other < C::keyTiles && !isSeen; ++other)
          isSeen = covered(head, query, other) != TileCoverage::empty;
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
  const AttentionBackwardPlace at = attentionBackwardTile<problem, tile, Row>(index);
  return QueryBlocks<problem, tile, Row, decltype(args.coverage)>{
      args.coverage, at.keyHead * problem.headsOfGroup, at.keyTile};
}

__device__ __forceinline__ void tell(SharedAddress place, const BackwardBlock &block) {
  storeWords(place, {unsigned(block.head), unsigned(block.firstQuery), unsigned(block.turn),
                     unsigned(block.flags)});
}
__device__ __forceinline__ BackwardBlock told(SharedAddress place) {
  unsigned words[4];
  loadWords(words, place);
  return {int(words[0]), int(words[1]), int(words[2]), int(words[3])};
}
/// A row's values, a word each.
template <typename Row>
__device__ __forceinline__ void storeRow(SharedAddress place, const Row &row) {
  struct Words {
    unsigned at[sizeof(Row) / 4];
  };
  const Words words = __builtin_bit_cast(Words, row);
#pragma unroll
  for (int w = 0; w < int(sizeof(Row) / 4); ++w) storeWord(place + w * 4, words.at[w]);
}
/// Those of two neighbours; the first one's number is even.
template <typename Row>
__device__ __forceinline__ void loadRows(Row (&rows)[2], SharedAddress place) {
  struct Words {
    unsigned at[sizeof(Row) / 4];
  };
  Words words[2];
  if constexpr (sizeof(Row) == 8) {
    unsigned both[4];
    loadWords(both, place);
#pragma unroll
    for (int w = 0; w < 4; ++w) words[w / 2].at[w % 2] = both[w];
  } else {
#pragma unroll
    for (int w = 0; w < int(sizeof(Row) / 4); ++w) {
      words[0].at[w] = loadWord(place + w * 4);
      words[1].at[w] = loadWord(place + int(sizeof(Row)) + w * 4);
    }
  }
  rows[0] = __builtin_bit_cast(Row, words[0]);
  rows[1] = __builtin_bit_cast(Row, words[1]);
}

/// The number of the tile, which the producer tells (tileNumber); the caller's arrival frees its
/// place. All lanes of the warp take part.
template <typename Shared>
__device__ __forceinline__ int takeTile(const Shared &shared, unsigned tiles) {
  const StageOfPass<2> place(tiles);
  wait(shared.tileFull(place.stage), place.parity);
  int index;
  asm volatile("ld.shared::cta.s32 %0, [%1];"
               : "=r"(index)
               : "r"(shared.tileNumber(place.stage))
               : "memory");
  index = __shfl_sync(~0u, index, 0);  // known to be one of the warp: what follows is uniform
  if (threadIdx.x % 32 == 0) arrive(shared.tileEmpty(place.stage));
  return index;
}

template <AttentionBackwardProblem problem, AttentionBackwardTile tile, typename Shared,
          typename Args>
__device__ __forceinline__ void produceOperands(const Shared &shared, const Args &args) {
  using C = AttentionBackwardConfig<problem, tile, typename Args::Row>;
  const bool isLeader = threadIdx.x == 0;
  unsigned count = 0;  // blocks passed before
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
    if (isLeader) {
      wait(shared.keysEmpty(), tiles % 2 ^ 1);
      arriveExpecting(shared.keysFull(), C::keyBytes + C::valueBytes);
      const int firstKey = blocks.keyTile * tile.keys;
#pragma unroll
      for (int panel = 0; panel < C::headPanels; ++panel)
        loadHead<problem.k>(shared.k() + panel * tile.keys * rowBytes, args.k, shared.keysFull(),
                            panel * 64, firstKey, blocks.firstHead);
#pragma unroll
      for (int panel = 0; panel < C::valuePanels; ++panel)
        loadHead<problem.v>(shared.v() + panel * tile.keys * rowBytes, args.v, shared.keysFull(),
                            panel * 64, firstKey, blocks.firstHead);
    }
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
      int turn;
      bool isLastTurn;
      blocks.findTurn(turn, isLastTurn);
      hasBlock = blocks.advance();
      const StageOfPass<C::stages> block(count++);
      wait(shared.blockEmpty(block.stage), block.parity ^ 1);
      if (lane == 0)
        tell(shared.block(block.stage),
             {head, firstQuery, turn,
              (isMixed ? BackwardBlock::mixed : 0) | (hasBlock ? 0 : BackwardBlock::last) |
                  (isLastTurn ? BackwardBlock::lastTurn : 0)});
#pragma unroll
      for (int row = 0; row < tile.queries; row += 32)
        storeRow(shared.rows(block.stage) + (row + lane) * int(sizeof(typename Args::Row)),
                 args.row(head, smaller(firstQuery + row + lane, problem.queries - 1)));
      arrive(shared.rowsFull(block.stage));
    }
  }
}

/// Adds up the gradients of queries.
template <typename T, AttentionBackwardProblem problem, AttentionBackwardTile tile, typename Shared,
          typename Args>
__device__ __forceinline__ void sumUnits(const Shared &shared, const Args &args) {
  using C = AttentionBackwardConfig<problem, tile, typename Args::Row>;
  const int lane = threadIdx.x % 32;
  const bool isLeader = lane == 0;
#pragma unroll 1
  for (unsigned count = 0;; ++count) {
    wait(shared.unitsFull(), int(count % 2));
    const BackwardBlock info = told(shared.block(C::stages));
    if (info.flags & BackwardBlock::end) break;
    const int place = info.head * C::queryTiles + info.firstQuery / tile.queries;
    float *sums = args.sums + static_cast<Offset>(place) * (C::units * C::unitFloats);
    unsigned *counter = args.turns + place;
    if (info.turn > 0) {
      if (isLeader) waitForTurn(counter, unsigned(info.turn));
      __syncwarp();
    }
    if (!(info.flags & BackwardBlock::lastTurn)) {
      if (isLeader) {
#pragma unroll
        for (int unit = 0; unit < C::units; ++unit) {
          float *to = sums + unit * C::unitFloats;
          if (info.turn == 0) storeFloats(to, shared.unit(unit), C::columnsOfUnit(unit) * 256);
          else addFloats(to, shared.unit(unit), C::columnsOfUnit(unit) * 256);
        }
        commitStores();
        waitForStoresToRead<0>();
        arrive(shared.unitsEmpty());
        waitForStores<0>();
        endTurn(counter, unsigned(info.turn) + 1);
      }
      __syncwarp();
      continue;
    }
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
          const int four = ((block * 2 + half) * warpgroup + warp * 32 + lane) * 4;
          float own[4], others[4] = {0, 0, 0, 0};
          loadAccumulators(own, shared.unit(unit) + four * 4);
          if (info.turn > 0) ptx::loadFromGrid(others, sums + unit * C::unitFloats + four);
#pragma unroll
          for (int i = 0; i < 4; ++i) values[half * 4 + i] = (others[i] + own[i]) * args.dQScale;
        }
        storeFragmentShared<T>(
            shared.panel() + swizzled(warp * 16 + lane % 16, block * 2 + lane / 16), values);
      }
      fenceForAsync();
      __syncwarp();
      const int firstQuery = info.firstQuery + unit / C::headPanels * 64;
      if (isLeader && firstQuery < problem.queries)
        storeHead<problem.dQ>(args.dQ, shared.panel(), unit % C::headPanels * 64, firstQuery,
                              info.head);
      if (isLeader) commitStores();
    }
    if (isLeader) {
      arrive(shared.unitsEmpty());
      if (info.turn > 0) endTurn(counter, 0);
    }
    __syncwarp();
  }
  if (isLeader) waitForStoresToRead<0>();
}

constexpr int backwardConsumerBarrier = 1, dScoresBarrier = 4;  // named barriers from these on

template <typename T, AttentionBackwardProblem problem, AttentionBackwardTile tile, typename Shared,
          typename Args>
__device__ __forceinline__ void consumeBlocks(const Shared &shared, const Args &args,
                                              int consumer) {
  using C = AttentionBackwardConfig<problem, tile, typename Args::Row>;
  constexpr T *type = nullptr;
  const int thread = threadIdx.x % warpgroup, warp = thread / 32, lane = thread % 32;
  const bool isLeader = thread == 0;
  unsigned count = 0;
#pragma unroll 1
  for (unsigned tiles = 0;; ++tiles) {
    const int taken = takeTile(shared, tiles), index = taken % nothingSeen;
    if (index >= C::tiles) {
      wait(shared.unitsEmpty(), int(count % 2 ^ 1));
      if (isLeader && consumer == 0) tell(shared.block(C::stages), {0, 0, 0, BackwardBlock::end});
      arrive(shared.unitsFull());
      break;
    }
    const AttentionBackwardPlace at =
        attentionBackwardTile<problem, tile, typename Args::Row>(index);
    const int firstKey = at.keyTile * tile.keys + consumer * 64,
              firstRow = firstKey + warp * 16 + lane / 4;
    float dK[C::headColumns / 2], dV[C::valueColumns / 2];
#pragma unroll
    for (int i = 0; i < C::headColumns / 2; ++i) dK[i] = 0;
#pragma unroll
    for (int i = 0; i < C::valueColumns / 2; ++i) dV[i] = 0;
    wait(shared.keysFull(), int(tiles % 2));

    bool hasBlock = taken < nothingSeen;
#pragma unroll 1
    while (hasBlock) {
      const StageOfPass<C::stages> block(count);
      const SharedAddress q = shared.q(block.stage), dOutput = shared.dOutput(block.stage),
                          dScoresPlace = shared.dScores(int(count % 2));
      ++count;
      unsigned kept[tile.queries / 16][4], dScores[tile.queries / 16][4];
      {
        float scores[tile.queries / 2], dKept[tile.queries / 2];
        wait(shared.qFull(block.stage), block.parity);
        fenceWgmma();
#pragma unroll
        for (int step = 0; step < C::headColumns / 16; ++step)
          wgmma<false, false>(
              type, type, scores,
              describeOperand(shared.k() + consumer * subtileBytes +
                                  step / 4 * tile.keys * rowBytes + step % 4 * 32,
                              0),
              describeOperand(q + step / 4 * tile.queries * rowBytes + step % 4 * 32, 0), step > 0);
        commitWgmma();
        wait(shared.dOutputFull(block.stage), block.parity);
#pragma unroll
        for (int step = 0; step < C::valueColumns / 16; ++step)
          wgmma<false, false>(
              type, type, dKept,
              describeOperand(shared.v() + consumer * subtileBytes +
                                  step / 4 * tile.keys * rowBytes + step % 4 * 32,
                              0),
              describeOperand(dOutput + step / 4 * tile.queries * rowBytes + step % 4 * 32, 0),
              step > 0);
        commitWgmma();
        wait(shared.rowsFull(block.stage), block.parity);
        const BackwardBlock info = told(shared.block(block.stage));
        hasBlock = !(info.flags & BackwardBlock::last);
        waitForWgmma<0>();
        fenceAccumulators(scores);
        fenceAccumulators(dKept);

        // Pair after pair, packed at once, for few registers.
        const auto each = [&](const auto &function) {
#pragma unroll
          for (int step = 0; step < tile.queries / 16; ++step) {
            const auto isKept =
                args.dropout(info.head, info.firstQuery + step * 16 + lane % 4 * 2, firstRow);
#pragma unroll
            for (int w = 0; w < 4; ++w) {
              const int column = step * 16 + w / 2 * 8 + lane % 4 * 2;
              typename Args::Row rows[2];
              loadRows(rows, shared.rows(block.stage) + column * int(sizeof(rows[0])));
              ScoreGradients found[2];
#pragma unroll
              for (int e = 0; e < 2; ++e)
                found[e] = function(scores[step * 8 + w * 2 + e], dKept[step * 8 + w * 2 + e],
                                    rows[e], info.firstQuery + column + e, firstRow + w % 2 * 8,
                                    isKept.at(w * 2 + e));
              kept[step][w] = packPair(type, found[0].kept, found[1].kept);
              dScores[step][w] = packPair(type, found[0].dScore, found[1].dScore);
              asm volatile("" : "+r"(kept[step][w]), "+r"(dScores[step][w]));
            }
          }
        };
        constexpr bool hasMixed = !SeesAll<decltype(args.coverage)> || C::hasTail;
        if (hasMixed && info.flags & BackwardBlock::mixed)
          each([&](float score, float dKeptOne, const typename Args::Row &row, int query, int key,
                   bool isKept) {
            if ((problem.queries % tile.queries != 0 && query >= problem.queries) ||
                (problem.keys % tile.keys != 0 && key >= problem.keys))
              return ScoreGradients{0, 0};
            return args.gradients(score, dKeptOne, row, info.head, query, key, isKept);
          });
        else
          each([&](float score, float dKeptOne, const typename Args::Row &row, int query, int key,
                   bool isKept) {
            return args.gradientsWithoutMasks(score, dKeptOne, row, info.head, query, key, isKept);
          });
      }

      fenceWgmma();
#pragma unroll
      for (int step = 0; step < tile.queries / 16; ++step)
        wgmma<true>(type, type, dV, kept[step],
                    describeOperand(dOutput + step * 16 * rowBytes, tile.queries * rowBytes), true);
#pragma unroll
      for (int step = 0; step < tile.queries / 16; ++step)
        wgmma<true>(type, type, dK, dScores[step],
                    describeOperand(q + step * 16 * rowBytes, tile.queries * rowBytes), true);
      commitWgmma();
#pragma unroll
      for (int step = 0; step < tile.queries / 16; ++step)
        storeMatrices(dScoresPlace + step / 4 * tile.keys * rowBytes + consumer * subtileBytes +
                          swizzled(warp * 16 + lane % 16, step % 4 * 2 + lane / 16),
                      dScores[step]);
      fenceForAsync();
      synchronize(dScoresBarrier, C::consumers * warpgroup);
#pragma unroll
      for (int turn = 0; turn < C::unitsOfConsumer; ++turn) {
        const int unit = turn * C::consumers + consumer;
        const auto makeUnit = [&]<int columns>(float(&dQ)[columns / 2]) {
          fenceWgmma();
#pragma unroll
          for (int step = 0; step < tile.keys / 16; ++step)
            wgmma<true, true>(
                type, type, dQ,
                describeOperand(dScoresPlace + unit / C::headPanels * tile.keys * rowBytes +
                                    step * 16 * rowBytes,
                                tile.keys * rowBytes),
                describeOperand(
                    shared.k() + unit % C::headPanels * tile.keys * rowBytes + step * 16 * rowBytes,
                    tile.keys * rowBytes),
                step > 0);
          commitWgmma();
          if (turn == 0) {
            waitForWgmma<1>();
            fenceAccumulators(dK);
            fenceAccumulators(dV);
            wait(shared.unitsEmpty(), int((count - 1) % 2 ^ 1));
            if (isLeader) {
              if (consumer == 0) tell(shared.block(C::stages), told(shared.block(block.stage)));
              arrive(shared.blockEmpty(block.stage));
            }
          }
          waitForWgmma<0>();
          fenceAccumulators(dQ);
#pragma unroll
          for (int four = 0; four < columns / 8; ++four) {
            const float values[4] = {dQ[four * 4], dQ[four * 4 + 1], dQ[four * 4 + 2],
                                     dQ[four * 4 + 3]};
            storeFloats(shared.unit(unit) + (four * warpgroup + thread) * 16, values);
          }
        };
        constexpr int lastColumns = C::columnsOfUnit(C::headPanels - 1);
        if (unit < C::units) {
          if (lastColumns == 64 || unit % C::headPanels < C::headPanels - 1) {
            float dQ[32];
            makeUnit.template operator()<64>(dQ);
          } else {
            float dQ[lastColumns / 2];
            makeUnit.template operator()<lastColumns>(dQ);
          }
        } else if (turn == 0) {
          waitForWgmma<0>();
          fenceAccumulators(dK);
          fenceAccumulators(dV);
          if (isLeader) arrive(shared.blockEmpty(block.stage));
        }
      }
      fenceForAsync();
      arrive(shared.unitsFull());
    }

    // Keys and values have been read by all: gradients leave through their places.
    synchronize(dScoresBarrier, C::consumers * warpgroup);
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
}

/// The whole kernel.
template <typename T, AttentionBackwardProblem problem, AttentionBackwardTile tile, typename Args>
__device__ __forceinline__ void attentionBackward(const Args &args) {
  using C = AttentionBackwardConfig<problem, tile, typename Args::Row>;
  extern __shared__ __align__(1024) unsigned char memory[];
  const AttentionBackwardShared<problem, tile, typename Args::Row> shared{sharedAddress(memory)};
  constexpr int helpers = 1;  // warps beside the producer that take tiles
  if (threadIdx.x == 0) {
    for (const TensorMap *map : {args.q, args.k, args.v, args.dOutput, args.dQ, args.dK, args.dV})
      prefetchMap(map);
    initializeBarrier(shared.keysFull(), 1);
    initializeBarrier(shared.keysEmpty(), C::consumers);
    for (int stage = 0; stage < C::stages; ++stage) {
      initializeBarrier(shared.qFull(stage), 1);
      initializeBarrier(shared.dOutputFull(stage), 1);
      initializeBarrier(shared.rowsFull(stage), 32);
      initializeBarrier(shared.blockEmpty(stage), C::consumers);
    }
    initializeBarrier(shared.unitsFull(), C::consumers * warpgroup);
    initializeBarrier(shared.unitsEmpty(), 1);
    for (int place = 0; place < 2; ++place) {
      initializeBarrier(shared.tileFull(place), 1);
      initializeBarrier(shared.tileEmpty(place), C::consumers * 4 + helpers);
    }
    publishBarriers();
  }
  ptx::barrier();
  const int role = __shfl_sync(~0u, threadIdx.x / warpgroup, 0);
  if (role == 0) {
    lowerRegisters<C::producerRegisters>();
    const int warp = __shfl_sync(~0u, threadIdx.x / 32, 0);
    if (warp == 0) produceOperands<problem, tile>(shared, args);
    else if (warp == 1) produceRows<problem, tile>(shared, args);
    else if (warp == 2) sumUnits<T, problem, tile>(shared, args);
  } else {
    raiseRegisters<C::consumerRegisters>();
    consumeBlocks<T, problem, tile>(shared, args, role - 1);
  }
}

}  // namespace weft::sm90
