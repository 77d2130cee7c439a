// Hugging Face config.json to a layer specification. `model_type` decides the family; keys that change the mathematics
// are honoured or refused, never skipped.
#pragma once

#include "models/LayerSpecification.h"

#include <string>
#include <string_view>
#include <vector>

namespace weft::models {

struct ConfigDescription {
  LayerSpecification specification;
  std::vector<std::string> ignoredKeys;  ///< present but without influence; " (unknown)" follows unrecognized ones
};

/// `where` names the file in errors, and the layer unless the file is called config.json. Throws Error(badInput) for
/// malformed, incomplete or contradictory text, Error(unsupported) for mathematics that no builder expresses.
ConfigDescription parseConfig(std::string_view text, const std::string &where);

/// Reads the file first; Error(badInput) if that fails.
ConfigDescription readConfig(const std::string &path);

/// Values of `model_type` that parseConfig understands, sorted.
std::vector<std::string> supportedModelTypes();

}  // namespace weft::models
