// The knobs of tensor-core contractions on sm_90a, and the family.
#pragma once

#include "kernel/Family.h"

namespace weft {

/// How the two consumer warpgroups of a block divide the work: both share a tile, half of its rows
/// each (cooperative); or each has a separate tile and multiplies while the other stores
/// (ping-pong). Single-consumer: one consumer warpgroup, one tile a block, stored from registers.
enum class Sm90Schedule : uint8_t { cooperative, pingPong, singleConsumer };
/// "cooperative", "ping-pong", "single-consumer".
std::string_view nameOf(Sm90Schedule schedule);
inline constexpr Sm90Schedule sm90Schedules[] = {Sm90Schedule::cooperative, Sm90Schedule::pingPong,
                                                 Sm90Schedule::singleConsumer};

/// Tensor-core contractions of sm_90a: one persistent kernel of a producer and two consumer
/// warpgroups (sm90_gemm.cuh), or for few rows or few tiles a smaller one
/// (sm90_single_consumer.cuh), to which epilogueStages, groupM and blocks mean nothing.
struct Sm90GemmKnobs {
  Sm90Schedule schedule = Sm90Schedule::cooperative;
  int tileM = 128, tileN = 128;  ///< elements of C: 64, 128, 256 and 64, 128, 192, 256;
                                 ///< single-consumer: 32 or 64 and 8, 16, .. 48, or those exchanged
  int stages = 4;                ///< k-tiles of A and B, 128 bytes of k each, in shared memory
  int epilogueStages = 2;        ///< subtiles of 64 x 64 elements of C in flight, a consumer
  int groupM = 8;                ///< tiles along m that are taken together before the next along n
  int blocks = 132;  ///< at most, one a multiprocessor; block i processes tiles i, i + blocks, ...
  int splitK = 1;  ///< blocks of a cluster that share the k of one tile: 1, 2, 4, 8; above 1 every
                   ///< tile has a cluster
  int multicastB = 1;  ///< blocks of a cluster that take neighbouring tiles along m and load
                       ///< k-tiles of B for each other: 1, 2
  int streamK = 0;     ///< 1: stream-K: every block takes the same number of k-tiles, across tiles
                       ///< (sm90_stream_k.cuh)
  static const Family &family();
  auto operator<=>(const Sm90GemmKnobs &) const = default;
};

extern const Family sm90GemmFamily;
inline const Family &Sm90GemmKnobs::family() { return sm90GemmFamily; }

}  // namespace weft
