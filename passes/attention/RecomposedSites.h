// Which ops of a graph share a kernel where a decomposed softmax is recomposed ("Recomposing
// Softmax Layers", section 3.3).
//
// Invariant: recognised by structure alone; numbers are those of FlowOp::number.
#pragma once

#include "passes/fuse/Dataflow.h"

#include <string>
#include <utility>
#include <vector>

namespace weft {

/// A decomposed softmax between two contractions of one entry point.
struct RecomposedSite {
  int first = -1;    ///< the contraction whose epilogue the local softmax can end
  int local = -1;    ///< local softmax (LS)
  int scaling = -1;  ///< global scaling (GS) of its exponentials, dropped or not
  int second = -1;   ///< the contraction whose prologue that can be, unless a dropout is between
  std::string name;  ///< of the tensor that `second` reads
  /// Ops that share a kernel: the two ends of each.
  std::vector<std::pair<int, int>> pairs() const;
};

/// In the order of the graph. Local softmaxes of scores that no contraction computes, and those
/// whose exponentials no contraction reads through a scaling, have none.
std::vector<RecomposedSite> recomposedSites(const Dataflow &flow);

}  // namespace weft
