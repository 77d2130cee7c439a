// Plain contractions: configurations, price and lowering.
#pragma once

#include "codegen/Program.h"
#include "codegen/families/gemm_fma/FmaGemmKnobs.h"

namespace weft {

Expected<ConfigurationSpace, Reason> fmaGemmSpace(const Kernel &kernel, const Device &device);
Cost fmaGemmCost(const Kernel &kernel, const Configuration &configuration, const Device &device);

namespace codegen {
Program lowerFmaGemm(const Kernel &kernel, const Configuration &configuration,
                     const FmaGemmKnobs &knobs);
}

}  // namespace weft
