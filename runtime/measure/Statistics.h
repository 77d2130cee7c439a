// What is said of repeated measurements: the median and how far the middle 80% lie apart.
// Invariant: a value that is not finite is never averaged away; it is an error.
#pragma once

#include <cstdint>
#include <span>

namespace weft::runtime {

/// Percentiles of samples, in the samples' unit (seconds for times).
struct Statistics {
  double median = 0, p10 = 0, p90 = 0, fastest = 0;
  int64_t n = 0;
  /// Width of the middle 80% over the median: 0.012 for 1.2%.
  double spread() const { return median > 0 ? (p90 - p10) / median : 0; }
  bool operator==(const Statistics &) const = default;
};

/// Throws Error(checkFailed) if a sample is not finite, std::logic_error if there is none.
Statistics summarize(std::span<const double> samples);

/// The value below which `fraction` (0 to 1) of the sorted samples lie, interpolated linearly
/// between neighbours.
double percentile(std::span<const double> sorted, double fraction);

/// Statistics of a[i] / b[i]: pairs measured in the same round share clocks and temperature, so
/// their ratio spreads less than the ratio of their medians. Throws std::logic_error unless both
/// have as many samples.
Statistics summarizeRatio(std::span<const double> a, std::span<const double> b);

}  // namespace weft::runtime
