// What tests of tensor-core contractions of sm_90a ask of a kernel: the configurations that it is
// offered, why it is offered none, their price.
#pragma once

#include "codegen/families/gemm_sm90/Sm90GemmKnobs.h"
#include "passes/configure/CostModel.h"
#include "passes/configure/Families.h"
#include "tests/unit/samples/SampleContractions.h"

#include <algorithm>
#include <string>
#include <vector>

namespace weft::samples {

inline const Device &h200() { return findDevice("h200"); }

inline std::vector<Configuration> ofFamily(const Kernel &kernel, const Device &device = h200()) {
  std::vector<Configuration> result;
  for (const Configuration &configuration : enumerate(kernel, device).legal)
    if (configuration.knobs.is<Sm90GemmKnobs>()) result.push_back(configuration);
  return result;
}

inline std::string exclusion(const Kernel &kernel, const Device &device = h200()) {
  for (const Exclusion &excluded : enumerate(kernel, device).excluded)
    if (excluded.family == "gemm-sm90") return excluded.reason;
  return "";
}

inline double microseconds(const Kernel &kernel, const Configuration &configuration) {
  return 1e6 * analyticCostModel(h200())->cost(kernel, configuration).seconds;
}

}  // namespace weft::samples
