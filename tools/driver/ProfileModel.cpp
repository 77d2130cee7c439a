// The shipped profiles are embedded, so that one binary works anywhere.
#include "tools/driver/ProfileModel.h"

#include "kernel/Error.h"
#include "kernel/TestedProfile.h"
#include "runtime/measure/ProfileStore.h"
#include "runtime/system/Files.h"
#include "runtime/system/Sha256.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <mutex>
#include <string_view>
#include <tuple>

namespace weft::embedded {
extern const std::map<std::string, std::string_view> shippedProfiles;
}

namespace weft::driver {

Profile shippedProfile(const std::string &device) {
  Profile all{.device = device, .protocols = {}, .kernels = {}};
  for (const auto &[file, text] : embedded::shippedProfiles) {
    Profile profile = parseTestedProfile(text, "shipped profile " + file);
    if (profile.device == device) moveIntoProfile(all, std::move(profile));
  }
  return all;
}

namespace {

/// Nothing where no measurements of the device ship. Models may be asked from several threads.
std::shared_ptr<CostModel> shippedCostModel(const TargetFlags &target) {
  const Device device = target.device();
  const auto asked =
      std::tuple(device.name, target.noLibrary, device.mayBeNondeterministic, target.strict);
  static std::mutex mutex;
  static std::pair<std::decay_t<decltype(asked)>, std::shared_ptr<CostModel>> last;
  const std::lock_guard lock(mutex);
  if (last.second && last.first == asked) return last.second;
  Profile shipped = shippedProfile(device.name);
  if (shipped.kernels.empty()) return nullptr;
  last = {asked, measuredCostModel(device, std::move(shipped), "shipped profile", target.strict)};
  return last.second;
}

}  // namespace

std::shared_ptr<CostModel> costModelOf(const TargetFlags &target) {
  const Device &device = target.device();
  if (target.hasNoProfile()) return analyticCostModel(device);
  if (!target.profile.empty())
    return measuredCostModel(device, runtime::readProfile(target.profile),
                             "profile " + target.profile, target.strict);
  const auto modelled = [&](const std::string &what) {
    if (target.strict)
      throw Error::strictMiss(
          "no profile of {} ships, and --strict forbids modelled times: measure one (weft "
          "profile), or ask for the model "
          "(--profile none)",
          what);
    return analyticCostModel(device);
  };
  if (!target.target.empty() && target.target != device.architecture)
    return modelled(device.name + " as " + target.target);
  if (std::shared_ptr<CostModel> shipped = shippedCostModel(target)) return shipped;
  return modelled(device.name);
}

std::string sourceOfPrices(const TargetFlags &target, const CostModel &prices) {
  runtime::Sha256 key;
  key.updateField(prices.description())
      .updateField(target.strict ? "strict" : "")
      .updateField(target.noLibrary ? "no library" : "");
  if (!target.isDeterministic()) key.updateField("in any order");
  for (const std::string &file : {target.profile, target.deviceName})
    if (std::error_code none; std::filesystem::is_regular_file(file, none))
      key.updateField(runtime::readFile(file));
    else key.updateField(file);
  return key.finish();
}

std::string keyOfPrices(const TargetFlags &target, const CostModel &prices) {
  runtime::Sha256 key;
  key.updateField(sourceOfPrices(target, prices));
  std::error_code none;
  const std::filesystem::path program = "/proc/self/exe";
  key.updateField(
      fmt::format("{} {}", std::filesystem::file_size(program, none),
                  std::filesystem::last_write_time(program, none).time_since_epoch().count()));
  return key.finish();
}

}  // namespace weft::driver
