// The epilogue store of the GEMM kernel template: subtiles of 64 x 64 accumulators through the
// epilogue and shared memory into C.
//
// An epilogue is a function of the eight accumulators of a lane in a block of 16 x 16 and of where
// they lie (Fragment). It may read one operand of C's shape, which arrives in the buffer that the
// subtile leaves from, and one vector along C's columns or rows, which waits in registers: both are
// in flight while the tile is multiplied. It may make a second tensor of C's shape, whose subtiles
// leave from separate buffers behind those of C. It may hand over what is summed down to the
// columns or rows of C (sm90_epilogue_reduction.cuh).
#pragma once

#include "weft/fragment.cuh"
#include "weft/opaque.cuh"
#include "weft/ordered_load.cuh"
#include "weft/sm90_barrier.cuh"
#include "weft/sm90_fragment_shared.cuh"
#include "weft/sm90_tiles.cuh"
#include "weft/sm90_tma.cuh"

namespace weft::sm90 {

/// Accumulators of one tile, 64 rows after 64 rows.
template <GemmProblem gemm, Tile tile>
using Accumulators = float[TileConfig<gemm, tile>::rowBlocks][tile.n / 2];

/// Where the eight accumulators of a lane in a block of 16 x 16 lie: rows row and row + 8, columns
/// column, + 1, + 8, + 9, in the order (row, column), (row, + 1), (+ 8, column), ...
struct Fragment {
  int batch, row, column;
};
/// The epilogue that leaves the accumulators as they are.
struct Unchanged {
  __device__ __forceinline__ void operator()(float (&)[8], const Fragment &) const {}
};
template <typename Epilogue>
constexpr bool isUnchanged = false;
template <>
constexpr bool isUnchanged<Unchanged> = true;
/// An epilogue that loads operands or stores results itself: it is to be called once a fragment.
template <typename Epilogue>
struct PerThreadEpilogue {
  const Epilogue &epilogue;
  template <typename... Arguments>
  __device__ __forceinline__ void operator()(Arguments &...arguments) const {
    epilogue(arguments...);
  }
};
template <typename Epilogue>
PerThreadEpilogue(const Epilogue &) -> PerThreadEpilogue<Epilogue>;
template <typename Epilogue>
constexpr bool isPerThreadEpilogue = false;
template <typename Epilogue>
constexpr bool isPerThreadEpilogue<PerThreadEpilogue<Epilogue>> = true;

/// The subtiles of 64 x 64 elements of C that a consumer makes of a tile, in the order in which it
/// stores them. Where blocks share a tile each finishes every n-th subtile, beginning with that of
/// its rank; a store step is one of those.
template <GemmProblem gemm, Tile tile>
struct Subtiles {
  using P = TileConfig<gemm, tile>;
  static constexpr int across = tile.n / 64, count = P::subtiles,
                       storeSteps = (count + tile.splitK - 1) / tile.splitK;
  TileStart at;
  int firstRow;
  bool isUnused = false;  ///< behind the last token: nothing is loaded for it
  __device__ __forceinline__ static int ofStep(int storeStep) {
    return storeStep * tile.splitK + rankInCluster<tile>();
  }
  __device__ __forceinline__ int row(int subtile) const {
    return at.m + firstRow + subtile / across * 64;
  }
  __device__ __forceinline__ int column(int subtile) const { return at.n + subtile % across * 64; }
  /// Whether TMA takes it: it clips columns at 16 bytes only.
  __device__ __forceinline__ bool usesTma(int subtile) const {
    return gemm.usesTma && (gemm.n % 8 == 0 || column(subtile) + 64 <= gemm.n);
  }
};

/// A consumer's buffers of subtiles, one after the other, again and again; a store step takes one
/// for every tensor that it stores. `used`: store steps that have passed through it.
template <GemmProblem gemm, Tile tile, int tensors>
struct EpilogueStages {
  static constexpr int stepsInFlight = tile.epilogueStages / tensors;
  static constexpr int subtilesInFlight = stepsInFlight * tile.splitK;
  /// Store steps that leave at once, since every fence and barrier costs hundreds of cycles; of
  /// many accumulators there is no room for two.
  static constexpr int together =
      stepsInFlight >= 4 && TileConfig<gemm, tile>::accumulators <= 128 ? 2 : 1;
  SharedAddress start, barriers;
  int consumer, used = 0;
  __device__ __forceinline__ int place(int subtile) const { return used + subtile / tile.splitK; }
  __device__ __forceinline__ SharedAddress buffer(int subtile) const {
    return start + place(subtile) % stepsInFlight * tensors * subtileBytes;
  }
  __device__ __forceinline__ SharedAddress barrier(int subtile) const {
    return barriers + 8 * (place(subtile) % stepsInFlight);
  }
  __device__ __forceinline__ int parity(int subtile) const {
    return place(subtile) / stepsInFlight % 2;
  }
};

/// Rows of a subtile that come in one copy.
constexpr int boxRowsPerLoad = 16;

/// Has TMA bring a subtile of an operand of C's shape into the buffer that the subtile of C will
/// leave from; calls pause() before every piece of it.
template <GemmProblem gemm, Tile tile, int tensors, typename Pause>
__device__ __forceinline__ void loadSubtile(
    const EpilogueStages<gemm, tile, tensors> &epilogueStages, const Subtiles<gemm, tile> &subtiles,
    const TensorMap *map, int subtile, const Pause &pause) {
  if (subtiles.isUnused || !subtiles.usesTma(subtile))
    return arrive(epilogueStages.barrier(subtile));
  arriveExpecting(epilogueStages.barrier(subtile), subtileBytes);
#pragma unroll 1
  for (int row = 0; row < 64; row += boxRowsPerLoad) {
    pause();
    const SharedAddress to = epilogueStages.buffer(subtile) + row * rowBytes;
    if constexpr (gemm.batch > 1)
      loadTile(to, map, epilogueStages.barrier(subtile), subtiles.column(subtile),
               subtiles.row(subtile) + row, subtiles.at.batch);
    else
      loadTile(to, map, epilogueStages.barrier(subtile), subtiles.column(subtile),
               subtiles.row(subtile) + row);
  }
}
template <GemmProblem gemm, Tile tile, int tensors>
__device__ __forceinline__ void loadSubtile(
    const EpilogueStages<gemm, tile, tensors> &epilogueStages, const Subtiles<gemm, tile> &subtiles,
    const TensorMap *map, int subtile) {
  loadSubtile(epilogueStages, subtiles, map, subtile, [] {});
}

/// How many subtiles of a tile a consumer has buffers for at once.
template <GemmProblem gemm, Tile tile, int tensors>
constexpr int firstSubtiles = smaller(EpilogueStages<gemm, tile, tensors>::subtilesInFlight,
                                      Subtiles<gemm, tile>::count);

/// The first subtiles of the operand of C's shape of a tile, which arrive while the tile is
/// multiplied.
template <GemmProblem gemm, Tile tile, int tensors>
__device__ __forceinline__ void loadFirstSubtiles(
    const EpilogueStages<gemm, tile, tensors> &epilogueStages, const Subtiles<gemm, tile> &subtiles,
    const TensorMap *map) {
  waitForStoresToRead<0>();
  for (int subtile = rankInCluster<tile>(); subtile < firstSubtiles<gemm, tile, tensors>;
       subtile += tile.splitK)
    loadSubtile(epilogueStages, subtiles, map, subtile);
}

/// The operand of C's shape that an epilogue reads, stored as C is, or that it reads none.
template <typename T>
struct SubtileOperand {
  static constexpr bool isRead = true;
  Tensor<const T> tensor;
};
struct NoSubtileOperand {
  static constexpr bool isRead = false;
};

/// The second tensor of C's shape that an epilogue makes, stored as C is, or that it makes none.
template <typename T>
struct SubtileOutput {
  static constexpr bool isWritten = true;
  Tensor<T> tensor;
};
struct NoSubtileOutput {
  static constexpr bool isWritten = false;
};

/// The vector of elements of 16 bits that an epilogue reads: one a column or one a row of C, or
/// that it reads none. Columns start at multiples of two elements.
template <typename T>
struct ColumnOperand {
  static constexpr bool isRead = true, isOfRows = false;
  using Element = T;
  const T *elements;
};
template <typename T>
struct RowOperand {
  static constexpr bool isRead = true, isOfRows = true;
  using Element = T;
  const T *elements;
};
struct NoVectorOperand {
  static constexpr bool isRead = false, isOfRows = false;
};

/// What a tile needs of a vector. Of rows a lane holds its own; of columns the lanes of a warp
/// share them, two neighbours each for every 64, and hand them to each other. Out of bounds the
/// last ones are repeated, whose results nobody stores.
template <GemmProblem gemm, Tile tile, typename VectorInput>
struct VectorOfTile {
  using P = Subtiles<gemm, tile>;
  static constexpr bool isShared =
      tile.splitK > 1;  // subtiles of any columns and rows then: a part for each store step
  static constexpr int rowParts = isShared ? P::storeSteps : TileConfig<gemm, tile>::rowBlocks,
                       columnParts = isShared ? P::storeSteps : P::across;
  unsigned held[VectorInput::isOfRows ? 2 * rowParts : columnParts];

