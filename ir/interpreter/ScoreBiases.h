// Biases of attention scores by the distance of key and query. With unequal extents queries are
// aligned to the end of the keys: query row j of J stands at key position j + K - J.
#pragma once

#include "ir/interpreter/Tensor.h"
#include "kernel/ScoreBias.h"

namespace weft::reference {

/// x + slope * distance; the number of the head has its digits along `heads`, slowest first.
template <typename Real>
TensorValue alibi(const TensorValue &x, std::span<const int64_t> heads, int64_t query, int64_t key,
                  double steepness);
/// x + the table's element at the distance, of the query from the key in reverse, plus `farthest`,
/// clipped to the table: its last coordinate. Those before run `along` axes of x.
template <typename Real>
TensorValue relativeBias(const TensorValue &x, const TensorValue &table,
                         std::span<const int64_t> along, int64_t query, int64_t key,
                         int64_t farthest, bool isReverse = false);
/// The rows of a table [buckets, ...] by distance: [..., 2 farthest + 1].
TensorValue expandBuckets(const TensorValue &table, BucketKind kind, int64_t farthest);

}  // namespace weft::reference
