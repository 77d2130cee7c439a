// Epilogues of the GEMM kernel template from sm_80 on (sm80_gemm.cuh and its siblings call them for
// every block of 16 x 16 of a warp's accumulators, one after another).
#pragma once

#include "weft/opaque.cuh"
#include "weft/sm80_gemm.cuh"

namespace weft::sm80 {

/// So many blocks at a time: where a block lies depends on a result of one before it, by bits that
/// are zero. What an epilogue reads and draws for all blocks, which the compiler would compute
/// ahead, does not fit beside the accumulators. The kernel template calls it as a constant.
template <int together, typename Epilogue>
class LimitedFragmentsInFlight {
public:
  __device__ __forceinline__ explicit LimitedFragmentsInFlight(const Epilogue &epilogueOp)
      : epilogueOp(epilogueOp), zero(opaqueZero()) {}
  __device__ __forceinline__ void operator()(float (&accumulators)[8], const Fragment &at) const {
    const int nothing = int(before[calls % together] & zero);
    epilogueOp(accumulators, Fragment{at.batch, at.row + nothing, at.column + nothing});
    before[calls % together] = bitsOf(accumulators[7]);
    ++calls;
  }

private:
  const Epilogue &epilogueOp;
  const unsigned zero;
  mutable unsigned before[together] = {};
  mutable int calls = 0;
};
template <int together, typename Epilogue>
__device__ __forceinline__ LimitedFragmentsInFlight<together, Epilogue> limitFragmentsInFlight(
    const Epilogue &epilogueOp) {
  return LimitedFragmentsInFlight<together, Epilogue>(epilogueOp);
}

}  // namespace weft::sm80
