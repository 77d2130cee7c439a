// Fused attention backward on sm_90a with the gradients of queries apart from those of keys and
// values: in one launch, without a workspace and without an order between blocks, so that the same
// bits come out every time though nobody waits. Scores are computed by both kinds of tiles, seven
// products of each instead of the five of sm90_attention_backward.cuh: for masks that leave few of
// them, anywhere.
//
//   a tile of keys              scores^T = k q^T, dKept^T = v d_output^T     WGMMA
//                               element-wise ops: kept, dScores              registers
//                               dV += kept^T d_output, dK += dScores^T q     WGMMA, left operand in
//                                                                            registers
//   a tile of queries           scores = q k^T, dKept = d_output v^T         WGMMA
//                               element-wise ops: dScores                    registers
//                               dQ += dScores k                              WGMMA, left operand in
//                                                                            registers
//
//     producer warp       a tile, and its blocks ──TMA──> stages
//     row warp            blocks; rows of queries of a tile of keys ──> stages
//     consumers           64 rows of the tile each; gradients leave through the tile's place
//
// A tile has 64 rows and its block shares the multiprocessor with another one, or 128 of two
// consumers. Persistent blocks take tiles by a counter in device memory.
#pragma once

#include "weft/grid_memory.cuh"
#include "weft/opaque.cuh"
#include "weft/pack.cuh"
#include "weft/score_gradients.cuh"
#include "weft/seen_keys.cuh"
#include "weft/sm90_attention_backward_roles.cuh"
#include "weft/sm90_barrier.cuh"
#include "weft/sm90_fragment_shared.cuh"
#include "weft/sm90_heads.cuh"
#include "weft/sm90_registers.cuh"
#include "weft/sm90_split_backward_tiles.cuh"
#include "weft/sm90_tma.cuh"
#include "weft/sm90_zero_rows.cuh"
#include "weft/tile_coverage.cuh"
#include "weft/warp.cuh"
#include "weft/wgmma.cuh"

namespace weft::sm90 {

/// Functions as AttentionBackwardArgs has them; `dropout` of fragments whose rows are queries,
/// `dropoutTransposed` of those whose rows are keys.
template <typename RowOf, typename Gradients, typename GradientsWithoutMasks,
          typename Coverage = FullCoverage, typename Dropout = NoDropout,
          typename DropoutTransposed = NoDropout, typename KeyOrder = FirstRowsFirst,
          typename QueryOrder = LastRowsFirst, typename StoreScores = NoScoreStore>
struct SplitBackwardArgs {
  const TensorMap *q, *k, *v, *dOutput, *dQ, *dK, *dV;
  unsigned *counter;                // of tiles taken; zero between launches
  float dQScale, dKScale, dVScale;  // of products
  RowOf row;
  Gradients gradients;
  GradientsWithoutMasks gradientsWithoutMasks;
  Coverage coverage = {};
  Dropout dropout = {};
  DropoutTransposed dropoutTransposed = {};
  KeyOrder keyOrder = {};
  QueryOrder queryOrder = {};
  StoreScores storeScores = {};  // of a query and two keys, by tiles of queries
  using Row = decltype(row(0, 0));
};

/// The blocks of which masks leave a tile something: of a tile of keys the queries of all heads
/// that share it. The lanes of a warp ask for the coverage of 32 blocks at once; all of them call
/// advance() together.
template <AttentionBackwardProblem problem, SplitBackwardTile tile, bool ofKeys, typename Args>
struct SplitBlocks {
  using C = SplitBackwardConfig<problem, tile, typename Args::Row>;
  using Coverage = decltype(Args::coverage);
  static constexpr int lanes = 32, blocks = ofKeys ? C::queryBlocks : C::keyBlocks,
                       groups = (blocks + lanes - 1) / lanes,
                       heads = ofKeys ? problem.headsOfGroup : 1;
  const Coverage &coverage;
  int firstHead, ownTile;
  // Of the block. What the compiler does not know: it would take a loop of few blocks apart.
  int head = opaque(firstHead, 0) - 1;
  int index = blocks - 1;
  bool isMixed = false;
  int group = groups;  // of 32 blocks, whose bits these are:
  unsigned seen = 0, mixed = 0;

  __device__ __forceinline__ SplitBlocks(const Args &args, const SplitBackwardPlace &at)
      : coverage(args.coverage), firstHead(at.head), ownTile(at.tile) {}
  __device__ __forceinline__ int firstColumn() const { return index * tile.columns; }

