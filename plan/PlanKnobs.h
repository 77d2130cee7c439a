// A kernel's schedule as a plan holds it. A plan knows no axes of kernels: those that the schedule
// names stand beside it, by name, and plan.json has no others. JSON is made and read here alone.
#pragma once

#include "kernel/Kernel.h"
#include "kernel/Knobs.h"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace weft {

struct PlanKnobs {
  Knobs knobs = {};  ///< of no family where the plan says none; fields of Kind::axis index `axes`
  std::vector<std::string> axes = {};  ///< each once, in the order of the fields that name them
  bool operator==(const PlanKnobs &) const = default;
};

/// A kernel's knobs for its plan.
PlanKnobs planKnobs(const Knobs &knobs, const Kernel &kernel);
/// The knobs that a plan has for a kernel. Throws Error(badInput) naming `where` and the knob for
/// an axis that the kernel does not have, and where the plan says none.
Knobs knobsOf(const PlanKnobs &own, const Kernel &kernel, const std::string &where);

/// {"family": "loop", "vectorAxis": "i", "vectorWidth": 8, ...}; null where there are none.
nlohmann::json toJson(const PlanKnobs &own);
/// Throws Error(badInput) naming `where`, the member and what it must be; unknown members are
/// rejected.
PlanKnobs planKnobsFromJson(const nlohmann::json &json, const std::string &where);

}  // namespace weft
