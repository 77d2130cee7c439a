// Margins of estimates: an estimate takes part in selection at its mean plus a margin, so that a
// kernel that nobody measured is chosen only where it is expected to win. A margin is the standard
// deviation of estimate / measurement over the configurations that the estimate chooses, of kernels
// whose workloads were left out of the fit (`weft-estimate-bench`, docs/experiments/estimates.md).
//
// Two of them multiply. Among estimates the common part of the uncertainty cancels, and only
// what a feature adds to it counts: the family's price has that. Beside measurements, the common
// part counts too: CostModel::modelled() of a profile has it.
#pragma once

#include "passes/configure/CostModel.h"

namespace weft::margins {

/// Of every estimate beside measurements: 0.050 of plain GEMMs, of element-wise epilogues and of
/// fused attention.
constexpr double besideMeasurements = 0.05;
/// What a feature adds. gemm-sm90: split-K 0.08 in all, dropout 0.07, reductions and prologues
/// 0.07, local softmax 0.10, one consumer (20 measurements); stream-K (an estimate).
constexpr double splitK = 0.03, dropout = 0.02, epilogueReduction = 0.02, prologue = 0.02,
                 localSoftmax = 0.05, singleConsumer = 0.04, streamK = 0.05;
/// Queries that a fused attention turns (an estimate): no measurement has them yet.
constexpr double turnedQueries = 0.02;
/// cuBLASLt: the heuristic's first candidate is not the one that was measured, 0.06; with an
/// epilogue 0.10.
constexpr double library = 0.01, libraryEpilogue = 0.05;
/// Fused attention under layouts that were not measured, by a measurement of the same knobs under
/// others: how far the 368 forward and 48 backward measurements that ship lie from what they say of
/// each other. Of the families of mma.sync nothing is measured: the common part.
constexpr double attentionLayouts = 0.004, attentionBackwardLayouts = 0.016;
/// The cost with a margin on top of the one that it has.
inline Cost added(Cost cost, double margin) {
  cost.seconds *= 1 + margin;
  cost.margin = (1 + cost.margin) * (1 + margin) - 1;
  return cost;
}

}  // namespace weft::margins