  /// Goes to the next block; false if there is none.
  __device__ __forceinline__ bool advance() {
    if constexpr (SeesAll<Coverage>) {
      if (++index >= blocks) index = 0, ++head;
      isMixed = isAtEnd(index);
      return head < firstHead + heads;
    } else {
      while (seen == 0) {
        if (++group >= groups) {
          group = 0;
          if (++head >= firstHead + heads) return false;
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

private:
  __device__ __forceinline__ bool isAtEnd(int block) const {
    constexpr int rows = ofKeys ? problem.keys : problem.queries,
                  columns = ofKeys ? problem.queries : problem.keys;
    return (rows % tile.rows != 0 && ownTile == rows / tile.rows) ||
           (columns % tile.columns != 0 && block == columns / tile.columns);
  }
  __device__ __forceinline__ void askFor(int block) {
    TileCoverage found = TileCoverage::empty;
    if (block < blocks) {
      const int row = ownTile * tile.rows, column = block * tile.columns;
      if constexpr (ofKeys)
        found = coverage(head, column, smaller(column + tile.columns, problem.queries) - 1, row,
                         smaller(row + tile.rows, problem.keys) - 1);
      else
        found = coverage(head, row, smaller(row + tile.rows, problem.queries) - 1, column,
                         smaller(column + tile.columns, problem.keys) - 1);
    }
    seen = __ballot_sync(~0u, found != TileCoverage::empty);
    mixed = __ballot_sync(~0u, found == TileCoverage::mixed || isAtEnd(block));
  }
};

template <AttentionBackwardProblem problem, SplitBackwardTile tile, typename Args>
__device__ __forceinline__ SplitBackwardPlace splitPlace(const Args &args, int index) {
  return splitBackwardTile<problem, tile, typename Args::Row>(index, args.keyOrder,
                                                              args.queryOrder);
}

/// Loads `rows` rows of all panels of a head, by boxes.
template <HeadMap map, int panels, int rows, int boxRows>
__device__ __forceinline__ void loadRowsOfHead(SharedAddress to, const TensorMap *from,
                                               SharedAddress barrier, int row, int head) {
#pragma unroll
  for (int panel = 0; panel < panels; ++panel) {
#pragma unroll
    for (int box = 0; box < rows; box += boxRows)
      loadHead<map>(to + (panel * rows + box) * rowBytes, from, barrier, panel * 64, row + box,
                    head);
  }
}

/// From which key on those that a tile of queries loads are zeroed.
template <AttentionBackwardProblem problem, SplitBackwardTile tile, typename Args>
__device__ __forceinline__ int endOfKeys(const Args &args, const SplitBackwardPlace &at) {
  if constexpr (problem.zeroesUnseen) {
    const int firstQuery = at.tile * tile.rows;
    return seenKeys(args.coverage, at.head, firstQuery,
                    smaller(firstQuery + tile.rows, problem.queries) - 1, problem.keys);
  } else {
    return problem.keys;
  }
}
/// Whether some of a block's keys are.
template <AttentionBackwardProblem problem, SplitBackwardTile tile>
__device__ __forceinline__ bool isPartOfKeys(int firstKey, int end) {
  return problem.zeroesUnseen && end < problem.keys && firstKey + tile.columns > end;
}

/// count, changed: blocks passed before, and those whose last keys were zeroed.
template <AttentionBackwardProblem problem, SplitBackwardTile tile, bool ofKeys, typename Shared,
          typename Args>
__device__ __forceinline__ void produceTile(const Shared &shared, const Args &args, int index,
                                            const SplitBackwardPlace &at, unsigned tiles,
                                            unsigned &count, unsigned &changed) {
  using C = SplitBackwardConfig<problem, tile, typename Args::Row>;
  const bool isLeader = threadIdx.x == 0;
  const StageOfPass<2> place(tiles);
  const StageOfPass<tile.ownStages> own(tiles);
  SplitBlocks<problem, tile, ofKeys, Args> blocks(args, at);
  bool hasBlock = blocks.advance();
  if (isLeader) {
    wait(shared.tileEmpty(place.stage), place.parity ^ 1);
    storeWord(shared.tileNumber(place.stage), unsigned(hasBlock ? index : index + nothingSeen));
    arrive(shared.tileFull(place.stage));
    wait(shared.ownEmpty(own.stage), own.parity ^ 1);
    const SharedAddress barrier = shared.ownFull(own.stage);
    arriveExpecting(barrier, C::ownHeadBytes + C::ownValueBytes);
    constexpr int rows = tile.rows, box = C::boxRows;
    const int row = at.tile * rows;
    if constexpr (ofKeys) {
      loadRowsOfHead<problem.k, C::headPanels, rows, box>(shared.ownHead(own.stage), args.k,
                                                          barrier, row, at.head);
      loadRowsOfHead<problem.v, C::valuePanels, rows, box>(shared.ownValue(own.stage), args.v,
                                                           barrier, row, at.head);
    } else {
      loadRowsOfHead<problem.q, C::headPanels, rows, box>(shared.ownHead(own.stage), args.q,
                                                          barrier, row, at.head);
      loadRowsOfHead<problem.dOutput, C::valuePanels, rows, box>(
          shared.ownValue(own.stage), args.dOutput, barrier, row, at.head);
    }
  }
  const int end = ofKeys ? problem.keys : endOfKeys<problem, tile>(args, at);
#pragma unroll 1
  for (; hasBlock; hasBlock = blocks.advance()) {
    const StageOfPass<tile.stages> block(count++);
    constexpr bool mayZero = !ofKeys && problem.zeroesUnseen;
    if (!mayZero && !isLeader) continue;
    const bool isPart = mayZero && isPartOfKeys<problem, tile>(blocks.firstColumn(), end);
    if (isLeader) {
      wait(shared.blockEmpty(block.stage), block.parity ^ 1);
      constexpr int rows = tile.columns, box = C::boxRows;
      const SharedAddress head = shared.head(block.stage), value = shared.value(block.stage),
                          barrier = isPart ? shared.lastKeys() : shared.blockFull(block.stage);
      const int row = blocks.firstColumn();
      arriveExpecting(barrier, C::headBytes + C::valueBytes);
      if constexpr (ofKeys) {
        loadRowsOfHead<problem.q, C::headPanels, rows, box>(head, args.q, barrier, row,
                                                            blocks.head);
        loadRowsOfHead<problem.dOutput, C::valuePanels, rows, box>(value, args.dOutput, barrier,
                                                                   row, blocks.head);
      } else {
        loadRowsOfHead<problem.k, C::headPanels, rows, box>(head, args.k, barrier, row,
                                                            blocks.head);
        loadRowsOfHead<problem.v, C::valuePanels, rows, box>(value, args.v, barrier, row,
                                                             blocks.head);
      }
    }
    if (isPart)
      zeroLastRows<C::headPanels, tile.columns>(
          shared.head(block.stage), larger(end - blocks.firstColumn(), 0), shared.lastKeys(),
          shared.blockFull(block.stage), changed);
  }
}

template <AttentionBackwardProblem problem, SplitBackwardTile tile, typename Shared, typename Args>
__device__ __forceinline__ void produceTiles(const Shared &shared, const Args &args) {
  using C = SplitBackwardConfig<problem, tile, typename Args::Row>;
  const bool isLeader = threadIdx.x == 0;
  unsigned count = 0, changed = 0;  // blocks passed before
#pragma unroll 1
  for (unsigned tiles = 0;; ++tiles) {
    int index = 0;
    if (isLeader) index = ptx::count(args.counter, C::tiles + gridDim.x - 1);
    index = __shfl_sync(~0u, index, 0);
    if (index >= C::tiles) {
      const StageOfPass<2> place(tiles);
      if (isLeader) {
        wait(shared.tileEmpty(place.stage), place.parity ^ 1);
        storeWord(shared.tileNumber(place.stage), unsigned(index));
        arrive(shared.tileFull(place.stage));
      }
      break;
    }
    const SplitBackwardPlace at = splitPlace<problem, tile>(args, index);
    if (at.ofKeys) produceTile<problem, tile, true>(shared, args, index, at, tiles, count, changed);
    else produceTile<problem, tile, false>(shared, args, index, at, tiles, count, changed);
  }
}

/// Tells consumers of blocks and brings what they read of rows that are no rows of their tile. Rows
/// past the last query repeat it: their scores are left out.
template <AttentionBackwardProblem problem, SplitBackwardTile tile, bool ofKeys, typename Shared,
          typename Args>
__device__ __forceinline__ void tellBlocks(const Shared &shared, const Args &args,
                                           const SplitBackwardPlace &at, unsigned &count) {
  const int lane = threadIdx.x % 32;
  SplitBlocks<problem, tile, ofKeys, Args> blocks(args, at);
  bool hasBlock = blocks.advance();
#pragma unroll 1
  while (hasBlock) {
    const int head = blocks.head, firstColumn = blocks.firstColumn();
    const bool isMixed = blocks.isMixed;
    hasBlock = blocks.advance();
    const StageOfPass<tile.stages> block(count++);
    wait(shared.blockEmpty(block.stage), block.parity ^ 1);
    if (lane == 0)
      tell(shared.block(block.stage),
           {head, firstColumn,
            (isMixed ? BackwardBlock::mixed : 0) | (hasBlock ? 0 : BackwardBlock::last)});
    if constexpr (ofKeys) {
#pragma unroll
      for (int row = 0; row < tile.columns; row += 32)
        storeRow(shared.rows(block.stage) + (row + lane) * int(sizeof(typename Args::Row)),
                 args.row(head, smaller(firstColumn + row + lane, problem.queries - 1)));
    }
    arrive(shared.rowsFull(block.stage));
  }
}

template <AttentionBackwardProblem problem, SplitBackwardTile tile, typename Shared, typename Args>
__device__ __forceinline__ void tellTiles(const Shared &shared, const Args &args) {
  using C = SplitBackwardConfig<problem, tile, typename Args::Row>;
  unsigned count = 0;
#pragma unroll 1
  for (unsigned tiles = 0;; ++tiles) {
    const int taken = takeTile(shared, tiles), index = taken % nothingSeen;
    if (index >= C::tiles) break;
    if (taken >= nothingSeen) continue;
    const SplitBackwardPlace at = splitPlace<problem, tile>(args, index);
    if (at.ofKeys) tellBlocks<problem, tile, true>(shared, args, at, count);
    else tellBlocks<problem, tile, false>(shared, args, at, count);
  }
}

constexpr int splitConsumerBarrier = 1;  // named barriers from this one on

/// What one consumer warpgroup makes of a block: scores of its 64 rows and their gradients.
template <typename T, AttentionBackwardProblem problem, SplitBackwardTile tile, bool ofKeys,
          typename Shared, typename Args>
struct SplitParts {
  using C = SplitBackwardConfig<problem, tile, typename Args::Row>;
  using Row = typename Args::Row;
  using Stage = StageOfPass<tile.stages>;
  static constexpr T *type = nullptr;
  static constexpr int steps = tile.columns / 16;
  /// Scores and gradients of what is kept, as accumulators lie.
  struct Products {
    float scores[tile.columns / 2], dKept[tile.columns / 2];
  };
  /// What sums over columns read: left operands. A tile of queries sums no `kept`.
  struct Operands {
    unsigned kept[ofKeys ? steps : 1][4], dScores[steps][4];
  };
  /// Of the queries of a step of 16 that the thread has, where these are columns.
  struct StepRows {
    Row of[ofKeys ? 2 : 1][2];
  };
  const Shared &shared;
  const Args &args;
  SharedAddress ownHead, ownValue;  // 64 rows of a panel
  int lane;
  int firstRow;    // of the thread
  Row ownRows[2];  // of a tile of queries

  __device__ __forceinline__ unsigned long long describe(SharedAddress place,
                                                         int subtileStride) const {
    return describeWithin(shared.start, place, subtileStride);
  }
  template <int columns>
  __device__ __forceinline__ void start(float (&products)[tile.columns / 2], SharedAddress own,
                                        SharedAddress block) const {
#pragma unroll
    for (int step = 0; step < columns / 16; ++step)
      wgmma<false, false>(
          type, type, products, describe(own + step / 4 * tile.rows * rowBytes + step % 4 * 32, 0),
          describe(block + step / 4 * tile.columns * rowBytes + step % 4 * 32, 0), step > 0);
  }
  __device__ __forceinline__ void startScores(Products &products, SharedAddress block) const {
    start<C::headColumns>(products.scores, ownHead, block);
  }
  __device__ __forceinline__ void startDKept(Products &products, SharedAddress block) const {
    start<C::valueColumns>(products.dKept, ownValue, block);
  }

  __device__ __forceinline__ StepRows rowsOf(const Stage &block, int step) const {
    StepRows rows;
    if constexpr (ofKeys) {
#pragma unroll
      for (int right = 0; right < 2; ++right)
        loadRows(rows.of[right], shared.rows(block.stage) +
                                     (step * 16 + right * 8 + lane % 4 * 2) * int(sizeof(Row)));
    }
    return rows;
  }

  using Found = GradientsOf<Args>;
  /// Element-wise ops. Pair after pair, packed at once, for few registers. The rows of a step are
  /// loaded a step ahead: `rows` are those of the first.
  template <typename Function>
  __device__ __forceinline__ void each(Operands &operands, const Products &products, StepRows rows,
                                       const Stage &block, const BackwardBlock &info,
                                       const Function &function) const {
#pragma unroll
    for (int step = 0; step < steps; ++step) {
      const StepRows own = rows;
      if (ofKeys && step + 1 < steps) rows = rowsOf(block, step + 1);
      const int first = info.firstColumn + step * 16 + lane % 4 * 2;
      const auto isKept = [&] {
        if constexpr (ofKeys) return args.dropoutTransposed(info.head, first, firstRow);
        else return args.dropout(info.head, firstRow, first);
      }();
#pragma unroll
      for (int w = 0; w < 4; ++w) {
        Found found[2];
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          const float score = products.scores[step * 8 + w * 2 + e],
                      dKept = products.dKept[step * 8 + w * 2 + e];
          const int row = firstRow + w % 2 * 8, column = first + w / 2 * 8 + e;
          if constexpr (ofKeys)
            found[e] = function(score, dKept, own.of[w / 2][e], column, row, isKept.at(w * 2 + e));
          else found[e] = function(score, dKept, ownRows[w % 2], row, column, isKept.at(w * 2 + e));
        }
        if constexpr (ofKeys) {
          operands.kept[step][w] = packPair(type, found[0].kept, found[1].kept);
          asm volatile("" : "+r"(operands.kept[step][w]));
        }
        operands.dScores[step][w] = packPair(type, found[0].dScore, found[1].dScore);
        asm volatile("" : "+r"(operands.dScores[step][w]));
        if constexpr (!ofKeys)
          args.storeScores(info.head, firstRow + w % 2 * 8, first + w / 2 * 8,
                           storedPair(type, found, operands.dScores[step][w]));
      }
    }
  }
  __device__ __forceinline__ void apply(Operands &operands, Products &products,
                                        const StepRows &rows, const Stage &block,
                                        const BackwardBlock &info) const {
    constexpr int rowTile = tile.rows, columnTile = tile.columns;
    constexpr bool hasQueryTail = problem.queries % (ofKeys ? columnTile : rowTile) != 0,
                   hasKeyTail = problem.keys % (ofKeys ? rowTile : columnTile) != 0;
    fenceAccumulators(products.scores);
    fenceAccumulators(products.dKept);
    constexpr bool hasMixed = !SeesAll<decltype(args.coverage)> || hasQueryTail || hasKeyTail;
    if (hasMixed && info.flags & BackwardBlock::mixed)
      each(operands, products, rows, block, info,
           [&](float score, float dKept, const Row &row, int query, int key, bool isKept) {
             if ((hasQueryTail && query >= problem.queries) || (hasKeyTail && key >= problem.keys))
               return Found{};
             return args.gradients(score, dKept, row, info.head, query, key, isKept);
           });
    else
      each(operands, products, rows, block, info,
           [&](float score, float dKept, const Row &row, int query, int key, bool isKept) {
             return args.gradientsWithoutMasks(score, dKept, row, info.head, query, key, isKept);
           });
  }

  /// dV += kept^T d_output, dK += dScores^T q; or dQ += dScores k.
  template <int headSums, int valueSums>
  __device__ __forceinline__ void startSums(float (&ofHead)[headSums], float (&ofValue)[valueSums],
                                            const Operands &operands, const Stage &block) const {
    if constexpr (ofKeys) {
#pragma unroll
      for (int step = 0; step < steps; ++step)
        wgmma<true>(
            type, type, ofValue, operands.kept[step],
            describe(shared.value(block.stage) + step * 16 * rowBytes, tile.columns * rowBytes),
            true);
    }
#pragma unroll
    for (int step = 0; step < steps; ++step)
      wgmma<true>(
          type, type, ofHead, operands.dScores[step],
          describe(shared.head(block.stage) + step * 16 * rowBytes, tile.columns * rowBytes), true);
  }
};

/// Sums of a tile over its blocks, 64 rows of a consumer. hasBlock: masks leave something of it.
template <typename T, AttentionBackwardProblem problem, SplitBackwardTile tile, bool ofKeys,
          typename Shared, typename Args>
__device__ __forceinline__ void consumeTile(const Shared &shared, const Args &args,
                                            const SplitBackwardPlace &at, bool hasBlock,
                                            unsigned tiles, unsigned &count, int consumer) {
  using C = SplitBackwardConfig<problem, tile, typename Args::Row>;
  using Parts = SplitParts<T, problem, tile, ofKeys, Shared, Args>;
  using Stage = StageOfPass<tile.stages>;
  constexpr int ahead = C::template productsAhead<ofKeys>;
  constexpr int rows = ofKeys ? problem.keys : problem.queries;
  const int thread = threadIdx.x % warpgroup, warp = thread / 32, lane = thread % 32;
  const StageOfPass<tile.ownStages> own(tiles);
  const int firstRow = at.tile * tile.rows + consumer * 64;
  Parts parts{.shared = shared,
              .args = args,
              .ownHead = shared.ownHead(own.stage) + consumer * subtileBytes,
              .ownValue = shared.ownValue(own.stage) + consumer * subtileBytes,
              .lane = lane,
              .firstRow = firstRow + warp * 16 + lane / 4};
  if constexpr (!ofKeys) {
#pragma unroll
    for (int right = 0; right < 2; ++right)
      parts.ownRows[right] = args.row(at.head, smaller(parts.firstRow + right * 8, rows - 1));
  }
  float ofHead[C::headColumns / 2], ofValue[ofKeys ? C::valueColumns / 2 : 1];
#pragma unroll
  for (float &sum : ofHead) sum = 0;
#pragma unroll
  for (float &sum : ofValue) sum = 0;
  wait(shared.ownFull(own.stage), own.parity);

  typename Parts::Products products;
  // As far as registers are free, while this block's sums are under way. Behind a tile's last block
  // there is none: the same instructions read the tile itself, for nothing.
  const auto startAhead = [&](const Stage &block, bool isThere) {
    if constexpr (ahead > 0) {
      if (isThere) wait(shared.blockFull(block.stage), block.parity);
      fenceWgmma();
      parts.startScores(products, isThere ? shared.head(block.stage) : shared.ownHead(0));
      if constexpr (ahead > 1)
        parts.startDKept(products, isThere ? shared.value(block.stage) : shared.ownHead(0));
      commitWgmma();
    }
  };
  startAhead(Stage(count), hasBlock);
#pragma unroll 1
  while (hasBlock) {
    const Stage block(count), nextBlock(count + 1);
    if constexpr (ahead < 2) {
      if constexpr (ahead == 0) wait(shared.blockFull(block.stage), block.parity);
      fenceWgmma();
      if constexpr (ahead == 0) parts.startScores(products, shared.head(block.stage));
      parts.startDKept(products, shared.value(block.stage));
      commitWgmma();
    }
    wait(shared.rowsFull(block.stage), block.parity);
    const BackwardBlock info = told(shared.block(block.stage));
    hasBlock = !(info.flags & BackwardBlock::last);
    const typename Parts::StepRows rowsOfStep = parts.rowsOf(block, 0);
    typename Parts::Operands operands;
    waitForWgmma<0>();
    parts.apply(operands, products, rowsOfStep, block, info);
    fenceWgmma();
    parts.startSums(ofHead, ofValue, operands, block);
    commitWgmma();
    startAhead(nextBlock, hasBlock);
    // No sums under way where the loop closes: ptxas would serialize all.
    waitForWgmma<(ahead > 0 ? 1 : 0)>();
    fenceAccumulators(ofHead);
    if constexpr (ofKeys) fenceAccumulators(ofValue);
    signal(shared.blockEmpty(block.stage));
    ++count;
  }
  waitForWgmma<0>();

  // Nobody else reads these rows of the tile: gradients leave through their place.
  const auto stage = [&]<int columns>(SharedAddress place, const float(&sums)[columns / 2],
                                      float scale) {
#pragma unroll
    for (int block = 0; block < columns / 16; ++block) {
      float values[8];
#pragma unroll
      for (int i = 0; i < 8; ++i) values[i] = sums[block * 8 + i] * scale;
      storeFragmentShared<T>(place + block / 4 * tile.rows * rowBytes +
                                 swizzled(warp * 16 + lane % 16, block % 4 * 2 + lane / 16),
                             values);
    }
  };
  stage.template operator()<C::headColumns>(parts.ownHead, ofHead,
                                            ofKeys ? args.dKScale : args.dQScale);
  if constexpr (ofKeys)
    stage.template operator()<C::valueColumns>(parts.ownValue, ofValue, args.dVScale);
  fenceForAsync();
  synchronize(splitConsumerBarrier + consumer, warpgroup);
  if (thread == 0) {
    if (firstRow < rows) {
#pragma unroll
      for (int panel = 0; panel < C::headPanels; ++panel) {
        const SharedAddress from = parts.ownHead + panel * tile.rows * rowBytes;
        if constexpr (ofKeys) storeHead<problem.dK>(args.dK, from, panel * 64, firstRow, at.head);
        else storeHead<problem.dQ>(args.dQ, from, panel * 64, firstRow, at.head);
      }
      if constexpr (ofKeys) {
#pragma unroll
        for (int panel = 0; panel < C::valuePanels; ++panel)
          storeHead<problem.dV>(args.dV, parts.ownValue + panel * tile.rows * rowBytes, panel * 64,
                                firstRow, at.head);
      }
    }
    commitStores();
    waitForStoresToRead<0>();
    arrive(shared.ownEmpty(own.stage));
  }
}

template <typename T, AttentionBackwardProblem problem, SplitBackwardTile tile, typename Shared,
          typename Args>
__device__ __forceinline__ void consumeTiles(const Shared &shared, const Args &args, int consumer) {
  using C = SplitBackwardConfig<problem, tile, typename Args::Row>;
  unsigned count = 0;
#pragma unroll 1
  for (unsigned tiles = 0;; ++tiles) {
    const int taken = takeTile(shared, tiles), index = taken % nothingSeen;
    if (index >= C::tiles) break;
    const SplitBackwardPlace at = splitPlace<problem, tile>(args, index);
    const bool hasBlock = taken < nothingSeen;
    if (at.ofKeys)
      consumeTile<T, problem, tile, true>(shared, args, at, hasBlock, tiles, count, consumer);
    else consumeTile<T, problem, tile, false>(shared, args, at, hasBlock, tiles, count, consumer);
  }
}

/// The whole kernel.
template <typename T, AttentionBackwardProblem problem, SplitBackwardTile tile, typename Args>
__device__ __forceinline__ void splitBackward(const Args &args) {
  using C = SplitBackwardConfig<problem, tile, typename Args::Row>;
  extern __shared__ __align__(1024) unsigned char memory[];
  const SplitBackwardShared<problem, tile, typename Args::Row> shared{sharedAddress(memory)};
  if (threadIdx.x == 0) {
    for (const TensorMap *map : {args.q, args.k, args.v, args.dOutput, args.dQ, args.dK, args.dV})
      prefetchMap(map);
    for (int stage = 0; stage < tile.ownStages; ++stage) {
      initializeBarrier(shared.ownFull(stage), 1);
      initializeBarrier(shared.ownEmpty(stage), C::consumers);
    }
    for (int stage = 0; stage < tile.stages; ++stage) {
      initializeBarrier(shared.blockFull(stage), 1);
      initializeBarrier(shared.rowsFull(stage), 32);
      initializeBarrier(shared.blockEmpty(stage), C::consumers * 4);
    }
    if constexpr (problem.zeroesUnseen) initializeBarrier(shared.lastKeys(), 1);
    for (int place = 0; place < 2; ++place) {
      initializeBarrier(shared.tileFull(place), 1);
      initializeBarrier(shared.tileEmpty(place), C::consumers * 4 + 1);  // and the row warp
    }
    publishBarriers();
  }
  storeMaskedScores<problem.heads, problem.queries, problem.keys, tile.rows, tile.columns, true,
                    C::threads>(args.coverage, args.storeScores);
  ptx::barrier();
  const int role = __shfl_sync(~0u, threadIdx.x / warpgroup, 0);
  if (role == 0) {
    lowerRegisters<C::producerRegisters>();
    const int warp = __shfl_sync(~0u, threadIdx.x / 32, 0);
    if (warp == 0) produceTiles<problem, tile>(shared, args);
    else if (warp == 1) tellTiles<problem, tile>(shared, args);
  } else {
    raiseRegisters<C::consumerRegisters>();
    consumeTiles<T, problem, tile>(shared, args, role - 1);
  }
}

}  // namespace weft::sm90
