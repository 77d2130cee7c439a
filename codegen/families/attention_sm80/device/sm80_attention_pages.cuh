// Keys and values of attention from sm_80 on in pages: position n of a sequence is position
// n % pagePositions of the page that entry n / pagePositions of the sequence's row of a table
// names.
//
//    table      [ 7 | 2 | 9 | .. ]        entries of one sequence
//    a tile       ^^^^^^^                 of keys: its rows from one page, or from several
//
// The threads that copy a row load its entry themselves, one iteration before they copy: the loads
// are under way while the loop waits for the tile that it is to read. An entry that is none of the
// pages gives rows of zeros, and nothing is read for it.
#pragma once

#include "weft/sm80_attention_tiles.cuh"

namespace weft::sm80 {

/// The pages of the rows that a thread copies of a tile of `rows` positions, as copyPositions()
/// divides them among threads, by the chunks of a row.
template <AttentionShape shape, int rows, int chunks, int threads>
struct PagesOfRows {
  static constexpr int rowsAPass = threads / chunks, passes = (rows + rowsAPass - 1) / rowsAPass;
  static constexpr int size = larger(shape.pagePositions, 1);
  /// Whether the rows of a tile are all of one page; or of whole pages, each some passes long.
  static constexpr bool isOne = size % rows == 0,
                        areWhole = rows % size == 0 && size % rowsAPass == 0;
  int of[passes];

  /// `entries`: of the sequence. `first`: position of the tile; from `end` on there are no entries.
  __device__ __forceinline__ void load(const int *entries, int first, int end) {
    const int ownRow = threadIdx.x / chunks;
#pragma unroll
    for (int pass = 0; pass < passes; ++pass) {
      const int row = first + ownRow + pass * rowsAPass;
      if (pass > 0 && (isOne || (areWhole && pass * rowsAPass % size != 0)))
        of[pass] = of[pass - 1];
      else of[pass] = row < end ? entries[unsigned(row) / size * shape.strideOfEntry] : -1;
    }
  }
};

/// copyPositions() of rows in these pages: zeros where there is no page, and from `end` on where
/// the shape says so. `matrix`: of the head, in page 0.
template <AttentionShape shape, int rows, int columns, int threads, Offset rowStride,
          Offset pageStride, typename T>
__device__ __forceinline__ void copyFromPages(
    SharedAddress to, const T *matrix,
    const PagesOfRows<shape, rows, AttentionRows<columns>::chunks, threads> &pages, int first,
    int end) {
  using Rows = AttentionRows<columns>;
  using Pages = PagesOfRows<shape, rows, Rows::chunks, threads>;
  const int ownRow = threadIdx.x / Rows::chunks, column = threadIdx.x % Rows::chunks;
  if (threads % Rows::chunks != 0 && ownRow >= Pages::rowsAPass) return;
  const bool isPadding = columns % 16 != 0 && column * chunk >= columns;
#pragma unroll
  for (int pass = 0; pass < Pages::passes; ++pass) {
    const int row = ownRow + pass * Pages::rowsAPass, page = pages.of[pass];
    if (rows % Pages::rowsAPass != 0 && row >= rows) break;
    const bool isInside = unsigned(page) < unsigned(shape.pages) && !isPadding &&
                          (!shape.zeroesUnseen || first + row < end);
    const T *from = matrix + page * pageStride +
                    Offset(unsigned(first + row) % Pages::size) * rowStride + column * chunk;
    copyAsync(to + Rows::placeOf(row, column), isInside ? from : matrix, isInside ? 16 : 0);
  }
}

}  // namespace weft::sm80
