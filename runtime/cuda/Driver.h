// What the CUDA driver says about itself and its GPUs, for listings. Implemented in CudaDriver.cpp,
// beside the driver's functions.
#pragma once

#include "runtime/cuda/Cuda.h"

namespace weft::runtime {

struct DriverReport {
  std::string
      version;  ///< CUDA version that the driver supports, "13.0"; empty if there is no driver
  std::vector<cuda::GpuProperties> gpus;
  std::string problem;  ///< why there is no driver or no GPU; empty if there is one
};

/// Never throws: the absence of a driver or GPU is a report, not an error. Creates no context.
DriverReport inspectDriver();

}  // namespace weft::runtime
