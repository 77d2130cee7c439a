// Slopes of ALiBi and buckets of T5 against the numbers of their publications, and expressions of
// them against the functions.
#include "kernel/ScoreBias.h"

#include "kernel/CoordinateExpressions.h"

#include <catch2/catch.hpp>

#include <cmath>

using namespace weft;

TEST_CASE("slopes of a power of two of heads are a geometric sequence, others lie between") {
  CHECK(alibiSlope(0, 8, 8) == Approx(0.5));
  CHECK(alibiSlope(7, 8, 8) == Approx(std::exp2(-8)));
  CHECK(alibiSlope(0, 16, 8) == Approx(std::exp2(-0.5)));
  CHECK(alibiSlope(0, 1, 8) == Approx(std::exp2(-8)));
  // 12 heads, as transformers' build_alibi_tensor gives them.
  for (int head = 0; head < 8; ++head)
    CHECK(alibiSlope(head, 12, 8) == Approx(std::exp2(-1.0 - head)));
  for (int head = 8; head < 12; ++head)
    CHECK(alibiSlope(head, 12, 8) == Approx(std::exp2(-0.5 - (head - 8))));
  // BLOOM-176B has 112.
  CHECK(alibiSlope(63, 112, 8) == Approx(std::exp2(-8)));
  CHECK(alibiSlope(64, 112, 8) == Approx(std::exp2(-1.0 / 16)));
  CHECK(alibiSlope(111, 112, 8) == Approx(std::exp2(-95.0 / 16)));
}

TEST_CASE("buckets of T5 begin at the distances that transformers has") {
  // Of 32 buckets up to 128, in both directions: where buckets 8, 9, ... 15 begin.
  constexpr int begins[] = {8, 12, 16, 23, 32, 46, 64, 91};
  for (int distance = 0; distance <= 1000; ++distance) {
    int bucket = distance;
    if (distance >= 8)
      for (int place = 0; place < 8; ++place)
        if (distance >= begins[place]) bucket = 8 + place;
    INFO(distance);
    CHECK(relativeBucket(BucketKind::bidirectional, 32, 128, -distance) == bucket);
    CHECK(relativeBucket(BucketKind::bidirectional, 32, 128, distance) ==
          (distance == 0 ? 0 : 16 + bucket));
  }
  // One direction: 16 of one distance each; 17 of 32 at 19, 31 from 113 on.
  for (int distance = 0; distance < 16; ++distance)
    CHECK(relativeBucket(BucketKind::causal, 32, 128, -distance) == distance);
  CHECK(relativeBucket(BucketKind::causal, 32, 128, -18) == 16);
  CHECK(relativeBucket(BucketKind::causal, 32, 128, -19) == 17);
  CHECK(relativeBucket(BucketKind::causal, 32, 128, -112) == 30);
  CHECK(relativeBucket(BucketKind::causal, 32, 128, -113) == 31);
  CHECK(relativeBucket(BucketKind::causal, 32, 128, -5000) == 31);
  CHECK(relativeBucket(BucketKind::causal, 32, 128, 7) == 0);
}

TEST_CASE("buckets never fall with the distance and stay inside the table") {
  for (const BucketKind kind : {BucketKind::causal, BucketKind::bidirectional})
    for (const int64_t buckets : {4, 6, 8, 30, 32, 64, 320})
      for (const int64_t farthest : {int64_t(200), int64_t(1000)}) {
        int64_t before = -1;
        for (int64_t distance = 0; distance <= farthest + 3; ++distance) {
          const int64_t own = relativeBucket(kind, buckets, farthest, -distance);
          CHECK(own >= before);
          CHECK(own < bucketsOfDirection(kind, buckets));
          before = own;
        }
        CHECK(before == bucketsOfDirection(kind, buckets) - 1);
      }
}

TEST_CASE("expressions print what emitted kernels compute") {
  CHECK(alibiExpression({.heads = {1}, .extents = {8}, .query = 2, .key = 3}).text() ==
        "{0} + weft::exp(([1] + 1) * -0.6931472f) * ([3] - [2])");
  CHECK(alibiExpression({.heads = {0, 1}, .extents = {3, 2}, .query = 2, .key = 3, .shift = 5})
            .text() ==
        "{0} + weft::exp(([0] * 2 + [1] < 4 ? [0] * 2 + [1] + 1.0f : [0] * 2 + [1] - 3.5f) * "
        "-1.3862944f) * ([3] - ([2] + 5))");
  CHECK(relativeBiasExpression(
            {.along = {1}, .query = 2, .key = 3, .distance = 128, .distances = 257})
            .text() == "{0} + {1}[[1], weft::clampedIndex([3] - [2] + 128, 257)]");
  CHECK(
      expandBucketsExpression({.kind = BucketKind::causal, .buckets = 2, .farthest = 2, .rank = 2})
          .text() == "{0}[[1] < 2 ? 1 : 0, [0]]");
  CHECK(maskExpression({.kind = MaskShape::Kind::document, .key = 3, .query = 2, .shift = 1})
            .text() == "{1}[[0], [3]] == {1}[[0], [2] + 1] ? {0} : weft::negativeInfinity");
}
