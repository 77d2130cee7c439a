// Which part of a model is built: --part and what it means.
#pragma once

#include "kernel/WordTable.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace weft::models {

/// What of a model is built: the core of attention, layers, or all with what it has around these.
enum class Part : uint8_t { attention, layer, model };
constexpr WordTable<Part, 3> partWords = {
    {{Part::attention, "attention"}, {Part::layer, "layer"}, {Part::model, "model"}}};
constexpr std::string_view nameOf(Part part) { return wordOf(partWords, part); }
/// Throws Error(badInput) with the nearest for another word.
Part partNamed(const std::string &word);

}  // namespace weft::models
