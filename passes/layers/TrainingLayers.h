// A differentiated graph of several layers, cut into parts that hold the forward and the backward
// ops of a layer: what Layers.h does of a forward graph. The backward pass runs through the layers
// from the last to the first, so a cut is two places: one between forward ops, one between backward
// ops.
//
// Invariant: every op is in one part, with the forward op that it is a derivative of, but for what
// lies between a cut's place and the border of the layers.
#pragma once

#include "passes/Rewrites.h"
#include "passes/layers/Layers.h"

#include <cstddef>
#include <vector>

namespace weft {

/// The ops of a differentiated graph by number (numberedOps), and the forward op of each.
class PassOrder {
public:
  PassOrder(GraphOp graph, const GradientOrigins &origins);

  const std::vector<mlir::Operation *> &ops() const { return numbered; }
  size_t forwardOps() const { return forward; }
  /// Where the derivatives of forward ops before this one begin: an op's number.
  size_t backwardBorder(size_t forwardOp) const;
  /// Behind the last derivative: sums of gradients of arguments and updates follow.
  size_t backwardEnd() const { return end; }

private:
  std::vector<mlir::Operation *> numbered;
  std::vector<size_t> originOf;  ///< by number; that of an op before where an op has none
  size_t forward = 0, end = 0;
};

/// A place between forward ops and one between backward ops, as the ops' numbers: forward ops in
/// front of the first and backward ops from the second on are of the parts before the cut.
struct TrainingCut {
  size_t forward = 0, backward = 0;
};

/// By op the part that it is of. `cuts`: ascending in their forward places. Sums of gradients of
/// arguments and updates go with what they read of the backward pass; where several parts compute
/// that, with the one that does so last; an update that reads arguments alone goes with its
/// readers.
std::vector<size_t> partsOfOps(const PassOrder &order, const std::vector<TrainingCut> &cuts);

/// Parts in the order of the forward pass; those without ops are left out.
std::vector<LayerPart> cutTraining(GraphOp graph, const PassOrder &order,
                                   const std::vector<TrainingCut> &cuts);

}  // namespace weft
