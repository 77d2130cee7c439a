// The configurations of tensor-core contractions from sm_80 on.
#pragma once

#include "codegen/families/gemm_sm80/Sm80GemmKnobs.h"

namespace weft {

Expected<ConfigurationSpace, Reason> sm80GemmSpace(const Kernel &kernel, const Device &device);
/// Family::rejection.
std::string sm80Rejection(const Kernel &kernel, const Configuration &configuration,
                          const Device &device);

}  // namespace weft
