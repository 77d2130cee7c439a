// The plan that `--pin T=LAYOUT` would give, for every layout of a tensor: decided as `weft
// compile` does, with variants, chunks and the memory limit, not read off the selection graph of
// one variant.
#pragma once

#include "passes/decide/Decide.h"

#include <string>
#include <vector>

namespace weft::decision {

struct LayoutPrediction {
  std::string layout;  ///< "hbjk", as --pin takes it
  std::string variant;
  int chunks = 1;           ///< in which the largest temporary is computed
  double seconds = 0;       ///< Plan::predictedSeconds
  double graphSeconds = 0;  ///< of the whole plan as one graph, by which layouts are compared
  int64_t workspaceBytes = 0;
  std::string rejection = {};  ///< why no plan has it; empty where one has
};

/// With a tensor in this layout in place of what the options pin it to.
LayoutPrediction predictLayout(const Problem &problem, const Options &options,
                               const std::string &tensor, const NamedLayout &layout);

/// First those in as many chunks as the plan, because what others save or cost is not by layout
/// alone; in each group the fastest graph first; rejected ones last. Layouts are those that the
/// best plan which stores the tensor was chosen from, and `own`, in which it lies now. The error
/// says why no plan stores the tensor.
Expected<std::vector<LayoutPrediction>> predictLayouts(const Problem &problem,
                                                       const Options &options, const Plan &plan,
                                                       const std::string &tensor,
                                                       const std::optional<NamedLayout> &own);

/// Whether a prediction is the plan itself: one variant, as many chunks, one time and workspace.
bool isPlan(const LayoutPrediction &prediction, const Plan &plan);

/// The layouts of a tensor other than `layout`, nearest to the plan first: in its variant and in as
/// many chunks, as one graph; none where that would take long. They are selected together, so that
/// every kernel is priced once.
/// The layouts that the solved selection graph has prices of are few: states that lead to slow
/// plans are cut.
std::vector<NamedLayout> nearestLayouts(const Problem &problem, const Options &options,
                                        const Decision &decision, const std::string &tensor,
                                        const NamedLayout &layout);

}  // namespace weft::decision
