// Sequences of different lengths: where each begins among packed tokens, packing and unpacking.
#pragma once

#include "ir/interpreter/Tensor.h"

namespace weft::reference {

/// One more than there are lengths: the sum of all lengths before, each held to [0, bound].
TensorValue offsets(const TensorValue &lengths, int64_t bound);
/// How many elements of each row are not 0.
TensorValue lengths(const TensorValue &mask);
/// Dimension `sequences` becomes all tokens, dimension `positions` goes.
TensorValue pack(const TensorValue &x, const TensorValue &offsets, int64_t sequences,
                 int64_t positions, double fill = 0);
/// Dimension `tokens` of x becomes `sequences` and `positions` of the result, which has this shape.
TensorValue unpack(const TensorValue &x, const TensorValue &offsets, int64_t tokens,
                   int64_t sequences, int64_t positions, Shape shape, double fill);
/// The cache with tokens at positions starts[b], starts[b] + 1, .. of each sequence; those beyond
/// its end are dropped.
TensorValue append(const TensorValue &cache, const TensorValue &tokens, const TensorValue &starts,
                   int64_t positions, int64_t sequences);
/// The same of a cache of pages, whose dimension `along` is that of sequences in the tokens: a
/// position is one of the page that the table's row of the sequence lists for it.
TensorValue appendToPages(const TensorValue &pages, const TensorValue &tokens,
                          const TensorValue &starts, const TensorValue &table, int64_t positions,
                          int64_t along);
/// Dimension `along` becomes sequences, `positions` all positions of one; zero where an entry of
/// the table is none of the pages.
TensorValue gatherPages(const TensorValue &pages, const TensorValue &table, int64_t positions,
                        int64_t along);

}  // namespace weft::reference
