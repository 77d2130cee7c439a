// Notes and summaries of an artifact; see Assembly.h.
#include "tools/driver/Assembly.h"

#include "runtime/GraphPrediction.h"
#include "tools/driver/Console.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <set>

namespace weft::driver {
namespace {

int64_t count(const runtime::Plan &plan, const std::string &family) {
  return std::count_if(plan.kernels.begin(), plan.kernels.end(),
                       [&](const runtime::PlanKernel &kernel) { return kernel.family == family; });
}

std::string buildLine(const runtime::Plan &plan, const BuildSummary &build) {
  for (const std::string &note : plan.notes)
    if (note.starts_with("cubins: ")) return note;  // why there are none
  const std::string slowest = build.built > 0 ? fmt::format(" in at most {:.2f} s each", build.slowestSeconds) : "";
  std::string text = fmt::format("cubins for {}: {} built{}, {} from the cache", plan.target, build.built, slowest, build.fromCache);
  for (const runtime::PlanKernel &kernel : plan.kernels)
    if (kernel.spillBytes > 0) text += fmt::format("\n  {} spills {} B a thread", kernel.name, kernel.spillBytes);
  return text;
}

/// "measured", "partly measured, partly estimated": what stands behind the sum. A view takes no time that anyone could measure.
std::string sourcesOf(const runtime::Plan &plan) {
  std::set<runtime::TimeSource> sources;
  for (const runtime::PlanKernel &kernel : plan.kernels)
    if (!runtime::isView(kernel)) sources.insert(runtime::timeSourceOf(kernel));
  if (sources.empty()) sources.insert(runtime::TimeSource::estimated);
  std::vector<std::string> words;
  for (const runtime::TimeSource source : {runtime::TimeSource::measured, runtime::TimeSource::estimated, runtime::TimeSource::edited})
    if (sources.contains(source)) words.push_back(fmt::format("{}{}", sources.size() > 1 ? "partly " : "", nameOf(source)));
  return fmt::format("{}", fmt::join(words, ", "));
}

}  // namespace

std::string lowered(const PlannedKernels &planned, const std::string &architecture) {
  std::string text;
  for (const ChosenKernel &chosen : planned.kernels)
    if (hasText(chosen.configuration.knobs))
      text += fmt::format("// {}\n{}\n", chosen.kernel.name,
                          codegen::lowerToText(chosen.kernel, chosen.configuration, architecture));
  return text;
}

nlohmann::json summaryJson(const runtime::Plan &plan, const BuildSummary &build, const std::string &folder) {
  return {{"artifact", folder},
          {"model", plan.model},
          {"variant", plan.variant},
          {"kernels", plan.kernels.size()},
          {"predictedSeconds", plan.predictedSeconds},
          {"lowerBoundSeconds", plan.lowerBoundSeconds},
          {"measuredSeconds", plan.measurement ? nlohmann::json(plan.measurement->seconds) : nlohmann::json()},
          {"graph", graphJson(plan)},
          {"workspaceBytes", plan.workspaceBytes},
          {"cubins", {{"built", build.built}, {"slowestSeconds", build.slowestSeconds}, {"fromCache", build.fromCache}, {"skipped", build.skipped}}},
          {"notes", plan.notes}};
}

std::string summaryText(const runtime::Plan &plan, const BuildSummary &build, const std::string &folder) {
  std::string text = fmt::format("{}, variant {}: {} kernels, {} of them transposes, workspace {}\n", plan.model,
                                 plan.variant, plan.kernels.size(), count(plan, "transpose"),
                                 formatBytes(plan.workspaceBytes));
  text += totalLine(plan) + "\n" + measurementLine(plan) + buildLine(plan, build) + "\n";
  return text + "wrote " + folder + "\n";
}

std::string measurementLine(const runtime::Plan &plan) {
  if (!plan.measurement) return "";
  return fmt::format("whole graph {} (+-{:.1f}%), {:.3f}x of the predicted sum, on {}\n", formatSeconds(plan.measurement->seconds),
                     50 * plan.measurement->spread, plan.measurement->ratio, plan.measurement->gpu);
}

nlohmann::json graphJson(const runtime::Plan &plan) {
  std::vector<int> inOrder(plan.kernels.size());
  std::iota(inOrder.begin(), inOrder.end(), 0);
  const runtime::GraphPrediction graph = runtime::predictGraph(plan, inOrder);
  return {{"seconds", graph.seconds()}, {"reusedBytes", graph.reusedBytes}, {"overwrittenBytes", graph.overwrittenBytes}};
}

std::string totalLine(const runtime::Plan &plan) {
  std::string text = fmt::format("total {} {} on {}", formatSeconds(plan.predictedSeconds), sourcesOf(plan), plan.device);
  const bool isInParts = std::ranges::any_of(plan.kernels, [](const runtime::PlanKernel &kernel) { return kernel.part.has_value(); });
  if (plan.lowerBoundSeconds > 0)
    text += fmt::format("   lower bound of all variants {}{} {:.1f}% above it", formatSeconds(plan.lowerBoundSeconds),
                        isInParts ? ", whole kernels   plan in parts is" : "   plan is",
                        (plan.predictedSeconds / plan.lowerBoundSeconds - 1) * 100);
  std::vector<int> inOrder(plan.kernels.size());
  std::iota(inOrder.begin(), inOrder.end(), 0);
  const runtime::GraphPrediction graph = runtime::predictGraph(plan, inOrder);
  if (graph.reuseSeconds > 0)
    text += fmt::format("\nas one graph {}: kernels find {} in L2 that others left there, and {} never leave it", formatSeconds(graph.seconds()),
                        formatBytes(graph.reusedBytes), formatBytes(graph.overwrittenBytes));
  return text;
}

}  // namespace weft::driver
