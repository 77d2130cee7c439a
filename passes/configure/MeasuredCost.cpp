// Measured prices from a profile file, the roofline where a row is missing.
//
// A profile is text, one JSON object a line. The first names the format and the device:
//   {"weft-profile": 1, "device": "h200", "protocol": "cold L2, n=50, clocks locked"}
// every other is one timing of one kernel:
//   {"key": KEY, "familyVersion": 1, "seconds": 1.2e-05}
// KEY is the canonical text of kernel, configuration and target without its family version, so that a row of an older
// version is found, used, and marked stale. Invariant: one row a key; seconds are finite and positive.
#include "kernel/Error.h"
#include "passes/configure/CostModel.h"

#include <nlohmann/json.hpp>

#include <cmath>
#include <fstream>
#include <unordered_map>

namespace weft {
namespace {

using nlohmann::json;

constexpr int profileFormat = 1;

struct Row {
  double seconds = 0;
  int familyVersion = 0;
};

struct Profile {
  std::string device;
  std::unordered_map<std::string, Row> rows;  // looked up only, never iterated
};

/// The canonical text without the version on its "family" line.
std::string profileKey(const Kernel &kernel, const Configuration &configuration, std::string_view architecture) {
  std::string text = canonicalText(kernel, configuration, architecture);
  const std::string family = fmt::format("family {}", familyOf(configuration.knobs));
  const std::string line = fmt::format("\n{} {}\n", family, familyVersion(familyOf(configuration.knobs)));
  if (const size_t at = text.find(line); at != std::string::npos) text.replace(at, line.size(), "\n" + family + "\n");
  return text;
}

class ProfileReader {
public:
  explicit ProfileReader(const std::string &file) : file(file) {}

  Profile read() {
    std::ifstream stream(file);
    if (!stream) throw Error::badInput("profile '{}' cannot be read", file);
    std::string text;
    while (std::getline(stream, text)) {
      ++line;
      if (!text.empty()) readLine(text);
    }
    if (profile.device.empty()) throw Error::badInput("{}: empty; the first line must name the device", file);
    return std::move(profile);
  }

private:
  [[noreturn]] void fail(const std::string &problem) const { throw Error::badInput("{}:{}: {}", file, line, problem); }

  void readLine(const std::string &text) {
    const json object = json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!object.is_object()) fail("not a JSON object");
    profile.device.empty() ? readHeader(object) : readRow(object);
  }

  void readHeader(const json &object) {
    if (object.value("weft-profile", json()) != profileFormat)
      fail(fmt::format("not a profile: the first line must hold \"weft-profile\": {}", profileFormat));
    if (!object.contains("device") || !object["device"].is_string()) fail("'device' must be a string");
    profile.device = object["device"];
  }

  void readRow(const json &object) {
    const json key = object.value("key", json()), seconds = object.value("seconds", json());
    const json version = object.value("familyVersion", json());
    if (!key.is_string()) fail("'key' must be a string");
    if (!version.is_number_integer()) fail("'familyVersion' must be an integer");
    if (!seconds.is_number() || !(seconds.get<double>() > 0) || !std::isfinite(seconds.get<double>()))
      fail("'seconds' must be a positive number");
    if (!profile.rows.try_emplace(key, Row{seconds.get<double>(), version.get<int>()}).second)
      fail("a second row of one key");
  }

  const std::string &file;
  int line = 0;
  Profile profile;
};

class MeasuredCostModel final : public CostModel {
public:
  MeasuredCostModel(const Device &device, const std::string &file, bool strict)
      : analytic(analyticCostModel(device)), profile(ProfileReader(file).read()), file(file), strict(strict) {
    if (profile.device != device.name)
      throw Error::badInput("profile '{}' was measured on {}, not on {}", file, profile.device, device.name);
  }

  Cost cost(const Kernel &kernel, const Configuration &configuration) const override {
    Cost result = analytic->cost(kernel, configuration);
    if (std::holds_alternative<ViewKnobs>(configuration.knobs)) return result;  // moves nothing: there is nothing to time
    const auto found = profile.rows.find(profileKey(kernel, configuration, device().architecture));
    if (found == profile.rows.end()) {
      if (strict)
        throw Error::strictMiss("profile '{}' has no row for kernel '{}', {}", file, kernel.name,
                                describe(kernel, configuration.knobs));
      return result;
    }
    result.stale = found->second.familyVersion != familyVersion(familyOf(configuration.knobs));
    if (result.stale && strict)
      throw Error::strictMiss("profile '{}': the row of kernel '{}' is of version {} of its family, which has {}", file,
                              kernel.name, found->second.familyVersion, familyVersion(familyOf(configuration.knobs)));
    result.seconds = found->second.seconds;
    result.measured = true;
    return result;
  }

  const Device &device() const override { return analytic->device(); }
  std::string description() const override {
    return fmt::format("profile {} ({}, {} rows)", file, device().title, profile.rows.size());
  }

private:
  std::unique_ptr<CostModel> analytic;
  Profile profile;
  std::string file;
  bool strict;
};

}  // namespace

std::unique_ptr<CostModel> measuredCostModel(const Device &device, const std::string &file, bool strict) {
  return std::make_unique<MeasuredCostModel>(device, file, strict);
}

}  // namespace weft
