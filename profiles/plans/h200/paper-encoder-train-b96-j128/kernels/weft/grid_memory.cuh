// Device memory that blocks of a grid hand to each other within a launch: counters of arrivals, and
// words and floats that another block may have written.
#pragma once

namespace weft::ptx {

/// Counts an arrival and returns how many came before; the one that finds `last` sets the counter
/// back to zero. What a thread of the block wrote before a barrier in front of it is seen behind a
/// barrier after the arrival that comes last.
__device__ __forceinline__ unsigned arrive(unsigned *counter, unsigned last) {
  unsigned before;
  asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;"
               : "=r"(before)
               : "l"(counter), "r"(last)
               : "memory");
  return before;
}

/// Four floats that another block may have written in this launch; 16-byte aligned.
__device__ __forceinline__ void loadFromGrid(float (&values)[4], const float *from) {
  asm volatile("ld.relaxed.gpu.global.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(values[0]), "=f"(values[1]), "=f"(values[2]), "=f"(values[3])
               : "l"(from)
               : "memory");
}
/// Counts an arrival and returns how many came before; the one that finds `last` sets the counter
/// back to zero. Orders nothing: a fence would wait for all that the multiprocessor has in flight,
/// thousands of cycles beside copies.
__device__ __forceinline__ unsigned count(unsigned *counter, unsigned last) {
  unsigned before;
  asm volatile("atom.relaxed.gpu.global.inc.u32 %0, [%1], %2;"
               : "=r"(before)
               : "l"(counter), "r"(last)
               : "memory");
  return before;
}
/// Words that warps of other blocks read in this launch, each for itself; four of them 16-byte
/// aligned.
__device__ __forceinline__ void storeForGrid(unsigned *to, unsigned word) {
  asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(to), "r"(word) : "memory");
}
__device__ __forceinline__ void storeForGrid(unsigned *to, const unsigned (&words)[4]) {
  asm volatile("st.relaxed.gpu.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(words[0]),
               "r"(words[1]), "r"(words[2]), "r"(words[3])
               : "memory");
}
__device__ __forceinline__ void loadForGrid(unsigned (&words)[4], const unsigned *from) {
  asm volatile("ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "l"(from)
               : "memory");
}

}  // namespace weft::ptx
