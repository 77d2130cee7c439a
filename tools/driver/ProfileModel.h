// Which prices a command works with: measured where there are measurements for the device, else
// modelled.
#pragma once

#include "passes/configure/CostModel.h"
#include "tools/driver/Flags.h"

#include <memory>

namespace weft::driver {

/// --profile FILE: a text or a store; "none": the analytic model; not given: the profiles that ship
/// with weft for the device, if the target is its own architecture, else the analytic model. Throws
/// Error(badInput) as readProfile() does, and Error(strictMiss) with --strict where the model would
/// stand in for a profile that does not ship. Of what ships the last model is kept: a command that
/// compiles several graphs reads its measurements once.
std::shared_ptr<CostModel> costModelOf(const TargetFlags &target);

/// Names everything that the prices depend on: the profile's bytes, the device's file, and this
/// program.
std::string keyOfPrices(const TargetFlags &target, const CostModel &prices);

/// The same without the program: equal for equal measurements, in any build.
std::string sourceOfPrices(const TargetFlags &target, const CostModel &prices);

/// The measurements that ship for a device; empty if there are none.
Profile shippedProfile(const std::string &device);

}  // namespace weft::driver
