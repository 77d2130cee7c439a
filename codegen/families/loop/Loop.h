// Loop kernels as kernel programs.
#pragma once

#include "codegen/Program.h"
#include "codegen/families/loop/LoopKnobs.h"

namespace weft::codegen {

/// Whether the kernel is one scatter_add, which has a separate lowering (LoopScatter.cpp).
bool isScatter(const Kernel &kernel);
Program lowerScatter(const Kernel &kernel, const Configuration &configuration,
                     const LoopKnobs &knobs);
Program lowerLoop(const Kernel &kernel, const Configuration &configuration, const LoopKnobs &knobs);

}  // namespace weft::codegen
