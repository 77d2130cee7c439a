// First lines of a plan; see FirstLines.h.
#include "tools/driver/FirstLines.h"

#include "kernel/TextWidth.h"
#include "tools/driver/Assembly.h"
#include "tools/driver/Console.h"
#include "tools/driver/PlanFacts.h"
#include "tools/driver/PlanFigures.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace weft::driver {
namespace {

using nlohmann::json;
using runtime::BelievedRecords, runtime::Plan;

constexpr size_t labelColumns = 13;
constexpr double shownShare = 0.005;  // of the time

/// Axes of a layer with the words for them, in the order in which people say them.
constexpr std::array<std::pair<std::string_view, std::string_view>, 13> axisWords{{
    {"b", "batch"}, {"t", "packed"}, {"j", "sequence"}, {"k", "keys"}, {"h", "heads"}, {"g", "key heads"}, {"p", "head"}, {"w", "value head"},
    {"i", "hidden"}, {"u", "feed-forward"}, {"v", "vocabulary"}, {"n", "positions"}, {"l", "layers"}}};

/// "label        text", cut to the width; a text of several lines is indented.
std::string labelled(std::string_view label, const std::string &text, size_t columns) {
  return shortened(fmt::format("{:<{}}{}", label, labelColumns, text), columns) + "\n";
}

/// Items joined by ", " on as few lines as they take, at most two; what does not fit is cut with "...".
std::string inTwoLines(std::string_view label, const std::vector<std::string> &items, size_t columns) {
  std::string first, rest;
  for (const std::string &item : items) {
    const std::string separator = first.empty() ? "" : ", ";
    if (rest.empty() && labelColumns + textColumns(first + separator + item) < columns) first += separator + item;
    else rest += (rest.empty() ? "" : ", ") + item;
  }
  if (rest.empty()) return labelled(label, first, columns);
  return labelled(label, first + ",", columns) + labelled("", rest, columns);
}

/// Every dimension that --dim may set, with its word where the line has room for words.
std::string shapeLines(const Plan &plan, size_t columns) {
  std::vector<std::string> words, letters;
  const auto add = [&](const std::string &name, int64_t extent, std::string_view word) {
    letters.push_back(fmt::format("{}={}", name, extent));
    words.push_back(word.empty() ? letters.back() : fmt::format("{} {}", word, letters.back()));
  };
  for (const auto &[name, word] : axisWords)
    if (const auto dim = plan.dims.find(std::string(name)); dim != plan.dims.end()) add(dim->first, dim->second, word);
  for (const auto &[name, extent] : plan.dims)
    if (std::ranges::find(axisWords, name, [](const auto &known) { return known.first; }) == axisWords.end()) add(name, extent, "");
  if (words.empty()) return "";
  const std::string text = inTwoLines("shape", words, columns);
  return text.find("...") == std::string::npos ? text : inTwoLines("shape", letters, columns);
}

std::string modelLine(const Plan &plan, const json &report, size_t columns) {
  const std::string part = report.value("model", json::object()).value("part", std::string("graph"));
  const std::string pass = plan.entryPoints.size() > 1 ? "training" : "inference";
  const std::string facts = fmt::format("{}, {}, {}, for {} ({})", part, pass, plan.dtype, plan.device, plan.target);
  const size_t room = columns - std::min(columns, facts.size() + 2);
  return fmt::format("{:<{}}  {}\n", shortened(plan.model, room), labelColumns - 2, facts);
}

/// "shipped profile" of "shipped profile (h200, 68621 rows)".
std::string sourceOfPrices(const Plan &plan) { return plan.costModel.substr(0, plan.costModel.find(" (")); }

std::string pricesLine(const Plan &plan, const Evidence &evidence, size_t columns) {
  const std::string older = evidence.older > 0 ? fmt::format(", {} by an older verifier", evidence.older) : "";
  const std::string verified = fmt::format("; {} verified{}", evidence.verified, older);
  if (evidence.measured == 0) return labelled("prices", fmt::format("{} kernels estimated by the {}{}", evidence.launched, sourceOfPrices(plan), verified), columns);
  return labelled("prices", fmt::format("{} of {} kernels measured ({}){}", evidence.measured, evidence.launched, sourceOfPrices(plan), verified), columns);
}

std::string planLines(const Plan &plan, const Evidence &evidence, size_t columns) {
  const auto transposes = std::ranges::count(plan.kernels, "transpose", &runtime::PlanKernel::family);
  std::vector<std::string> items{fmt::format("{} launch{}", evidence.launched, evidence.launched == 1 ? "" : "es")};
  if (const std::string attention = attentionForm(plan); !attention.empty()) items.push_back(attention);
  if (const int chunks = mostChunks(plan); chunks > 1) items.back() += fmt::format(" in {} chunks", chunks);
  if (transposes > 0) items.push_back(fmt::format("{} transpose{}", transposes, transposes == 1 ? "" : "s"));
  items.push_back(fmt::format("workspace {}", formatBytes(plan.workspaceBytes)));
  return inTwoLines("plan", items, columns);
}

double secondsAsGraph(const Plan &plan) { return graphJson(plan)["seconds"]; }

std::string timeLines(const Plan &plan, const json &report, size_t columns) {
  const std::string sum = formatSeconds(plan.predictedSeconds);
  const std::string graph = plan.measurement ? fmt::format("{} measured as one CUDA graph", formatSeconds(plan.measurement->seconds))
                                             : fmt::format("{} predicted as one CUDA graph", formatSeconds(secondsAsGraph(plan)));
  std::string text = labelled("time", fmt::format("{}; {} kernel by kernel", graph, sum), columns);
  std::string bounds;
  if (plan.lowerBoundSeconds > 0)
    bounds = fmt::format("best weft could choose {} ({:.1f}% less)", formatSeconds(plan.lowerBoundSeconds),
                         100 * std::max(0.0, 1 - plan.lowerBoundSeconds / plan.predictedSeconds));
  if (const double roofline = report.value("rooflineSeconds", 0.0); roofline > 0)
    bounds += fmt::format("{}roofline {}", bounds.empty() ? "" : ", ", formatSeconds(roofline));
  return bounds.empty() ? text : text + shortened("  by kernel: " + bounds, columns) + "\n";
}

std::string whereLine(const Plan &plan, const json &report, size_t columns) {
  std::string text;
  for (const auto &[stage, share] : stageShares(plan, report))
    if (share >= shownShare) text += fmt::format("{}{} {:.0f}%", text.empty() ? "" : " ", stage, 100 * share);
  return text.empty() ? "" : labelled("where", text, columns);
}

std::string lossLine(const Plan &plan, const json &report, size_t columns) {
  const std::optional<UnfusedLoss> loss = largestUnfused(plan, report);
  if (!loss) return "";
  const std::string code = loss->code.empty() ? "unmeasured" : loss->code;
  const std::string tail = fmt::format(": up to {} [{}]", formatSeconds(loss->seconds), code);
  const std::string text = fmt::format("not fused    {} to {}", loss->tensor, loss->reader);
  return shortened(text, columns - std::min(columns, tail.size())) + tail + "\n";
}

std::string cubinsText(const BuildSummary &build) {
  return build.built + build.fromCache == 0 ? "" : fmt::format(" (cubins: {} built, {} from the cache)", build.built, build.fromCache);
}

size_t linesOf(const std::string &text) { return size_t(std::ranges::count(text, '\n')); }

}  // namespace

