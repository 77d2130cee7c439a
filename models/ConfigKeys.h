// Keys of config.json that no reader asks for: which of them leave one layer in inference as it is,
// which do so with some values only. A key that stands nowhere here may change the mathematics, so
// a file that has one is rejected.
#pragma once

#include "models/LayerSpecification.h"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace weft::models {

enum class KeyMeaning : uint8_t {
  neutral,      ///< any value leaves the layer as it is
  dropout,      ///< a probability of training
  headDropout,  ///< the same, of a head behind the layers, which is not built
  settled,      ///< changes the mathematics, but this value is what the layer has anyway
  changes,      ///< changes the mathematics to what no builder expresses
  doubtful,  ///< its value says that the file may describe another layer; the caller may allow it
  unknown,
};

/// `family`: of the layer that the file describes, of this `model_type`.
KeyMeaning meaningOf(const std::string &key, const nlohmann::json &value,
                     const std::string &modelType, Family family);

/// What speaks against a key whose value is doubtful: "names a class that is none of model_type
/// \"bert\" (BertModel, ...)".
std::string doubtAbout(const std::string &key, const std::string &modelType);

/// Values with which a key that changes the mathematics leaves a layer of the family as it is;
/// empty where none but its absence does.
std::vector<nlohmann::json> settledValues(const std::string &key, Family family);

/// Every key of the lists above.
std::vector<std::string> listedKeys();

}  // namespace weft::models
