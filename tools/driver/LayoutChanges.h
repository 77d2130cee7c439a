// The change of one tensor's layout that matters most in a plan: which tensors to predict, by
// the phase that decides (passes/decide/LayoutPredictions.h).
#pragma once

#include "passes/decide/Decide.h"
#include "tools/driver/PlanFacts.h"

#include <nlohmann/json.hpp>

#include <optional>

namespace weft::driver {

/// The change of one tensor's layout that matters most, with what compiling so gives, in as many
/// chunks as the plan: of the few tensors that the selection graph calls costliest
/// (layoutQuestions()) the first whose best other layout is notable. Nothing if none is, or
/// where each prediction takes long: a search that reached its limits or nearly so, a limit of
/// memory (`explain --layout` answers of one tensor). `layouts`: of the decision's report.
std::optional<LayoutChange> costliestChange(const decision::Problem &problem,
                                            const decision::Options &options,
                                            const decision::Decision &decision,
                                            const nlohmann::json &layouts);

}  // namespace weft::driver
