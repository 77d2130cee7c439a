// SHA-256 as FIPS 180-4 section 6.2 states it.
#include "runtime/system/Sha256.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include <fmt/format.h>

namespace weft::runtime {

namespace {

// Section 4.2.2: the first 32 bits of the fractional parts of the cube roots of the first 64
// primes.
constexpr std::array<uint32_t, 64> roundConstants{
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

std::array<uint32_t, 64> messageSchedule(const uint8_t *block) {
  std::array<uint32_t, 64> words{};
  for (size_t i = 0; i < 16; ++i)
    words[i] = uint32_t(block[4 * i]) << 24 | uint32_t(block[4 * i + 1]) << 16 |
               uint32_t(block[4 * i + 2]) << 8 | uint32_t(block[4 * i + 3]);
  for (size_t i = 16; i < 64; ++i) {
    const uint32_t before15 = words[i - 15], before2 = words[i - 2];
    const uint32_t sigma0 = std::rotr(before15, 7) ^ std::rotr(before15, 18) ^ (before15 >> 3);
    const uint32_t sigma1 = std::rotr(before2, 17) ^ std::rotr(before2, 19) ^ (before2 >> 10);
    words[i] = words[i - 16] + sigma0 + words[i - 7] + sigma1;
  }
  return words;
}

}  // namespace

void Sha256::compress(const uint8_t *block) {
  const std::array<uint32_t, 64> words = messageSchedule(block);
  auto [a, b, c, d, e, f, g, h] = state;
  for (size_t i = 0; i < 64; ++i) {
    const uint32_t sum1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const uint32_t choose = (e & f) ^ (~e & g);
    const uint32_t first = h + sum1 + choose + roundConstants[i] + words[i];
    const uint32_t sum0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const uint32_t majority = (a & b) ^ (a & c) ^ (b & c);
    h = g, g = f, f = e, e = d + first;
    d = c, c = b, b = a, a = first + sum0 + majority;
  }
  const std::array<uint32_t, 8> mixed{a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < 8; ++i) state[i] += mixed[i];
}

Sha256 &Sha256::update(std::string_view bytes) {
  totalBytes += bytes.size();
  while (!bytes.empty()) {
    const size_t taken = std::min(pending.size() - pendingBytes, bytes.size());
    std::memcpy(pending.data() + pendingBytes, bytes.data(), taken);
    pendingBytes += taken;
    bytes.remove_prefix(taken);
    if (pendingBytes == pending.size()) {
      compress(pending.data());
      pendingBytes = 0;
    }
  }
  return *this;
}

Sha256 &Sha256::updateField(std::string_view bytes) {
  return update(fmt::format("{}:", bytes.size())).update(bytes);
}

std::string Sha256::finish() {
  const uint64_t bits = totalBytes * 8;
  std::string padding("\x80");
  padding.append((pending.size() + 55 - pendingBytes) % pending.size(), '\0');
  for (int shift = 56; shift >= 0; shift -= 8) padding.push_back(char(bits >> shift));
  update(padding);
  std::string digest;
  for (const uint32_t word : state) digest += fmt::format("{:08x}", word);
  return digest;
}

std::string sha256(std::string_view bytes) { return Sha256().update(bytes).finish(); }

}  // namespace weft::runtime
