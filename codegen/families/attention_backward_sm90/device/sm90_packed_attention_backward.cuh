// Fused attention backward over packed tokens on sm_90a: the kernel of sm90_attention_backward.cuh,
// where rows of a head are those of its sequence, which are known at run time alone
// (packed_sequences.cuh).
//
// **Boxes end with their sequence.** A map of packed tokens has the rows of the longest sequence
// as one dimension and where a sequence ends as its last one, with the same stride, and begins as
// many rows in front of the tensor (TensorMap::shift). A sequence of n of at most N tokens from
// token f on has its position p at row N - n + p and end f + n:
//
//    address    start - N + (N - n + p) + (f + n) = start + f + p
//    row        N or more from position n on: outside the map, read as zeros and not written
//
// So nothing behind the last token reaches shared memory, and no row of another sequence is
// written, whatever boxes cover.
//
// Tiles of keys that own no token are not taken, and blocks of queries behind the last token are
// not visited, nor are their sums awaited. Scores of rows behind it give zeros. The order of sums
// is the same as without packing.
#pragma once

#include "weft/packed_sequences.cuh"
#include "weft/sm90_attention_backward.cuh"

namespace weft::sm90 {

/// A tensor of packed tokens in the place of its map. bound: tokens of a sequence, at most.
template <typename Sequences, int bound>
struct PackedMap {
  const TensorMap *map;
  Sequences sequences;
  __device__ __forceinline__ operator const TensorMap *() const { return map; }
};

/// Of a box of rows from position `row` and columns from `column` on.
template <HeadMap map, typename Sequences, int bound>
__device__ __forceinline__ void placeInPacked(int (&at)[5],
                                              const PackedMap<Sequences, bound> &tensor, int column,
                                              int row, int head) {
  static_assert(map.dimensions < 5);
  const Sequence own = tensor.sequences.of(head);
  at[0] = column, at[1] = bound - own.count + row;
  at[2] = headCoordinate<map, 0>(head), at[3] = headCoordinate<map, 1>(head);
  at[map.dimensions] = own.first + own.count;
}
template <HeadMap map, typename Sequences, int bound>
__device__ __forceinline__ void loadHead(SharedAddress to, const PackedMap<Sequences, bound> &from,
                                         SharedAddress barrier, int column, int row, int head) {
  int at[5];
  placeInPacked<map>(at, from, column, row, head);
  loadBox<map.dimensions + 1>(to, from.map, barrier, at);
}
template <HeadMap map, typename Sequences, int bound>
__device__ __forceinline__ void storeHead(const PackedMap<Sequences, bound> &to, SharedAddress from,
                                          int column, int row, int head) {
  int at[5];
  placeInPacked<map>(at, to, column, row, head);
  storeBox<map.dimensions + 1>(to.map, from, at);
}

/// What masks leave of a tile of scores of tokens; the last query and key may lie behind them.
template <typename Coverage, typename Sequences>
struct PackedCoverage {
  Coverage coverage;
  Sequences sequences;

