// What a profile run tells: how well the model ranks what was measured, and what failed.
#pragma once

#include "passes/decide/ProfileSpace.h"
#include "tools/driver/ProfileRun.h"

#include <nlohmann/json.hpp>

namespace weft::driver {

/// Spearman's correlation of modelled and measured times of one family's measurements.
struct FamilyCorrelation {
  std::string family;
  size_t measurements = 0;
  std::optional<double> overall;    ///< over all measurements
  std::optional<double> perKernel;  ///< mean over kernels of the correlation among a kernel's
                                    ///< measurements: what pruning relies on
};

struct ProfileReport {
  std::vector<FamilyCorrelation> families;  ///< sorted by name; "all" last
  std::map<std::string, size_t> failures;   ///< reason -> measurements
};

/// Over the space's items that the profile has measurements for, and the fastest candidate of every
/// gemm.
ProfileReport reportOf(const ProfileSpace &space, const Profile &profile);
std::string print(const ProfileReport &report);

/// "84 kernels, 5.2e+09 legal configurations -> ..." and one line a kernel.
std::string describe(const ProfileSpace &space, bool eachKernel);
nlohmann::json toJson(const ProfileSpace &space);
nlohmann::json toJson(const ProfileOutcome &outcome, const ProfileReport &report,
                      const std::string &store);

}  // namespace weft::driver
