// Fused attention backward on sm_90a of heads of up to 256 columns, whose gradients of keys and of
// values do not fit the registers of one warpgroup together: every tile sums one gradient. As those
// of sm90_split_backward.cuh, tiles wait for nobody, so that the same bits come out every time.
//
//   a tile of keys      scores^T = k q^T, dKept^T = v d_output^T   dK += dScores^T q         3
//   a tile of values    scores^T = k q^T                           dV += kept^T d_output     2
//   a tile of queries   scores = q k^T, dKept = d_output v^T       dQ += dScores k           3
//
// Eight products a score by WGMMA, the left operand of sums in registers. Of 256 columns, 128
// registers of a thread are sums of 64 rows, and 64 are scores and dKept of 64 columns: 192 of 232.
//
// Why not seven: one tile of 64 keys would sum both gradients, 64 x 256 of one warpgroup each, and
// compute scores once. In KB of shared memory that pass through 128 bytes a clock, for 64 x 64
// scores of 256 columns, and in clocks of the tensor cores:
//
//                                        operands   exchange   loads   KB    clocks
//   keys and values, halves of scores    208        48         64      320   1024
//   a tile of keys and one of values     256        0          64      320   1280
//
// A product of 64 x 64 scores reads 32 KB of either side, a sum 32 KB; in the second row a load
// serves 128 rows. The bytes are the same. Warpgroups that exchange scores wait for each other
// twice a block, while here one multiplies as the other applies element-wise ops; where the tensor
// cores are the limit, seven products would save an eighth.
//
//     producer warp       a tile, and operands of its blocks ──TMA──> places of a circular buffer
//     row warp            blocks; rows of queries of tiles of keys and of values ──> stages
//     consumers           64 rows of the tile each; gradients leave through the tile's place
#pragma once

#include "weft/sm90_single_backward_tiles.cuh"
#include "weft/sm90_split_backward.cuh"

