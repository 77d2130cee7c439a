// A contraction on the tensor cores of sm_90a as a kernel program.
#pragma once

#include "codegen/Program.h"
#include "codegen/families/gemm_sm90/Sm90GemmKnobs.h"

namespace weft::codegen {

Program lowerSm90Gemm(const Kernel &kernel, const Configuration &configuration,
                      const Sm90GemmKnobs &knobs);

}  // namespace weft::codegen
