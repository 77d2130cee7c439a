// Margins of estimates: an estimate takes part in selection at its mean plus a margin, so that a
// kernel that nobody measured is chosen only where it is expected to win. A margin is the standard
// deviation of estimate / measurement over the configurations that the estimate chooses, of kernels
// whose workloads were left out of the fit (`weft-estimate-bench`, docs/experiments/estimates.md).
//
// Two of them multiply. Among estimates the common part of the uncertainty cancels, and only
// what a feature adds to it counts: the family's price has that, and its folder the constants.
// Beside measurements, the common part counts too: CostModel::modelled() of a profile has it.
#pragma once

#include "passes/configure/CostModel.h"

namespace weft::margins {

/// Of every estimate beside measurements: 0.050 of plain GEMMs, of element-wise epilogues and of
/// fused attention.
constexpr double besideMeasurements = 0.05;
/// The cost with a margin on top of the one that it has.
inline Cost added(Cost cost, double margin) {
  cost.seconds *= 1 + margin;
  cost.margin = (1 + cost.margin) * (1 + margin) - 1;
  return cost;
}

}  // namespace weft::margins
