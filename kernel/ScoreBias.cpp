// Slopes and buckets; see ScoreBias.h.
#include "kernel/ScoreBias.h"

#include <algorithm>
#include <cmath>

namespace weft {

int64_t powerOfTwoUpTo(int64_t count) {
  int64_t power = 1;
  while (power <= count / 2) power *= 2;
  return power;
}

double alibiSlope(int64_t head, int64_t heads, double steepness) {
  const int64_t n = powerOfTwoUpTo(heads);
  const double place = head < n ? double(head + 1) : double(head - n) + 0.5;
  return std::exp2(-steepness * place / double(n));
}

std::string_view nameOf(BucketKind kind) {
  return kind == BucketKind::causal ? "causal" : "bidirectional";
}

std::optional<BucketKind> bucketKindNamed(std::string_view name) {
  for (const BucketKind kind : {BucketKind::causal, BucketKind::bidirectional})
    if (name == nameOf(kind)) return kind;
  return std::nullopt;
}

int64_t bucketsOfDirection(BucketKind kind, int64_t buckets) {
  return kind == BucketKind::bidirectional ? buckets / 2 : buckets;
}

int64_t relativeBucket(BucketKind kind, int64_t buckets, int64_t farthest, int64_t distance) {
  const int64_t own = bucketsOfDirection(kind, buckets), exact = own / 2;
  const bool isBidirectional = kind == BucketKind::bidirectional;
  const int64_t first = isBidirectional && distance > 0 ? own : 0;
  const int64_t away = isBidirectional ? std::abs(distance) : std::max<int64_t>(-distance, 0);
  if (away < exact) return first + away;
  const float share =
      std::log(float(away) / float(exact)) / float(std::log(double(farthest) / double(exact)));
  return first + std::min(own - 1, exact + int64_t(share * float(own - exact)));
}

}  // namespace weft