std::string headLines(const Plan &plan, const json &report, const BelievedRecords &records, size_t columns) {
  const Evidence evidence = evidenceOf(plan, records);
  const std::optional<Coverage> coverage = coverageOf(report);
  return modelLine(plan, report, columns) + shapeLines(plan, columns) + pricesLine(plan, evidence, columns) +
         (coverage ? labelled("coverage", describe(*coverage), columns) : "") + planLines(plan, evidence, columns) + timeLines(plan, report, columns) +
         whereLine(plan, report, columns);
}

std::string warningLines(const Plan &plan, const json &report, const BelievedRecords &records, size_t columns, size_t lines) {
  const std::vector<std::string> warnings = warningsOf(plan, report, records);
  const size_t shown = warnings.size() <= lines ? warnings.size() : lines - 1;
  std::string text;
  for (size_t index = 0; index < shown; ++index) text += shortened("! " + warnings[index], columns) + "\n";
  if (shown < warnings.size()) text += fmt::format("! {} more: weft explain DIR --all\n", warnings.size() - shown);
  return text;
}

std::string summaryText(const Plan &plan, const json &report, const BelievedRecords &records, const BuildSummary &build, const std::string &folder) {
  const std::string head = headLines(plan, report, records, summaryColumns) + lossLine(plan, report, summaryColumns);
  // A path is never cut: who copies it needs all of it.
  const std::string wrote = fmt::format("wrote {}{}\nnext: weft explain {}\n", folder, cubinsText(build), folder);
  return head + warningLines(plan, report, records, summaryColumns, summaryLines - linesOf(head) - linesOf(wrote)) + wrote;
}

