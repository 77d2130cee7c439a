// Machine code as text, by a disassembler of the CUDA toolkit where one is found.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace weft::runtime {

/// nvdisasm or cuobjdump, and where they were looked for.
struct DisassemblerLocation {
  std::filesystem::path program;  ///< empty: none
  std::vector<std::string> searched;
};
/// $CUDA_HOME/bin, /usr/local/cuda/bin, PATH; nvdisasm before cuobjdump.
DisassemblerLocation findDisassembler();

/// SASS of a cubin. Throws Error(checkFailed) with the program's exit status if it fails.
std::string disassemble(const std::filesystem::path &program, std::string_view cubin);

}  // namespace weft::runtime
