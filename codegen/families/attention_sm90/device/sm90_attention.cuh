// Fused attention on sm_90a: output = softmax(score(scale * q k^T)) v, row by row, without a score
// in memory.
//
//   producer warp      q ──TMA──> shared memory; blocks of k and v ──TMA──> two buffers of stages
//   consumer           scores = q k^T            WGMMA, 64 rows a warpgroup
//   warpgroups         score expression, online softmax in registers
//                      output += exponentials v  WGMMA, exponentials in registers
//
// Persistent blocks take tiles by a counter in device memory. A consumer issues the scores of the
// next block of keys before the output's GEMM of the one before, so that the maxima of one overlap
// with the GEMM of the other; ordered consumers issue their GEMMs in turn, so that one has the
// tensor cores while another computes exponentials. Where tiles are few, consumers share rows and
// take blocks of keys in turn (sm90_key_consumers.cuh). The producer runs ahead into the next tile
// while outputs are stored. Of packed tokens sm90_packed_tokens.cuh says where sequences lie, of
// heads that are packed into the rows of a tile sm90_packed_heads.cuh how these are numbered.
#pragma once

#include "weft/grid_memory.cuh"
#include "weft/online_softmax.cuh"
#include "weft/opaque.cuh"
#include "weft/seen_keys.cuh"
#include "weft/sm90_attention_tiles.cuh"
#include "weft/sm90_barrier.cuh"
#include "weft/sm90_fragment_shared.cuh"
#include "weft/sm90_heads.cuh"
#include "weft/sm90_key_consumers.cuh"
#include "weft/sm90_packed_heads.cuh"
#include "weft/sm90_packed_tokens.cuh"
#include "weft/sm90_registers.cuh"
#include "weft/sm90_tma.cuh"
#include "weft/sm90_zero_rows.cuh"
#include "weft/tile_coverage.cuh"
#include "weft/wgmma.cuh"

namespace weft::sm90 {

/// Whether scores stay as the products give them, and whether every query sees every key.
template <typename Score>
concept IsUnchanged = __is_base_of(UnchangedScore, Score);
template <typename Coverage>
concept IsFull = __is_base_of(FullCoverage, Coverage);
/// That every exponential stays; else a function of (head, query, key), the first of the eight
/// elements of a fragment, that gives Kept<8> (dropout.cuh).
struct NothingDropped {};
template <typename Dropout>
concept DropsNothing = __is_base_of(NothingDropped, Dropout);

struct NoRows {};
/// Keys and values lie in one piece.
struct NoPages {
  __device__ __forceinline__ int operator()(int, int) const { return 0; }
};

/// `score`, `scoreWithoutMasks` and `coverage`: functions as tile_coverage.cuh has them.
template <typename Score = UnchangedScore, typename ScoreWithoutMasks = UnchangedScore,
          typename Coverage = FullCoverage, typename Dropout = NothingDropped,
          typename Order = LastRowsFirst, typename Sequences = WholeSequences,
          typename OutputRow = NoRows, typename Pages = NoPages>
struct AttentionArgs {
  const TensorMap *q, *k, *v, *output;
  unsigned *counter;         // of tiles taken; zero between launches
  float scale;               // of products; positive
  float *logSums = nullptr;  // log(sum(exp(score))) of [head][query], if asked for
  Score score = {};
  ScoreWithoutMasks scoreWithoutMasks = {};
  Coverage coverage = {};
  Dropout dropout = {};       // of exponentials, behind their sum
  float keepScale = 1;        // 1 / (1 - p)
  Order order = {};           // in which the tiles of a head are taken
  Sequences sequences = {};   // of packed tokens: PackedSequences
  OutputRow outputRow = {};   // of packed tokens: T *(int head, int token)
  bool zeroesUnused = false;  // of packed tokens: the output's rows behind the last one
  Pages pageOf = {};          // of pages: int(int head, int key), by the table; outside: none
};

/// A block of keys or values, in panels: one box each, or one for each of its pages. TMA loads
/// zeros from a page that is outside the map.
template <AttentionProblem problem, AttentionTile tile, HeadMap map, int panels, typename Args>
__device__ __forceinline__ void loadBlock(SharedAddress to, const TensorMap *from,
                                          SharedAddress barrier, int first, int head,
                                          const Args &args) {
  constexpr int rows = AttentionConfig<problem, tile>::boxKeys;
  if constexpr (problem.pageRows == 0) {
#pragma unroll
    for (int panel = 0; panel < panels; ++panel)
      loadHead<map>(to + panel * tile.keys * rowBytes, from, barrier, panel * 64, first, head);
  } else {
#pragma unroll 1
    for (int row = 0; row < tile.keys; row += rows) {
      const int page = args.pageOf(head, first + row);
#pragma unroll
      for (int panel = 0; panel < panels; ++panel)
        loadHeadOfPage<map>(to + (panel * tile.keys + row) * rowBytes, from, barrier, panel * 64,
                            (first + row) % problem.pageRows, head, page);
    }
  }
}

/// The tokens of a head's sequence; all rows where none are packed.
template <AttentionProblem problem, typename Args>
__device__ __forceinline__ Sequence sequenceOf(const Args &args, int head) {
  if constexpr (problem.isPacked) return args.sequences.of(head);
  else return {0, problem.keys};
}

/// The blocks of keys that a tile of queries sees, from the last to the first. The lanes of a warp
/// ask for the coverage of 32 blocks at once; all of them call advance() together.
template <AttentionProblem problem, AttentionTile tile, typename Coverage>
struct KeyBlocks {
  using C = AttentionConfig<problem, tile>;
  static constexpr int count = C::keyTiles, lanes = 32;
  static constexpr bool hasTail = problem.keys % tile.keys != 0;
  const Coverage &coverage;
  int head, firstQuery;
  int tokens;  // of the head's sequence: keys from it on are zeros
  // Of the block. What the compiler does not know: it would take a loop of few blocks apart, and
  // then not keep both GEMMs in flight in registers.
  int index = opaque(seenOf(tokens), 0);
  int group = seenOf(tokens) / lanes + 1;  // of 32 blocks, whose bits these are:
  unsigned seen = 0, mixed = 0;
  bool isMixed = false;

