// Which kernels of a plan start early (PlanKernel::startsEarly): a rule over the predicted times of the whole plan.
#pragma once

#include "plan/Plan.h"

namespace weft {

enum class EarlyStarts : uint8_t { none, shortPlans, all };

/// Says of each kernel whether its text is to start early; emission obeys. None of a plan whose
/// launches are concurrent: a kernel starts early behind one other, not behind several.
void chooseEarlyStarts(Plan &plan, EarlyStarts which);

}  // namespace weft
