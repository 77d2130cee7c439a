// Measurements of a profile as distributions; see Distributions.h.
#include "tools/driver/Distributions.h"

#include "passes/configure/Family.h"
#include "tools/driver/Console.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace weft::driver {
namespace {

bool isTimed(const ChosenKernel &chosen) {
  return !chosen.configuration.knobs.isView() && !chosen.configuration.knobs.family().isTranspose;
}

Distribution distributionOf(const ChosenKernel &chosen, const ProfileSubject &subject,
                            const ProfileKernel &measurements, const Device &device) {
  Distribution result{.kernel = chosen.kernel.name,
                      .subject = subject.name,
                      .isContraction = chosen.kernel.operatorClass() == OperatorClass::contraction,
                      .seconds = {},
                      .best = {},
                      .chosen = configurationLine(chosen.kernel, chosen.configuration),
                      .chosenSeconds = {}};
  double fastest = 0;
  for (const auto &[line, measurement] : measurements.measurements) {
    if (measurement.status == MeasurementStatus::failed || !(measurement.seconds > 0)) {
      ++result.failed;
      continue;
    }
    result.seconds.push_back(measurement.seconds);
    result.slow += measurement.status == MeasurementStatus::slow;
    if (line == result.chosen) result.chosenSeconds = measurement.seconds;
    if (measurement.status == MeasurementStatus::measured &&
        (result.best.empty() || measurement.seconds < fastest)) {
      fastest = measurement.seconds;
      result.best = line;
    }
  }
  if (!result.chosenSeconds && chosen.cost.measured)
    result.chosenSeconds = chosen.cost.seconds;  // by the measurement of another layout of its form
  std::sort(result.seconds.begin(), result.seconds.end());
  for (const ConfigurationSpace &space : everySpace(chosen.kernel, device))
    result.legal += countConfigurations(chosen.kernel, space);
  return result;
}

}  // namespace

std::vector<Distribution> distributionsOf(const std::vector<ChosenKernel> &kernels,
                                          const Profile &profile, const Device &device) {
  std::vector<Distribution> list;
  std::map<std::string, size_t> known;
  for (const ChosenKernel &chosen : kernels) {
    if (!isTimed(chosen)) continue;
    const ProfileSubject subject = subjectOf(chosen.kernel, chosen.configuration);
    const std::string hash = profileHash(subject.text);
    if (const auto before = known.find(hash); before != known.end()) {
      ++list[before->second].sharedBy;
      continue;
    }
    const auto measurements = profile.kernels.find(hash);
    if (measurements == profile.kernels.end()) continue;
    Distribution distribution = distributionOf(chosen, subject, measurements->second, device);
    if (distribution.seconds.empty()) continue;
    known.emplace(hash, list.size());
    list.push_back(std::move(distribution));
  }
  return list;
}

MeasurementCoverage coverageOf(const std::vector<Distribution> &distributions, bool isShipped) {
  MeasurementCoverage coverage{.isShipped = isShipped};
  for (const Distribution &one : distributions) {
    coverage.measurements += one.seconds.size() + one.failed;
    coverage.legal += one.legal;
  }
  return coverage;
}

std::vector<std::string> MeasurementCoverage::lines() const {
  const std::string counts =
      fmt::format("measurements of {} of {} legal configurations",
                  formatCount(int64_t(measurements)), formatLargeCount(legal));
  if (!isShipped) return {counts + "; the others are not shown"};
  return {counts +
              ": the profile that ships keeps only the best measurements of each kernel, so slow "
              "tails are "
              "missing",
          "all layouts: weft profile MODEL --layouts 1000000 --layout-factor 1000000 --knobs 1, "
          "then explain --distributions --profile STORE"};
}

double quantile(const std::vector<double> &ascending, double fraction) {
  const double position = fraction * double(ascending.size() - 1);
  const auto below = size_t(position);
  const size_t above = std::min(below + 1, ascending.size() - 1);
  return ascending[below] + (position - double(below)) * (ascending[above] - ascending[below]);
}

nlohmann::json toJson(const Distribution &one) {
  return {
      {"kernel", one.kernel},
      {"subject", one.subject},
      {"contraction", one.isContraction},
      {"sharedBy", one.sharedBy},
      {"seconds", one.seconds},
      {"slow", one.slow},
      {"failed", one.failed},
      {"legal", one.legal},
      {"best", {{"configuration", one.best}, {"seconds", one.seconds.front()}}},
      {"chosen",
       {{"configuration", one.chosen},
        {"seconds", one.chosenSeconds ? nlohmann::json(*one.chosenSeconds) : nlohmann::json()}}},
      {"quartiles",
       {quantile(one.seconds, 0.25), quantile(one.seconds, 0.5), quantile(one.seconds, 0.75)}}};
}

nlohmann::json toJson(const MeasurementCoverage &coverage) {
  return {{"measurements", coverage.measurements},
          {"legal", coverage.legal},
          {"shipped", coverage.isShipped},
          {"note", fmt::format("{}", fmt::join(coverage.lines(), "; "))}};
}

std::string printCsv(const std::vector<Distribution> &distributions) {
  std::string text = "kernel,subject,seconds,mark\n";
  for (const Distribution &one : distributions) {
    bool isBestMarked = false, isChosenMarked = false;
    for (const double seconds : one.seconds) {
      const bool best = !std::exchange(isBestMarked, true);
      const bool chosen = one.chosenSeconds == seconds && !std::exchange(isChosenMarked, true);
      text += fmt::format("{},{},{:g},{}\n", one.kernel, one.subject, seconds,
                          chosen && best ? "best chosen"
                          : chosen       ? "chosen"
                          : best         ? "best"
                                         : "");
    }
  }
  return text;
}

}  // namespace weft::driver
