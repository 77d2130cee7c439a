// Dropout bits (ir/SPEC.md, "Dropout bits"): a function of seed, step, stream and logical
// coordinates alone, so that forward, backward, loop kernels and kernel templates draw the same
// mask.
//
// A tensor is [outer][rows][columns]. Four words serve the eight elements that one lane of a
// tensor-core fragment holds in a 16 x 16 tile of the last two axes; element (row, column) uses 16
// bits of them. They are a mix of the coordinates with four words of Philox, which a thread draws
// once: its 64-bit products take five cycles each from tensor cores that are at work beside it, a
// mix of 32-bit products none (bench/RESULTS.md, "instructions beside products").
#pragma once

#include "weft/opaque.cuh"
#include "weft/ptx.cuh"

namespace weft {

/// Read from device memory at every launch, so that a replayed graph does not repeat masks.
struct DropoutKey {
  unsigned long long seed, step;
};

/// The key in two loads that stay in program order with those of a row between them
/// (ptx::loadInOrder): the seed ahead, so that the key is in flight first, the step behind, so that
/// draws, which need both, are made while the row is in flight.
__device__ __forceinline__ unsigned long long loadSeedInOrder(const DropoutKey *from) {
  struct {
    unsigned words[2];
  } seed;
  ptx::loadInOrder(seed.words, &from->seed);
  return __builtin_bit_cast(unsigned long long, seed);
}
__device__ __forceinline__ DropoutKey loadStepInOrder(const DropoutKey *from,
                                                      unsigned long long seed) {
  struct {
    unsigned words[2];
  } step;
  ptx::loadInOrder(step.words, &from->step);
  return {seed, __builtin_bit_cast(unsigned long long, step)};
}

struct DropoutWords {
  unsigned word[4];
};

/// What all draws of an op have in common: Philox4x32 with 7 rounds (Salmon et al., "Parallel
/// Random Numbers: As Easy as 1, 2, 3", SC 2011) of its stream, under seed and step.
__device__ __forceinline__ DropoutWords philox(unsigned stream, const DropoutKey &dropoutKey) {
  unsigned c0 = 0, c1 = 0, c2 = 0, c3 = stream;
  unsigned k0 = unsigned(dropoutKey.seed);
  unsigned k1 = unsigned(dropoutKey.seed >> 32) ^ (unsigned(dropoutKey.step) * 0x9E3779B9u);
#pragma unroll
  for (int round = 0; round < 7; ++round) {
    const unsigned long long product0 = 0xD2511F53ull * c0, product1 = 0xCD9E8D57ull * c2;
    c0 = unsigned(product1 >> 32) ^ c1 ^ k0;
    c1 = unsigned(product1);
    c2 = unsigned(product0 >> 32) ^ c3 ^ k1;
    c3 = unsigned(product0);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

/// Every word takes in the product of two others, twice, with its high half folded into the low one
/// each time (after pcg4d of Jarzynski and Olano, "Hash Functions for GPU Rendering", JCGT 9(3),
/// 2020, which does not fold at the end: its low halves fail SmallCrush of TestU01).
__device__ __forceinline__ DropoutWords mixed(unsigned x, unsigned y, unsigned z, unsigned w) {
#pragma unroll
  for (int round = 0; round < 2; ++round) {
    x += y * w;
    y += z * x;
    z += x * y;
    w += y * z;
    x ^= x >> 16, y ^= y >> 16, z ^= z >> 16, w ^= w >> 16;
  }
  return {{x, y, z, w}};
}

/// The words that serve element (row, column) of slice `outer`.
__device__ __forceinline__ DropoutWords dropoutCall(const DropoutKey &key, unsigned stream,
                                                    unsigned outer, unsigned row, unsigned column) {
  constexpr unsigned apart = 0x9E3779B9u;  // neighbours differ in all bits
  const DropoutWords common = philox(stream, key);
  const unsigned lane = row % 8 * 4 + column % 8 / 2;
  return mixed(common.word[0] + (lane + 32 * (column / 16)) * apart,
               common.word[1] + row / 16 * apart, common.word[2] + outer * apart, common.word[3]);
}

/// The word of a call that holds the draws of (row, column) and of its neighbour (row, column ^ 1).
__device__ __forceinline__ unsigned dropoutWord(const DropoutWords &call, unsigned row,
                                                unsigned column) {
  const unsigned low = row / 8 % 2 == 0 ? call.word[0] : call.word[1];
  const unsigned high = row / 8 % 2 == 0 ? call.word[2] : call.word[3];
  return column / 8 % 2 == 0 ? low : high;
}

/// Which of N elements stay: their draws, two to a word, as they are kept until they are needed. An
/// element stays if its draw is at least `threshold`, which is known when the kernel is compiled.
template <int N>
struct Kept {
  unsigned words[N / 2], threshold;

  __device__ __forceinline__ bool at(int e) const {
    return (e % 2 == 0 ? words[e / 2] & 0xFFFF : words[e / 2] >> 16) >= threshold;
  }
};

/// One element. `threshold` = round(p * 65536): the element stays if its 16-bit draw is at least
/// that.
__device__ __forceinline__ bool kept(const DropoutKey &key, unsigned stream, unsigned outer,
                                     unsigned row, unsigned column, unsigned threshold) {
  const unsigned word = dropoutWord(dropoutCall(key, stream, outer, row, column), row, column);
  return (column % 2 == 0 ? word & 0xFFFF : word >> 16) >= threshold;
}

/// N neighbouring columns of one row; `column` is a multiple of N, N is 2, 4, 8 or 16. One call for
/// every two elements; for every four if N is 16, since columns 8 apart share calls.
template <int N>
__device__ __forceinline__ Kept<N> keptColumns(const DropoutKey &key, unsigned stream,
                                               unsigned outer, unsigned row, unsigned column,
                                               unsigned threshold) {
  Kept<N> result;
  result.threshold = threshold;
#pragma unroll
  for (int e = 0; e < (N < 8 ? N : 8); e += 2) {
    const DropoutWords call = dropoutCall(key, stream, outer, row, column + e);
    result.words[e / 2] = dropoutWord(call, row, column + e);
    if constexpr (N == 16) result.words[e / 2 + 4] = dropoutWord(call, row, column + e + 8);
  }
  return result;
}

/// keptColumns<8> where lanes 2n and 2n + 1 of the warp hold the two halves of 16 aligned columns
/// of one row: each computes two of the four calls that both need and they exchange words. All
/// lanes of the warp take part.
__device__ __forceinline__ Kept<8> keptColumnsPaired(const DropoutKey &key, unsigned stream,
                                                     unsigned outer, unsigned row, unsigned column,
                                                     unsigned threshold) {
  const unsigned upper = column / 8 % 2;  // this lane holds columns 8 to 15 of the tile
  Kept<8> result;                         // words for columns 0-1, 2-3, 4-5, 6-7 of this lane
  result.threshold = threshold;
#pragma unroll
  for (int n = 0; n < 2; ++n) {
    const DropoutWords call =
        dropoutCall(key, stream, outer, row, column / 16 * 16 + upper * 4 + 2 * n);
    const unsigned low = row / 8 % 2 == 0 ? call.word[0] : call.word[1];
    const unsigned high = row / 8 % 2 == 0 ? call.word[2] : call.word[3];
    const unsigned own = upper ? high : low;
    const unsigned other = ptx::shuffleXor(upper ? low : high, 1);
    result.words[n] = upper ? other : own;
    result.words[n + 2] = upper ? own : other;
  }
  return result;
}

/// The eight elements that a lane of a tensor-core fragment holds: one call. (row, column) is the
/// first of them; its block of 16 x 16 starts at multiples of 16 (fragment.cuh).
__device__ __forceinline__ Kept<8> keptFragment(const DropoutKey &key, unsigned stream,
                                                unsigned outer, unsigned row, unsigned column,
                                                unsigned threshold) {
  const DropoutWords call = dropoutCall(key, stream, outer, row, column);
  return {{call.word[0], call.word[1], call.word[2], call.word[3]}, threshold};
}

/// The same where rows of the fragment are columns of the tensor: two calls, of four elements each.
/// (row, column) is the tensor's place of the first element; the second lies one row below it.
__device__ __forceinline__ Kept<8> keptTransposedFragment(const DropoutKey &key, unsigned stream,
                                                          unsigned outer, unsigned row,
                                                          unsigned column, unsigned threshold) {
  const DropoutWords even = dropoutCall(key, stream, outer, row, column),
                     odd = dropoutCall(key, stream, outer, row + 1, column);
  const unsigned shift = column % 2 * 16;
  Kept<8> result;
  result.threshold = threshold;
#pragma unroll
  for (int w = 0; w < 4; ++w) {
    const int from =
        w % 2 * 2 + w / 2;  // a word holds draws of rows r or r + 8, columns c or c + 8
    result.words[w] = (even.word[from] >> shift & 0xFFFF) | odd.word[from] >> shift << 16;
  }
  return result;
}

}  // namespace weft