  __device__ __forceinline__ void load(const VectorInput &from,
                                       const Subtiles<gemm, tile> &subtiles) {
    const int lane = threadIdx.x % 32, ownRow = threadIdx.x % warpgroup / 32 * 16 + lane / 4;
    if constexpr (VectorInput::isOfRows) {
#pragma unroll
      for (int part = 0; part < rowParts; ++part) {
        const int row = subtiles.row(isShared ? P::ofStep(part) : part * P::across) + ownRow;
        held[2 * part] = loadBits(from.elements + atMost(row, gemm.m - 1));
        held[2 * part + 1] = loadBits(from.elements + atMost(row + 8, gemm.m - 1));
      }
    } else if constexpr (VectorInput::isRead) {
#pragma unroll
      for (int part = 0; part < columnParts; ++part) {
        const int column = subtiles.column(isShared ? P::ofStep(part) : part) + lane * 2;
        if constexpr (gemm.n % 2 == 0)
          held[part] = loadWord(from.elements + atMost(column, gemm.n - 2));
        else
          held[part] = loadBits(from.elements + atMost(column, gemm.n - 1)) |
                       loadBits(from.elements + atMost(column + 1, gemm.n - 1)) << 16;
      }
    }
  }

  /// The elements beside the eight accumulators of a lane. All lanes of the warp take part.
  __device__ __forceinline__ void fragment(int storeStep, int step, float (&values)[8]) const {
    if constexpr (VectorInput::isRead) {
      using Element = typename VectorInput::Element;
      const auto half = [](unsigned word, int e) {
        return widen(Element{static_cast<unsigned short>(word >> e % 2 * 16)});
      };
      if constexpr (VectorInput::isOfRows) {
#pragma unroll
        for (int e = 0; e < 8; ++e)
          values[e] = half(
              held[2 * (isShared ? storeStep : storeStep / P::across) + rowInFragment(e) / 8], 0);
      } else {
#pragma unroll
        for (int side = 0; side < 2; ++side) {
          const unsigned pair = __shfl_sync(~0u, held[isShared ? storeStep : storeStep % P::across],
                                            step * 8 + side * 4 + threadIdx.x % 4);
#pragma unroll
          for (int e = 0; e < 4; ++e) values[side * 4 + e] = half(pair, e);
        }
      }
    }
  }
};

/// That an epilogue hands over nothing that is summed; else EpilogueReductions
/// (sm90_epilogue_reduction.cuh), which says how totals of a tile are kept.
struct NoEpilogueReductions {
  static constexpr int count = 0;
};
template <GemmProblem gemm, Tile tile, typename Outputs>
struct TileReductions {
  struct Values {};
};
/// Whether, instead of accumulators, elements of a whole subtile belong together: sm90_softmax.cuh.
template <typename Outputs>
constexpr bool isPerSubtile = false;
/// Whether warps of the producers join the accumulators of tiles, which takes registers that many
/// accumulators or reductions do not leave.
template <GemmProblem gemm, Tile tile, typename Outputs>
constexpr bool reducesInProducer =
    Outputs::count > 0 && Outputs::count <= 2 &&
    TileConfig<gemm, tile>::areAllTma &&TileConfig<gemm, tile>::accumulators <= 128;
constexpr int consumerRegistersBesideReductions = 216,
              producerRegistersBesideReductions = 504 - 2 * consumerRegistersBesideReductions;

/// How fast an epilogue may go: a few elements at once, each of which waits for one of those before
/// it. Instructions that come faster than every fourth cycle take their time from the products of
/// the other consumer, up to a cycle each (bench/RESULTS.md, "instructions beside products"). The
/// compiler knows of no products, and interleaves as many elements as fit its registers unless they
/// depend on each other; so they do, by bits that are zero, which it does not know either.
template <bool isPaced>
struct StorePacing {};
template <>
struct StorePacing<true> {
  static constexpr int atOnce = 4;
  unsigned zero, before[atOnce] = {};
  __device__ __forceinline__ StorePacing() : zero(opaqueZero()) {}
  __device__ __forceinline__ float after(float value, int of) const {
    return ptx::floatFromBits(bitsOf(value) | (before[of] & zero));
  }
};

/// What becomes of the accumulators: the epilogue with what it reads and makes beside them.
template <typename SubtileIn, typename VectorIn, typename SubtileOut, typename ReductionsOut,
          typename Function>
struct EpilogueOp {
  using SubtileInput = SubtileIn;
  using VectorInput = VectorIn;
  using EpilogueReductions = ReductionsOut;
  static constexpr bool readsSubtile = SubtileIn::isRead, readsVector = VectorIn::isRead,
                        writesSubtile = SubtileOut::isWritten;
  static constexpr bool isUnchanged = sm90::isUnchanged<Function>;
  static constexpr int tensors = writesSubtile ? 2 : 1;  // of C's shape that leave
  /// Beside the products of another tile: those that wait for subtiles, sum, or need a subtile
  /// whole have pauses enough, and lose by more.
  static constexpr bool needsPacing = !isUnchanged && !readsSubtile && ReductionsOut::count == 0 &&
                                      !isPerSubtile<ReductionsOut> &&
                                      !isPerThreadEpilogue<Function>;

