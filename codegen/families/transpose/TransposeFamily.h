// The configurations of transposes, and their price.
#pragma once

#include "codegen/families/transpose/TransposeKnobs.h"

namespace weft {

Expected<ConfigurationSpace, Reason> transposeSpace(const Kernel &kernel, const Device &device);
/// Both sides move whole rows of a tile; one shorter than a sector wastes the rest of it.
Cost transposeCost(const Kernel &kernel, const Configuration &configuration, const Device &device);

}  // namespace weft
