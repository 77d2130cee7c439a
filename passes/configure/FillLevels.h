// The fills that runs have: what the lengths of sequences, drawn one by one or batch by batch, make
// of a batch.
//
// A price is a curve over fills, and the time of a plan is what it takes on average of them. The
// curve is taken at five levels of equal weight: batches are drawn, sorted by their tokens, and
// each fifth of them is one level, with the mean of its tokens and of their pairs. A batch of many
// sequences is near the mean of lengths; one of a single sequence has any of them.
#pragma once

#include "passes/configure/FilledCost.h"

#include <cstdint>
#include <vector>

namespace weft {

constexpr int fillLevels = 5;

/// A sequence of which nothing else is known has each of the lengths equally often: `shares` of the
/// longest, of `sequences` a batch. Always the same of the same; the means are exact. Without
/// levels where all batches have as many tokens.
ExpectedFill fillOf(std::vector<double> shares, int64_t sequences);
/// Batches as they come, each of which has these shares of the longest: their sequences are not
/// drawn one by one, so that short ones may come together.
ExpectedFill fillOfBatches(const std::vector<std::vector<double>> &lengths);
/// Lengths evenly between the bounds around a mean of which one is the longest or none, as
/// `weft run --lengths mean=R` draws them.
ExpectedFill fillOfMean(double mean, int64_t sequences);

/// The levels; of a fill without, that of the lengths which every run has, if they are not full,
/// among those of equal lengths at every fifth of the longest, which weigh nothing.
std::vector<FillLevel> curveOf(const ExpectedFill &fill);

}  // namespace weft