  __device__ __forceinline__ int tokensOf(int head) const { return sequences.of(head).count; }
  __device__ __forceinline__ TileCoverage operator()(int head, int firstQuery, int lastQuery,
                                                     int firstKey, int lastKey) const {
    const int tokens = tokensOf(head);
    if (firstQuery >= tokens || firstKey >= tokens) return TileCoverage::empty;
    const TileCoverage inside = coverage(head, firstQuery, smaller(lastQuery, tokens - 1), firstKey,
                                         smaller(lastKey, tokens - 1));
    const bool isWhole = lastQuery < tokens && lastKey < tokens;
    return isWhole || inside == TileCoverage::empty ? inside : TileCoverage::mixed;
  }
};

/// What all scores of a query's row read; zeros behind the last token.
template <typename RowOf, typename Sequences>
struct PackedRowOf {
  RowOf rowOf;  // of a head and a token
  Sequences sequences;
  __device__ __forceinline__ auto operator()(int head, int query) const {
    const Sequence own = sequences.of(head);
    return query < own.count ? rowOf(head, own.first + query) : decltype(rowOf(0, 0)){};
  }
};

/// The element-wise ops of one score; zeros where it is of no pair of tokens.
template <typename Gradients, typename Sequences>
struct PackedScoreGradients {
  Gradients gradients;
  Sequences sequences;
  template <typename Row>
  __device__ __forceinline__ ScoreGradients operator()(float score, float dKept, const Row &row,
                                                       int head, int query, int key,
                                                       bool isKept) const {
    const int tokens = sequences.of(head).count;
    const ScoreGradients own = gradients(score, dKept, row, head, query, key, isKept);
    const bool isInside = query < tokens && key < tokens;  // no branch: loads are those of a block
    return {isInside ? own.kept : 0.0f, isInside ? own.dScore : 0.0f};
  }
};

/// AttentionBackwardArgs of packed tokens.
template <typename Sequences, int bound, typename Args>
struct PackedBackwardArgs {
  static constexpr bool arePacked = true;
  using Map = PackedMap<Sequences, bound>;
  using Row = typename Args::Row;
  Map q, k, v, dOutput, dQ, dK, dV;
  unsigned *counter, *semaphores;
  float *sums;
  float dQScale, dKScale, dVScale;
  PackedRowOf<decltype(Args::row), Sequences> row;
  PackedScoreGradients<decltype(Args::gradients), Sequences> gradients;
  decltype(Args::gradientsWithoutMasks) gradientsWithoutMasks;
  PackedCoverage<decltype(Args::coverage), Sequences> coverage;
  decltype(Args::dropout) dropout;
  unsigned *partSemaphores;
  NoScoreStore storeScores;
};
template <typename Args>
concept ArePacked = Args::arePacked;

/// QueryBlocks of packed tokens: blocks behind the last token are none, whichever tile asks.
template <AttentionBackwardProblem problem, AttentionBackwardTile tile, typename Row,
          typename Coverage, typename Sequences>
struct QueryBlocks<problem, tile, Row, PackedCoverage<Coverage, Sequences>> {
  using C = AttentionBackwardConfig<problem, tile, Row>;
  static constexpr int lanes = 32, places = C::queryTiles * C::headsOfTile,
                       groups = (places + lanes - 1) / lanes;
  const PackedCoverage<Coverage, Sequences> &coverage;
  int keyHead, firstHead, keyTile;
  int head = opaque(firstHead, 0) - 1;
  int index = C::queryTiles - 1;
  bool isMixed = false;
  int group = -1;
  unsigned seen = 0, mixed = 0;

