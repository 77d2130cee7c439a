// Prices of kernels that leave out what is no token, at an expected fill.
//
// A kernel over packed tokens whose results are masked from their number on (kernel/UnusedTokens.h)
// takes what one of fewer tokens takes, and stores zeros for the rest. A fused attention whose
// queries and keys are masked from the lengths on takes what one of shorter sequences takes, and so
// does one of queries behind the keys that a cache holds. So the
// price is that of the kernel with these axes shortened: times the same kernel's price as it is, if
// that was measured.
//
// Lengths differ from run to run: a fill has levels (FillLevels.h), and a contraction or an
// attention, whose time is no straight line over tokens, takes the mean of what it takes at each.
// An attention takes that over lengths within a batch, too: of each the last tile is partly empty.
// A loop is priced at the mean of the fills, since its time follows the bytes that it moves.
#pragma once

#include "passes/configure/CostModel.h"

#include <memory>
#include <optional>
#include <vector>

namespace weft {

/// What some of the runs have: the mean of the lengths of a batch and of their squares.
struct FillLevel {
  double tokens = 1, pairs = 1;
  double weight = 1;  ///< the share of these runs
  bool operator==(const FillLevel &) const = default;
};

/// How much of padded sequences is expected to be tokens.
struct ExpectedFill {
  double tokens = 1;                   ///< the mean of lengths, as a share of the longest
  double pairs = 1;                    ///< the mean of their squares, as a share of its square
  std::vector<FillLevel> levels = {};  ///< whose weights sum to 1; empty: every run has the mean
  bool isFull() const { return tokens >= 1 && pairs >= 1; }
  bool operator==(const ExpectedFill &) const = default;
};

/// What stands for a kernel in prices: the kernel with axes of tokens shortened; nothing where it
/// computes all of them. `storesZeros`: the bytes stored for the rest are part of the tokens that
/// are left, as prices by bytes alone need it.
std::optional<Kernel> shortenedKernel(const Kernel &kernel, const ExpectedFill &fill,
                                      bool storesZeros);

/// The kernel without masks of tokens, of which measurements are; nothing where it has none.
std::optional<Kernel> withoutTokenMasks(const Kernel &kernel);

/// `prices`, which outlive it, at a fill. A measurement of a kernel without masks of tokens serves
/// the one with them, scaled by what estimates of both say; such a price counts as an estimate.
std::unique_ptr<CostModel> filledCostModel(const CostModel &prices, const ExpectedFill &fill);

}  // namespace weft
