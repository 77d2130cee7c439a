// Between a plan and configurations: layouts are the tensors' orders, knobs the kernels'
// (plan/PlanKnobs.h). A layout stands once, on the plan's tensor; knobs stand once, on the plan's
// kernel. Editing either and `weft emit` is the override path.
#pragma once

#include "kernel/Configuration.h"
#include "plan/Plan.h"

namespace weft {

/// The layout that a plan's tensor has.
Layout layoutOf(const PlanTensor &tensor);
/// The configuration that a plan asks for a kernel.
Configuration configurationOf(const Plan &plan, const PlanKernel &planKernel, const Kernel &kernel);

}  // namespace weft
