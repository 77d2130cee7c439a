// A contraction on tensor cores from sm_80 on as a kernel program.
#pragma once

#include "codegen/Program.h"
#include "codegen/families/gemm_sm80/Sm80GemmKnobs.h"

namespace weft::codegen {

Program lowerSm80Gemm(const Kernel &kernel, const Configuration &configuration,
                      const Sm80GemmKnobs &knobs);

}  // namespace weft::codegen
