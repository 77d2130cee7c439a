// What the plan of padded sequences would take at the lengths for which a packed one was chosen:
// packing pays for what it saves, and where lengths leave little padding it may not.
#pragma once

#include "tools/driver/Compilation.h"

#include <nlohmann/json.hpp>

namespace weft::driver {

/// Of a compilation that packed sequences (--ragged) at expected lengths (--lengths): the model
/// imported again without packing, decided by the same flags and priced at the same fills, at which
/// a fused attention skips keys that are padding. Members: graphSeconds, or `why` there is no such
/// plan. Null for any other compilation.
nlohmann::json paddedPlan(const Compilation &packed, Phase first);

}  // namespace weft::driver
