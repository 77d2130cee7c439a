// What a plan of one attention alone takes: time, traffic of DRAM and of L2, workspace, the error
// that its roundings bound, and its fused kernel with other tiles. No MLIR.
//
// Invariant: figures are of the plan's own kernels, with the prices that decided it.
#pragma once

#include "kernel/DType.h"
#include "passes/configure/CostModel.h"
#include "passes/configure/FilledCost.h"
#include "passes/decide/SoftmaxAccount.h"
#include "plan/PlanBuilder.h"
#include "plan/PlanKnobs.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weft::decision {

/// A bound of the error of one element of the output against exact arithmetic on the same inputs,
/// over the greatest magnitude of the values: constant + perScore x the greatest magnitude of a
/// score. It counts the roundings of what crosses memory and of what tensor cores read, those of
/// tf32 as if all products of a score had its sign; those of sums in fp32 are left out.
struct RoundingBound {
  double constant = 0, perScore = 0;
};

/// The fused kernel with another tile, at the best of its other knobs.
struct PricedTile {
  int64_t queries = 0, keys = 0;  ///< of a tile
  PlanKnobs knobs = {};           ///< what is priced: all knobs, as a plan has them
  double seconds = 0;
  bool isMeasured = false;
  int64_t l2Bytes = 0;
};

struct KindFigures {
  double seconds = 0;       ///< of its kernels
  double graphSeconds = 0;  ///< as one graph; by which kinds are compared
  int64_t dramBytes = 0;    ///< what its kernels move, without what they find in L2
  int64_t l2Bytes = 0;      ///< what they request from L2, GEMMs by their tiles
  /// Of the fused kind: (d + dv) keys ceil(queries / tile rows) elements a head for keys and
  /// values, beside queries and output, as if masks excluded nothing; of others 0.
  int64_t l2Theory = 0;
  int64_t tileRows = 0;                ///< of the fused kind
  std::vector<PricedTile> tiles = {};  ///< of the fused kind, by queries and keys; measured ones
                                       ///< alone where there are any
  int64_t workspaceBytes = 0;
  RoundingBound error = {};
  SoftmaxAccount softmax = {};
  int chunks = 1, launches = 0, measured = 0;  ///< of the launches
  std::vector<std::string> kernels = {};       ///< what they compute
  /// Selection does not consider it: the prices are of the analytic model, and why.
  std::string notConsidered = {};
};

/// Of the plan of an attention alone. `prices`: those that it was decided by; `fill`: at which they
/// are, where the graph packs tokens.
KindFigures attentionFigures(const PlannedKernels &planned, const CostModel &prices,
                             const std::optional<ExpectedFill> &fill, const AttentionShape &shape);

}  // namespace weft::decision
