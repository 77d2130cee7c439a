// What the tensor cores of sm_90a do in machine code: for tests of kernels that must not wait
// behind every WGMMA.
#pragma once

#include <catch2/catch.hpp>

#include <cstdint>
#include <cstring>
#include <string>

namespace weft::nvrtctest {

/// What of an ELF's code the tensor cores of sm_90a do: 16 bytes an instruction, the operation in
/// the lowest 12 bits.
struct WgmmaCode {
  int products = 0;  ///< HGMMA
  int starts = 0;    ///< WARPGROUP.ARRIVE
  int waits = 0;     ///< WARPGROUP.DEPBAR
};
inline WgmmaCode wgmmaCode(const std::string &cubin) {
  constexpr uint64_t operation = 0xFFF, hgmma = 0x9F0, hgmmaOfRegisters = 0xDF0, warpgroup = 0x9C5,
                     isWait = 1ull << 47;
  WgmmaCode code;
  const auto holds = [&](size_t at, size_t bytes) {
    return at <= cubin.size() && bytes <= cubin.size() - at;
  };
  const auto read = [&]<typename T>(size_t at, T) {
    T value;
    if (!holds(at, sizeof value)) FAIL("a cubin of " << cubin.size() << " bytes ends early");
    std::memcpy(&value, cubin.data() + at, sizeof value);
    return value;
  };
  const auto sections = size_t(read(40, uint64_t())), size = size_t(read(58, uint16_t())),
             count = size_t(read(60, uint16_t()));
  for (size_t section = 0; section < count; ++section) {
    const size_t header = sections + section * size;
    constexpr uint64_t executable = 4;
    if (!(read(header + 8, uint64_t()) & executable)) continue;
    const auto offset = size_t(read(header + 24, uint64_t())),
               bytes = size_t(read(header + 32, uint64_t()));
    for (size_t at = offset; at + 16 <= offset + bytes; at += 16) {
      const auto word = read(at, uint64_t());
      if ((word & operation) == hgmma || (word & operation) == hgmmaOfRegisters) ++code.products;
      if ((word & operation) == warpgroup) ++((word & isWait) ? code.waits : code.starts);
    }
  }
  return code;
}

}  // namespace weft::nvrtctest
