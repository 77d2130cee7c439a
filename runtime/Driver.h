// The CUDA driver, opened at run time, as far as listing the GPUs needs it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weft::runtime {

struct Gpu {
  int index = 0;
  std::string name;          ///< "NVIDIA H200"
  std::string architecture;  ///< of compute capability 9.0: "sm_90"
  int multiprocessors = 0;
  int64_t memoryBytes = 0;
  int64_t l2Bytes = 0;
  int64_t sharedMemoryPerBlock = 0;  ///< bytes, the most a kernel may ask for
  bool operator==(const Gpu &) const = default;
};

struct DriverReport {
  std::string version;      ///< CUDA version that the driver supports, "13.0"; empty if there is no driver
  std::vector<Gpu> gpus;
  std::string problem;      ///< why there is no driver or no GPU; empty if there is one
};

/// Never throws: the absence of a driver or GPU is a report, not an error. Creates no context.
DriverReport inspectDriver();

}  // namespace weft::runtime
