// What a cubin says of one of its kernels: whether a launch finds it, what it takes and how large a
// block may be.
//
// A cubin is an ELF file. Its symbols name the kernels, and the section .nv.info.NAME holds
// attributes of each, as cuobjdump -elf prints them. What is no ELF file (PTX, which the driver
// compiles) says nothing here.
#pragma once

#include "runtime/artifact/Artifact.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft::runtime {

struct CubinEntry {
  bool isGlobal = false;
  std::vector<int64_t> parameterBytes = {};  ///< by position; a cubin may give their sum alone
  int64_t allParameterBytes = 0;
  std::optional<int64_t> mostThreads = {};  ///< of a block, as __launch_bounds__ has it
  int64_t registers = 0;                    ///< a thread; 0: not said
};

bool isElf(std::string_view bytes);
/// The kernel of that name in an ELF file; nothing if there is none. Throws Error(badInput) for an
/// ELF file that is damaged.
std::optional<CubinEntry> entryOf(std::string_view cubin, const std::string &name);
/// Why the plan cannot launch its kernel from this cubin: "has no kernel 'f'; it has 'g'". Empty:
/// it can, or the bytes are no ELF.
std::string launchRejection(const PlanKernel &kernel, std::string_view cubin);

}  // namespace weft::runtime
