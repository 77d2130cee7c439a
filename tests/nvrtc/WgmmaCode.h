// Instructions of sm_90a in machine code: for tests of kernels that must not wait behind every
// WGMMA, or read before they wait for the kernel that writes.
#pragma once

#include <catch2/catch.hpp>

#include <cstdint>
#include <cstring>
#include <string>

namespace weft::nvrtctest {

/// Calls visit(lower, upper) with the halves of every instruction of an ELF's code, in order: 16
/// bytes an instruction, the operation in the lowest 12 bits.
template <typename Visit>
void forEachInstruction(const std::string &cubin, const Visit &visit) {
  const auto read = [&]<typename T>(size_t at, T) {
    T value;
    if (cubin.size() < sizeof value || at > cubin.size() - sizeof value)
      FAIL("a cubin of " << cubin.size() << " bytes ends early");
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
    for (size_t at = offset; at + 16 <= offset + bytes; at += 16)
      visit(read(at, uint64_t()), read(at + 8, uint64_t()));
  }
}
inline constexpr uint64_t operationMask = 0xFFF;

/// What of an ELF's code the tensor cores of sm_90a do.
struct WgmmaCode {
  int products = 0;  ///< HGMMA
  int starts = 0;    ///< WARPGROUP.ARRIVE
  int waits = 0;     ///< WARPGROUP.DEPBAR
};
inline WgmmaCode wgmmaCode(const std::string &cubin) {
  constexpr uint64_t hgmma = 0x9F0, hgmmaOfRegisters = 0xDF0, warpgroup = 0x9C5,
                     isWait = 1ull << 47;
  WgmmaCode code;
  forEachInstruction(cubin, [&](uint64_t word, uint64_t) {
    const uint64_t operation = word & operationMask;
    if (operation == hgmma || operation == hgmmaOfRegisters) ++code.products;
    if (operation == warpgroup) ++((word & isWait) ? code.waits : code.starts);
  });
  return code;
}

/// How code that may start early (griddepcontrol.wait) reads and writes device memory.
struct EarlyCode {
  int waits = 0;     ///< ACQBULK
  int accesses = 0;  ///< LDG, STG
  int tooEarly = 0;  ///< of them in front of the first wait
  /// LDG.CONSTANT, which the compiler may move anywhere: where it stands says nothing of the next
  /// kernel.
  int constants = 0;
};
inline EarlyCode earlyCode(const std::string &cubin) {
  constexpr uint64_t acquire = 0x82E, load = 0x981, store = 0x986;
  // Of loads: weak 0, CONSTANT 0x8000, STRONG (loads that asm orders) others.
  constexpr uint64_t orderMask = 0xE000, constant = 0x8000;
  EarlyCode code;
  forEachInstruction(cubin, [&](uint64_t word, uint64_t upper) {
    const uint64_t operation = word & operationMask;
    code.waits += operation == acquire;
    const bool isAccess = operation == load || operation == store;
    code.accesses += isAccess;
    code.tooEarly += isAccess && code.waits == 0;
    code.constants += operation == load && (upper & orderMask) == constant;
  });
  return code;
}

}  // namespace weft::nvrtctest