namespace weft::sm90 {

template <AttentionBackwardProblem problem, SplitBackwardTile tile, typename Args>
__device__ __forceinline__ SingleBackwardPlace singlePlace(const Args &args, int index) {
  return singleBackwardTile<problem, tile, typename Args::Row>(index, args.keyOrder,
                                                               args.queryOrder);
}

/// Loads rows of queries or of keys: of headDim columns, or of valueDim.
template <AttentionBackwardProblem problem, bool areQueries, bool ofHead, int rows, int boxRows,
          typename Args>
__device__ __forceinline__ void loadSide(SharedAddress to, const Args &args, SharedAddress barrier,
                                         int row, int head) {
  constexpr int panels = panelsOf(ofHead ? problem.headDim : problem.valueDim);
  if constexpr (areQueries && ofHead)
    loadRowsOfHead<problem.q, panels, rows, boxRows>(to, args.q, barrier, row, head);
  else if constexpr (areQueries)
    loadRowsOfHead<problem.dOutput, panels, rows, boxRows>(to, args.dOutput, barrier, row, head);
  else if constexpr (ofHead)
    loadRowsOfHead<problem.k, panels, rows, boxRows>(to, args.k, barrier, row, head);
  else loadRowsOfHead<problem.v, panels, rows, boxRows>(to, args.v, barrier, row, head);
}

/// count, changed: operands passed before, and those whose last keys were zeroed.
template <AttentionBackwardProblem problem, SplitBackwardTile tile, SingleGradient gradient,
          typename Shared, typename Args>
__device__ __forceinline__ void produceSingleTile(const Shared &shared, const Args &args, int index,
                                                  const SplitBackwardPlace &at, unsigned tiles,
                                                  unsigned &count, unsigned &changed) {
  using C = SingleBackwardConfig<problem, tile, typename Args::Row>;
  constexpr bool areQueries = gradient == SingleGradient::ofQueries,
                 areValues = gradient == SingleGradient::ofValues;
  const bool isLeader = threadIdx.x == 0;
  const StageOfPass<2> place(tiles);
  SplitBlocks<problem, tile, !areQueries, Args> blocks(args, at);
  bool hasBlock = blocks.advance();
  if (isLeader) {
    wait(shared.tileEmpty(place.stage), place.parity ^ 1);
    storeWord(shared.tileNumber(place.stage), unsigned(hasBlock ? index : index + nothingSeen));
    arrive(shared.tileFull(place.stage));
    wait(shared.ownEmpty(), StageOfPass<1>(tiles).parity ^ 1);
    arriveExpecting(shared.ownFull(), areValues ? C::ownHeadBytes : C::ownBytes);
    const int row = at.tile * tile.rows;
    loadSide<problem, areQueries, true, tile.rows, C::boxRows>(shared.ownHead(), args,
                                                               shared.ownFull(), row, at.head);
    if constexpr (!areValues)
      loadSide<problem, areQueries, false, tile.rows, C::boxRows>(shared.ownValue(), args,
                                                                  shared.ownFull(), row, at.head);
  }
  const int end = areQueries ? endOfKeys<problem, tile>(args, at) : problem.keys;
  const auto load = [&]<bool ofHead>() {
    const StageOfPass<tile.stages> operand(count++);
    constexpr bool mayZero = areQueries && ofHead && problem.zeroesUnseen;
    if (!mayZero && !isLeader) return;
    const bool isPart = mayZero && isPartOfKeys<problem, tile>(blocks.firstColumn(), end);
    if (isLeader) {
      wait(shared.operandEmpty(operand.stage), operand.parity ^ 1);
      const SharedAddress barrier = isPart ? shared.lastKeys() : shared.operandFull(operand.stage);
      arriveExpecting(barrier, ofHead ? C::headBytes : C::valueBytes);
      loadSide<problem, !areQueries, ofHead, tile.columns, C::boxRows>(
          shared.operand(operand.stage), args, barrier, blocks.firstColumn(), blocks.head);
    }
    if (isPart)
      zeroLastRows<panelsOf(problem.headDim), tile.columns>(
          shared.operand(operand.stage), larger(end - blocks.firstColumn(), 0), shared.lastKeys(),
          shared.operandFull(operand.stage), changed);
  };
#pragma unroll 1
  for (; hasBlock; hasBlock = blocks.advance()) {
    load.template operator()<areValues>();
    load.template operator()<!areValues>();
  }
}

template <AttentionBackwardProblem problem, SplitBackwardTile tile, typename Shared, typename Args>
__device__ __forceinline__ void produceSingleTiles(const Shared &shared, const Args &args) {
  using C = SingleBackwardConfig<problem, tile, typename Args::Row>;
  const bool isLeader = threadIdx.x == 0;
  unsigned count = 0, changed = 0;
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
    const auto [gradient, at] = singlePlace<problem, tile>(args, index);
    if (gradient == SingleGradient::ofKeys)
      produceSingleTile<problem, tile, SingleGradient::ofKeys>(shared, args, index, at, tiles,
                                                               count, changed);
    else if (gradient == SingleGradient::ofValues)
      produceSingleTile<problem, tile, SingleGradient::ofValues>(shared, args, index, at, tiles,
                                                                 count, changed);
    else
      produceSingleTile<problem, tile, SingleGradient::ofQueries>(shared, args, index, at, tiles,
                                                                  count, changed);
  }
}

template <AttentionBackwardProblem problem, SplitBackwardTile tile, typename Shared, typename Args>
__device__ __forceinline__ void tellSingleTiles(const Shared &shared, const Args &args) {
  using C = SingleBackwardConfig<problem, tile, typename Args::Row>;
  unsigned count = 0;
#pragma unroll 1
  for (unsigned tiles = 0;; ++tiles) {
    const int taken = takeTile(shared, tiles), index = taken % nothingSeen;
    if (index >= C::tiles) break;
    if (taken >= nothingSeen) continue;
    const auto [gradient, at] = singlePlace<problem, tile>(args, index);
    if (at.ofKeys) tellBlocks<problem, tile, true>(shared, args, at, count);
    else tellBlocks<problem, tile, false>(shared, args, at, count);
  }
}

