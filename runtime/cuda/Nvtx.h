// NVTX ranges named like kernels, for Nsight Systems and Nsight Compute (--nvtx). The protocol by
// which a profiler injects itself into a process, by our own declarations: no header and no library
// of NVIDIA is needed. Without a profiler a range does nothing.
#pragma once

#include <string>

namespace weft::runtime::nvtx {

/// Whether a profiler has injected itself (NVTX_INJECTION64_PATH names its library).
bool isActive();

/// A range on this thread, from construction to destruction.
class Range {
public:
  explicit Range(const std::string &name);
  ~Range();
  Range(const Range &) = delete;
  Range &operator=(const Range &) = delete;
};

}  // namespace weft::runtime::nvtx
