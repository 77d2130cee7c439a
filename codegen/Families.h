// One lowering a kernel family: kernel and configuration to kernel program. The kernel comes with
// the names to be used.
#pragma once

#include "codegen/Program.h"

namespace weft::codegen {

/// Whether the kernel is one scatter_add, which has a separate lowering (LoopScatter.cpp).
bool isScatter(const Kernel &kernel);
Program lowerScatter(const Kernel &kernel, const Configuration &configuration,
                     const LoopKnobs &knobs);
Program lowerLoop(const Kernel &kernel, const Configuration &configuration, const LoopKnobs &knobs);
Program lowerTranspose(const Kernel &kernel, const Configuration &configuration,
                       const TransposeKnobs &knobs);
Program lowerFmaGemm(const Kernel &kernel, const Configuration &configuration,
                     const FmaGemmKnobs &knobs);
Program lowerSm80Gemm(const Kernel &kernel, const Configuration &configuration,
                      const Sm80GemmKnobs &knobs);
Program lowerSm90Gemm(const Kernel &kernel, const Configuration &configuration,
                      const Sm90GemmKnobs &knobs);

}  // namespace weft::codegen