/// What one consumer warpgroup makes of a block: scores of its 64 rows, and of them the left
/// operand of its sums.
template <typename T, AttentionBackwardProblem problem, SplitBackwardTile tile,
          SingleGradient gradient, typename Shared, typename Args>
struct SingleParts
    : SplitParts<T, problem, tile, gradient != SingleGradient::ofQueries, Shared, Args> {
  static constexpr bool ofKeys = gradient != SingleGradient::ofQueries,
                        areValues = gradient == SingleGradient::ofValues;
  using Base = SplitParts<T, problem, tile, ofKeys, Shared, Args>;
  using C = SingleBackwardConfig<problem, tile, typename Args::Row>;
  using Base::args, Base::firstRow, Base::lane, Base::steps, Base::type;
  using typename Base::Found, typename Base::Row, typename Base::Stage, typename Base::StepRows;
  /// As accumulators lie; tiles of values ask for no dKept.
  struct Products {
    float scores[tile.columns / 2], dKept[areValues ? 1 : tile.columns / 2];
  };
  struct Operands {
    unsigned of[steps][4];
  };

  __device__ __forceinline__ void startScores(Products &products, SharedAddress operand) const {
    this->template start<C::headColumns>(products.scores, this->ownHead, operand);
  }
  /// Of the operand that comes first.
  __device__ __forceinline__ void startFirst(Products &products, SharedAddress operand) const {
    if constexpr (areValues) startScores(products, operand);
    else this->template start<C::valueColumns>(products.dKept, this->ownValue, operand);
  }

  /// Element-wise ops, as SplitParts::each() has them, for one of both results.
  template <typename Function>
  __device__ __forceinline__ void each(Operands &operands, const Products &products, StepRows rows,
                                       const Stage &block, const BackwardBlock &info,
                                       const Function &function) const {
#pragma unroll
    for (int step = 0; step < steps; ++step) {
      const StepRows own = rows;
      if (ofKeys && step + 1 < steps) rows = this->rowsOf(block, step + 1);
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
          const int row = firstRow + w % 2 * 8, column = first + w / 2 * 8 + e,
                    index = step * 8 + w * 2 + e;
          const bool kept = isKept.at(w * 2 + e);
          const float score = products.scores[index];
          if constexpr (areValues)
            found[e] = function(score, 0.0f, own.of[w / 2][e], column, row, kept);
          else if constexpr (ofKeys)
            found[e] = function(score, products.dKept[index], own.of[w / 2][e], column, row, kept);
          else
            found[e] =
                function(score, products.dKept[index], this->ownRows[w % 2], row, column, kept);
        }
        operands.of[step][w] = areValues ? packPair(type, found[0].kept, found[1].kept)
                                         : packPair(type, found[0].dScore, found[1].dScore);
        asm volatile("" : "+r"(operands.of[step][w]));
        if constexpr (!ofKeys)
          args.storeScores(info.head, firstRow + w % 2 * 8, first + w / 2 * 8,
                           storedPair(type, found, operands.of[step][w]));
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
    if constexpr (!areValues) fenceAccumulators(products.dKept);
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

  template <int count>
  __device__ __forceinline__ void startSums(float (&sums)[count], const Operands &operands,
                                            SharedAddress operand) const {
#pragma unroll
    for (int step = 0; step < steps; ++step)
      wgmma<true>(type, type, sums, operands.of[step],
                  this->describe(operand + step * 16 * rowBytes, tile.columns * rowBytes), true);
  }
};

/// Sums of a tile over its blocks, 64 rows of a consumer. hasBlock: masks leave something of it.
template <typename T, AttentionBackwardProblem problem, SplitBackwardTile tile,
          SingleGradient gradient, typename Shared, typename Args>
__device__ __forceinline__ void consumeSingleTile(const Shared &shared, const Args &args,
                                                  const SplitBackwardPlace &at, bool hasBlock,
                                                  unsigned tiles, unsigned &count, int consumer) {
  using C = SingleBackwardConfig<problem, tile, typename Args::Row>;
  using Parts = SingleParts<T, problem, tile, gradient, Shared, Args>;
  using Stage = StageOfPass<tile.stages>;
  constexpr bool isAhead = C::template startsAhead<gradient>, ofKeys = Parts::ofKeys,
                 areValues = Parts::areValues;
  constexpr int rows = ofKeys ? problem.keys : problem.queries,
                sumColumns = areValues ? C::valueColumns : C::headColumns;
  const int thread = threadIdx.x % warpgroup, warp = thread / 32, lane = thread % 32;
  const int firstRow = at.tile * tile.rows + consumer * 64;
  Parts parts{{.shared = shared,
               .args = args,
               .ownHead = shared.ownHead() + consumer * subtileBytes,
               .ownValue = shared.ownValue() + consumer * subtileBytes,
               .lane = lane,
               .firstRow = firstRow + warp * 16 + lane / 4}};
  if constexpr (!ofKeys) {
#pragma unroll
    for (int right = 0; right < 2; ++right)
      parts.ownRows[right] = args.row(at.head, smaller(parts.firstRow + right * 8, rows - 1));
  }
  float sums[sumColumns / 2];
#pragma unroll
  for (float &sum : sums) sum = 0;
  wait(shared.ownFull(), StageOfPass<1>(tiles).parity);

  typename Parts::Products products;
  const auto startFirst = [&](const Stage &first, bool isThere) {
    if (isThere) wait(shared.operandFull(first.stage), first.parity);
    fenceWgmma();
    parts.startFirst(products, isThere ? shared.operand(first.stage) : shared.ownHead());
    commitWgmma();
  };
  // While this block's sums are under way. Behind a tile's last block there is none: the same
  // instructions read the tile itself, for nothing.
  if constexpr (isAhead) startFirst(Stage(2 * count), hasBlock);
#pragma unroll 1
  while (hasBlock) {
    const Stage block(count), first(2 * count), second(2 * count + 1);
    if constexpr (!isAhead) startFirst(first, true);
    if constexpr (!areValues) {
      wait(shared.operandFull(second.stage), second.parity);
      fenceWgmma();
      parts.startScores(products, shared.operand(second.stage));
      commitWgmma();
    }
    wait(shared.rowsFull(block.stage), block.parity);
    const BackwardBlock info = told(shared.block(block.stage));
    hasBlock = !(info.flags & BackwardBlock::last);
    const typename Parts::StepRows rowsOfStep = parts.rowsOf(block, 0);
    typename Parts::Operands operands;
    waitForWgmma<0>();
    signal(shared.operandEmpty(first.stage));
    parts.apply(operands, products, rowsOfStep, block, info);
    if constexpr (areValues) wait(shared.operandFull(second.stage), second.parity);
    fenceWgmma();
    parts.startSums(sums, operands, shared.operand(second.stage));
    commitWgmma();
    if constexpr (isAhead) startFirst(Stage(2 * count + 2), hasBlock);
    // No sums under way where the loop closes: ptxas would serialize all.
    waitForWgmma<(isAhead ? 1 : 0)>();
    fenceAccumulators(sums);
    signal(shared.operandEmpty(second.stage));
    signal(shared.blockEmpty(block.stage));
    ++count;
  }
  waitForWgmma<0>();

  // Nobody else reads these rows of the tile: gradients leave through their place, those of values
  // through that of values, which their tile does not load.
  constexpr int panels = areValues ? C::valuePanels : C::headPanels;
  const SharedAddress place = areValues ? parts.ownValue : parts.ownHead;
  const float scale = areValues ? args.dVScale : ofKeys ? args.dKScale : args.dQScale;
#pragma unroll
  for (int block = 0; block < sumColumns / 16; ++block) {
    float values[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) values[i] = sums[block * 8 + i] * scale;
    storeFragmentShared<T>(place + block / 4 * tile.rows * rowBytes +
                               swizzled(warp * 16 + lane % 16, block % 4 * 2 + lane / 16),
                           values);
  }
  fenceForAsync();
  synchronize(splitConsumerBarrier + consumer, warpgroup);
  if (thread != 0) return;
  if (firstRow < rows) {
#pragma unroll
    for (int panel = 0; panel < panels; ++panel) {
      const SharedAddress from = place + panel * tile.rows * rowBytes;
      if constexpr (areValues) storeHead<problem.dV>(args.dV, from, panel * 64, firstRow, at.head);
      else if constexpr (ofKeys)
        storeHead<problem.dK>(args.dK, from, panel * 64, firstRow, at.head);
      else storeHead<problem.dQ>(args.dQ, from, panel * 64, firstRow, at.head);
    }
  }
  commitStores();
  waitForStoresToRead<0>();
  arrive(shared.ownEmpty());
}

template <typename T, AttentionBackwardProblem problem, SplitBackwardTile tile, typename Shared,
          typename Args>
__device__ __forceinline__ void consumeSingleTiles(const Shared &shared, const Args &args,
                                                   int consumer) {
  using C = SingleBackwardConfig<problem, tile, typename Args::Row>;
  unsigned count = 0;  // blocks passed before
#pragma unroll 1
  for (unsigned tiles = 0;; ++tiles) {
    const int taken = takeTile(shared, tiles), index = taken % nothingSeen;
    if (index >= C::tiles) break;
    const auto [gradient, at] = singlePlace<problem, tile>(args, index);
    const bool hasBlock = taken < nothingSeen;
    if (gradient == SingleGradient::ofKeys)
      consumeSingleTile<T, problem, tile, SingleGradient::ofKeys>(shared, args, at, hasBlock, tiles,
                                                                  count, consumer);
    else if (gradient == SingleGradient::ofValues)
      consumeSingleTile<T, problem, tile, SingleGradient::ofValues>(shared, args, at, hasBlock,
                                                                    tiles, count, consumer);
    else
      consumeSingleTile<T, problem, tile, SingleGradient::ofQueries>(shared, args, at, hasBlock,
                                                                     tiles, count, consumer);
  }
}

/// The whole kernel.
template <typename T, AttentionBackwardProblem problem, SplitBackwardTile tile, typename Args>
__device__ __forceinline__ void singleBackward(const Args &args) {
  using C = SingleBackwardConfig<problem, tile, typename Args::Row>;
  extern __shared__ __align__(1024) unsigned char memory[];
  const SingleBackwardShared<problem, tile, typename Args::Row> shared{sharedAddress(memory)};
  if (threadIdx.x == 0) {
    for (const TensorMap *map : {args.q, args.k, args.v, args.dOutput, args.dQ, args.dK, args.dV})
      prefetchMap(map);
    initializeBarrier(shared.ownFull(), 1);
    initializeBarrier(shared.ownEmpty(), C::consumers);
    for (int stage = 0; stage < tile.stages; ++stage) {
      initializeBarrier(shared.operandFull(stage), 1);
      initializeBarrier(shared.operandEmpty(stage), C::consumers * 4);
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
    if (warp == 0) produceSingleTiles<problem, tile>(shared, args);
    else if (warp == 1) tellSingleTiles<problem, tile>(shared, args);
  } else {
    raiseRegisters<C::consumerRegisters>();
    consumeSingleTiles<T, problem, tile>(shared, args, role - 1);
  }
}

}  // namespace weft::sm90
