// What of a model can be asked for, as data: what `weft models` lists. A test asks for everything
// that stands here, and for what does not.
#pragma once

#include "models/LayerSpecification.h"
#include "models/Part.h"

#include <string>
#include <string_view>
#include <vector>

namespace weft::models {

/// "llama": what the graph of a family is made of, for people.
std::string_view nameOf(Family family);
std::string_view summaryOf(Family family);

/// Values of --part and of --dtype, the default first.
std::vector<Part> supportedParts(const LayerSpecification &specification);
std::vector<std::string> supportedTypes(const LayerSpecification &specification);
/// Words of --mask: all, but a block mask where the model has one.
std::vector<std::string> supportedMasks(const LayerSpecification &specification);

/// Words of --score; none where the model fixes what scores are.
std::vector<std::string> supportedScoreForms(const LayerSpecification &specification);

/// Whether --train has a derivative of every op of the layer.
bool isTrained(const LayerSpecification &specification);

/// What an axis is, for people: "batch".
std::string_view meaningOfAxis(std::string_view axis);
/// How an axis that a model leaves open follows from others: "j", "i / h"; empty for one that it
/// never leaves open.
std::string_view ruleOfAxis(std::string_view axis);

}  // namespace weft::models
