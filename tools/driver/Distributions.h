// How the measured times of a kernel are distributed over its layouts and configurations: the data
// of Figs. 4 and 5 of "Data Movement Is All You Need". A wide distribution means that layouts
// matter; a chosen time far from the best means that the plan lost it to gain more elsewhere.
#pragma once

#include "kernel/Profile.h"
#include "plan/PlanBuilder.h"

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <vector>

namespace weft::driver {

struct Distribution {
  std::string kernel;   ///< of the plan; of several that are timed as one, the first
  std::string subject;  ///< "softmax_dropout", "gemm f16 64 x 512 x 512 x 64"
  bool isContraction = false;
  int sharedBy = 1;             ///< kernels of the plan that are timed as this one
  std::vector<double> seconds;  ///< of every configuration that ran, ascending; never empty
  size_t slow = 0;              ///< of these: given up after their first run
  size_t failed = 0;            ///< further configurations, without a time
  double legal = 0;    ///< configurations that were enumerated; all algorithms of a library under
                       ///< equal layouts are one
  std::string best;    ///< line of the fastest configuration
  std::string chosen;  ///< line of the plan's
  std::optional<double> chosenSeconds;  ///< nothing if the plan's configuration has no measurement
  bool operator==(const Distribution &) const = default;
};

/// Of every kernel of the plan that has measurements, in the plan's order; equal subjects once.
/// Transposes and views are left out.
std::vector<Distribution> distributionsOf(const std::vector<ChosenKernel> &kernels,
                                          const Profile &profile, const Device &device);

/// How much of what was enumerated has measurements, and what that does to the distributions.
struct MeasurementCoverage {
  size_t measurements = 0;  ///< of all distributions, failed ones included
  double legal = 0;         ///< configurations of their kernels
  bool isShipped = false;   ///< a profile that ships keeps only the best measurements of each
                            ///< kernel, so slow tails are missing
  /// One or two lines; the second tells how to measure the tails of what ships.
  std::vector<std::string> lines() const;
};
MeasurementCoverage coverageOf(const std::vector<Distribution> &distributions, bool isShipped);

/// Value below which the fraction lies, between neighbours linearly. `ascending` is not empty, 0 <=
/// fraction <= 1.
double quantile(const std::vector<double> &ascending, double fraction);

nlohmann::json toJson(const Distribution &distribution);
nlohmann::json toJson(const MeasurementCoverage &coverage);
/// One line a configuration: kernel, subject, seconds, whether best or chosen.
std::string printCsv(const std::vector<Distribution> &distributions);

}  // namespace weft::driver
