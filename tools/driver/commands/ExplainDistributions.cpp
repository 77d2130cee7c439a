// weft explain --distributions: measured times of every kernel of a plan over its layouts and
// configurations, as a table, data and violins.
#include "kernel/Error.h"
#include "runtime/artifact/Artifact.h"
#include "runtime/measure/ProfileStore.h"
#include "tools/driver/Console.h"
#include "tools/driver/ProfileModel.h"
#include "tools/driver/ReEmission.h"
#include "tools/driver/ViolinSvg.h"
#include "tools/driver/commands/Explain.h"

#include <algorithm>
#include <filesystem>
#include <map>

namespace weft::driver {
namespace {

using nlohmann::json;

Profile profileFor(const std::string &file, const std::string &device) {
  if (file == noProfile)
    throw Error::badInput(
        "--distributions shows measured times: there are none with --profile none");
  Profile profile = file.empty() ? shippedProfile(device) : runtime::readProfile(file);
  if (profile.kernels.empty())
    throw Error::badInput(
        "no measured times of {}: weft profile MODEL measures them, --profile FILE reads them",
        device);
  if (profile.device != device)
    throw Error::badInput("--profile {}: measured on {}, the plan is for {}", file, profile.device,
                          device);
  return profile;
}

std::string tableOf(const std::vector<Distribution> &distributions) {
  Table table({{"kernel", left},
               {"timed as", left},
               {"times", right},
               {"of legal", right},
               {"slow", right},
               {"failed", right},
               {"best", right},
               {"25%", right},
               {"median", right},
               {"75%", right},
               {"worst", right},
               {"chosen", right},
               {"chosen/best", right}});
  for (const Distribution &one : distributions)
    table.addRow(
        {one.kernel, one.subject, std::to_string(one.seconds.size()), formatLargeCount(one.legal),
         std::to_string(one.slow), std::to_string(one.failed), formatSeconds(one.seconds.front()),
         formatSeconds(quantile(one.seconds, 0.25)), formatSeconds(quantile(one.seconds, 0.5)),
         formatSeconds(quantile(one.seconds, 0.75)), formatSeconds(one.seconds.back()),
         one.chosenSeconds ? formatSeconds(*one.chosenSeconds) : "-",
         one.chosenSeconds ? fmt::format("{:.2f}x", *one.chosenSeconds / one.seconds.front())
                           : "-"});
  return table.print();
}

/// The first protocol up to its clocks, and how many there are.
std::string protocolOf(const Profile &profile) {
  if (profile.protocols.empty()) return "protocol unknown";
  const std::string &first = profile.protocols.begin()->second;
  std::string text = first.substr(0, first.find(", at the start"));
  if (profile.protocols.size() > 1) text += fmt::format("; {} sessions", profile.protocols.size());
  return text;
}

std::vector<Distribution> ofKind(const std::vector<Distribution> &all, bool contractions) {
  std::vector<Distribution> list;
  std::copy_if(all.begin(), all.end(), std::back_inserter(list),
               [&](const Distribution &one) { return one.isContraction == contractions; });
  return list;
}

void writeFigures(const std::vector<Distribution> &all, const std::string &model,
                  const std::string &protocol, bool isShipped, const json &data,
                  const std::string &folder) {
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure) throw Error::badInput("{}: {}", folder, failure.message());
  const auto path = [&](const char *name) {
    return (std::filesystem::path(folder) / name).string();
  };
  const auto draw = [&](const char *name, bool contractions, const std::string &what) {
    const std::vector<Distribution> shown = ofKind(all, contractions);
    std::vector<std::string> notes = coverageOf(shown, isShipped).lines();
    notes.insert(notes.begin(), protocol);
    writeFile(path(name), drawViolins(shown, model + ": " + what, notes));
  };
  draw("contractions.svg", true, "contractions over layouts and algorithms");
  draw("loops.svg", false, "fused kernels over layouts and configurations");
  writeFile(path("distributions.json"), data.dump(2) + "\n");
  writeFile(path("distributions.csv"), printCsv(all));
}

}  // namespace

Explanation explainDistributions(const runtime::Artifact &artifact, const std::string &folder,
                                 const std::string &profileFile, const CostModel &costModel,
                                 const std::string &output) {
  const Profile profile = profileFor(profileFile, costModel.device().name);
  const Replanned replanned = replan(artifact, costModel, folder);
  std::vector<Distribution> all =
      distributionsOf(replanned.planned.kernels, profile, costModel.device());
  const MeasurementCoverage coverage = coverageOf(all, profileFile.empty());
  std::vector<std::string> without;
  std::map<TimeSource, std::vector<std::string>> otherTexts;
  for (const PlanKernel &kernel : artifact.plan.kernels) {
    const TimeSource source = timeSourceOf(kernel);
    if (source == TimeSource::estimated && !kernel.family.isTranspose())
      without.push_back(kernel.name);
    if (source != TimeSource::edited && source != TimeSource::unknown) continue;
    otherTexts[source].push_back(kernel.name);
    // The measurement is of the generated text: nobody knows what this one takes.
    for (Distribution &one : all)
      if (one.kernel == kernel.name) one.chosenSeconds.reset();
  }
  json list = json::array();
  for (const Distribution &one : all) list.push_back(toJson(one));
  const std::string model = fmt::format("{} ({})", artifact.plan.model, artifact.plan.variant);
  const json data = {{"model", artifact.plan.model}, {"variant", artifact.plan.variant},
                     {"device", profile.device},     {"protocol", protocolOf(profile)},
                     {"coverage", toJson(coverage)}, {"kernels", list},
                     {"modelled", without}};
  std::string text = fmt::format("{}{}\n{}\n", tableOf(all), protocolOf(profile),
                                 fmt::join(coverage.lines(), "\n"));
  if (!without.empty())
    text += fmt::format("modelled, so without a distribution: {}\n", fmt::join(without, ", "));
  for (const auto &[source, names] : otherTexts)
    text += fmt::format(
        "{}, so the measured times are not of what runs: {}\n",
        source == TimeSource::edited ? "edited by hand" : "unknown, as there is no manifest.json",
        fmt::join(names, ", "));
  if (!output.empty()) {
    writeFigures(all, model, protocolOf(profile), coverage.isShipped, data, output);
    text += fmt::format(
        "written to {}: contractions.svg, loops.svg, distributions.json, distributions.csv\n",
        output);
  }
  return {.text = text, .json = data};
}

}  // namespace weft::driver
