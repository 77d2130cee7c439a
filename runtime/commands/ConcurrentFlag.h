// The flag --concurrent of the commands that run plans.
#pragma once

#include "plan/Plan.h"

#include <string>

namespace weft::runtime {

/// "on" or "off", or empty for what the plan says. Throws Error(badInput) for anything else.
void setConcurrent(Plan &plan, const std::string &choice);

}  // namespace weft::runtime
