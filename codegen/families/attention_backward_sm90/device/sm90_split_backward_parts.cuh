// Gradients apart (sm90_split_backward.cuh) where tiles of keys take some of the heads that share
// these: under a mask whose columns some tiles see far more of than others, a tile of all heads of
// a group would run on when all others are done. Of the kernel, a group is then those of one tile:
// `problem.headsOfGroup` of `parts` times as many. Sums of keys and values are parts, which the
// last tile of the same keys adds up in the order of heads.
//
//   tiles of keys, parts 0 .. n-1 ──> device memory ──> the last one: 0 + 1 + .. ──> dK, dV
#pragma once

#include "weft/sm90_gradient_parts.cuh"
#include "weft/sm90_split_backward.cuh"

namespace weft::sm90 {

/// Where parts are, and a counter of each consumer of every tile of keys: of those that are there.
struct KeyParts {
  float *sums;
  unsigned *semaphores;  // of Semaphores; zero between launches
};

template <AttentionBackwardProblem problem, SplitBackwardTile tile, typename Row, int parts>
struct KeyPartsConfig {
  using C = SplitBackwardConfig<problem, tile, Row>;
  static constexpr int keyHeads = C::keyHeads / parts;
  /// Of a consumer: sums of 64 keys and, behind them, of their values.
  static constexpr int keyFloats = 64 * C::headColumns,
                       partFloats = keyFloats + 64 * C::valueColumns;
  static constexpr int semaphores = keyHeads * C::keyTiles * C::consumers;
  static constexpr Offset floats = static_cast<Offset>(semaphores) * parts * partFloats;
  static_assert(C::keyHeads % parts == 0);
};

/// The arguments of a kernel, and where it has parts.
template <typename Args, int parts>
struct KeyPartsArgs : Args {
  KeyParts keyParts;
  static constexpr int groupParts = parts;
};

/// Stores a part; whether it is the last one of its keys, whose sums are then those of all.
template <AttentionBackwardProblem problem, SplitBackwardTile tile, typename Shared, typename Args,
          int headFloats, int valueFloats>
__device__ __forceinline__ bool addKeyParts(const Shared &shared, const Args &args,
                                            const SplitBackwardPlace &at, int consumer,
                                            float (&ofHead)[headFloats],
                                            float (&ofValue)[valueFloats]) {
  using C = SplitBackwardConfig<problem, tile, typename Args::Row>;
  constexpr int parts = Args::groupParts;
  using P = KeyPartsConfig<problem, tile, typename Args::Row, parts>;
  const int thread = threadIdx.x % warpgroup, tileHead = at.head / problem.headsOfGroup,
            place = (tileHead / parts * C::keyTiles + at.tile) * C::consumers + consumer;
  float *sums = args.keyParts.sums + static_cast<Offset>(place) * (parts * P::partFloats);
  float *own = sums + tileHead % parts * P::partFloats;
  storePart(own, ofHead, thread);
  storePart(own + P::keyFloats, ofValue, thread);
  // A word of each consumer, behind the numbers of tiles.
  const SharedAddress before = shared.tileNumber(2) + consumer * 4;
  synchronize(splitConsumerBarrier + consumer, warpgroup);
  if (thread == 0) storeWord(before, ptx::arrive(args.keyParts.semaphores + place, parts - 1));
  synchronize(splitConsumerBarrier + consumer, warpgroup);
  if (loadWord(before) < parts - 1) return false;
#pragma unroll
  for (float &sum : ofHead) sum = 0;
#pragma unroll
  for (float &sum : ofValue) sum = 0;
#pragma unroll 1
  for (int part = 0; part < parts; ++part) {
    addPart(ofHead, sums + part * P::partFloats, thread);
    addPart(ofValue, sums + part * P::partFloats + P::keyFloats, thread);
  }
  return true;
}

/// Sums of a tile of keys over its blocks: what sm90_split_backward.cuh has of such a tile, with
/// parts at its end. The functions there find it for these arguments.
template <typename T, AttentionBackwardProblem problem, SplitBackwardTile tile, bool ofKeys,
          typename Shared, typename Args>
requires(ofKeys &&Args::groupParts > 1) __device__ __forceinline__
    void consumeTile(const Shared &shared, const Args &args, const SplitBackwardPlace &at,
                     bool hasBlock, unsigned tiles, unsigned &count, int consumer) {
  using C = SplitBackwardConfig<problem, tile, typename Args::Row>;
  using Parts = SplitParts<T, problem, tile, true, Shared, Args>;
  using Stage = StageOfPass<tile.stages>;
  constexpr int ahead = C::template productsAhead<true>;
  const int thread = threadIdx.x % warpgroup, warp = thread / 32, lane = thread % 32;
  const StageOfPass<tile.ownStages> own(tiles);
  const int firstRow = at.tile * tile.rows + consumer * 64;
  const Parts parts{.shared = shared,
                    .args = args,
                    .ownHead = shared.ownHead(own.stage) + consumer * subtileBytes,
                    .ownValue = shared.ownValue(own.stage) + consumer * subtileBytes,
                    .lane = lane,
                    .firstRow = firstRow + warp * 16 + lane / 4};
  float ofHead[C::headColumns / 2], ofValue[C::valueColumns / 2];
#pragma unroll
  for (float &sum : ofHead) sum = 0;
#pragma unroll
  for (float &sum : ofValue) sum = 0;
  wait(shared.ownFull(own.stage), own.parity);

  typename Parts::Products products;
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
    fenceAccumulators(ofValue);
    signal(shared.blockEmpty(block.stage));
    ++count;
  }
  waitForWgmma<0>();

  if (!addKeyParts<problem, tile>(shared, args, at, consumer, ofHead, ofValue)) {
    if (thread == 0) arrive(shared.ownEmpty(own.stage));
    return;
  }
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
  stage.template operator()<C::headColumns>(parts.ownHead, ofHead, args.dKScale);
  stage.template operator()<C::valueColumns>(parts.ownValue, ofValue, args.dVScale);
  fenceForAsync();
  synchronize(splitConsumerBarrier + consumer, warpgroup);
  if (thread != 0) return;
  if (firstRow < problem.keys) {
#pragma unroll
    for (int panel = 0; panel < C::headPanels; ++panel)
      storeHead<problem.dK>(args.dK, parts.ownHead + panel * tile.rows * rowBytes, panel * 64,
                            firstRow, at.head);
#pragma unroll
    for (int panel = 0; panel < C::valuePanels; ++panel)
      storeHead<problem.dV>(args.dV, parts.ownValue + panel * tile.rows * rowBytes, panel * 64,
                            firstRow, at.head);
  }
  commitStores();
  waitForStoresToRead<0>();
  arrive(shared.ownEmpty(own.stage));
}

/// The whole kernel: `problem.headsOfGroup` heads a tile of keys, `parts` such tiles of the same.
template <typename T, AttentionBackwardProblem problem, SplitBackwardTile tile, int parts,
          typename Args>
__device__ __forceinline__ void splitBackwardOfParts(const KeyParts &keyParts, const Args &args) {
  splitBackward<T, problem, tile>(KeyPartsArgs<Args, parts>{args, keyParts});
}

}  // namespace weft::sm90
