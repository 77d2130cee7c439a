// Registers that warpgroups hand to each other (setmaxnreg): a multiple of 8 for every thread of
// the warpgroup. What all of a block have must not exceed what it was launched with.
#pragma once

namespace weft::sm90 {

template <int count>
__device__ __forceinline__ void raiseRegisters() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(count));
}
template <int count>
__device__ __forceinline__ void lowerRegisters() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(count));
}

}  // namespace weft::sm90
