// The least time that any plan of a graph could take on a device, whatever its fusions, layouts and
// kernels: no bound of selection, which knows what its kernels reach, but what the hardware does.
// No MLIR.
#pragma once

#include "kernel/Device.h"
#include "passes/configure/FilledCost.h"
#include "passes/select/Selection.h"

#include <cstdint>
#include <string>
#include <vector>

namespace weft::decision {

/// What it takes to move bytes once at the device's copy bandwidth.
double copySeconds(int64_t bytes, const Device &device);

/// Which ops and arguments are smaller at fewer tokens than the longest sequences have.
struct TokensOfGraph {
  int64_t packed = 0;  ///< at full length; 0: none are packed
  /// Of a graph with padding masks and without packed tokens, the axes of the scores of each: ops
  /// over all of these may leave out what is hidden, all others compute it.
  std::vector<std::vector<std::string>> scores = {};
};

/// The larger of two times: arguments, parameters and results once over the device's copy
/// bandwidth; flop of the ops over what the device sustains, contractions on tensor cores where
/// there are some for their type, beside the rest on FMA units. Of a table that is only gathered
/// from, the rows that are taken; of contractions behind or before masks by position, the scores
/// that are seen. Of what `tokens` names, what is expected: arguments and ops by `fill`.
double rooflineSeconds(const select::Problem &problem, const Device &device,
                       const ExpectedFill &fill, const TokensOfGraph &tokens);

}  // namespace weft::decision
