// The named layers that need no file. Adding one is one row in Presets.cpp.
#pragma once

#include "models/LayerSpecification.h"

#include <string>
#include <string_view>
#include <vector>

namespace weft::models {

struct PresetRow {
  LayerSpecification specification;  ///< its name is the preset's
  std::string summary;               ///< one line for people
};

/// The presets of one layer, sorted by name.
const std::vector<PresetRow> &presetRows();
/// Whole models, with their loss.
const std::vector<PresetRow> &modelRows();

/// The preset of that name, or null.
const PresetRow *findPreset(std::string_view name);

/// Throws Error(badInput) with the nearest preset.
[[noreturn]] void throwUnknownPreset(std::string_view name);

}  // namespace weft::models
