// A transpose as a kernel program.
#pragma once

#include "codegen/Program.h"
#include "codegen/families/transpose/TransposeKnobs.h"

namespace weft::codegen {

Program lowerTranspose(const Kernel &kernel, const Configuration &configuration,
                       const TransposeKnobs &knobs);

}  // namespace weft::codegen
