// Pins: what --pin asks of a selection problem, and whether a plan does it. No MLIR.
//
// A pin says that a tensor is stored, and in which order of its axes: kernels that keep it inside
// are no candidates then, and a variant that lacks it has no plan. Invariant: a plan honours every
// pin, or it is rejected with the reason; none is ignored.
#pragma once

#include "passes/select/Selection.h"
#include "plan/NamedLayout.h"
#include "plan/Plan.h"

#include <string>
#include <vector>

namespace weft::decision {

/// A tensor and its layout: "q=phbj".
struct Pin {
  std::string tensor;
  NamedLayout layout = {};
};

/// The layout that a pin asks for. Throws Error(badInput) unless it names each axis once, and the
/// pitch, if it gives one, is that of padded rows.
Layout pinnedLayout(const Pin &pin, const select::Tensor &tensor);

/// Asks the problem for all pins whose tensors it has. A pin without a layout asks that the tensor
/// be stored, in any layout.
void applyPins(select::Problem &problem, const std::vector<Pin> &pins);

bool hasTensor(const select::Problem &problem, const std::string &name);

/// Why the problem can honour no pin of a tensor that it lacks: "it has no tensor 'q', which --pin
/// wants stored"; empty if it has all.
std::string lackedTensor(const select::Problem &problem, const std::vector<Pin> &pins);

/// For each pinned tensor that --fuse puts into one kernel with all its readers: which ops these
/// are; empty if there is none.
std::string fusedAway(const select::Problem &problem, const std::vector<Pin> &pins,
                      const std::set<std::pair<int, int>> &forced);

/// Throws Error(checkFailed) naming the pin that the plan does not honour: selection is broken
/// then.
void checkHonoured(const Plan &plan, const std::vector<Pin> &pins);

}  // namespace weft::decision
