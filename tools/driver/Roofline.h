// The least time that any plan of a graph could take on a device, whatever its fusions, layouts and
// kernels: no bound of selection, which knows what its kernels reach, but what the hardware does.
// No MLIR.
#pragma once

#include "kernel/Device.h"
#include "passes/configure/FilledCost.h"
#include "passes/select/Selection.h"

namespace weft::driver {

/// The larger of two times: arguments, parameters and results once over the device's copy
/// bandwidth; flop of the ops over what the device sustains, contractions on tensor cores where
/// there are some for their type, beside the rest on FMA units. Of a table that is only gathered
/// from, the rows that are taken; of contractions behind or before masks by position, the scores
/// that are seen. Of packed tokens, `tokens` of them at full length (0: none), what is expected:
/// arguments and ops by `fill`.
double rooflineSeconds(const select::Problem &problem, const Device &device,
                       const ExpectedFill &fill, int64_t tokens);

}  // namespace weft::driver
