// What NVRTC's log says beyond its words: registers, spills, shared memory, and warnings that mean
// a broken kernel.
#pragma once

#include <string>
#include <string_view>

namespace weft::runtime {

struct CompilerReport {
  int registers = -1;          ///< a thread, of the entry function
  int spillBytes = -1;         ///< stored plus loaded, a thread, over all functions
  int staticSharedBytes = -1;  ///< a block, of the entry function
  bool operator==(const CompilerReport &) const = default;
};

/// Reads the lines that ptxas prints for --ptxas-options=-v. What the log does not say stays -1.
CompilerReport reportFrom(std::string_view log, std::string_view entry);

/// The first line that says that ptxas serialized WGMMAs: the kernel is right, and slower than what
/// was asked for. Empty if there is none.
std::string serialization(std::string_view log);

/// The first line with another code C75xx than C7519 and serialization's: ptxas ignored a register
/// request, so that the kernel may hang. Empty if there is none.
std::string fatalWarning(std::string_view log);

/// The log without the line that differs from run to run ("Compile time = ...").
std::string reproducible(std::string_view log);

}  // namespace weft::runtime
