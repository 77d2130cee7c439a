// Hugging Face config.json to a layer specification. `model_type` decides the family; keys that
// change the mathematics are honoured or rejected, never skipped.
#pragma once

#include "kernel/DType.h"
#include "models/LayerSpecification.h"

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace weft::models {

struct ConfigDescription {
  LayerSpecification specification;
  std::vector<std::string> ignoredKeys = {};  ///< present, known, and without influence on a layer
  Dropouts dropout = {};                      ///< of training; the specification has none
  std::vector<std::string> dropoutKeys = {};  ///< present: those that say it
  std::vector<std::string> otherDropoutKeys =
      {};  ///< present, not 0, and of no place that layers of the family have
  std::vector<std::string> assumedDropouts =
      {};  ///< "hidden_dropout_prob = 0.1": what the family takes for a missing key
  std::vector<std::string> allowedKeys =
      {};  ///< present and not known, left out because the caller allows it
  std::vector<std::string> assumed =
      {};  ///< "sliding_window = 4096": what the family takes for a missing key
  std::vector<std::string> notes =
      {};                            ///< which of the file's layers it is, where there are several
  std::string elementTypeKey = {};   ///< the key that names the elements' type; empty: none does
  std::string elementTypeName = {};  ///< as that key has it: "bfloat16"
  std::optional<DType> elementType =
      {};  ///< nothing if the name is not one of a type that layers are built with
  std::string positionsKey =
      {};                 ///< the key that sizes a learned table of positions; empty: no such table
  int64_t positions = 0;  ///< its rows: no more steps than that have an embedding
};

/// `where` names the file in errors, and the layer unless the file is called config.json.
/// `allowedKeys` may stand in it though nobody knows what they mean. Throws Error(badInput) for
/// malformed, incomplete or contradictory text, Error(unsupported) for mathematics that no builder
/// expresses and for unknown keys.
ConfigDescription parseConfig(std::string_view text, const std::string &where,
                              const std::set<std::string> &allowedKeys = {});

/// Error(badInput) naming both if j or k has more steps than the table of positions has rows.
void checkPositions(const ConfigDescription &description, const Dims &dims);

/// Reads the file first; Error(badInput) if that fails.
ConfigDescription readConfig(const std::string &path,
                             const std::set<std::string> &allowedKeys = {});

/// Keys that say how many layers a model has, and those that a whole model is built from beside its
/// layers: neither decides anything of one layer.
const std::vector<std::string> &layerCountKeys();
const std::vector<std::string> &wholeModelKeys();

/// Values of `model_type` that parseConfig understands, sorted.
std::vector<std::string> supportedModelTypes();

struct ConfigKey {
  std::string name;
  bool isRequired = false;
};

/// One value of `model_type`: the layer that it describes, and the keys that its reader asks for.
struct ConfigFamily {
  std::string modelType;
  Family family = Family::encoder;
  std::vector<ConfigKey> keys;  ///< sorted by name
};

/// Of every model type, found by reading: what this lists is what parseConfig does.
std::vector<ConfigFamily> configFamilies();

}  // namespace weft::models
