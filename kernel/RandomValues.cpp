// The generator of random tensor elements; see RandomValues.h.
#include "kernel/RandomValues.h"

#include <numbers>

namespace weft {

namespace {

uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

uint64_t hashOf(std::string_view text) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (const char character : text) hash = (hash ^ uint8_t(character)) * 0x100000001B3u;
  return hash;
}

}  // namespace

RandomValues::RandomValues(uint64_t seed, std::string_view tensor)
    : key(mix(seed ^ hashOf(tensor))) {}

uint64_t RandomValues::bits(int64_t index) const {
  return mix(key + (uint64_t(index) + 1) * 0x9E3779B97F4A7C15u);
}

double RandomValues::real(int64_t index, double scale) const {
  const uint64_t all = bits(index);
  const int64_t sum =
      int64_t((all & 0xFFFF) + (all >> 16 & 0xFFFF) + (all >> 32 & 0xFFFF) + (all >> 48));
  return double(sum - 131070) / 65536 * std::numbers::sqrt3 * scale;
}

int64_t RandomValues::integer(int64_t index, int64_t low, int64_t high) const {
  return low + int64_t(bits(index) % uint64_t(high - low + 1));
}

}  // namespace weft