json headJson(const Plan &plan, const json &report, const BelievedRecords &records) {
  const Evidence evidence = evidenceOf(plan, records);
  json object = {{"launches", evidence.launched},
                 {"measuredKernels", evidence.measured},
                 {"verifiedKernels", evidence.verified},
                 {"olderVerifiedKernels", evidence.older},
                 {"failedKernels", evidence.failed},
                 {"predictedGraphSeconds", secondsAsGraph(plan)},
                 {"rooflineSeconds", report.value("rooflineSeconds", 0.0)},
                 {"coverage", nullptr},
                 {"stages", json::object()}};
  if (const std::optional<Coverage> coverage = coverageOf(report))
    object["coverage"] = {{"legal", coverage->legal}, {"offered", coverage->offered}, {"measured", coverage->measured}};
  for (const auto &[stage, share] : stageShares(plan, report)) object["stages"][stage] = share;
  return object;
}

json summaryJson(const Plan &plan, const json &report, const BelievedRecords &records, const BuildSummary &build, const std::string &folder) {
  const std::optional<UnfusedLoss> loss = largestUnfused(plan, report);
  return {{"artifact", folder},
          {"model", plan.model},
          {"variant", plan.variant},
          {"kernels", plan.kernels.size()},
          {"predictedSeconds", plan.predictedSeconds},
          {"lowerBoundSeconds", plan.lowerBoundSeconds},
          {"measuredSeconds", plan.measurement ? json(plan.measurement->seconds) : json()},
          {"graph", graphJson(plan)},
          {"workspaceBytes", plan.workspaceBytes},
          {"plan", planFigures(plan)},
          {"summary", headJson(plan, report, records)},
          {"unfusedSeconds", loss ? loss->seconds : 0},
          {"warnings", warningsOf(plan, report, records)},
          {"cubins", {{"built", build.built}, {"slowestSeconds", build.slowestSeconds}, {"fromCache", build.fromCache}, {"skipped", build.skipped}}},
          {"notes", plan.notes}};
}

std::string buildDetails(const Plan &plan, const BuildSummary &build) {
  std::string text;
  if (build.built + build.fromCache > 0) {
    const std::string slowest = build.built > 0 ? fmt::format(" in at most {:.2f} s each", build.slowestSeconds) : "";
    text = fmt::format("cubins for {}: {} built{}, {} from the cache\n", plan.target, build.built, slowest, build.fromCache);
  }
  for (const runtime::PlanKernel &kernel : plan.kernels)
    if (kernel.spillBytes > 0) text += fmt::format("{} spills {} B a thread\n", kernel.name, kernel.spillBytes);
  for (const std::string &note : plan.notes) text += "note: " + note + "\n";
  return text;
}

}  // namespace weft::driver
