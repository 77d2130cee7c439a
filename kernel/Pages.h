// Caches that lie in pages: tensors of pages, each of some positions, and a table in i32 that lists
// for every sequence the pages of its positions (`weft.append` with a table, `weft.gather_pages`,
// ir/SPEC.md). Position k of sequence b is position k % P of page table[b, k / P].
//
// Invariant: an entry that is none of the pages is no error on the device: interpreter, references
// and emitted kernels read zeros there and drop what would be written.
#pragma once

#include <cstdint>
#include <numeric>

namespace weft {

/// Positions of a page that `--page` takes: multiples of 16, as tiles of keys are.
constexpr int64_t pagePositionsStep = 16, fewestPagePositions = 16, mostPagePositions = 256;

/// Entries of a table of `sequences` rows when pages are handed out in an order that depends on the
/// seed: the first page of every sequence, then the second one of each, .., no page twice; -1 from
/// the last page on.
class ShuffledPages {
public:
  ShuffledPages(int64_t sequences, int64_t pages, uint64_t seed)
      : sequences(sequences), pages(pages), first(int64_t(seed % uint64_t(pages))) {
    step = int64_t(double(pages) * 0.618033988749895) | 1;  // far from the page before
    while (std::gcd(step, pages) != 1) ++step;
  }
  int64_t entry(int64_t sequence, int64_t index) const {
    return page(index * sequences + sequence);
  }
  /// The page that is handed out at this turn.
  int64_t page(int64_t turn) const { return turn < pages ? (first + turn * step) % pages : -1; }

private:
  int64_t sequences, pages, first, step;
};

}  // namespace weft
