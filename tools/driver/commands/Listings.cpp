// Listings of the phases before selection; see Listings.h.
#include "tools/driver/commands/Listings.h"

#include "passes/configure/Family.h"
#include "passes/decide/PathPlan.h"
#include "passes/decide/Roofline.h"
#include "tools/driver/Console.h"
#include "tools/driver/PlanFacts.h"
#include "tools/driver/VariantFile.h"

#include <fmt/format.h>

namespace weft::driver {
namespace {

using nlohmann::json;

json fusionJson(const FusionRecord &record, const Device &device) {
  return {{"pattern", text(record.patterns)},
          {"ops", record.ops},
          {"opNames", record.opNames},
          {"accepted", record.accepted},
          {"code", record.code},
          {"reason", record.reason},
          {"detail", record.detail},
          {"savedBytes", record.savedBytes},
          {"savedSeconds", decision::copySeconds(record.savedBytes, device)}};
}

select::Problem problemOf(ProposedVariant &variant) {
  mlir::Operation &graph = variant.module->getBody()->front();
  return toProblem(&graph, variant.rewrites, variant.fusions);
}

}  // namespace

std::string printVariants(const std::vector<ProposedVariant> &variants) {
  std::vector<std::pair<std::string, std::string>> texts;
  for (const ProposedVariant &variant : variants)
    texts.emplace_back(variant.name(), Compilation::print(variant.module.get()));
  return joinVariants(texts);
}

std::string printProposals(const std::vector<ProposedVariant> &variants) {
  std::vector<std::pair<std::string, std::string>> texts;
  for (const ProposedVariant &variant : variants)
    texts.emplace_back(variant.name(), Compilation::printWithFusions(variant));
  return joinVariants(texts);
}

std::string printFusions(const std::vector<ProposedVariant> &variants, const Device &device,
                         bool asJson) {
  json object = {{"variants", json::array()}};
  std::string result;
  for (const ProposedVariant &variant : variants) {
    Table table({{"ops", left},
                 {"fusion", left},
                 {"saves", right},
                 {"time", right},
                 {"blocked by", broken}});
    json list = json::array();
    for (const FusionRecord &record : variant.fusions.records) {
      list.push_back(fusionJson(record, device));
      const std::string verdict =
          record.accepted ? "yes: " + text(record.patterns) : record.code + " " + record.reason;
      table.addRow({fmt::format("{}", fmt::join(record.opNames, ", ")), verdict,
                    formatBytes(record.savedBytes),
                    formatSeconds(decision::copySeconds(record.savedBytes, device)),
                    record.detail});
    }
    object["variants"].push_back({{"name", variant.name()},
                                  {"candidates", variant.fusions.candidates.size()},
                                  {"records", std::move(list)}});
    result += fmt::format("{}variant {}: {}\n{}", result.empty() ? "" : "\n", variant.name(),
                          countOf(int64_t(variant.fusions.candidates.size()), "candidate kernel"),
                          table.print());
  }
  return asJson ? jsonText(std::move(object)) : result;
}

std::string printCandidates(std::vector<ProposedVariant> &variants, const Device &device,
                            bool asJson) {
  json object = {{"variants", json::array()}};
  std::string result;
  for (ProposedVariant &variant : variants) {
    Table table({{"kernel", left},
                 {"ops", right},
                 {"configurations", right},
                 {"families that reject", broken}});
    json list = json::array();
    double total = 0;
    for (const select::Candidate &candidate : problemOf(variant).candidates) {
      std::vector<Exclusion> exclusions;
      double count = 0;
      for (const ConfigurationSpace &space :
           configurationSpaces(candidate.kernel, device, &exclusions))
        count += countConfigurations(candidate.kernel, space);
      total += count;
      std::string excluded;
      for (const Exclusion &exclusion : exclusions)
        excluded += fmt::format("{}{}: {}", excluded.empty() ? "" : "; ", exclusion.family,
                                exclusion.reason);
      list.push_back({{"kernel", candidate.name},
                      {"ops", candidate.ops},
                      {"configurations", count},
                      {"excluded", excluded}});
      table.addRow({candidate.name, std::to_string(candidate.ops.size()), formatLargeCount(count),
                    excluded});
    }
    object["variants"].push_back(
        {{"name", variant.name()}, {"configurations", total}, {"kernels", std::move(list)}});
    result += fmt::format("{}variant {}: {} configurations\n{}", result.empty() ? "" : "\n",
                          variant.name(), formatLargeCount(total), table.print());
  }
  return asJson ? jsonText(std::move(object)) : result;
}

namespace {

select::Statistics sumOf(const std::vector<decision::SelectedVariant> &variants) {
  select::Statistics total;
  for (const decision::SelectedVariant &variant : variants) {
    const select::Statistics &statistics = variant.selection.statistics();
    total.configurations += statistics.configurations;
    total.legalConfigurations += statistics.legalConfigurations;
    total.kernels += statistics.kernels;
    total.states += statistics.states;
    total.peakStates = std::max(total.peakStates, statistics.peakStates);
    total.seconds += statistics.seconds;
    total.measured += statistics.measured;
    total.unmeasuredKernels += statistics.unmeasuredKernels;
    total.prunedConfigurations += statistics.prunedConfigurations;
    total.prunedTransposes += statistics.prunedTransposes;
    total.modelledTransposes += statistics.modelledTransposes;
  }
  return total;
}

/// What the search was offered: measured, estimated for want of measurements, and left out for want
/// of them. Never silent: a model of which nothing was measured says just that.
std::string evidenceOf(const select::Statistics &total) {
  std::string text = describe(Coverage{.legal = total.legalConfigurations,
                                       .offered = total.configurations,
                                       .measured = total.measured}) +
                     "\n";
  if (total.measured == 0) return text;
  if (total.unmeasuredKernels + total.modelledTransposes > 0)
    text +=
        fmt::format("estimated for want of measurements: {} candidate kernels, {} transposes\n",
                    formatCount(total.unmeasuredKernels), formatCount(total.modelledTransposes));
  return text + fmt::format(
                    "not offered, though legal: {} configurations without a measurement of kernels "
                    "that have some, {} transposes of tensors that have "
                    "some (weft profile --dry-run: by which rules)\n",
                    formatLargeCount(total.prunedConfigurations),
                    formatCount(total.prunedTransposes));
}

/// Why a plan stands that is slower kernel by kernel than another.
std::string whyNotFastest(const decision::Decision &decision) {
  if (decision.best().fitted) return "chosen for its workspace (--max-memory)";
  if (!decision.timed.empty()) return "chosen by measuring";
  if (decision.isPipelined) return fmt::format("in {} slices at once", decision.chunks);
  if (decision.pricedChunkings.size() == 1)
    return fmt::format("in {} chunks as asked", decision.chunks);
  return "as one graph no other is faster";
}

std::string proof(const decision::Decision &decision) {
  const select::Statistics &statistics = decision.best().selection.statistics();
  if (!decision.searchCuts.empty()) return "; what the limits of the search left out may be faster";
  const double loss =
      decision.planned.plan.predictedSeconds / decision.best().selection.best().seconds - 1;
  constexpr double rounding = 1e-9;
  if (loss < -rounding)
    return fmt::format("; in chunks the plan is {:.2f}% faster than the fastest without",
                       -100 * loss);
  if (const std::string line = decision::tradeLine(decision); !line.empty()) return "; " + line;
  if (decision.chunks > 1 || decision.path().seconds > decision.best().selection.best().seconds)
    return fmt::format("; kernel by kernel the plan is {:.2f}% slower than the fastest, {}",
                       100 * loss, whyNotFastest(decision));
  if (statistics.isProven) return "; the plan is proven the cheapest of its variant";
  return fmt::format("; no plan of its variant is more than {:.2f}% faster",
                     100 * statistics.mostGain);
}

}  // namespace

std::string selectionLines(const decision::Decision &decision) {
  const select::Statistics total = sumOf(decision.variants);
  const double seconds = decision.planned.plan.predictedSeconds;
  std::string text;
  std::vector<std::string> lacking;
  for (const decision::DroppedVariant &variant : decision.dropped)
    if (variant.lacksPinned) lacking.push_back(variant.name);
    else text += fmt::format("! variant {} has no plan: {}\n", variant.name, variant.reason);
  if (!lacking.empty())
    text += fmt::format("{} without a tensor that --pin wants stored: {}\n",
                        countOf(int64_t(lacking.size()), "variant"), fmt::join(lacking, ", "));
  if (const std::string line = decision::memoryLine(decision); !line.empty()) text += line + "\n";
  if (!decision.skipped.empty())
    text += fmt::format("{} {} not searched: with the pins no plan of {} is as fast\n",
                        countOf(int64_t(decision.skipped.size()), "variant"),
                        decision.skipped.size() == 1 ? "was" : "were",
                        decision.skipped.size() == 1 ? "it" : "them");
  text += fmt::format("plan {} kernel by kernel; best weft could choose ", formatSeconds(seconds));
  if (decision.lowerBound > 0)
    text += fmt::format(
        "{}, whole kernels, over what was offered in all variants{}, ratio {:.4f}\n",
        formatSeconds(decision.lowerBound), decision.isBoundOfAll ? "" : " that were searched",
        seconds / decision.lowerBound);
  else text += "unknown\n";
  return text + evidenceOf(total) +
         fmt::format("{}, {}, {}, at most {} at one cut, selected in {}{}\n",
                     countOf(int64_t(decision.variants.size()), "variant"),
                     countOf(total.kernels, "candidate kernel"), countOf(total.states, "state"),
                     formatCount(total.peakStates), formatSeconds(total.seconds), proof(decision));
}

}  // namespace weft::driver
