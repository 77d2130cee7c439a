// Where the sequence of a head begins among packed tokens and how many it has, and rows of an
// output that are of none of them.
#pragma once

#include "weft/types.cuh"

namespace weft {

/// Tokens of a head's sequence, among all that are packed.
struct Sequence {
  int first, count;
};

/// Every head has all rows of its tensors.
struct WholeSequences {
  static constexpr bool arePacked = false;
};

/// Head h is of sequence h / divisor % sequences; sequence s has the tokens from offsets[s *
/// stride] up to the next one's, `length` at most, of `tokens` that the tensors have room for.
template <int sequences, int divisor, int stride, int length, int tokens>
struct PackedSequences {
  static constexpr bool arePacked = true;
  static constexpr int count = sequences, rows = tokens;
  const int *offsets;

  /// Behind the last one: where all of them end.
  __device__ __forceinline__ Sequence at(int sequence) const {
    const int first = offsets[sequence * stride];
    if (sequence == sequences) return {first, 0};
    return {first, smaller(larger(offsets[(sequence + 1) * stride] - first, 0), length)};
  }
  __device__ __forceinline__ Sequence of(int head) const { return at(head / divisor % sequences); }
  /// The head of a sequence among those of the same number.
  __device__ __forceinline__ int headOf(int sequence, int other) const {
    return other / divisor * (divisor * sequences) + sequence * divisor + other % divisor;
  }
};

struct alignas(16) ZeroChunk {
  unsigned words[4];
};

/// Zeroes 16 bytes of a row of `columns` from `column` on, those that there are. `isAligned`: rows
/// start at multiples of 16 bytes.
template <int columns, bool isAligned, typename T>
__device__ __forceinline__ void zeroChunk(T *row, int column) {
  constexpr int elements = 16 / int(sizeof(T));
  const auto zeroWhole = [&] { *reinterpret_cast<ZeroChunk *>(row + column) = {}; };
  if constexpr (isAligned && columns % elements == 0) {
    zeroWhole();
  } else {
    if (isAligned && column + elements <= columns) return zeroWhole();
    for (int i = 0; i < elements; ++i)
      if (column + i < columns) row[column + i] = narrow<T>(0);
  }
}

/// Zeroes rows of the output from `first` up to `end`, by threads that are told their number.
/// `rowAt`: T *(int head, int token).
template <int columns, int heads, bool isAligned, typename Sequences, typename RowAt>
__device__ __forceinline__ void zeroTokens(const RowAt &rowAt, const Sequences &sequences,
                                           int first, int end, int thread, int threads) {
  constexpr int chunk = 16 / int(sizeof(*rowAt(0, 0))), chunksOfRow = (columns + chunk - 1) / chunk,
                headsOfSequence = heads / Sequences::count;
  first = larger(first, 0), end = smaller(end, Sequences::rows);
  for (Offset place = thread; place < Offset(end - first) * headsOfSequence * chunksOfRow;
       place += threads) {
    const int row = int(place / (headsOfSequence * chunksOfRow)),
              rest = int(place % (headsOfSequence * chunksOfRow));
    zeroChunk<columns, isAligned>(rowAt(sequences.headOf(0, rest / chunksOfRow), first + row),
                                  rest % chunksOfRow * chunk);
  }
}

/// Zeroes what is of no sequence, by the blocks of a grid together: what lies in front of the first
/// one, behind a sequence that is cut at its bound, and behind the last token. `thread` of a block,
/// of `threads` that call.
template <int columns, int heads, bool isAligned, typename Sequences, typename RowAt>
__device__ __forceinline__ void zeroUnused(const Sequences &sequences, const RowAt &rowAt,
                                           int thread, int threads) {
  const auto zero = [&](int first, int end, int own, int together) {
    zeroTokens<columns, heads, isAligned>(rowAt, sequences, first, end, own, together);
  };
  for (int sequence = int(blockIdx.x); sequence < Sequences::count; sequence += int(gridDim.x)) {
    const Sequence own = sequences.at(sequence), next = sequences.at(sequence + 1);
    if (sequence == 0) zero(0, own.first, thread, threads);
    zero(own.first + own.count, next.first, thread, threads);
  }
  zero(sequences.at(Sequences::count).first, Sequences::rows, int(blockIdx.x) * threads + thread,
       int(gridDim.x) * threads);
}

}  // namespace weft
