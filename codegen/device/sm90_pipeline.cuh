// The circular buffer of stages in shared memory through which a producer hands tiles to consumers.
//
// A stage has two barriers: full, which ends when its tiles have landed, and empty, which ends when
// all consumers have read them. Both sides pass through the stages in the same order:
//
//   producer  PipelineState<stages> state{0, 1};         all stages are empty at first
//             wait(empty[stage], parity); arriveExpecting(full[stage], bytes); load; advance()
//   consumer  PipelineState<stages> state;
//             wait(full[stage], parity); multiply; arrive(empty[stage]); advance()
#pragma once

namespace weft::sm90 {

constexpr int warpgroup = 128;  // threads: who has a role

/// A place in the circular buffer of stages; the parity flips with every round.
template <int stages>
struct PipelineState {
  int stage = 0, parity = 0;
  __device__ __forceinline__ void advance() {
    if (++stage == stages) stage = 0, parity ^= 1;
  }
  /// By any number of places.
  __device__ __forceinline__ void skip(int places) {
    const int at = stage + places;
    stage = at % stages;
    parity ^= at / stages % 2;
  }
};

}  // namespace weft::sm90
