// Between a plan and configurations: layouts are the tensors' orders, knobs the kernels'
// (plan/PlanKnobs.h). A layout stands once, on the plan's tensor; knobs stand once, on the plan's
// kernel. Editing either and `weft emit` is the override path.
#pragma once

#include "kernel/Configuration.h"
#include "kernel/Device.h"
#include "plan/Plan.h"

namespace weft {

/// The layout that a plan's tensor has.
Layout layoutOf(const PlanTensor &tensor);
/// The configuration that a plan asks for a kernel.
Configuration configurationOf(const Plan &plan, const PlanKernel &planKernel, const Kernel &kernel);

/// Whether the family of a configuration has it for a kernel.
bool isLegal(const Kernel &kernel, const Configuration &configuration, const Device &device);
/// The same, and, if not, knobs of any family that are legal in its layouts.
struct Legality {
  bool isLegal = false;
  std::vector<std::string> others;
};
Legality legality(const Kernel &kernel, const Configuration &configuration, const Device &device);

}  // namespace weft
