// Attention masks: excluded elements become `fill`: -inf, or zero for gradients. With unequal
// extents queries are aligned to the end of the keys: query row j of J stands at key position j + K
// - J; with starts at j + that of its sequence.
#pragma once

#include "ir/interpreter/SequenceStarts.h"
#include "kernel/BlockMask.h"

namespace weft::reference {

/// Query row sees key k iff position(query) - left <= k <= position(query) + right, or k < global,
/// or position(query) < global.
TensorValue maskWindow(const TensorValue &x, int64_t query, int64_t key, int64_t left,
                       int64_t right, int64_t global, double fill,
                       const SequenceStarts &starts = {});
/// The window that reaches from the first key to the query's own position.
TensorValue maskCausal(const TensorValue &x, int64_t query, int64_t key, double fill,
                       const SequenceStarts &starts = {});
/// Keys from the length on are excluded; one length per coordinate of `along`.
TensorValue maskPadding(const TensorValue &x, int64_t key, const TensorValue &lengths,
                        int64_t along, double fill);
/// Packed tokens from the last offset on are excluded.
TensorValue maskTokens(const TensorValue &x, int64_t key, const TensorValue &offsets, double fill);
/// Key k of query row j is seen iff table[j / size][k / size]: blocks of the score matrix, without
/// end alignment.
TensorValue maskBlock(const TensorValue &x, int64_t query, int64_t key, int64_t size,
                      const TensorValue &table, double fill);
/// The same by the table of a pattern, of the head whose digits the coordinates of `heads` are.
TensorValue maskPattern(const TensorValue &x, int64_t query, int64_t key,
                        const std::vector<int64_t> &heads, const BlockTable &table, double fill);
/// Key k of query row j is seen iff segments[b][k] == segments[b][position(j)], b the coordinate of
/// `along`.
TensorValue maskDocument(const TensorValue &x, int64_t query, int64_t key,
                         const TensorValue &segments, int64_t along, double fill);

/// Of every 32 neighbouring positions of the last axis the least and the greatest element, along
/// two axes in its place: tiles, then the two.
TensorValue tileBounds(const TensorValue &segments);

}  // namespace weft::reference
