// One lowering a kernel family: kernel and configuration to kernel program. The kernel comes with
// the names to be used.
#pragma once

#include "codegen/Program.h"

namespace weft::codegen {

/// Whether the kernel is one scatter_add, which has a lowering of its own (LoopScatter.cpp).
bool isScatter(const Kernel &kernel);
Program lowerScatter(const Kernel &kernel, const Configuration &configuration,
                     const LoopKnobs &knobs);
Program lowerLoop(const Kernel &kernel, const Configuration &configuration, const LoopKnobs &knobs);
Program lowerTranspose(const Kernel &kernel, const Configuration &configuration,
                       const TransposeKnobs &knobs);
Program lowerContraction(const Kernel &kernel, const Configuration &configuration,
                         const ContractionKnobs &knobs);
Program lowerAmpereContraction(const Kernel &kernel, const Configuration &configuration,
                               const AmpereContractionKnobs &knobs);
Program lowerHopperContraction(const Kernel &kernel, const Configuration &configuration,
                               const HopperContractionKnobs &knobs);

}  // namespace weft::codegen
