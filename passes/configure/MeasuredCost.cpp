// Measured prices: rows of a profile file, and the analytic model where there is none. Bytes and flop are always modelled.
#include "passes/configure/CostModel.h"
#include "passes/configure/Profile.h"

#include "kernel/Error.h"

#include <fstream>
#include <sstream>

namespace weft {
namespace {

class MeasuredCostModel : public CostModel {
public:
  MeasuredCostModel(const Device &device, Profile profile, std::string file, bool strict)
      : analytic(analyticCostModel(device)), profile(std::move(profile)), file(std::move(file)), strict(strict) {
    for (const auto &[key, row] : this->profile.rows) measuredKernels.insert(row.kernel);
  }

  Cost cost(const Kernel &kernel, const Configuration &configuration) const override {
    Cost result = analytic->cost(kernel, configuration);
    if (std::holds_alternative<ViewKnobs>(configuration.knobs)) return result;
    const ProfileRow *row = find(kernel, configuration);
    if (!row && strict)
      throw Error::strictMiss("profile '{}' has no row for kernel '{}', {}", file, kernel.name, describe(kernel, configuration.knobs));
    if (!row) return result;
    const int version = familyVersion(familyOf(configuration.knobs));
    result.stale = row->familyVersion != version;
    if (result.stale && strict)
      throw Error::strictMiss("profile '{}': the row of kernel '{}' is of version {} of its family, which has {}", file, kernel.name,
                              row->familyVersion, version);
    result.seconds = row->seconds;
    result.measured = true;
    return result;
  }
  const Device &device() const override { return analytic->device(); }
  std::string description() const override {
    return fmt::format("profile {} ({}, {} rows)", file, device().name, profile.rows.size());
  }
  bool isSeparable(const Kernel &kernel) const override {
    return !strict && !measuredKernels.contains(profileHash(canonicalText(kernel)));
  }

private:
  /// Kernels without any row are not hashed twice.
  const ProfileRow *find(const Kernel &kernel, const Configuration &configuration) const {
    if (!measuredKernels.contains(profileHash(canonicalText(kernel)))) return nullptr;
    const auto found = profile.rows.find(profileKey(kernel, configuration, device().architecture));
    return found == profile.rows.end() ? nullptr : &found->second;
  }

  std::unique_ptr<CostModel> analytic;
  Profile profile;
  std::string file;
  bool strict;
  std::set<std::string> measuredKernels;
};

}  // namespace

std::unique_ptr<CostModel> measuredCostModel(const Device &device, const std::string &file, bool strict) {
  std::ifstream stream(file);
  if (!stream) throw Error::badInput("profile '{}' cannot be read", file);
  std::stringstream text;
  text << stream.rdbuf();
  Profile profile = parseProfile(text.str(), file);
  if (profile.device != device.name)
    throw Error::badInput("profile '{}' was measured on '{}', not on '{}'", file, profile.device, device.name);
  return std::make_unique<MeasuredCostModel>(device, std::move(profile), file, strict);
}

}  // namespace weft
