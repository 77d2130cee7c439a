// SHA-256 (FIPS 180-4), streaming. Own code because the portable binary links no crypto library;
// the test vectors of the standard are in tests/unit/runtime/sha256_test.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace weft::runtime {

class Sha256 {
public:
  Sha256 &update(std::string_view bytes);
  /// Adds the length first, so that a sequence of fields has one reading: ("ab", "c") differs from
  /// ("a", "bc").
  Sha256 &updateField(std::string_view bytes);
  /// 64 lower-case hexadecimal digits. The object is spent afterwards.
  std::string finish();

private:
  void compress(const uint8_t *block);

  std::array<uint32_t, 8> state{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<uint8_t, 64> pending{};
  size_t pendingBytes = 0;
  uint64_t totalBytes = 0;
};

/// Digest of one string.
std::string sha256(std::string_view bytes);

}  // namespace weft::runtime
