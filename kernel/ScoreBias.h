// Biases of attention scores by position: what they are for one head or one distance, as their
// publications define it. Expressions of them: CoordinateExpressions.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace weft {

/// The slope of a head in ALiBi (Press et al. 2022, section 3): with n the largest power of two up
/// to `heads`, head h < n has 2^(-steepness (h + 1) / n); those behind have the slopes that 2 n
/// heads would have at even places: 2^(-steepness (2 (h - n) + 1) / (2 n)).
double alibiSlope(int64_t head, int64_t heads, double steepness);
/// The largest power of two up to `count`, which is positive.
int64_t powerOfTwoUpTo(int64_t count);

/// Which distances of a key from the query T5 tells apart (Raffel et al. 2020, section 2.1).
enum class BucketKind : uint8_t {
  causal,        ///< those of earlier keys; later ones count as the query's own
  bidirectional  ///< half of the buckets are for later keys
};
/// As the dialect writes it.
std::string_view nameOf(BucketKind kind);
std::optional<BucketKind> bucketKindNamed(std::string_view name);

/// Buckets of distances in one direction; the nearest half of them hold one distance each.
int64_t bucketsOfDirection(BucketKind kind, int64_t buckets);
/// The bucket of key - query, as `transformers` computes it, in fp32: distances of at least
/// `farthest` share the last bucket of their direction, nearer ones are told apart by their
/// logarithm. `farthest` is larger than half of bucketsOfDirection().
int64_t relativeBucket(BucketKind kind, int64_t buckets, int64_t farthest, int64_t distance);

}  // namespace weft
