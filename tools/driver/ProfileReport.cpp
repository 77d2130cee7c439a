// Correlations and failures; see ProfileReport.h.
#include "tools/driver/ProfileReport.h"

#include "kernel/ConfigurationText.h"
#include "tools/driver/Console.h"
#include "tools/driver/RankCorrelation.h"

#include <map>

namespace weft::driver {
namespace {

using Pairs = std::vector<std::pair<double, double>>;
using PairsByKernel = std::map<std::string, Pairs>;

/// The fastest measured row of the library among those of one product's strides; nothing if there
/// is none.
std::optional<double> fastest(const ProfileKernel &kernel, const std::string &prefix) {
  std::optional<double> best;
  for (auto row = kernel.rows.lower_bound(prefix);
       row != kernel.rows.end() && row->first.starts_with(prefix); ++row)
    if (row->second.status == RowStatus::measured && (!best || row->second.seconds < *best))
      best = row->second.seconds;
  return best;
}

std::map<std::string, PairsByKernel> pairsByFamily(const ProfileSpace &space,
                                                   const Profile &profile) {
  std::map<std::string, PairsByKernel> families;
  for (const ProfileItem &item : space.items) {
    const auto kernel = profile.kernels.find(item.subject);
    if (kernel == profile.kernels.end()) continue;
    const auto row = kernel->second.rows.find(item.line);
    if (row == kernel->second.rows.end() || row->second.status != RowStatus::measured) continue;
    families[std::string(splitLine(item.line).family)][item.subject].emplace_back(
        item.modelled, row->second.seconds);
  }
  for (const ProfileProduct &product : space.products) {
    const auto kernel = profile.kernels.find(product.subject);
    if (kernel == profile.kernels.end()) continue;
    const std::string family(familyOf(LibraryKnobs{}));
    if (const auto best = fastest(kernel->second, family + " " + product.place + " "))
      families[family][product.subject].emplace_back(product.modelled, *best);
  }
  return families;
}

FamilyCorrelation correlate(const std::string &family, const PairsByKernel &kernels) {
  FamilyCorrelation result{.family = family, .rows = 0, .overall = {}, .perKernel = {}};
  Pairs all;
  double sum = 0;
  int counted = 0;
  for (const auto &[kernel, pairs] : kernels) {
    all.insert(all.end(), pairs.begin(), pairs.end());
    if (const auto own = spearman(pairs)) sum += *own, ++counted;
  }
  result.rows = all.size();
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
  for (const ProfileProduct &product : space.products) subjects.insert(product.subject);
  for (const std::string &subject : subjects)
    if (const auto kernel = profile.kernels.find(subject); kernel != profile.kernels.end())
      for (const auto &[line, row] : kernel->second.rows)
        if (row.status == RowStatus::failed) ++report.failures[row.reason];
  return report;
}

std::string print(const ProfileReport &report) {
  Table table({{"rank correlation of model and measurement", Table::Align::left},
               {"rows", Table::Align::right},
               {"overall", Table::Align::right},
               {"within a kernel", Table::Align::right}});
  for (const FamilyCorrelation &family : report.families)
    table.addRow({family.family, formatCount(int64_t(family.rows)),
                  printCorrelation(family.overall), printCorrelation(family.perKernel)});
  std::string text = table.print();
  for (const auto &[reason, rows] : report.failures)
    text += fmt::format("failed, {} rows: {}\n", rows, reason);
  return text;
}

nlohmann::json toJson(const ProfileSpace &space) {
  nlohmann::json kernels = nlohmann::json::array();
  for (const ProfileKernelSpace &kernel : space.kernels)
    kernels.push_back({{"kernel", kernel.name},
                       {"legal", kernel.legal},
                       {"layoutCombinations", kernel.combinations},
                       {"layouts", kernel.layouts},
                       {"transposes", kernel.pairs},
                       {"configurations", kernel.configurations}});
  return {{"kernels", kernels},
          {"configurations", space.items.size()},
          {"duplicates", space.duplicates},
          {"products", space.products.size()},
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
                        {"rows", family.rows},
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
          {"rowsOfGpu", outcome.rowsOfGpu},
          {"lostGpus", outcome.lostGpus},
          {"protocol", outcome.protocol},
          {"rankCorrelation", families},
          {"failures", report.failures}};
}

}  // namespace weft::driver
