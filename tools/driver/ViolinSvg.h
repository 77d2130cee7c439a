// Violins: one a kernel, its width the density of measured times over a logarithmic axis of time,
// the best and the chosen time marked. Text in, text out: equal distributions give equal bytes; the
// figure needs no other file.
#pragma once

#include "tools/driver/Distributions.h"

#include <string>
#include <vector>

namespace weft::driver {

/// Gaussian kernel density of the decimal logarithms at `points` places from first to last,
/// Silverman's bandwidth, at least `leastBandwidth` decades. Relative: the largest is 1.
struct Density {
  double first = 0, last = 0;  ///< log10 of seconds
  std::vector<double> values;
};
Density densityOf(const std::vector<double> &seconds, int points = 96,
                  double leastBandwidth = 0.006);

/// An SVG document; `title` and the lines of `notes` stand on top. Without distributions, a figure
/// that says so.
std::string drawViolins(const std::vector<Distribution> &distributions, const std::string &title,
                        const std::vector<std::string> &notes);

}  // namespace weft::driver
