// The way out of the contraction skeleton: panels of 64 x 64 sums through the epilogue and shared memory into C.
//
// An epilogue is a function of the eight sums of a lane in a block of 16 x 16 and of where they lie (Fragment). It may read one
// operand of C's shape, which arrives in the buffer that the panel leaves from, and one vector along C's columns or rows, which
// waits in registers: both are on their way while the tile is multiplied. It may make a second tensor of C's shape, whose panels
// leave from buffers of their own behind those of C. It may hand over what is summed down to the columns or rows of C (hopper_sums.cuh).
#pragma once

#include "weft/fragment.cuh"
#include "weft/hopper_tiles.cuh"

namespace weft::hopper {

/// Sums of one tile, 64 rows after 64 rows.
template <Product product, Tile tile> using Sums = float[Plan<product, tile>::rowBlocks][tile.n / 2];

/// Where the eight sums of a lane in a block of 16 x 16 lie: rows row and row + 8, columns column, + 1, + 8, + 9, in the order
/// (row, column), (row, + 1), (+ 8, column), ...
struct Fragment {
  int batch, row, column;
};
/// The epilogue that leaves the sums as they are.
struct Unchanged {
  __device__ __forceinline__ void operator()(float (&)[8], const Fragment &) const {}
};
template <typename Epilogue> constexpr bool isUnchanged = false;
template <> constexpr bool isUnchanged<Unchanged> = true;
/// An epilogue that loads operands or stores results itself: it is to be called once a fragment.
template <typename Epilogue> struct ByThreads {
  const Epilogue &epilogue;
  template <typename... Arguments> __device__ __forceinline__ void operator()(Arguments &...arguments) const { epilogue(arguments...); }
};
template <typename Epilogue> ByThreads(const Epilogue &) -> ByThreads<Epilogue>;
template <typename Epilogue> constexpr bool isByThreads = false;
template <typename Epilogue> constexpr bool isByThreads<ByThreads<Epilogue>> = true;

/// The panels of 64 x 64 elements of C that a consumer makes of a tile, in the order in which it stores them. Where blocks
/// share a tile each finishes every so manieth panel, beginning with that of its rank; a turn is one of those.
template <Product product, Tile tile> struct Panels {
  using P = Plan<product, tile>;
  static constexpr int across = tile.n / 64, count = P::panels, turns = (count + tile.splits - 1) / tile.splits;
  TileStart at;
  int firstRow;
  __device__ __forceinline__ static int ofTurn(int turn) { return turn * tile.splits + rankInCluster<tile>(); }
  __device__ __forceinline__ int row(int panel) const { return at.m + firstRow + panel / across * 64; }
  __device__ __forceinline__ int column(int panel) const { return at.n + panel % across * 64; }
  /// Whether the copy engine takes it: it clips columns at 16 bytes only.
  __device__ __forceinline__ bool isByEngine(int panel) const {
    return product.isByEngine && (product.n % 8 == 0 || column(panel) + 64 <= product.n);
  }
};

/// A consumer's buffers of panels, one after the other in a ring; a turn takes one for every tensor that it stores. `used`: turns
/// that have passed through it.
template <Product product, Tile tile, int tensors> struct Staging {
  static constexpr int turnsInFlight = tile.staging / tensors;
  /// Turns that leave at once, since every fence and barrier costs hundreds of cycles; of many sums there is no room for two.
  static constexpr int together = turnsInFlight >= 4 && Plan<product, tile>::sums <= 128 ? 2 : 1;
  SharedAddress start, barriers;
  int consumer, used = 0;
  __device__ __forceinline__ int place(int panel) const { return used + panel / tile.splits; }
  __device__ __forceinline__ SharedAddress buffer(int panel) const {
    return start + place(panel) % turnsInFlight * tensors * panelBytes;
  }
  __device__ __forceinline__ SharedAddress barrier(int panel) const { return barriers + 8 * (place(panel) % turnsInFlight); }
  __device__ __forceinline__ int parity(int panel) const { return place(panel) / turnsInFlight % 2; }
};

/// Rows of a panel that come in one copy.
constexpr int pieceRows = 16;

/// Has the copy engine bring a panel of an operand of C's shape into the buffer that the panel of C will leave from; calls pause()
/// before every piece of it.
template <Product product, Tile tile, int tensors, typename Pause>
__device__ __forceinline__ void requestPanel(const Staging<product, tile, tensors> &staging, const Panels<product, tile> &panels,
                                             const TensorMap *map, int panel, const Pause &pause) {
  if (!panels.isByEngine(panel)) return arrive(staging.barrier(panel));
  arriveExpecting(staging.barrier(panel), panelBytes);
#pragma unroll 1
  for (int row = 0; row < 64; row += pieceRows) {
    pause();
    const SharedAddress to = staging.buffer(panel) + row * rowBytes;
    if constexpr (product.batch > 1)
      loadTile(to, map, staging.barrier(panel), panels.column(panel), panels.row(panel) + row, panels.at.batch);
    else loadTile(to, map, staging.barrier(panel), panels.column(panel), panels.row(panel) + row);
  }
}
template <Product product, Tile tile, int tensors>
__device__ __forceinline__ void requestPanel(const Staging<product, tile, tensors> &staging, const Panels<product, tile> &panels,
                                             const TensorMap *map, int panel) {
  requestPanel(staging, panels, map, panel, [] {});
}

/// How many panels of a tile a consumer has buffers for at once.
template <Product product, Tile tile, int tensors>
constexpr int firstPanels = smaller(Staging<product, tile, tensors>::turnsInFlight * tile.splits, Panels<product, tile>::count);

/// The first panels of the operand of C's shape of a tile, which arrive while the tile is multiplied.
template <Product product, Tile tile, int tensors>
__device__ __forceinline__ void requestPanels(const Staging<product, tile, tensors> &staging, const Panels<product, tile> &panels,
                                              const TensorMap *map) {
  waitForStoresToRead<0>();
  for (int panel = rankInCluster<tile>(); panel < firstPanels<product, tile, tensors>; panel += tile.splits) requestPanel(staging, panels, map, panel);
}

/// The operand of C's shape that an epilogue reads, stored as C is, or that it reads none.
template <typename T> struct PanelOperand {
  static constexpr bool isRead = true;
  Tensor<const T> tensor;
};
struct NoPanelOperand {
  static constexpr bool isRead = false;
};

/// The second tensor of C's shape that an epilogue makes, stored as C is, or that it makes none.
template <typename T> struct PanelOutput {
  static constexpr bool isWritten = true;
  Tensor<T> tensor;
};
struct NoPanelOutput {
  static constexpr bool isWritten = false;
};

/// The vector of elements of 16 bits that an epilogue reads: one a column or one a row of C, or that it reads none. Columns start
/// at multiples of two elements.
template <typename T> struct ColumnOperand {
  static constexpr bool isRead = true, isOfRows = false;
  using Element = T;
  const T *elements;
};
template <typename T> struct RowOperand {
  static constexpr bool isRead = true, isOfRows = true;
  using Element = T;
  const T *elements;
};
struct NoVectorOperand {
  static constexpr bool isRead = false, isOfRows = false;
};

/// What a tile needs of a vector. Of rows a lane holds its own; of columns the lanes of a warp share them, two neighbours each
/// for every 64, and hand them to each other. Out of bounds the last ones are repeated, whose results nobody stores.
template <Product product, Tile tile, typename VectorInput> struct VectorOfTile {
  using P = Panels<product, tile>;
  static constexpr bool isShared = tile.splits > 1;  // panels of any columns and rows then: a part for each turn
  static constexpr int rowParts = isShared ? P::turns : Plan<product, tile>::rowBlocks, columnParts = isShared ? P::turns : P::across;
  unsigned held[VectorInput::isOfRows ? 2 * rowParts : columnParts];

  __device__ __forceinline__ void load(const VectorInput &from, const Panels<product, tile> &panels) {
    const int lane = threadIdx.x % 32, ownRow = threadIdx.x % warpgroup / 32 * 16 + lane / 4;
    if constexpr (VectorInput::isOfRows) {
#pragma unroll
      for (int part = 0; part < rowParts; ++part) {
        const int row = panels.row(isShared ? P::ofTurn(part) : part * P::across) + ownRow;
        held[2 * part] = loadBits(from.elements + atMost(row, product.m - 1));
        held[2 * part + 1] = loadBits(from.elements + atMost(row + 8, product.m - 1));
      }
    } else if constexpr (VectorInput::isRead) {
#pragma unroll
      for (int part = 0; part < columnParts; ++part) {
        const int column = panels.column(isShared ? P::ofTurn(part) : part) + lane * 2;
        if constexpr (product.n % 2 == 0) held[part] = loadWord(from.elements + atMost(column, product.n - 2));
        else
          held[part] = loadBits(from.elements + atMost(column, product.n - 1)) |
                       loadBits(from.elements + atMost(column + 1, product.n - 1)) << 16;
      }
    }
  }

  /// The elements beside the eight sums of a lane. All lanes of the warp take part.
  __device__ __forceinline__ void fragment(int turn, int step, float (&values)[8]) const {
    if constexpr (VectorInput::isRead) {
      using Element = typename VectorInput::Element;
      const auto half = [](unsigned word, int e) { return widen(Element{static_cast<unsigned short>(word >> e % 2 * 16)}); };
      if constexpr (VectorInput::isOfRows) {
#pragma unroll
        for (int e = 0; e < 8; ++e) values[e] = half(held[2 * (isShared ? turn : turn / P::across) + rowInFragment(e) / 8], 0);
      } else {
#pragma unroll
        for (int side = 0; side < 2; ++side) {
          const unsigned pair = __shfl_sync(~0u, held[isShared ? turn : turn % P::across], step * 8 + side * 4 + threadIdx.x % 4);
#pragma unroll
          for (int e = 0; e < 4; ++e) values[side * 4 + e] = half(pair, e);
        }
      }
    }
  }
};

/// That an epilogue hands over nothing that is summed; else SumOutputs (hopper_sums.cuh), which says how totals of a tile are kept.
struct NoSums {
  static constexpr int count = 0;
};
template <Product product, Tile tile, typename Outputs> struct TotalsOfTile {
  struct Values {};
};
/// Whether, instead of sums, elements of a whole panel belong together: hopper_softmax.cuh.
template <typename Outputs> constexpr bool isOfPanels = false;
/// Whether warps of the producers join the sums of tiles, which takes registers that many accumulators or sums do not leave.
template <Product product, Tile tile, typename Outputs>
constexpr bool areSumsServed = Outputs::count > 0 && Outputs::count <= 2 && Plan<product, tile>::areAllByEngine && Plan<product, tile>::sums <= 128;
constexpr int consumerRegistersBesideSums = 216, producerRegistersBesideSums = 504 - 2 * consumerRegistersBesideSums;

/// How fast an epilogue may go: a few elements at once, each of which waits for one of those before it. Instructions that come faster
/// than every fourth cycle take their time from the products of the other consumer, up to a cycle each (bench/RESULTS.md, "instructions
/// beside products"). The compiler knows of no products, and interleaves as many elements as fit its registers unless they depend on
/// each other; so they do, by bits that are zero, which it does not know either.
template <bool isPaced> struct Pace {};
template <> struct Pace<true> {
  static constexpr int atOnce = 4;
  unsigned zero, before[atOnce] = {};
  __device__ __forceinline__ Pace() {
#if defined(WEFT_EMULATE)
    zero = 0;
#else
    asm volatile("mov.u32 %0, %%nsmid;" : "=r"(zero));
    zero >>= 16;  // no machine has as many multiprocessors
#endif
  }
  __device__ __forceinline__ float after(float value, int of) const { return ptx::floatFromBits(bitsOf(value) | (before[of] & zero)); }
};

/// What becomes of the sums: the epilogue with what it reads and makes beside them.
template <typename PanelIn, typename VectorIn, typename PanelOut, typename SumsOut, typename Function> struct Finish {
  using PanelInput = PanelIn;
  using VectorInput = VectorIn;
  using SumOutputs = SumsOut;
  static constexpr bool readsPanel = PanelIn::isRead, readsVector = VectorIn::isRead, writesPanel = PanelOut::isWritten;
  static constexpr bool isUnchanged = hopper::isUnchanged<Function>;
  static constexpr int tensors = writesPanel ? 2 : 1;  // of C's shape that leave
  /// Beside the products of another tile: those that wait for panels, sum, or need a panel whole have pauses enough, and lose by more.
  static constexpr bool goesTooFast = !isUnchanged && !readsPanel && SumsOut::count == 0 && !isOfPanels<SumsOut> && !isByThreads<Function>;

  PanelIn panel;
  VectorIn vector;
  PanelOut output;
  SumsOut sums;
  const Function &epilogue;

  template <typename Summed>
  __device__ __forceinline__ void operator()(float (&values)[8], const float (&ofPanel)[8], const float (&ofVector)[8],
                                             float (&second)[8], Summed &summed, const Fragment &fragment) const {
    const auto call = [&](const auto &...operands) {
      if constexpr (SumsOut::count > 0 && writesPanel) epilogue(values, operands..., second, summed.of, fragment);
      else if constexpr (SumsOut::count > 0) epilogue(values, operands..., summed.of, fragment);
      else if constexpr (writesPanel) epilogue(values, operands..., second, fragment);
      else epilogue(values, operands..., fragment);
    };
    if constexpr (readsPanel && readsVector) call(ofPanel, ofVector);
    else if constexpr (readsPanel) call(ofPanel);
    else if constexpr (readsVector) call(ofVector);
    else call();
  }
  /// The same, some elements after the others. An epilogue computes every element by itself, so of each call the compiler keeps what
  /// belongs to the elements that are taken from it.
  template <typename Summed>
  __device__ __forceinline__ void operator()(Pace<true> &pace, float (&values)[8], const float (&ofPanel)[8], const float (&ofVector)[8],
                                             float (&second)[8], Summed &summed, const Fragment &fragment) const {
    static_assert(SumsOut::count == 0);
    float results[8];
#pragma unroll
    for (int from = 0; from < 8; from += Pace<true>::atOnce) {
      float own[8], ownSecond[8];
#pragma unroll
      for (int e = 0; e < 8; ++e) own[e] = e / Pace<true>::atOnce * Pace<true>::atOnce == from ? pace.after(values[e], e - from) : values[e];
      (*this)(own, ofPanel, ofVector, ownSecond, summed, fragment);
#pragma unroll
      for (int e = from; e < from + Pace<true>::atOnce; ++e) {
        results[e] = own[e];
        pace.before[e - from] = bitsOf(own[e]);
        if constexpr (writesPanel) second[e] = ownSecond[e];
      }
    }
#pragma unroll
    for (int e = 0; e < 8; ++e) values[e] = results[e];
  }
  template <typename Summed>
  __device__ __forceinline__ void operator()(Pace<false> &, float (&values)[8], const float (&ofPanel)[8], const float (&ofVector)[8],
                                             float (&second)[8], Summed &summed, const Fragment &fragment) const {
    (*this)(values, ofPanel, ofVector, second, summed, fragment);
  }
};

template <Product product> __device__ __forceinline__ Offset offsetInC(const Fragment &fragment, int e) {
  return fragment.batch * product.batchStrideC + (fragment.row + rowInFragment(e)) * product.strideCm + fragment.column +
         columnInFragment(e);
}
template <Product product> __device__ __forceinline__ bool isInC(const Fragment &fragment, int e) {
  return fragment.row + rowInFragment(e) < product.m && fragment.column + columnInFragment(e) < product.n;
}

/// Rounds eight elements and puts them into the panel's buffer, or where the copy engine does not store, into the tensor.
template <Product product, bool isByEngine, typename T>
__device__ __forceinline__ void putFragment(const float (&values)[8], const Fragment &fragment, SharedAddress row, T *tensor) {
  if constexpr (isByEngine) {
    unsigned words[4];
#pragma unroll
    for (int w = 0; w < 4; ++w) words[w] = packPair(static_cast<T *>(nullptr), values[2 * w], values[2 * w + 1]);
    storeMatrices(row, words);
  } else if constexpr (sizeof(T) == 4) {
    Vec<float, 8> elements;
#pragma unroll
    for (int e = 0; e < 8; ++e) elements.at[e] = values[e];
    storeFragment<product.m, product.n, product.strideCm, product.isPaired>(tensor + fragment.batch * product.batchStrideC, elements, fragment);
  } else {
#pragma unroll
    for (int e = 0; e < 8; ++e)
      if (isInC<product>(fragment, e)) tensor[offsetInC<product>(fragment, e)] = narrow<T>(values[e]);
  }
}

/// Applies the epilogue to 16 x 16 elements a warp of a panel, and puts them where they leave from, unless elements of the panel belong together.
template <Product product, bool isByEngine, typename PaceOfTile, typename T, typename Summed, typename Finish>
__device__ __forceinline__ void finishFragment(PaceOfTile &pace, float (&values)[8], const float (&ofVector)[8], Summed &summed, const Fragment &fragment,
                                               SharedAddress row, T *c, const Finish &finish) {
  float ofPanel[8], second[8];
  if constexpr (Finish::readsPanel && isByEngine) {
    unsigned words[4];
    loadMatrices(words, row);
#pragma unroll
    for (int e = 0; e < 8; ++e) ofPanel[e] = widen(T{static_cast<unsigned short>(words[e / 2] >> e % 2 * 16)});
  } else if constexpr (Finish::readsPanel) {
#pragma unroll
    for (int e = 0; e < 8; ++e)
      ofPanel[e] = isInC<product>(fragment, e) ? widen(finish.panel.tensor.elements[offsetInC<product>(fragment, e)]) : 0.0f;
  }
  finish(pace, values, ofPanel, ofVector, second, summed, fragment);
  if constexpr (!isOfPanels<typename Finish::SumOutputs>) putFragment<product, isByEngine>(values, fragment, row, c);
  if constexpr (Finish::writesPanel) putFragment<product, isByEngine>(second, fragment, row + panelBytes, finish.output.tensor.elements);
}

/// Has the copy engine store a panel from its buffer.
template <Product product, Tile tile>
__device__ __forceinline__ void storePanel(const Panels<product, tile> &panels, int panel, const TensorMap *map, SharedAddress buffer) {
  if constexpr (product.batch > 1) storeTile(map, buffer, panels.column(panel), panels.row(panel), panels.at.batch);
  else storeTile(map, buffer, panels.column(panel), panels.row(panel));
}

/// Applies the epilogue to the sums and puts them into a panel's buffer.
template <Product product, Tile tile, typename PaceOfTile, typename T, typename Finish>
__device__ __forceinline__ void finishPanel(PaceOfTile &pace, Sums<product, tile> &sums, Tensor<T> c, const Panels<product, tile> &panels, int turn,
                                            SharedAddress buffer, const VectorOfTile<product, tile, typename Finish::VectorInput> &vector,
                                            TotalsOfTile<product, tile, typename Finish::SumOutputs> &totals, const Finish &finish) {
  const int panel = panels.ofTurn(turn), warp = threadIdx.x % warpgroup / 32, lane = threadIdx.x % 32, stagingRow = warp * 16 + lane % 16;
  const bool isByEngine = panels.isByEngine(panel);
  // What an epilogue reads and draws for later panels would not fit beside the sums, nor, where they are many, for the panel.
  Fragment first{panels.at.batch, panels.row(panel) + warp * 16 + lane / 4, panels.column(panel) + lane % 4 * 2};
  if constexpr (!Finish::isUnchanged) first = {first.batch, hide(first.row, lane), hide(first.column, lane)};
  const auto placeOf = [&](int step) { return buffer + stagingRow * rowBytes + (2 * step + lane / 16 ^ stagingRow % 8) * 16; };
  [[maybe_unused]] float whole[4][8];
#pragma unroll
  for (int step = 0; step < 4; ++step) {
    Fragment fragment{first.batch, first.row, first.column + step * 16};
    if constexpr (!Finish::isUnchanged && Plan<product, tile>::sums > 128)
      if (step > 0) fragment.column = hide(fragment.column, lane);
    const SharedAddress row = placeOf(step);
    float values[8];
#pragma unroll
    for (int e = 0; e < 8; ++e) values[e] = sums[turn / panels.across][turn % panels.across * 32 + step * 8 + e];
    float ofVector[8];
    vector.fragment(turn, step, ofVector);
    typename TotalsOfTile<product, tile, typename Finish::SumOutputs>::Values summed;
    if constexpr (!product.isByEngine) finishFragment<product, false>(pace, values, ofVector, summed, fragment, row, c.elements, finish);
    else if (isByEngine) finishFragment<product, true>(pace, values, ofVector, summed, fragment, row, c.elements, finish);
    else finishFragment<product, false>(pace, values, ofVector, summed, fragment, row, c.elements, finish);
    if constexpr (Finish::SumOutputs::count > 0) totals.add(turn, step, summed.of, fragment);
    if constexpr (isOfPanels<typename Finish::SumOutputs>)
#pragma unroll
      for (int e = 0; e < 8; ++e) whole[step][e] = values[e];
  }
  if constexpr (isOfPanels<typename Finish::SumOutputs>) {
    finish.sums.template finish<product, tile>(whole, first);
#pragma unroll
    for (int step = 0; step < 4; ++step) {
      const Fragment fragment{first.batch, first.row, first.column + step * 16};
      if constexpr (!product.isByEngine) putFragment<product, false>(whole[step], fragment, placeOf(step), c.elements);
      else if (isByEngine) putFragment<product, true>(whole[step], fragment, placeOf(step), c.elements);
      else putFragment<product, false>(whole[step], fragment, placeOf(step), c.elements);
    }
  }
}

/// Applies the epilogue to the sums and stores them, one panel or some at a time.
template <Product product, Tile tile, typename T, typename Finish>
__device__ __forceinline__ void storeSums(Sums<product, tile> &sums, Tensor<T> c, const Panels<product, tile> &panels,
                                          Staging<product, tile, Finish::tensors> &staging,
                                          const VectorOfTile<product, tile, typename Finish::VectorInput> &vector,
                                          TotalsOfTile<product, tile, typename Finish::SumOutputs> &totals, const Finish &finish) {
  using P = Panels<product, tile>;
  using Ring = Staging<product, tile, Finish::tensors>;
  constexpr int together = Ring::together, inFlight = Ring::turnsInFlight;
  Pace<tile.isPingPong && tile.splits == 1 && product.isByEngine && Finish::goesTooFast> pace;
#pragma unroll
  for (int from = 0; from < P::turns; from += together) {
    if (tile.splits > 1 && P::ofTurn(from) >= P::count) break;
    const auto forEachPanel = [&](const auto &visit) {
#pragma unroll
      for (int turn = from; turn < smaller(from + together, P::turns); ++turn)
        if (tile.splits == 1 || P::ofTurn(turn) < P::count) visit(turn, P::ofTurn(turn));
    };
    if (!Finish::readsPanel && product.isByEngine) {
      if (threadIdx.x % warpgroup == 0) waitForStoresToRead<inFlight / together - 1>();
      synchronize(ownThreads + staging.consumer, warpgroup);
    }
    forEachPanel([&](int turn, int panel) {
      if constexpr (Finish::readsPanel) wait(staging.barrier(panel), staging.parity(panel));
      finishPanel(pace, sums, c, panels, turn, staging.buffer(panel), vector, totals, finish);
    });
    if constexpr (product.isByEngine) {
      fenceForAsync();
      synchronize(ownThreads + staging.consumer, warpgroup);
    }
    if (threadIdx.x % warpgroup > 0) continue;
    forEachPanel([&](int, int panel) {
      if (!panels.isByEngine(panel)) return;
      storePanel(panels, panel, c.map, staging.buffer(panel));
      if constexpr (Finish::writesPanel) storePanel(panels, panel, finish.output.tensor.map, staging.buffer(panel) + panelBytes);
    });
    commitStores();
    if constexpr (Finish::readsPanel) {
      if (from == 0) continue;
      // The panels before these have left their buffers to later ones.
      waitForStoresToRead<1>();
#pragma unroll
      for (int turn = from - together; turn < from; ++turn)
        if (const int next = P::ofTurn(turn + inFlight); next < P::count) requestPanel(staging, panels, finish.panel.tensor.map, next);
    }
  }
  staging.used += P::turns;
}

}  // namespace weft::hopper
