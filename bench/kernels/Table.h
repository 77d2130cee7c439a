// What was measured, for people and as JSON.
#pragma once

#include "bench/kernels/Measurement.h"

#include <nlohmann/json.hpp>

namespace weft::bench {

/// The candidates of one case, fastest first, at most `most` lines; failures always.
void printCase(std::span<const Candidate> candidates, const CopyRates &copy, size_t most);
/// The best share of each case, by group: median, worst, best.
void printGroups(const std::vector<std::vector<Candidate>> &cases);
nlohmann::json toJson(std::span<const Candidate> candidates, const CopyRates &copy);

}  // namespace weft::bench
