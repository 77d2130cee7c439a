// Kernels whose emitted text is recorded, in golden/NAME.cu of their family's folder. A family
// lists its goldens in its tests/goldens.cpp and registers them there:
//
//   const GoldenRegistration registered("codegen/families/loop", goldens);
#pragma once

#include "kernel/Configuration.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace weft {

struct Golden {
  std::string name;  ///< "concat_f32"
  Kernel kernel;
  Configuration configuration;
};

using Goldens = std::function<std::vector<Golden>()>;
/// By the family's folder, from the root of the repository.
using GoldensByFamily = std::multimap<std::string, Goldens>;

/// Those of all families that are linked.
GoldensByFamily &goldensOfFamilies();

struct GoldenRegistration {
  GoldenRegistration(const std::string &family, const Goldens &goldens);
};

}  // namespace weft
