// The draw of each element is computed by itself: slow, and with no assumption about who computes
// its neighbours.
#include "kernel/reference/DropoutBits.h"

#include <cmath>

namespace weft::reference {
namespace {

constexpr uint32_t multiplier0 = 0xD2511F53, multiplier1 = 0xCD9E8D57;
constexpr uint32_t weyl0 = 0x9E3779B9, weyl1 = 0xBB67AE85;
constexpr int rounds = 7;

uint32_t high(uint64_t product) { return uint32_t(product >> 32); }

}  // namespace

std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < rounds; ++round) {
    const uint64_t first = uint64_t(multiplier0) * counter[0],
                   second = uint64_t(multiplier1) * counter[2];
    counter = {high(second) ^ counter[1] ^ key[0], uint32_t(second),
               high(first) ^ counter[3] ^ key[1], uint32_t(first)};
    key = {key[0] + weyl0, key[1] + weyl1};
  }
  return counter;
}

std::array<uint32_t, 4> mixed(std::array<uint32_t, 4> words) {
  auto &[x, y, z, w] = words;
  for (int round = 0; round < 2; ++round) {
    x += y * w;
    y += z * x;
    z += x * y;
    w += y * z;
    for (uint32_t &word : words) word ^= word >> 16;
  }
  return words;
}

uint32_t dropoutDraw(const DropoutSource &source, int64_t outer, int64_t row, int64_t column) {
  const int64_t r = row % 16, c = column % 16;
  const uint32_t lane = uint32_t((r % 8) * 4 + (c % 8) / 2),
                 draw = uint32_t(c % 2 + 2 * (r / 8) + 4 * (c / 8));
  const std::array<uint32_t, 2> key = {
      uint32_t(source.seed), uint32_t(source.seed >> 32) ^ (uint32_t(source.step) * weyl0)};
  const std::array<uint32_t, 4> common = philox({0, 0, 0, source.stream}, key);
  const std::array<uint32_t, 4> words = mixed(
      {common[0] + (lane + 32 * uint32_t(column / 16)) * weyl0,
       common[1] + uint32_t(row / 16) * weyl0, common[2] + uint32_t(outer) * weyl0, common[3]});
  return words[draw / 2] >> (16 * (draw % 2)) & 0xFFFF;
}

uint32_t dropoutThreshold(double p) { return uint32_t(std::lround(p * 65536)); }

}  // namespace weft::reference
