// The way in of the GEMM kernel template: k-tiles of A and B into shared memory, zero outside the
// matrix. Rows that start at multiples of 16 bytes come by asynchronous copies; any others through
// registers, into the same places.
#pragma once

#include "weft/sm80_tiles.cuh"

namespace weft::sm80 {

/// A chunk at any address: the two aligned accesses that hold it. Accesses that would hold none of
/// it are left out.
struct Unaligned {
  unsigned words[8];
  int shift, count;
};
/// Asks for the first `count` <= 8 elements.
__device__ __forceinline__ void loadUnaligned(Unaligned &loaded, const void *from, int count) {
  const unsigned long long address = reinterpret_cast<unsigned long long>(from);
  loaded.shift = int(address % 16), loaded.count = count;
  const auto *accesses = reinterpret_cast<const Packed<unsigned, 4> *>(address - address % 16);
  Packed<unsigned, 4> low{}, high{};
  if (count > 0) low = accesses[0];
  if (loaded.shift + elementBytes * count > 16) high = accesses[1];
#pragma unroll
  for (int w = 0; w < 4; ++w) loaded.words[w] = low.at[w], loaded.words[w + 4] = high.at[w];
}
/// The elements in their places; zero from `count` on.
__device__ __forceinline__ void align(unsigned (&words)[4], Unaligned &loaded) {
#pragma unroll
  for (int w = 0; w < 6; ++w)
    loaded.words[w] = loaded.shift & 8 ? loaded.words[w + 2] : loaded.words[w];
#pragma unroll
  for (int w = 0; w < 5; ++w)
    loaded.words[w] = loaded.shift & 4 ? loaded.words[w + 1] : loaded.words[w];
#pragma unroll
  for (int w = 0; w < 4; ++w) {
    const unsigned word =
        loaded.shift & 2 ? joinHalves(loaded.words[w], loaded.words[w + 1]) : loaded.words[w];
    const int inBounds = loaded.count - 2 * w;
    words[w] = inBounds >= 2 ? word : inBounds == 1 ? word & 0xFFFF : 0;
  }
}

/// The part of every k-tile of one operand that one thread copies. Neighbouring threads follow the
/// rows.
template <Operand operand, int side, Offset outerExtent, Offset kExtent, int depth, int threads,
          typename T>
class KTileCopy {
  using S = KTileLayout<operand, side, depth>;
  static constexpr int rowsAPass = threads / S::chunks, passes = S::rows / rowsAPass;
  static constexpr Offset pitch = operand.isAlongK() ? operand.outer : operand.k;
  static constexpr bool isOuterWhole = outerExtent % side == 0, isKWhole = kExtent % depth == 0;
  static constexpr bool areRowsWhole = operand.isAlongK() ? isOuterWhole : isKWhole;
  static constexpr bool areColumnsWhole = operand.isAlongK() ? isKWhole : isOuterWhole;
  static_assert(rowsAPass % 8 == 0 && S::rows % rowsAPass == 0,
                "passes are whole, and places of neighbouring passes alike");

public:
  __device__ __forceinline__ KTileCopy(const T *matrix, int outer0)
      : row(threadIdx.x / S::chunks),
        column(threadIdx.x % S::chunks * chunk),
        outer0(outer0),
        from(matrix + (operand.isAlongK() ? (outer0 + row) * operand.outer + column
                                          : row * operand.k + outer0 + column)) {}

  /// Copies, or starts to copy, the next kTile, whose first of k is k0.
  __device__ __forceinline__ void copyNext(SharedAddress kTile, int k0) {
    const SharedAddress to = kTile + placeOf<S::chunks>(row, column / chunk);
    if constexpr (operand.isAligned) {
#pragma unroll
      for (int pass = 0; pass < passes; ++pass)
        copyAsync(to + pass * (rowsAPass * S::chunks * 16), from + pass * (rowsAPass * pitch),
                  elementBytes * inBounds(pass, k0));
    } else {
#pragma unroll 1
      for (int pass = 0; pass < passes; ++pass) {
        Unaligned loaded;
        unsigned words[4];
        loadUnaligned(loaded, from + pass * (rowsAPass * pitch), inBounds(pass, k0));
        align(words, loaded);
        storeShared(to + pass * (rowsAPass * S::chunks * 16), words);
      }
    }
    from += depth * operand.k;
  }

private:
  /// How many elements of a chunk are in the matrix.
  __device__ __forceinline__ int inBounds(int pass, int k0) const {
    const int atRow = row + pass * rowsAPass + (operand.isAlongK() ? outer0 : k0),
              atColumn = column + (operand.isAlongK() ? k0 : outer0);
    constexpr int rows = int(operand.isAlongK() ? outerExtent : kExtent),
                  columns = int(operand.isAlongK() ? kExtent : outerExtent);
    if (!areRowsWhole && atRow >= rows) return 0;
    return areColumnsWhole || atColumn + chunk <= columns ? chunk
           : atColumn < columns                           ? columns - atColumn
                                                          : 0;
  }

  int row, column, outer0;
  const T *from;
};

}  // namespace weft::sm80
