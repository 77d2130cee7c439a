// Percentiles; see Statistics.h.
#include "runtime/measure/Statistics.h"

#include "kernel/Error.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

namespace weft::runtime {

double percentile(std::span<const double> sorted, double fraction) {
  if (sorted.empty()) throw std::logic_error("percentile of no samples");
  const double position = std::clamp(fraction, 0.0, 1.0) * double(sorted.size() - 1);
  const size_t below = size_t(position), above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (position - double(below)) * (sorted[above] - sorted[below]);
}

Statistics summarize(std::span<const double> samples) {
  std::vector<double> sorted(samples.begin(), samples.end());
  if (sorted.empty()) throw std::logic_error("statistics of no samples");
  for (const double sample : sorted)
    if (!std::isfinite(sample))
      throw Error::checkFailed("a measured value is not finite: {}", sample);
  std::ranges::sort(sorted);
  return {.median = percentile(sorted, 0.5),
          .p10 = percentile(sorted, 0.1),
          .p90 = percentile(sorted, 0.9),
          .fastest = sorted.front(),
          .n = int64_t(sorted.size())};
}

Statistics summarizeRatio(std::span<const double> a, std::span<const double> b) {
  if (a.size() != b.size()) throw std::logic_error("ratio of unpaired samples");
  std::vector<double> ratios(a.size());
  for (size_t i = 0; i < a.size(); ++i) ratios[i] = a[i] / b[i];
  return summarize(ratios);
}

}  // namespace weft::runtime
