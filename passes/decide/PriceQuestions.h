// What a decided plan could be instead, by the prices of its selection: other kernels for two ops,
// other layouts of a tensor, the next best paths. No MLIR.
#pragma once

#include "passes/decide/Decide.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace weft::decision {

/// The other way to have two ops that exchange a tensor.
struct FusedOtherwise {
  std::optional<select::SelectionResult> path;  ///< the best one; nothing where there is none
  double loss = 0;                              ///< seconds by which it is slower
  std::string whyNone = {};                     ///< where that is known of the two ops
};
/// The best path that has two ops apart which `chosen` has in one kernel (`isFused`), or in one
/// kernel which it has apart.
FusedOtherwise fusedOtherwise(const select::Selection &selection,
                              const select::SelectionResult &chosen, int a, int b, bool isFused);

/// Layouts of a tensor with the seconds that each loses, best first.
std::vector<std::pair<Layout, double>> layoutLosses(const select::Selection &selection, int tensor);

/// The best paths of the chosen variant, up to so many, best first.
std::vector<select::SelectionResult> bestPaths(const Decision &decision, int most);

}  // namespace weft::decision
