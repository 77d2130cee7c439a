// The configuration of a kernel that is nearest to one of another kernel: of the same kernel at
// other extents, where its own knobs may not be legal. No MLIR.
#pragma once

#include "kernel/Configuration.h"
#include "kernel/Device.h"

#include <optional>

namespace weft::decision {

/// The nearest knobs under the same layouts, of the same family if it has any; nothing where no
/// family takes the kernel so.
std::optional<Configuration> nearestConfiguration(const Kernel &kernel, const Configuration &own,
                                                  const Device &device);

}  // namespace weft::decision
