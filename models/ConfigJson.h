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
  std::vector<std::string> ignoredKeys = {};  ///< present, known, and without influence on a layer
  std::vector<std::string> dropoutKeys = {};  ///< present: dropout of training, which is not built from a config.json
  std::vector<std::string> unknownKeys = {};  ///< present, and nobody here knows what they mean
  std::string positionsKey = {};              ///< the key that sizes a learned table of positions; empty: no such table
  int64_t positions = 0;                      ///< its rows: no more steps than that have an embedding
};

/// `where` names the file in errors, and the layer unless the file is called config.json. Throws Error(badInput) for
/// malformed, incomplete or contradictory text, Error(unsupported) for mathematics that no builder expresses.
ConfigDescription parseConfig(std::string_view text, const std::string &where);

/// Error(badInput) naming both if j or k has more steps than the table of positions has rows.
void checkPositions(const ConfigDescription &description, const Dims &dims);

/// Reads the file first; Error(badInput) if that fails.
ConfigDescription readConfig(const std::string &path);

/// Values of `model_type` that parseConfig understands, sorted.
std::vector<std::string> supportedModelTypes();

}  // namespace weft::models
