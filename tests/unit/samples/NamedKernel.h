// A kernel of a list, with what tells it from the others.
#pragma once

#include "kernel/Kernel.h"

#include <string>

namespace weft::samples {

struct NamedKernel {
  std::string name;
  Kernel kernel;
};

}  // namespace weft::samples