  /// Blocks from the first one on, behind which no mask is asked.
  static __device__ __forceinline__ int seenOf(int tokens) {
    return problem.endsAtTokens ? (tokens + tile.keys - 1) / tile.keys : count;
  }

  /// Goes to the next block; false if there is none.
  __device__ __forceinline__ bool advance() {
    if constexpr (IsFull<Coverage>) {
      --index;
      isMixed = isPart(index);
      return index >= 0;
    } else {
      while (seen == 0) {
        if (--group < 0) return false;
        askFor(group * lanes + int(threadIdx.x % lanes));
      }
      const int bit = 31 - __clz(int(seen));
      seen ^= 1u << bit;
      index = group * lanes + bit;
      isMixed = mixed >> bit & 1;
      return true;
    }
  }

  /// Whether not all of a block's keys are tokens.
  __device__ __forceinline__ bool isPart(int block) const {
    if constexpr (problem.isPacked) return (block + 1) * tile.keys > tokens;
    else return hasTail && block == count - 1;
  }

  __device__ __forceinline__ void askFor(int block) {
    // Rows of no token are not stored: masks of queries need not leave them out.
    const int rows = problem.isPacked ? tokens : problem.queries;
    const int lastQuery = smaller(firstQuery + C::queriesOfTile, rows) - 1,
              first = block * tile.keys, last = smaller(first + tile.keys, problem.keys) - 1;
    TileCoverage covered = block < seenOf(tokens)
                               ? coverage(head, firstQuery, lastQuery, first, last)
                               : TileCoverage::empty;
    if constexpr (tile.packedHeads > 1 && tile.masksDiffer) {
#pragma unroll 1
      for (int other = 1; block < seenOf(tokens) && other < tile.packedHeads; ++other)
        if (coverage(head + other, firstQuery, lastQuery, first, last) != covered)
          covered = TileCoverage::mixed;
    }
    seen = __ballot_sync(~0u, covered != TileCoverage::empty);
    mixed = __ballot_sync(~0u, covered == TileCoverage::mixed || isPart(block));
  }
};

/// How many rows of a block of values a tile of queries may read; the others are zeroed. Blocks are
/// seen from the last to the first: no mask leaves a key behind the first of them.
template <AttentionProblem problem, AttentionTile tile, typename Args>
__device__ __forceinline__ int readRows(const Args &args, const AttentionTilePlace &at, int tokens,
                                        int block, bool isFirst) {
  if constexpr (problem.isPacked) return tokens - block * tile.keys;
  else if constexpr (problem.zeroesUnseen) {
    constexpr int queries = AttentionConfig<problem, tile>::queriesOfTile;
    if (!isFirst) return tile.keys;
    const int lastQuery = smaller(at.firstQuery + queries, problem.queries) - 1;
    return seenRows<tile.keys>(args.coverage, at.head, tile.masksDiffer ? tile.packedHeads : 1,
                               at.firstQuery, lastQuery, block * tile.keys, problem.keys);
  } else return tile.keys;
}

/// The numbers of the tiles that blocks take one after the other: all of them, or of packed tokens
/// those that have any. A number of C::tiles: there are no more.
template <AttentionProblem problem, AttentionTile tile, typename Args>
struct TileNumbers {
  using C = AttentionConfig<problem, tile>;
  __device__ __forceinline__ TileNumbers(const Args &, SharedAddress) {}
  __device__ __forceinline__ int count() const { return C::tiles; }
  __device__ __forceinline__ int at(int taken) const { return taken; }
};
template <AttentionProblem problem, AttentionTile tile, typename Args>
requires(problem.isPacked) struct TileNumbers<problem, tile, Args> {
  using C = AttentionConfig<problem, tile>;
  const PackedTiles<problem, tile, decltype(Args::sequences)> tiles;
  __device__ __forceinline__ TileNumbers(const Args &args, SharedAddress words)
      : tiles{args.sequences, words} {
    tiles.start();
  }
  __device__ __forceinline__ int count() const { return tiles.count(); }
  __device__ __forceinline__ int at(int taken) const {
    return taken < tiles.count() ? tiles.at(taken) : C::tiles;
  }
};

template <AttentionProblem problem, AttentionTile tile, typename Args>
__device__ __forceinline__ void produceAttention(AttentionShared<problem, tile> shared,
                                                 const Args &args) {
  using C = AttentionConfig<problem, tile>;
  const bool isLeader = threadIdx.x == 0;
  unsigned tiles = 0;  // passed before
  BlockBuffers<C::keyConsumers, C::stagesOfBuffer> buffers;
  unsigned changed = 0;  // blocks of values whose last rows were zeroed
  const TileNumbers<problem, tile, Args> numbers(args, shared.sequenceWords());
  int taken = blockIdx.x;
#pragma unroll 1
  while (true) {
    const StageOfPass<2> place(tiles);
    const StageOfPass<tile.queryStages> query(tiles);
    const int index = numbers.at(taken);
    if (isLeader) {
      wait(shared.tileEmpty(place.stage), place.parity ^ 1);
      asm volatile("st.shared::cta.s32 [%0], %1;" ::"r"(shared.tileNumber(place.stage)), "r"(index)
                   : "memory");
      arrive(shared.tileFull(place.stage));
    }
    if (index >= C::tiles) break;
    const AttentionTilePlace at = attentionTile<problem, tile>(index, args.order);
    const Sequence sequence = sequenceOf<problem>(args, at.head);
    KeyBlocks<problem, tile, decltype(args.coverage)> blocks{args.coverage, at.head, at.firstQuery,
                                                             sequence.count};
    constexpr bool hasEnd = problem.isPacked || problem.zeroesUnseen;
    buffers.startTile();
    using Held = HeldBlockStage<hasEnd>;
    Held heldKey{};  // of the block whose keys were loaded last
    const auto loadKeys = [&] {
      const BlockStage key = buffers.next();
      heldKey = Held(key);
      if (!isLeader) return;
      wait(shared.kEmpty(key.stage), key.parity ^ 1);
      arriveExpecting(shared.kFull(key.stage), C::keyBytes);
      loadBlock<problem, tile, problem.k, C::queryPanels>(
          shared.k(key.stage), args.k, shared.kFull(key.stage),
          sequence.first + blocks.index * tile.keys, at.head, args);
    };
    // Values whose last rows are to be zeroed when they are there: meanwhile others are asked for.
    constexpr int partRows = 256;  // a power of two: a division takes registers
    static_assert(tile.keys <= partRows);
    int part = -1;  // stage * partRows + rows that stay, where there are some
    const auto finishPart = [&] {
      if (!hasEnd || part < 0) return;
      const int stage = part / partRows;
      zeroLastRows<C::valuePanels, tile.keys>(shared.v(stage), part % partRows, shared.lastValues(),
                                              shared.vFull(stage), changed);
      part = -1;
    };
    const auto loadValues = [&](int block, const Held &held, bool isFirst) {
      finishPart();
      const BlockStage value = held;
      const int rows = readRows<problem, tile>(args, at, sequence.count, block, isFirst);
      const bool isPart = hasEnd && rows < tile.keys;
      const SharedAddress full = isPart ? shared.lastValues() : shared.vFull(value.stage);
      if (isLeader) {
        wait(shared.vEmpty(value.stage), value.parity ^ 1);
        arriveExpecting(full, C::valueBytes);
        loadBlock<problem, tile, problem.v, C::valuePanels>(
            shared.v(value.stage), args.v, full, sequence.first + block * tile.keys, at.head, args);
      }
      if (isPart) part = value.stage * partRows + larger(rows, 0);
    };
    const bool hasBlocks = blocks.advance();
    if (hasBlocks) loadKeys();  // their place is free before that of the queries
    if (isLeader) {
      wait(shared.qEmpty(query.stage), query.parity ^ 1);
      arriveExpecting(shared.qFull(query.stage), C::loadedQueryBytes);
#pragma unroll
      for (int panel = 0; panel < C::queryPanels; ++panel) {
        const SharedAddress to = shared.q(query.stage) + panel * tile.queries * rowBytes;
        if constexpr (tile.packedHeads == 1)
          loadHead<problem.q>(to, args.q, shared.qFull(query.stage), panel * 64,
                              sequence.first + at.firstQuery, at.head);
        else
#pragma unroll
          for (int part = 0; part < C::rowParts; ++part)
            loadPackedHeads<problem.q>(to + part * subtileBytes, args.q, shared.qFull(query.stage),
                                       panel * 64, at.firstQuery + part * C::queriesOfPart,
                                       at.head);
      }
    }
    if (hasBlocks) {
      int previous = blocks.index;
      Held value = heldKey;
      bool isFirst = true;
#pragma unroll 1
      while (blocks.advance()) {
        loadKeys();
        loadValues(previous, value, isFirst);
        previous = blocks.index;
        value = heldKey;
        isFirst = false;
      }
      loadValues(previous, value, isFirst);
      finishPart();
    }
    ++tiles;
    if (isLeader) taken = gridDim.x + ptx::count(args.counter, numbers.count() - 1);
    taken = __shfl_sync(~0u, taken, 0);
  }
}

constexpr int consumerBarrier = 1, orderedBarrier = 4;  // named barriers from these on

template <typename T, AttentionProblem problem, AttentionTile tile, typename Args>
__device__ __forceinline__ void consumeAttention(AttentionShared<problem, tile> shared,
                                                 const Args &args, int consumer) {
  using C = AttentionConfig<problem, tile>;
  constexpr int keyConsumers = C::keyConsumers;
  constexpr T *type = nullptr;
  constexpr float log2e = 1.44269504088896f;
  // Expressions take scaled products; where there are none, or only masks, the exponential scales.
  constexpr bool scalesFirst = !IsUnchanged<decltype(args.scoreWithoutMasks)>;
  const float factor = scalesFirst ? log2e : args.scale * log2e;
  const int thread = threadIdx.x % warpgroup, warp = thread / 32, lane = thread % 32;
  const bool isLeader = thread == 0;
  // Of 64 rows, and of those that share them: the first one stores the output.
  const int rowPart = keyConsumers == 1 ? consumer : 0, keyRank = keyConsumers == 1 ? 0 : consumer;
  unsigned tiles = 0, keyBlocks = 0;  // of this consumer, passed before
  if (tile.isOrdered && consumer == C::consumers - 1) arriveAt(orderedBarrier, 2 * warpgroup);
#pragma unroll 1
  while (true) {
    const StageOfPass<2> place(tiles);
    const StageOfPass<tile.queryStages> query(tiles);
    wait(shared.tileFull(place.stage), place.parity);
    int index;
    asm volatile("ld.shared::cta.s32 %0, [%1];"
                 : "=r"(index)
                 : "r"(shared.tileNumber(place.stage))
                 : "memory");
    index = __shfl_sync(~0u, index, 0);  // known to be one of the warp: what follows is uniform
    if (lane == 0) arrive(shared.tileEmpty(place.stage));
    if (index >= C::tiles) break;
    const AttentionTilePlace at = attentionTile<problem, tile>(index, args.order);
    const Sequence sequence = sequenceOf<problem>(args, at.head);
    KeyBlocks<problem, tile, decltype(args.coverage)> blocks{args.coverage, at.head, at.firstQuery,
                                                             sequence.count};
    const int firstOfPart = at.firstQuery + rowPart * C::queriesOfPart;
    const int ownRow = warp * 16 + lane / 4, firstRow = firstOfPart + ownRow;
    // The first of this thread's two rows, or the second.
    const auto placeOf = [&](int half) -> RowPlace {
      if constexpr (tile.packedHeads == 1) return {at.head, firstRow + half * 8};
      else return placeOfPackedRow<tile.packedHeads>(at.head, firstOfPart, ownRow + half * 8);
    };
    // Goes to the next block of this consumer, past `others` that are not.
    const auto advance = [&](int others) {
      if constexpr (keyConsumers > 1)
        for (int other = 0; other < others; ++other)
          if (!blocks.advance()) return false;
      return blocks.advance();
    };
    const auto stageOf = [&](unsigned pass) {
      return blockStage<C::stagesOfBuffer>(keyRank, pass);
    };

    float output[C::valueColumns / 2];
#pragma unroll
    for (int i = 0; i < C::valueColumns / 2; ++i) output[i] = 0;
    OnlineSoftmax softmax;
    wait(shared.qFull(query.stage), query.parity);
    if (advance(keyRank)) {
      float scores[tile.keys / 2], older[2];
      unsigned exponentials[tile.keys / 16][4];
      const SharedAddress q = shared.q(query.stage) + rowPart * subtileBytes;

      const auto issueScores = [&](int stage) {
        fenceWgmma();
#pragma unroll
        for (int step = 0; step < C::headSteps; ++step)
          wgmma<false, false>(
              type, type, scores,
              describeOperand(q + step / 4 * tile.queries * rowBytes + step % 4 * 32, 0),
              describeOperand(shared.k(stage) + step / 4 * tile.keys * rowBytes + step % 4 * 32, 0),
              step > 0);
        commitWgmma();
      };
      const auto issueOutput = [&](int stage) {
        fenceWgmma();
#pragma unroll
        for (int step = 0; step < tile.keys / 16; ++step)
          wgmma<true>(type, type, output, exponentials[step],
                      describeOperand(shared.v(stage) + step * 16 * rowBytes, tile.keys * rowBytes),
                      true);
        commitWgmma();
      };
      /// Zeroes what is dropped, and rounds the rest for the output's GEMM.
      const auto packScores = [&](int block) {
        if constexpr (!DropsNothing<decltype(args.dropout)>) {
#pragma unroll
          for (int step = 0; step < tile.keys / 16; ++step) {
            const auto kept =
                args.dropout(at.head, firstRow, block * tile.keys + step * 16 + lane % 4 * 2);
#pragma unroll
            for (int i = 0; i < 8; ++i) {
              scores[step * 8 + i] = kept.at(i) ? scores[step * 8 + i] : 0.0f;
              asm volatile("" : "+f"(scores[step * 8 + i]));
            }
          }
        }
        packExponentials<T>(exponentials, scores);
      };
      const auto applyScore = [&](int block, bool isMixed) {
        const auto each = [&](const auto &function) {
#pragma unroll
          for (int i = 0; i < tile.keys / 2; ++i) {
            const RowPlace row = placeOf(i / 2 % 2);
            scores[i] =
                function(scores[i], row, block * tile.keys + i / 4 * 8 + lane % 4 * 2 + i % 2);
            asm volatile("" : "+f"(scores[i]));  // one after the other, for few registers
          }
        };
        const float scale = scalesFirst ? args.scale : 1.0f;
        if (isMixed) {
          each([&](float score, const RowPlace &row, int column) {
            if (problem.isPacked && column >= sequence.count) score = 0;  // a key of zeros
            if constexpr (!IsUnchanged<decltype(args.score)>)
              score = args.score(score * scale, row.head, row.query, column);
            const bool isKey = (problem.keys % tile.keys == 0 || column < problem.keys) &&
                               (!problem.endsAtTokens || column < sequence.count);
            return isKey ? score : negativeInfinity;
          });
        } else if constexpr (scalesFirst) {
          each([&](float score, const RowPlace &row, int column) {
            return args.scoreWithoutMasks(score * scale, row.head, row.query, column);
          });
        }
      };

      {
        const BlockStage key = stageOf(keyBlocks++);
        wait(shared.kFull(key.stage), key.parity);
        issueScores(key.stage);
        waitForWgmma<0>();
        fenceAccumulators(scores);
        if (isLeader) arrive(shared.kEmpty(key.stage));
      }
      applyScore(blocks.index, blocks.isMixed);
      softmax.add(scores, factor, older);
      packScores(blocks.index);
#pragma unroll 1
      while (advance(keyConsumers - 1)) {
        const BlockStage value = stageOf(keyBlocks - 1), key = stageOf(keyBlocks++);
        wait(shared.kFull(key.stage), key.parity);
        if constexpr (tile.isOrdered) synchronize(orderedBarrier + consumer, 2 * warpgroup);
        issueScores(key.stage);
        wait(shared.vFull(value.stage), value.parity);
        issueOutput(value.stage);
        if constexpr (tile.isOrdered)
          arriveAt(orderedBarrier + (consumer + 1) % C::consumers, 2 * warpgroup);
        waitForWgmma<1>();
        fenceAccumulators(scores);
        if (isLeader) arrive(shared.kEmpty(key.stage));
        applyScore(blocks.index, blocks.isMixed);
        softmax.add(scores, factor, older);
        waitForWgmma<0>();
        fenceAccumulators(output);
        if (isLeader) arrive(shared.vEmpty(value.stage));
#pragma unroll
        for (int i = 0; i < C::valueColumns / 2; ++i) output[i] *= older[i / 2 % 2];
        packScores(blocks.index);
      }
      if ((!tile.staysInQ || keyRank > 0) && isLeader) arrive(shared.qEmpty(query.stage));
      const BlockStage value = stageOf(keyBlocks - 1);
      wait(shared.vFull(value.stage), value.parity);
      issueOutput(value.stage);
      softmax.joinSums();
      waitForWgmma<0>();
      fenceAccumulators(output);
      if (isLeader) arrive(shared.vEmpty(value.stage));
    } else if ((!tile.staysInQ || keyRank > 0) && isLeader) {
      arrive(shared.qEmpty(query.stage));
    }

    if constexpr (keyConsumers > 1) {
      const int parity = int(tiles % 2);
      const auto arriveAsWarp = [&](SharedAddress barrier) {
        __syncwarp();
        if (lane == 0) arrive(barrier);
      };
      if (keyRank > 0) {
        wait(shared.partEmpty(keyRank), parity ^ 1);
        storePart(shared.part(keyRank) + thread * 16, softmax, output);
        arriveAsWarp(shared.partFull(keyRank));
        ++tiles;
        continue;
      }
#pragma unroll
      for (int other = 1; other < keyConsumers; ++other) {
        wait(shared.partFull(other), parity);
        joinPart(shared.part(other) + thread * 16, factor, softmax, output);
        arriveAsWarp(shared.partEmpty(other));
      }
    }

    // The last store has read its place.
    if (isLeader) waitForStoresToRead<0>();
    synchronize(consumerBarrier + consumer, warpgroup);
    const SharedAddress staged = shared.output() + rowPart * subtileBytes;
    const float scaling[2] = {softmax.scaling(0) * args.keepScale,
                              softmax.scaling(1) * args.keepScale};
#pragma unroll
    for (int block = 0; block < C::valueColumns / 16; ++block) {
      float values[8];
#pragma unroll
      for (int i = 0; i < 8; ++i) values[i] = output[block * 8 + i] * scaling[i / 2 % 2];
      storeFragmentShared<T>(staged + block / 4 * tile.queries * rowBytes +
                                 swizzled(warp * 16 + lane % 16, block % 4 * 2 + lane / 16),
                             values);
    }
    fenceForAsync();
    synchronize(consumerBarrier + consumer, warpgroup);
    bool isWhole = true;  // no row is of another sequence
    if constexpr (problem.isPacked) {
      const int left = sequence.count - firstOfPart;
      isWhole = left >= 64;
      if (!isWhole) {
        storeRows<problem.valueDim, tile.queries>(staged, args.outputRow, at.head,
                                                  sequence.first + firstOfPart, left);
        synchronize(consumerBarrier + consumer, warpgroup);  // before its place is written again
      }
    }
    if (isLeader) {
      if (isWhole && firstOfPart < problem.queries)
#pragma unroll
        for (int panel = 0; panel < C::valuePanels; ++panel) {
          const SharedAddress from = staged + panel * tile.queries * rowBytes;
          if constexpr (tile.packedHeads == 1)
            storeHead<problem.output>(args.output, from, panel * 64, sequence.first + firstOfPart,
                                      at.head);
          else
            storePackedHeads<problem.output>(args.output, from, panel * 64, firstOfPart, at.head);
        }
      commitStores();
      if constexpr (tile.staysInQ) {
        waitForStoresToRead<0>();
        arrive(shared.qEmpty(query.stage));
      }
    }
    ++tiles;
    if (args.logSums && lane % 4 == 0)
#pragma unroll
      for (int row = 0; row < 2; ++row) {
        const RowPlace place = placeOf(row);
        if (place.query < problem.queries && ownRow + row * 8 < C::usedRows)
          args.logSums[static_cast<Offset>(place.head) * problem.queries + place.query] =
              softmax.logSum(row, factor);
      }
  }
  if (isLeader) waitForStoresToRead<0>();
  if constexpr (problem.isPacked)
    if (args.zeroesUnused)
      zeroUnused<problem.valueDim, problem.heads, true>(
          args.sequences, args.outputRow, consumer * warpgroup + thread, C::consumers * warpgroup);
}

/// The whole kernel.
template <typename T, AttentionProblem problem, AttentionTile tile, typename Args>
__device__ __forceinline__ void attention(const Args &args) {
  using C = AttentionConfig<problem, tile>;
  static_assert(tile.packedHeads == 1 || DropsNothing<decltype(args.dropout)>);
  extern __shared__ __align__(1024) unsigned char memory[];
  const AttentionShared<problem, tile> shared{sharedAddress(memory)};
  if (threadIdx.x == 0) {
    prefetchMap(args.q);
    prefetchMap(args.k);
    prefetchMap(args.v);
    prefetchMap(args.output);
    for (int stage = 0; stage < tile.queryStages; ++stage) {
      initializeBarrier(shared.qFull(stage), 1);
      initializeBarrier(shared.qEmpty(stage), C::consumers);
    }
    for (int stage = 0; stage < tile.stages; ++stage) {
      initializeBarrier(shared.kFull(stage), 1);
      initializeBarrier(shared.vFull(stage), 1);
      initializeBarrier(shared.kEmpty(stage), C::rowParts);
      initializeBarrier(shared.vEmpty(stage), C::rowParts);
    }
    for (int other = 1; other < C::keyConsumers; ++other) {
      initializeBarrier(shared.partFull(other), warpgroup / 32);
      initializeBarrier(shared.partEmpty(other), warpgroup / 32);
    }
    for (int place = 0; place < 2; ++place) {
      initializeBarrier(shared.tileFull(place), 1);
      initializeBarrier(shared.tileEmpty(place), C::consumers * 4);
    }
    if constexpr (problem.isPacked || problem.zeroesUnseen)
      initializeBarrier(shared.lastValues(), 1);
    publishBarriers();
  }
  ptx::barrier();
  const int role = __shfl_sync(~0u, threadIdx.x / warpgroup, 0);
  if (role == 0) {
    lowerRegisters<C::producerRegisters>();
    if (threadIdx.x < 32) produceAttention<problem, tile>(shared, args);
  } else {
    raiseRegisters<C::consumerRegisters>();
    consumeAttention<T, problem, tile>(shared, args, role - 1);
  }
}

}  // namespace weft::sm90
