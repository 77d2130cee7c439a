// Profiles whose text was accepted before, as that of those that ship: half of the time in which a
// small model compiles goes into their checks.
#pragma once

#include "kernel/Profile.h"

namespace weft {

/// parseProfile() without checkMeasurement(), of a text that parseProfile() accepts.
Profile parseTestedProfile(std::string_view text, const std::string &where);

/// mergeProfile() without a copy.
void moveIntoProfile(Profile &profile, Profile other);

}  // namespace weft
