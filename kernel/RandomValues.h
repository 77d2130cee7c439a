// Random tensor elements, each a function of (seed, tensor name, index) alone: any program computes
// the same ones, in any order.
//
//   mix(x):   x ^= x >> 30; x *= 0xBF58476D1CE4E5B9; x ^= x >> 27; x *= 0x94D049BB133111EB; x ^= x
//             >> 31
//   key     = mix(seed xor FNV-1a of the name's bytes)
//   bits(n) = mix(key + (n + 1) * 0x9E3779B97F4A7C15)              (SplitMix64; Steele, Lea, Flood,
//       OOPSLA 2014)
//   float   = (sum of the four 16-bit words of bits - 131070) / 65536 * sqrt(3) * scale: mean 0,
//           deviation `scale`, bell-shaped
//   integer = low + bits mod (high - low + 1)
//
// Arithmetic modulo 2^64; the float is computed in fp64 and then rounded to the tensor's type.
#pragma once

#include <cstdint>
#include <string_view>

namespace weft {

class RandomValues {
public:
  RandomValues(uint64_t seed, std::string_view tensor);
  uint64_t bits(int64_t index) const;
  double real(int64_t index, double scale) const;
  int64_t integer(int64_t index, int64_t low, int64_t high) const;

private:
  uint64_t key;
};

}  // namespace weft
