// Epilogues of the contraction skeleton from sm_80 on (ampere_contraction.cuh and its siblings call them for every block of 16 x 16 of a
// warp's sums, one behind the other).
#pragma once

#include "weft/ampere_contraction.cuh"

namespace weft::ampere {

/// Zero, as a number that the compiler knows nothing of.
__device__ __forceinline__ unsigned hiddenZero() {
#if defined(WEFT_EMULATE)
  return 0;
#else
  unsigned multiprocessors;
  asm volatile("mov.u32 %0, %%nsmid;" : "=r"(multiprocessors));
  return multiprocessors >> 16;  // no machine has as many
#endif
}

/// So many blocks at a time: where a block lies depends on a result of one before it, by bits that are zero. What an epilogue reads and draws
/// for all blocks, which the compiler would compute ahead, does not fit beside the sums. The skeleton calls it as a constant.
template <int together, typename Epilogue> class BlockByBlock {
public:
  __device__ __forceinline__ explicit BlockByBlock(const Epilogue &finish) : finish(finish), zero(hiddenZero()) {}
  __device__ __forceinline__ void operator()(float (&sums)[8], const Fragment &at) const {
    const int nothing = int(before[turn % together] & zero);
    finish(sums, Fragment{at.batch, at.row + nothing, at.column + nothing});
    before[turn % together] = bitsOf(sums[7]);
    ++turn;
  }

private:
  const Epilogue &finish;
  const unsigned zero;
  mutable unsigned before[together] = {};
  mutable int turn = 0;
};
template <int together, typename Epilogue> __device__ __forceinline__ BlockByBlock<together, Epilogue> blockByBlock(const Epilogue &finish) {
  return BlockByBlock<together, Epilogue>(finish);
}

}  // namespace weft::ampere
