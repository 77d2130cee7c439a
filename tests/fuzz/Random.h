// Random choices of the fuzzer: the same seed gives the same choices on every machine, whatever the
// standard library does.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weft::fuzz {

/// SplitMix64 (Steele et al., 2014): any seed is a good one, neighbouring seeds too.
class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}
  Random(std::string_view kind, uint64_t seed) : state(seed) {
    for (const char letter : kind) state = state * 1099511628211u ^ uint8_t(letter);
  }

  uint64_t next() {
    uint64_t word = state += 0x9E3779B97F4A7C15u;
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9u;
    word = (word ^ word >> 27) * 0x94D049BB133111EBu;
    return word ^ word >> 31;
  }
  /// 0 to `count` - 1; 0 for a count of 0.
  size_t below(size_t count) { return count ? size_t(next() % count) : 0; }
  bool oneIn(size_t count) { return below(count) == 0; }

  template <typename List>
  auto &pick(List &list) {
    return list[below(list.size())];
  }

private:
  uint64_t state;
};

}  // namespace weft::fuzz