  SubtileIn subtile;
  VectorIn vector;
  SubtileOut output;
  ReductionsOut reductions;
  const Function &epilogue;

  template <typename Reduced>
  __device__ __forceinline__ void operator()(float (&values)[8], const float (&ofSubtile)[8],
                                             const float (&ofVector)[8], float (&second)[8],
                                             Reduced &summed, const Fragment &fragment) const {
    const auto call = [&](const auto &...operands) {
      if constexpr (ReductionsOut::count > 0 && writesSubtile)
        epilogue(values, operands..., second, summed.of, fragment);
      else if constexpr (ReductionsOut::count > 0)
        epilogue(values, operands..., summed.of, fragment);
      else if constexpr (writesSubtile) epilogue(values, operands..., second, fragment);
      else epilogue(values, operands..., fragment);
    };
    if constexpr (readsSubtile && readsVector) call(ofSubtile, ofVector);
    else if constexpr (readsSubtile) call(ofSubtile);
    else if constexpr (readsVector) call(ofVector);
    else call();
  }
  /// The same, some elements after the others. An epilogue computes every element by itself, so of
  /// each call the compiler keeps what belongs to the elements that are taken from it.
  template <typename Reduced>
  __device__ __forceinline__ void operator()(StorePacing<true> &pacing, float (&values)[8],
                                             const float (&ofSubtile)[8],
                                             const float (&ofVector)[8], float (&second)[8],
                                             Reduced &summed, const Fragment &fragment) const {
    static_assert(ReductionsOut::count == 0);
    float results[8];
#pragma unroll
    for (int from = 0; from < 8; from += StorePacing<true>::atOnce) {
      float own[8], ownSecond[8];
#pragma unroll
      for (int e = 0; e < 8; ++e)
        own[e] = e / StorePacing<true>::atOnce * StorePacing<true>::atOnce == from
                     ? pacing.after(values[e], e - from)
                     : values[e];
      (*this)(own, ofSubtile, ofVector, ownSecond, summed, fragment);
#pragma unroll
      for (int e = from; e < from + StorePacing<true>::atOnce; ++e) {
        results[e] = own[e];
        pacing.before[e - from] = bitsOf(own[e]);
        if constexpr (writesSubtile) second[e] = ownSecond[e];
      }
    }
#pragma unroll
    for (int e = 0; e < 8; ++e) values[e] = results[e];
  }
  template <typename Reduced>
  __device__ __forceinline__ void operator()(StorePacing<false> &, float (&values)[8],
                                             const float (&ofSubtile)[8],
                                             const float (&ofVector)[8], float (&second)[8],
                                             Reduced &summed, const Fragment &fragment) const {
    (*this)(values, ofSubtile, ofVector, second, summed, fragment);
  }
};

template <GemmProblem gemm>
__device__ __forceinline__ Offset offsetInC(const Fragment &fragment, int e) {
  return fragment.batch * gemm.batchStrideC + (fragment.row + rowInFragment(e)) * gemm.strideCm +
         fragment.column + columnInFragment(e);
}
template <GemmProblem gemm>
__device__ __forceinline__ bool isInC(const Fragment &fragment, int e) {
  return fragment.row + rowInFragment(e) < gemm.m && fragment.column + columnInFragment(e) < gemm.n;
}

/// Rounds eight elements and puts them into the subtile's buffer, or where TMA does not store, into
/// the tensor.
template <GemmProblem gemm, bool usesTma, typename T>
__device__ __forceinline__ void putFragment(const float (&values)[8], const Fragment &fragment,
                                            SharedAddress row, T *tensor) {
  if constexpr (usesTma) {
    storeFragmentShared<T>(row, values);
  } else if constexpr (sizeof(T) == 4) {
    Vec<float, 8> elements;
#pragma unroll
    for (int e = 0; e < 8; ++e) elements.at[e] = values[e];
    storeFragment<gemm.m, gemm.n, gemm.strideCm, gemm.isPaired>(
        tensor + fragment.batch * gemm.batchStrideC, elements, fragment);
  } else {
#pragma unroll
    for (int e = 0; e < 8; ++e)
      if (isInC<gemm>(fragment, e)) tensor[offsetInC<gemm>(fragment, e)] = narrow<T>(values[e]);
  }
}

/// Applies the epilogue to 16 x 16 elements a warp of a subtile, and puts them where they leave
/// from, unless elements of the subtile belong together.
template <GemmProblem gemm, bool usesTma, typename StorePacingOfTile, typename T, typename Reduced,
          typename EpilogueOp>
__device__ __forceinline__ void runEpilogueOnFragment(StorePacingOfTile &pacing, float (&values)[8],
                                                      const float (&ofVector)[8], Reduced &summed,
                                                      const Fragment &fragment, SharedAddress row,
                                                      T *c, const EpilogueOp &epilogueOp) {
  float ofSubtile[8], second[8];
  if constexpr (EpilogueOp::readsSubtile && usesTma) {
    loadFragmentShared<T>(ofSubtile, row);
  } else if constexpr (EpilogueOp::readsSubtile) {
#pragma unroll
    for (int e = 0; e < 8; ++e)
      ofSubtile[e] = isInC<gemm>(fragment, e)
                         ? widen(epilogueOp.subtile.tensor.elements[offsetInC<gemm>(fragment, e)])
                         : 0.0f;
  }
  epilogueOp(pacing, values, ofSubtile, ofVector, second, summed, fragment);
  if constexpr (!isPerSubtile<typename EpilogueOp::EpilogueReductions>)
    putFragment<gemm, usesTma>(values, fragment, row, c);
  if constexpr (EpilogueOp::writesSubtile)
    putFragment<gemm, usesTma>(second, fragment, row + subtileBytes,
                               epilogueOp.output.tensor.elements);
}

/// Has TMA store a subtile from its buffer.
template <GemmProblem gemm, Tile tile>
__device__ __forceinline__ void storeSubtile(const Subtiles<gemm, tile> &subtiles, int subtile,
                                             const TensorMap *map, SharedAddress buffer) {
  if constexpr (gemm.batch > 1)
    storeTile(map, buffer, subtiles.column(subtile), subtiles.row(subtile), subtiles.at.batch);
  else storeTile(map, buffer, subtiles.column(subtile), subtiles.row(subtile));
}

/// Applies the epilogue to the accumulators and puts them into a subtile's buffer.
template <GemmProblem gemm, Tile tile, typename StorePacingOfTile, typename T, typename EpilogueOp>
__device__ __forceinline__ void runEpilogueOnSubtile(
    StorePacingOfTile &pacing, Accumulators<gemm, tile> &accumulators, Tensor<T> c,
    const Subtiles<gemm, tile> &subtiles, int storeStep, SharedAddress buffer,
    const VectorOfTile<gemm, tile, typename EpilogueOp::VectorInput> &vector,
    TileReductions<gemm, tile, typename EpilogueOp::EpilogueReductions> &totals,
    const EpilogueOp &epilogueOp) {
  const int subtile = subtiles.ofStep(storeStep), warp = threadIdx.x % warpgroup / 32,
            lane = threadIdx.x % 32, epilogueStageRow = warp * 16 + lane % 16;
  const bool usesTma = subtiles.usesTma(subtile);
  // What an epilogue reads and draws for later subtiles would not fit beside the accumulators, nor,
  // where they are many, for the subtile.
  Fragment first{subtiles.at.batch, subtiles.row(subtile) + warp * 16 + lane / 4,
                 subtiles.column(subtile) + lane % 4 * 2};
  if constexpr (!EpilogueOp::isUnchanged)
    first = {first.batch, opaque(first.row, lane), opaque(first.column, lane)};
  const auto placeOf = [&](int step) {
    return buffer + epilogueStageRow * rowBytes +
           (2 * step + lane / 16 ^ epilogueStageRow % 8) * 16;
  };
  [[maybe_unused]] float whole[4][8];
#pragma unroll
  for (int step = 0; step < 4; ++step) {
    Fragment fragment{first.batch, first.row, first.column + step * 16};
    if constexpr (!EpilogueOp::isUnchanged && TileConfig<gemm, tile>::accumulators > 128)
      if (step > 0) fragment.column = opaque(fragment.column, lane);
    const SharedAddress row = placeOf(step);
    float values[8];
#pragma unroll
    for (int e = 0; e < 8; ++e)
      values[e] = accumulators[storeStep / subtiles.across]
                              [storeStep % subtiles.across * 32 + step * 8 + e];
    float ofVector[8];
    vector.fragment(storeStep, step, ofVector);
    typename TileReductions<gemm, tile, typename EpilogueOp::EpilogueReductions>::Values summed;
    if constexpr (!gemm.usesTma)
      runEpilogueOnFragment<gemm, false>(pacing, values, ofVector, summed, fragment, row,
                                         c.elements, epilogueOp);
    else if (usesTma)
      runEpilogueOnFragment<gemm, true>(pacing, values, ofVector, summed, fragment, row, c.elements,
                                        epilogueOp);
    else
      runEpilogueOnFragment<gemm, false>(pacing, values, ofVector, summed, fragment, row,
                                         c.elements, epilogueOp);
    if constexpr (EpilogueOp::EpilogueReductions::count > 0)
      totals.add(storeStep, step, summed.of, fragment);
    if constexpr (isPerSubtile<typename EpilogueOp::EpilogueReductions>)
#pragma unroll
      for (int e = 0; e < 8; ++e) whole[step][e] = values[e];
  }
  if constexpr (isPerSubtile<typename EpilogueOp::EpilogueReductions>) {
    epilogueOp.reductions.template applySoftmax<gemm, tile>(whole, first);
#pragma unroll
    for (int step = 0; step < 4; ++step) {
      const Fragment fragment{first.batch, first.row, first.column + step * 16};
      if constexpr (!gemm.usesTma)
        putFragment<gemm, false>(whole[step], fragment, placeOf(step), c.elements);
      else if (usesTma) putFragment<gemm, true>(whole[step], fragment, placeOf(step), c.elements);
      else putFragment<gemm, false>(whole[step], fragment, placeOf(step), c.elements);
    }
  }
}

/// Applies the epilogue to the accumulators and stores them, one subtile or some at a time.
template <GemmProblem gemm, Tile tile, typename T, typename EpilogueOp>
__device__ __forceinline__ void storeEpilogue(
    Accumulators<gemm, tile> &accumulators, Tensor<T> c, const Subtiles<gemm, tile> &subtiles,
    EpilogueStages<gemm, tile, EpilogueOp::tensors> &epilogueStages,
    const VectorOfTile<gemm, tile, typename EpilogueOp::VectorInput> &vector,
    TileReductions<gemm, tile, typename EpilogueOp::EpilogueReductions> &totals,
    const EpilogueOp &epilogueOp) {
  using P = Subtiles<gemm, tile>;
  using Stages = EpilogueStages<gemm, tile, EpilogueOp::tensors>;
  constexpr int together = Stages::together, inFlight = Stages::stepsInFlight;
  StorePacing<tile.isPingPong && tile.splitK == 1 && gemm.usesTma && EpilogueOp::needsPacing>
      pacing;
#pragma unroll
  for (int from = 0; from < P::storeSteps; from += together) {
    if (tile.splitK > 1 && P::ofStep(from) >= P::count) break;
    const auto forEachSubtile = [&](const auto &visit) {
#pragma unroll
      for (int storeStep = from; storeStep < smaller(from + together, P::storeSteps); ++storeStep)
        if (tile.splitK == 1 || P::ofStep(storeStep) < P::count)
          visit(storeStep, P::ofStep(storeStep));
    };
    if (!EpilogueOp::readsSubtile && gemm.usesTma) {
      if (threadIdx.x % warpgroup == 0) waitForStoresToRead<inFlight / together - 1>();
      synchronize(consumerBarrier + epilogueStages.consumer, warpgroup);
    }
    forEachSubtile([&](int storeStep, int subtile) {
      if constexpr (EpilogueOp::readsSubtile)
        wait(epilogueStages.barrier(subtile), epilogueStages.parity(subtile));
      runEpilogueOnSubtile(pacing, accumulators, c, subtiles, storeStep,
                           epilogueStages.buffer(subtile), vector, totals, epilogueOp);
    });
    if constexpr (gemm.usesTma) {
      fenceForAsync();
      synchronize(consumerBarrier + epilogueStages.consumer, warpgroup);
    }
    if (threadIdx.x % warpgroup > 0) continue;
    forEachSubtile([&](int, int subtile) {
      if (!subtiles.usesTma(subtile)) return;
      storeSubtile(subtiles, subtile, c.map, epilogueStages.buffer(subtile));
      if constexpr (EpilogueOp::writesSubtile)
        storeSubtile(subtiles, subtile, epilogueOp.output.tensor.map,
                     epilogueStages.buffer(subtile) + subtileBytes);
    });
    commitStores();
    if constexpr (EpilogueOp::readsSubtile) {
      if (from == 0) continue;
      // The subtiles before these have left their buffers to later ones.
      waitForStoresToRead<1>();
#pragma unroll
      for (int storeStep = from - together; storeStep < from; ++storeStep)
        if (const int next = P::ofStep(storeStep + inFlight); next < P::count)
          loadSubtile(epilogueStages, subtiles, epilogueOp.subtile.tensor.map, next);
    }
  }
  epilogueStages.used += P::storeSteps;
}

}  // namespace weft::sm90
