// What compiling with `--pin T=LAYOUT` would give, for every layout of a tensor: decided as compile
// decides it, with variants, chunks and the limit of memory, not read off the selection graph of
// one variant.
#pragma once

#include "tools/driver/Compilation.h"
#include "tools/driver/PlanFacts.h"

#include <optional>
#include <string>
#include <vector>

namespace weft::driver {

struct LayoutPrediction {
  std::string layout;  ///< "hbjk", as --pin takes it
  std::string variant;
  int chunks = 1;           ///< in which the largest temporary is computed
  double seconds = 0;       ///< Plan::predictedSeconds
  double graphSeconds = 0;  ///< of the whole plan as one graph, by which layouts are compared
  int64_t workspaceBytes = 0;
  std::string rejection = {};  ///< why no plan has it; empty where one has
};

/// First those in as many chunks as the plan, because what others save or cost is not by layout
/// alone; in each group the fastest graph first; rejected ones last. Layouts are those that the
/// best plan which stores the tensor was chosen from, and `own`, in which it lies now. Throws as
/// Compilation::decide() where no plan stores the tensor. `proposed`: of the compilation.
std::vector<LayoutPrediction> predictLayouts(const Compilation &compilation,
                                             const std::vector<ProposedVariant> &proposed,
                                             const Plan &plan, const std::string &tensor,
                                             const std::vector<std::string> &own);

/// Whether a prediction is the plan itself: one variant, as many chunks, one time and workspace.
bool isPlan(const LayoutPrediction &prediction, const Plan &plan);

/// The change of one tensor's layout that matters most, with what compiling so gives, in as many
/// chunks as the plan: of the few tensors that the selection graph calls dearest
/// (layoutQuestions()) the first whose best other layout is notable. Nothing if none is, or
/// where each prediction takes long: a search that reached its limits or nearly so, a limit of
/// memory (`explain --layout` answers of one tensor).
/// `selected`: of the compilation; `plan`: the chosen one; `layouts`: of its report.
std::optional<LayoutChange> costliestChange(const Compilation &compilation,
                                            const std::vector<ProposedVariant> &proposed,
                                            const Selected &selected, const Plan &plan,
                                            const nlohmann::json &layouts);

}  // namespace weft::driver
