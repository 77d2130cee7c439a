// One lowering a kernel family: kernel and configuration to kernel program. The kernel comes with the names to be used.
#pragma once

#include "codegen/Program.h"

namespace weft::codegen {

Program lowerLoop(const Kernel &kernel, const Configuration &configuration, const LoopKnobs &knobs);
Program lowerTranspose(const Kernel &kernel, const Configuration &configuration, const TransposeKnobs &knobs);
Program lowerContraction(const Kernel &kernel, const Configuration &configuration, const ContractionKnobs &knobs);

}  // namespace weft::codegen
