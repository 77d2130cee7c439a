// Correlations and failures; see ProfileReport.h.
#include "tools/driver/ProfileReport.h"

#include "kernel/ConfigurationText.h"
#include "kernel/Family.h"
#include "tools/driver/Console.h"
#include "tools/driver/RankCorrelation.h"

#include <map>

namespace weft::driver {
namespace {

using Pairs = std::vector<std::pair<double, double>>;
using PairsByKernel = std::map<std::string, Pairs>;

/// The fastest measured measurement of the library among those of one GEMM's strides; nothing if
/// there is none.
std::optional<double> fastest(const ProfileKernel &kernel, std::string_view place) {
  std::optional<double> best;
  for (const auto &[line, one] : measurementsAt(kernel, familyWith(&Family::isLibrary), place))
    if (one->status == MeasurementStatus::measured && (!best || one->seconds < *best))
      best = one->seconds;
  return best;
}

std::map<std::string, PairsByKernel> pairsByFamily(const ProfileSpace &space,
                                                   const Profile &profile) {
  std::map<std::string, PairsByKernel> families;
  for (const ProfileItem &item : space.items) {
    const auto kernel = profile.kernels.find(item.subject);
    if (kernel == profile.kernels.end()) continue;
    const auto measurement = kernel->second.measurements.find(item.line);
    if (measurement == kernel->second.measurements.end() ||
        measurement->second.status != MeasurementStatus::measured)
      continue;
    families[std::string(splitLine(item.line).family)][item.subject].emplace_back(
        item.modelled, measurement->second.seconds);
  }
  for (const ProfileGemm &gemm : space.gemms) {
    const auto kernel = profile.kernels.find(gemm.subject);
    if (kernel == profile.kernels.end()) continue;
    const std::string family(familyWith(&Family::isLibrary).name);
    if (const auto best = fastest(kernel->second, gemm.place))
      families[family][gemm.subject].emplace_back(gemm.modelled, *best);
  }
  return families;
}

FamilyCorrelation correlate(const std::string &family, const PairsByKernel &kernels) {
  FamilyCorrelation result{.family = family, .measurements = 0, .overall = {}, .perKernel = {}};
  Pairs all;
  double sum = 0;
  int counted = 0;
  for (const auto &[kernel, pairs] : kernels) {
    all.insert(all.end(), pairs.begin(), pairs.end());
    if (const auto own = spearman(pairs)) sum += *own, ++counted;
  }
  result.measurements = all.size();
  result.overall = spearman(all);
  if (counted > 0) result.perKernel = sum / counted;
  return result;
}

std::string printCorrelation(const std::optional<double> &value) {
  return value ? fmt::format("{:.3f}", *value) : "-";
}

nlohmann::json orNull(const std::optional<double> &value) {
  return value ? nlohmann::json(*value) : nlohmann::json();
}

}  // namespace

ProfileReport reportOf(const ProfileSpace &space, const Profile &profile) {
  ProfileReport report;
  PairsByKernel all;
  for (const auto &[family, kernels] : pairsByFamily(space, profile)) {
    report.families.push_back(correlate(family, kernels));
    for (const auto &[kernel, pairs] : kernels)
      all[kernel].insert(all[kernel].end(), pairs.begin(), pairs.end());
  }
  report.families.push_back(correlate("all", all));
  std::set<std::string> subjects;
  for (const ProfileItem &item : space.items) subjects.insert(item.subject);
  for (const ProfileGemm &gemm : space.gemms) subjects.insert(gemm.subject);
  for (const std::string &subject : subjects)
    if (const auto kernel = profile.kernels.find(subject); kernel != profile.kernels.end())
      for (const auto &[line, measurement] : kernel->second.measurements)
        if (measurement.status == MeasurementStatus::failed) ++report.failures[measurement.reason];
  return report;
}

std::string print(const ProfileReport &report) {
  Table table({{"rank correlation of model and measurement", left},
               {"measurements", right},
               {"overall", right},
               {"within a kernel", right}});
  for (const FamilyCorrelation &family : report.families)
    table.addRow({family.family, formatCount(int64_t(family.measurements)),
                  printCorrelation(family.overall), printCorrelation(family.perKernel)});
  std::string text = table.print();
  for (const auto &[reason, measurements] : report.failures)
    text += fmt::format("failed, {} measurements: {}\n", measurements, reason);
  return text;
}

std::string describe(const ProfileSpace &space, bool eachKernel) {
  double legal = 0;
  size_t combinations = 0, layouts = 0, pairs = 0;
  for (const decision::ProfileKernelSpace &kernel : space.kernels) {
    pairs += kernel.pairs;
    legal += kernel.legal;
    combinations += kernel.combinations;
    layouts += kernel.layouts;
  }
  std::string text = fmt::format(
      "{} distinct kernels, {:.2g} legal configurations\n"
      "layouts: {} combinations of those that tensors keep, {} within {}x of their kernel's best "
      "by the model (at most {}) or transposes\n"
      "transposes: every pair of layouts that a tensor keeps, {}\n"
      "knobs: within {}x of the layouts' best, at most {}: {} configurations to measure, {} "
      "duplicates left out\n"
      "GEMMs: {} distinct, every candidate that cuBLASLt lists\n",
      space.kernels.size(), legal, formatCount(int64_t(combinations)),
      formatCount(int64_t(layouts)), space.options.layoutFactor, space.options.mostLayouts,
      formatCount(int64_t(pairs)), space.options.knobFactor, space.options.mostKnobs,
      formatCount(int64_t(space.items.size())), formatCount(int64_t(space.duplicates)),
      space.gemms.size());
  if (!eachKernel) return text;
  Table table({{"kernel", left},
               {"legal", right},
               {"layouts", right},
               {"kept", right},
               {"measured", right}});
  for (const decision::ProfileKernelSpace &kernel : space.kernels)
    table.addRow({kernel.name, fmt::format("{:.3g}", kernel.legal),
                  formatCount(int64_t(kernel.combinations)), formatCount(int64_t(kernel.layouts)),
                  formatCount(int64_t(kernel.configurations))});
  return text + table.print();
}

nlohmann::json toJson(const ProfileSpace &space) {
  nlohmann::json kernels = nlohmann::json::array();
  for (const decision::ProfileKernelSpace &kernel : space.kernels)
    kernels.push_back({{"kernel", kernel.name},
                       {"legal", kernel.legal},
                       {"layoutCombinations", kernel.combinations},
                       {"layouts", kernel.layouts},
                       {"transposes", kernel.pairs},
                       {"configurations", kernel.configurations}});
  return {{"kernels", kernels},
          {"configurations", space.items.size()},
          {"duplicates", space.duplicates},
          {"gemms", space.gemms.size()},
          {"layoutFactor", space.options.layoutFactor},
          {"mostLayouts", space.options.mostLayouts},
          {"knobFactor", space.options.knobFactor},
          {"mostKnobs", space.options.mostKnobs}};
}

nlohmann::json toJson(const ProfileOutcome &outcome, const ProfileReport &report,
                      const std::string &store) {
  nlohmann::json families = nlohmann::json::array();
  for (const FamilyCorrelation &family : report.families)
    families.push_back({{"family", family.family},
                        {"measurements", family.measurements},
                        {"overall", orNull(family.overall)},
                        {"withinKernel", orNull(family.perKernel)}});
  const char *ends[] = {"finished", "budget", "interrupted"};
  return {{"store", store},
          {"measured", outcome.progress.measured},
          {"slow", outcome.progress.slow},
          {"failed", outcome.progress.failed},
          {"seconds", outcome.progress.seconds},
          {"skipped", outcome.skipped},
          {"left", outcome.progress.total - outcome.progress.done},
          {"end", ends[int(outcome.end)]},
          {"measurementsOfGpu", outcome.measurementsOfGpu},
          {"lostGpus", outcome.lostGpus},
          {"protocol", outcome.protocol},
          {"rankCorrelation", families},
          {"failures", report.failures}};
}

}  // namespace weft::driver