  __device__ __forceinline__ int firstQuery() const { return index * tile.queries; }
  __device__ __forceinline__ bool advance() {
    while (seen == 0) {
      if (++group >= groups) return false;
      askFor(group * lanes + int(threadIdx.x % lanes));
    }
    const int bit = ptx::lowestBit(seen), place = group * lanes + bit;
    seen ^= 1u << bit;
    head = headAt(place), index = queryAt(place);
    isMixed = mixed >> bit & 1;
    return true;
  }
  __device__ __forceinline__ int seenInFront(int ofHead, int query, int before) const {
    int count = 0;
#pragma unroll 1
    for (int first = 0; first < before; first += lanes) {
      const int key = first + int(threadIdx.x % lanes);
      const bool sees = key < before && covered(ofHead, query, key) != TileCoverage::empty;
      count += ptx::countBits(__ballot_sync(~0u, sees));
    }
    return count;
  }

private:
  __device__ __forceinline__ int endHead() const {
    return smaller(firstHead + C::headsOfTile, (keyHead + 1) * problem.headsOfGroup);
  }
  __device__ __forceinline__ int headAt(int place) const {
    return firstHead + place % C::headsOfTile;
  }
  __device__ __forceinline__ static int queryAt(int place) {
    return C::queryTiles - 1 - place / C::headsOfTile;
  }
  __device__ __forceinline__ TileCoverage covered(int ofHead, int query, int key) const {
    const int firstQuery = query * tile.queries, firstKey = key * tile.keys;
    return coverage(ofHead, firstQuery, firstQuery + tile.queries - 1, firstKey,
                    firstKey + tile.keys - 1);
  }
  __device__ __forceinline__ void askFor(int place) {
    const int query = queryAt(place), ofHead = headAt(place);
    TileCoverage found = TileCoverage::empty;
    if (place < places && ofHead < endHead() && query * tile.queries < coverage.tokensOf(ofHead)) {
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
    mixed = __ballot_sync(~0u, found == TileCoverage::mixed);
  }
};

/// produceOperands() that takes no tile without a token.
template <AttentionBackwardProblem problem, AttentionBackwardTile tile, typename Shared,
          typename Args>
requires ArePacked<Args> __device__ __forceinline__ void produceOperands(const Shared &shared,
                                                                         const Args &args) {
  using C = AttentionBackwardConfig<problem, tile, typename Args::Row>;
  const bool isLeader = threadIdx.x == 0;
  unsigned count = 0;  // blocks passed before
#pragma unroll 1
  for (unsigned tiles = 0;; ++tiles) {
    int index = 0;
    if (isLeader) {
      bool hasTokens = false;
      while (!hasTokens) {
        index = ptx::count(args.counter, C::tiles + gridDim.x - 1);
        if (index >= C::tiles) break;
        const AttentionBackwardPlace at =
            attentionBackwardTile<problem, tile, typename Args::Row>(index);
        hasTokens =
            at.keyTile * tile.keys < args.coverage.tokensOf(at.keyHead * problem.headsOfGroup);
      }
    }
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
      const int firstKey = blocks.keyTile * tile.keys,
                groupHead = blocks.keyHead * problem.headsOfGroup;
#pragma unroll
      for (int panel = 0; panel < C::headPanels; ++panel)
        loadHead<problem.k>(shared.k() + panel * tile.keys * rowBytes, args.k, shared.keysFull(),
                            panel * 64, firstKey, groupHead);
#pragma unroll
      for (int panel = 0; panel < C::valuePanels; ++panel)
        loadHead<problem.v>(shared.v() + panel * tile.keys * rowBytes, args.v, shared.keysFull(),
                            panel * 64, firstKey, groupHead);
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

/// roundSums() of blocks that have a token; no tile adds to others.
template <typename T, AttentionBackwardProblem problem, AttentionBackwardTile tile, typename Shared,
          typename Args>
requires ArePacked<Args> __device__ __forceinline__ void roundSums(const Shared &shared,
                                                                   const Args &args, int ofWarp) {
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
    if (query * tile.queries >= args.coverage.tokensOf(head)) continue;
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

/// The whole kernel; the arguments' `row` takes a token in the place of a query.
template <typename T, AttentionBackwardProblem problem, AttentionBackwardTile tile,
          typename Sequences, typename Args>
__device__ __forceinline__ void packedAttentionBackward(const Sequences &sequences,
                                                        const Args &args) {
  static_assert(problem.queries == problem.keys);
  const auto of = [&](const TensorMap *map) {
    return PackedMap<Sequences, problem.keys>{map, sequences};
  };
  attentionBackward<T, problem, tile>(PackedBackwardArgs<Sequences, problem.keys, Args>{
      .q = of(args.q),
      .k = of(args.k),
      .v = of(args.v),
      .dOutput = of(args.dOutput),
      .dQ = of(args.dQ),
      .dK = of(args.dK),
      .dV = of(args.dV),
      .counter = args.counter,
      .semaphores = args.semaphores,
      .sums = args.sums,
      .dQScale = args.dQScale,
      .dKScale = args.dKScale,
      .dVScale = args.dVScale,
      .row = {args.row, sequences},
      .gradients = {args.gradients, sequences},
      .gradientsWithoutMasks = args.gradientsWithoutMasks,
      .coverage = {args.coverage, sequences},
      .dropout = args.dropout,
      .partSemaphores = args.partSemaphores,
      .storeScores = {}});
}

}  // namespace weft::sm90
