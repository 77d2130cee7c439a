// weft explain --memory: what a plan takes of a GPU's memory, in which chunks its largest temporary
// could be computed, what each takes, and what --memory-trade made of it.
#include "plan/PlanChunks.h"
#include "tools/driver/Console.h"
#include "tools/driver/MemoryReport.h"
#include "tools/driver/PlanFacts.h"
#include "tools/driver/commands/Explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace weft::driver {
namespace {

using nlohmann::json;

json chunksOf(const json &report) { return report.value("chunks", json::array()); }

/// Absent in the report where --memory-trade was 0.
json tradeOf(const json &report) {
  return report.value("memoryTrade",
                      json{{"allowedShare", 0.0}, {"slowerShare", 0.0}, {"bytesLess", 0}});
}

/// As one graph, of the plans that compete: measured ones alone where there are any.
double fastestOf(const json &chunks) {
  const bool isAnyMeasured =
      std::ranges::any_of(chunks, [](const json &one) { return one["measured"].get<bool>(); });
  double fastest = std::numeric_limits<double>::infinity();
  for (const json &one : chunks)
    if (one["measured"].get<bool>() || !isAnyMeasured)
      fastest = std::min(fastest, one["seconds"].get<double>());
  return fastest;
}

/// By which rule the chunks were chosen.
std::string ruleText(const json &report) {
  const double allowed = tradeOf(report)["allowedShare"];
  if (allowed == 0) return "the fastest plan as one graph (--memory-trade 0)";
  return fmt::format(
      "of the plans at most {:g}% slower than the fastest (--memory-trade) the fastest within {} "
      "of "
      "workspace (what ops one by one with a fused attention take, or the L2), else the smallest",
      100 * allowed, formatBytes(int64_t(report.value("freeWorkspace", 0.0))));
}

}  // namespace

std::string chunksLines(const Plan &plan, const json &report) {
  const json chunks = chunksOf(report);
  if (chunks.size() < 2) return "";
  Table table({{"", left},
               {"chunks", right},
               {"whole graph", right},
               {"slower", right},
               {"kernels alone", right},
               {"workspace", right},
               {"prices", left}});
  // report.json has the prices of generated texts; what the plan runs may be others, and without a
  // manifest nobody knows whose the prices are.
  const auto holds = [&](bool PlanKernel::*mark) {
    return std::ranges::any_of(plan.kernels, mark);
  };
  const bool isUntold = holds(&PlanKernel::isUntold), isEdited = holds(&PlanKernel::edited);
  const auto prices = [&](const json &one) -> std::string {
    if (isUntold) return nameOf(TimeSource::unknown);
    if (isEdited && one["chosen"].get<bool>()) return "before it was edited";
    return one["measured"].get<bool>() ? "measured" : "with estimates";
  };
  const double fastest = fastestOf(chunks);
  for (const json &one : chunks)
    table.addRow({one["chosen"].get<bool>() ? "*" : "", std::to_string(one["chunks"].get<int>()),
                  formatSeconds(one["seconds"].get<double>()),
                  fmt::format("{:.1f}%", 100 * (one["seconds"].get<double>() / fastest - 1)),
                  formatSeconds(one["sumSeconds"].get<double>()),
                  formatBytes(one["workspace"].get<int64_t>()), prices(one)});
  if (report.value("freeWorkspace", 0.0) <= 0)
    return "chunks:\n" + table.print();  // of an artifact that does not say what was free
  return fmt::format("chunks: {}; a measured plan is never weighed against an estimate\n{}",
                     ruleText(report), table.print());
}

Explanation explainMemory(const runtime::Artifact &artifact) {
  const Plan &plan = artifact.plan;
  const json &report = artifact.report;
  const json chunks = chunksOf(report), trade = tradeOf(report);
  const json choices = report.value("request", json::object()).value("choices", json::object());
  const std::string maxMemory = choices.value("maxMemory", "");
  std::string text = memoryLine(plan) + memoryTrade(plan, report).text + "\n";
  if (!maxMemory.empty())
    text += fmt::format("chosen among plans of at most --max-memory {}\n", maxMemory);
  text += chunksLines(plan, report);
  if (const double slower = trade["slowerShare"]; slower > 0)
    text +=
        fmt::format("the trade was used: {:.2f}% slower than the fastest, {} of workspace less\n",
                    100 * slower, formatBytes(trade["bytesLess"].get<int64_t>()));
  else if (chunks.size() > 1)
    text += fmt::format("the trade was not used: no time was given for memory{}\n",
                        trade["allowedShare"] == 0
                            ? "; weft compile --memory-trade PERCENT admits slower plans, "
                              "--max-memory SIZE bounds the workspace"
                            : "");
  return {.text = text,
          .json = {{"memory", memoryReport(plan)},
                   {"chunks", chunks},
                   {"freeWorkspaceBytes", report.value("freeWorkspace", 0.0)},
                   {"memoryTrade", trade},
                   {"maxMemory", maxMemory},
                   {"fact", memoryTrade(plan, report).text}}};
}

}  // namespace weft::driver
