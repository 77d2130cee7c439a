// Spearman's rank correlation: how well the model orders what was measured. Ties share their mean
// rank.
#pragma once

#include <optional>
#include <utility>
#include <vector>

namespace weft::driver {

/// Of pairs (modelled, measured); -1 to 1. Nothing for fewer than two pairs, or where one side is
/// constant.
std::optional<double> spearman(const std::vector<std::pair<double, double>> &pairs);

}  // namespace weft::driver
