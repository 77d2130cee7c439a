// What choosing by estimates costs: every measured kernel is chosen among its measured
// configurations by the analytic model alone, and the measured time of that choice is compared with
// the best measured one. No measurement enters a choice, so every kernel counts as left out.
//
// A profile keeps the fastest measurements of each layouts only (`weft profile export
// --per-layouts`), so a choice among them is a lower bound of the regret.
#pragma once

#include "passes/configure/CostModel.h"

#include <string>
#include <vector>

namespace weft {

/// One measured configuration and its estimate.
struct EstimateSample {
  std::string subject;  ///< hash of what was timed
  std::string name;     ///< of it, for people
  std::string line;     ///< the configuration
  std::string family;
  double estimate = 0;  ///< seconds: the mean, without the margin
  double margin = 0;    ///< of the estimate (passes/configure/Margins.h)
  double measured = 0;  ///< seconds
  bool operator==(const EstimateSample &) const = default;
};
/// Of all measurements that `prices` has for the kernel; none twice.
std::vector<EstimateSample> estimateSamples(const Kernel &kernel, const CostModel &prices);

/// A subject whose fastest configuration by estimate is slower than its fastest by measurement.
struct ChosenByEstimate {
  EstimateSample chosen, best;
  double regret() const { return chosen.measured / best.measured; }
};
/// Subjects with the same families, and at least two measurements.
struct FamilyRegret {
  std::string families;                    ///< "cublaslt, gemm-sm90"
  std::vector<ChosenByEstimate> subjects;  ///< largest regret first
  double mean = 1;                         ///< geometric mean of the regrets
};
std::vector<FamilyRegret> regrets(const std::vector<EstimateSample> &samples);

/// How far the configurations that estimates choose lie from their measurements, for every family
/// and margin: what the margins are made from.
struct EstimateBias {
  std::string family;
  double margin = 0;
  size_t subjects = 0;
  double bias = 1;       ///< geometric mean of estimate / measurement of the chosen ones
  double deviation = 0;  ///< standard deviation of its logarithm
};
std::vector<EstimateBias> biases(const std::vector<EstimateSample> &samples);

/// Both as a table, with the `worst` largest regrets of every line.
std::string print(const std::vector<FamilyRegret> &regrets, const std::vector<EstimateBias> &biases,
                  size_t worst);

}  // namespace weft
