// The configuration of a kernel that is nearest to one of another kernel: of the same kernel at
// other extents, where its own knobs may not be legal. No MLIR.
//
// Invariant: layouts stay; only knobs change.
#pragma once

#include "kernel/Configuration.h"
#include "kernel/Device.h"
#include "plan/PlanBuilder.h"

#include <cstddef>
#include <optional>
#include <string>

namespace weft::decision {

/// The nearest knobs under the same layouts, of the same family if it has any; nothing where no
/// family takes the kernel so.
std::optional<Configuration> nearestConfiguration(const Kernel &kernel, const Configuration &own,
                                                  const Device &device);

/// Why a family does not take these knobs, of the families that know; empty where the knobs are
/// none of those that the family offers.
std::string knobsRejection(const Kernel &kernel, const Configuration &configuration,
                           const Device &device);

/// A kernel of a plan at other extents that cannot have its own knobs there: what it has instead,
/// the nearest of its family, and why.
struct OtherKnobs {
  std::string kernel, own, used, reason;
};
/// Configures a kernel of a plan that stands at other extents than it was decided at: as the plan
/// says, where that is legal and for views, else with the nearest knobs, which the plan then says.
/// `extents`: how messages call them. Throws Error(unsupported) naming the kernel where no family
/// takes it in its layouts.
std::optional<OtherKnobs> configureAgain(PlannedKernels &planned, size_t index,
                                         const Device &device, const std::string &extents);

}  // namespace weft::decision
