// First lines of a plan; see FirstLines.h.
#include "tools/driver/FirstLines.h"

#include "kernel/AxisRole.h"
#include "kernel/PlainText.h"
#include "kernel/TextWidth.h"
#include "plan/PlanFigures.h"
#include "tools/driver/Assembly.h"
#include "tools/driver/Console.h"
#include "tools/driver/PlanFacts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <sstream>

namespace weft::driver {
namespace {

using nlohmann::json;
using runtime::BelievedRecords;

constexpr size_t labelColumns = 13;
constexpr double shownShare = 0.005;  // of the time

/// Axes of a layer with the words for them, in the order in which people say them.
constexpr std::array<std::pair<std::string_view, std::string_view>, 17> axisWords{
    {{"b", "batch"},
     {"t", "packed"},
     {"j", "sequence"},
     {"k", "keys"},
     {"h", "heads"},
     {"g", "key heads"},
     {"r", "heads per key head"},
     {"p", "head"},
     {"w", "value head"},
     {"i", "hidden"},
     {"u", "feed-forward"},
     {"v", "vocabulary"},
     {"s", "token types"},
     {"n", "distances"},
     {"a", "global"},
     {"o", "others"},
     {"l", "that occur"}}};

/// "label        text", cut to the width; a text of several lines is indented.
std::string labelled(std::string_view label, const std::string &text, size_t columns) {
  return shortened(fmt::format("{:<{}}{}", label, labelColumns, text), columns) + "\n";
}

/// Items joined by ", " on as few lines as they take, at most two, of which the second may be too
/// long.
struct TwoLines {
  std::string first, rest;
  bool areWithin(size_t columns) const {
    return labelColumns + std::max(textColumns(first), textColumns(rest)) <= columns;
  }
};
TwoLines asTwoLines(const std::vector<std::string> &items, size_t columns) {
  TwoLines lines;
  auto &[first, rest] = lines;
  for (const std::string &item : items) {
    const std::string separator = first.empty() ? "" : ", ";
    const size_t comma =
        &item == &items.back() ? 0 : 1;  // which ends the first line where a second follows
    if (rest.empty() && labelColumns + textColumns(first + separator + item) + comma <= columns)
      first += separator + item;
    else rest += (rest.empty() ? "" : ", ") + item;
  }
  return lines;
}

/// What does not fit is cut with "...".
std::string inTwoLines(std::string_view label, const std::vector<std::string> &items,
                       size_t columns) {
  const TwoLines lines = asTwoLines(items, columns);
  if (lines.rest.empty()) return labelled(label, lines.first, columns);
  return labelled(label, lines.first + ",", columns) + labelled("", lines.rest, columns);
}

/// "graph" of a file, whose axes mean what its author says; of models what is built of them.
std::string partOf(const json &report) {
  return report.value("model", json::object()).value("part", std::string("graph"));
}

/// Every dimension that --dim may set, of a model with its word where the line has room for words.
std::string shapeLines(const Plan &plan, const json &report, size_t columns) {
  std::vector<std::string> words, letters;
  using enum AxisRole;
  const auto extentOf = [&](AxisRole role) {
    const auto found = plan.dims.find(std::string(letterOf(role)));
    return found == plan.dims.end() ? 0 : found->second;
  };
  // Keys that are the queries, values as wide as keys and the heads of a group need no separate
  // word.
  const auto joins = [&](const std::string &name) {
    const std::optional<AxisRole> role = axisRoleNamed(name);
    return !words.empty() && ((role == keys && extentOf(queries) == extentOf(keys)) ||
                              (role == valueSize && extentOf(headSize) == extentOf(valueSize)) ||
                              (name == "r" && extentOf(keyHeads) > 0));
  };
  const auto add = [&](const std::string &name, int64_t extent, std::string_view word) {
    letters.push_back(fmt::format("{}={}", name, extent));
    if (joins(name)) words.back() += " " + letters.back();
    else
      words.push_back(word.empty() ? letters.back() : fmt::format("{} {}", word, letters.back()));
  };
  for (const auto &[name, word] : axisWords)
    if (const auto dim = plan.dims.find(std::string(name)); dim != plan.dims.end())
      add(dim->first, dim->second, word);
  for (const auto &[name, extent] : plan.dims)
    if (std::ranges::find(axisWords, name, [](const auto &known) { return known.first; }) ==
        axisWords.end())
      add(name, extent, "");
  if (words.empty()) return "";
  const bool takesWords =
      partOf(report) != "graph" && asTwoLines(words, columns).areWithin(columns);
  return inTwoLines("shape", takesWords ? words : letters, columns);
}

std::string modelLine(const Plan &plan, const json &report, size_t columns) {
  const std::string part = partOf(report);
  const int64_t layers = report.value("model", json::object()).value("layers", int64_t(1));
  const std::string built = layers == 1       ? part
                            : part == "layer" ? fmt::format("{} layers", layers)
                                              : fmt::format("{} of {} layers", part, layers);
  const std::string pass = plan.entryPoints.size() > 1 ? "training" : "inference";
  const std::string facts = fmt::format("{}, {}, {}, for {} ({})", built, pass, elementsText(plan),
                                        plan.device, plan.target);
  const size_t room = columns - std::min(columns, facts.size() + 2);
  return fmt::format("{:<{}}  {}\n", shortened(printableLine(plan.model), room), labelColumns - 2,
                     facts);
}

std::string pricesLine(const Plan &plan, const Evidence &evidence, size_t columns) {
  const int estimated = evidence.launched - evidence.measured - evidence.edited - evidence.untold;
  std::vector<std::string> counts;
  if (evidence.measured > 0)
    counts.push_back(fmt::format("{} of {} measured ({})", evidence.measured,
                                 countOf(evidence.launched, "kernel"), plan.costModel.name));
  if (evidence.measured == 0 && estimated > 0)
    counts.push_back(
        fmt::format("{} estimated by the {}", countOf(estimated, "kernel"), plan.costModel.name));
  if (evidence.edited > 0) counts.push_back(fmt::format("{} edited", evidence.edited));
  if (evidence.untold > 0) counts.push_back(fmt::format("{} unknown", evidence.untold));
  std::vector<std::string> items{
      fmt::format("{}; {} verified", fmt::join(counts, ", "), evidence.verified)};
  if (evidence.older > 0) items.push_back(fmt::format("{} by an older verifier", evidence.older));
  return inTwoLines("prices", items, columns);
}

/// What was measured goes to a second line where the first has no room.
std::string coverageLines(const Coverage &coverage, size_t columns) {
  return inTwoLines("coverage", itemsOf(coverage), columns);
}

std::string planLines(const Plan &plan, const Evidence &evidence, size_t columns) {
  const auto transposes =
      std::ranges::count_if(plan.kernels, &FamilyId::isTranspose, &PlanKernel::family);
  std::vector<std::string> items{
      fmt::format("{} launch{}", evidence.launched, evidence.launched == 1 ? "" : "es")};
  if (const std::string attention = attentionForm(plan); !attention.empty())
    items.push_back(attention);
  if (const int chunks = mostChunks(plan); chunks > 1)
    items.back() +=
        fmt::format(" in {} {}", chunks, isPipelined(plan) ? "slices at once" : "chunks");
  if (transposes > 0)
    items.push_back(fmt::format("{} transpose{}", transposes, transposes == 1 ? "" : "s"));
  items.push_back(fmt::format("workspace {}", formatBytes(plan.workspaceBytes)));
  return inTwoLines("plan", items, columns);
}

double secondsAsGraph(const Plan &plan) { return graphJson(plan)["seconds"]; }

std::string timeLines(const Plan &plan, const json &report, size_t columns) {
  const std::string sum = formatSeconds(plan.predictedSeconds);
  const std::string graph =
      plan.measurement
          ? fmt::format("{} measured as one CUDA graph", formatSeconds(plan.measurement->seconds))
          : fmt::format("{} predicted as one CUDA graph", formatSeconds(secondsAsGraph(plan)));
  std::string text = labelled("time", fmt::format("{}; {} kernel by kernel", graph, sum), columns);
  std::string bounds;
  const json limits = report.value("searchLimits", json::object());
  if (plan.lowerBoundSeconds > 0)
    bounds = fmt::format("best weft could choose {} ({:.1f}% less){}",
                         formatSeconds(plan.lowerBoundSeconds),
                         100 * std::max(0.0, 1 - plan.lowerBoundSeconds / plan.predictedSeconds),
                         limits.value("boundIsOfAll", true) ? "" : " of what was searched");
  else if (limits.value("reached", false)) bounds = "best weft could choose unknown";
  if (const double roofline = report.value("rooflineSeconds", 0.0); roofline > 0)
    bounds += fmt::format("{}roofline {}", bounds.empty() ? "" : ", ", formatSeconds(roofline));
  return bounds.empty() ? text : text + shortened("  by kernel: " + bounds, columns) + "\n";
}

/// At which lengths a plan of packed tokens is priced; empty for any other.
std::string lengthsLine(const Plan &plan, const json &report, size_t columns) {
  const json lengths = report.value("lengths", json::object());
  if (!lengths.contains("tokens")) return "";
  const double tokens = lengths["tokens"];
  if (tokens >= 1)
    return labelled("lengths", "priced at full length, a bound (--lengths mean=R)", columns);
  if (!lengths.contains("fullGraphSeconds"))  // of an older weft
    return labelled("lengths", fmt::format("priced at {:.0f}% of the tokens", 100 * tokens),
                    columns);
  const double full = lengths["fullGraphSeconds"];
  return labelled(
      "lengths",
      fmt::format("priced at {:.0f}% of the tokens; at full length {}, {:.0f}% more", 100 * tokens,
                  formatSeconds(full), 100 * (full / secondsAsGraph(plan) - 1)),
      columns);
}

/// Both prices, where the plan of padded sequences is predicted to be the faster one.
std::string paddedLine(const Plan &plan, const json &report, size_t columns) {
  const json padded = report.value("lengths", json::object()).value("padded", json::object());
  const double seconds = padded.value("graphSeconds", 0.0), own = secondsAsGraph(plan);
  if (seconds == 0 || seconds >= own) return "";
  return labelled("padded",
                  fmt::format("{} for packed {}: faster with --mask padding, not --ragged",
                              formatSeconds(seconds), formatSeconds(own)),
                  columns);
}

std::string whereLine(const Plan &plan, const json &report, size_t columns) {
  std::string text = fmt::format("{:<{}}", "where", labelColumns);
  const size_t empty = text.size();
  for (const auto &[stage, share] : stageShares(plan, report))
    if (share >= shownShare)
      text += fmt::format("{}{} {:.0f}%", text.size() == empty ? "" : " ", stage, 100 * share);
  return text.size() == empty ? "" : wrapped(text, columns, labelColumns) + "\n";
}

std::string lossLine(const Plan &plan, const json &report, size_t columns) {
  const std::optional<UnfusedLoss> loss = largestUnfused(plan, report);
  if (!loss) return "";
  const std::string code = loss->code.empty() ? "unmeasured" : loss->code;
  const std::string repeats = loss->repeats > 1 ? fmt::format(" x{}", loss->repeats) : "";
  const std::string tail =
      fmt::format(": up to {}{} [{}]", formatSeconds(loss->seconds), repeats, code);
  const std::string text = fmt::format("not fused    {} to {}", loss->tensor, loss->reader);
  return shortened(text, columns - std::min(columns, tail.size())) + tail + "\n";
}

/// " (cubins: 3 built, 9 from the cache)", or why there are none.
std::string cubinsText(const BuildSummary &build, const Plan &plan) {
  if (build.built + build.fromCache > 0)
    return fmt::format(" (cubins: {} built, {} from the cache)", build.built, build.fromCache);
  const auto note = std::ranges::find(plan.notes, NoteKind::build, &PlanNote::kind);
  return note == plan.notes.end() ? "" : fmt::format(" ({})", note->text);
}

/// Broken at spaces; a word that is wider than the line is cut.
std::string warningText(const std::string &warning, size_t columns) {
  std::istringstream lines(wrapped("! " + warning, columns));
  std::string text;
  for (std::string line; std::getline(lines, line);) text += shortened(line, columns) + "\n";
  return text;
}

size_t linesOf(const std::string &text) { return size_t(std::ranges::count(text, '\n')); }

}  // namespace

std::string headLines(const Plan &plan, const json &report, const BelievedRecords &records,
                      size_t columns) {
  const Evidence evidence = evidenceOf(plan, records);
  const std::optional<Coverage> coverage = coverageOf(report);
  return modelLine(plan, report, columns) + shapeLines(plan, report, columns) +
         pricesLine(plan, evidence, columns) + (coverage ? coverageLines(*coverage, columns) : "") +
         planLines(plan, evidence, columns) + timeLines(plan, report, columns) +
         lengthsLine(plan, report, columns) + paddedLine(plan, report, columns) +
         whereLine(plan, report, columns);
}

namespace {

std::string linesOfWarnings(const std::vector<std::string> &warnings, size_t columns,
                            size_t lines) {
  std::vector<std::string> texts;
  for (const std::string &warning : warnings) texts.push_back(warningText(warning, columns));
  std::string text;
  for (size_t index = 0; index < texts.size(); ++index) {
    const size_t rest =
        lines - std::min(lines, linesOf(text) + (index + 1 == texts.size() ? 0 : 1));
    if (linesOf(texts[index]) > rest && rest > 0)
      texts[index] = shortened("! " + warnings[index], columns) + "\n";
    if (linesOf(texts[index]) > rest)
      return text + fmt::format("! {} more: weft explain DIR --all\n", texts.size() - index);
    text += texts[index];
  }
  return text;
}

}  // namespace

std::string warningLines(const Plan &plan, const json &report, const BelievedRecords &records,
                         size_t columns, size_t lines) {
  return linesOfWarnings(textsOf(warningsOf(plan, report, records)), columns, lines);
}

std::string summaryText(const Plan &plan, const json &report, const BelievedRecords &records,
                        const BuildSummary &build, const std::string &path) {
  const std::string folder = printableLine(path);
  const std::string head =
      headLines(plan, report, records, summaryColumns) + lossLine(plan, report, summaryColumns);
  // A path is never cut: who copies it needs all of it.
  const std::string wrote =
      wrapped(fmt::format("wrote {}{}", folder, cubinsText(build, plan)), summaryColumns) +
      fmt::format("\nnext: weft explain {}\n", folder);
  std::vector<Warning> warnings = warningsOf(plan, report, records);
  std::erase_if(warnings,  // the last line says it
                [](const Warning &warning) { return warning.kind == WarningKind::build; });
  return head +
         linesOfWarnings(textsOf(warnings), summaryColumns,
                         summaryLines - linesOf(head) - linesOf(wrote)) +
         wrote;
}

json headJson(const Plan &plan, const json &report, const BelievedRecords &records) {
  const Evidence evidence = evidenceOf(plan, records);
  json object = {{"dtype", nameOf(plan.dtype)},
                 {"contractions", contractionPrecision(plan)},
                 {"launches", evidence.launched},
                 {"measuredKernels", evidence.measured},
                 {"verifiedKernels", evidence.verified},
                 {"olderVerifiedKernels", evidence.older},
                 {"failedKernels", evidence.failed},
                 {"predictedGraphSeconds", secondsAsGraph(plan)},
                 {"rooflineSeconds", report.value("rooflineSeconds", 0.0)},
                 {"coverage", nullptr},
                 {"stages", json::object()}};
  if (const std::optional<Coverage> coverage = coverageOf(report))
    object["coverage"] = {{"legal", coverage->legal},
                          {"offered", coverage->offered},
                          {"measured", coverage->measured}};
  for (const auto &[stage, share] : stageShares(plan, report)) object["stages"][stage] = share;
  return object;
}

json summaryJson(const Plan &plan, const json &report, const BelievedRecords &records,
                 const BuildSummary &build, const std::string &folder) {
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
          {"warnings", textsOf(warningsOf(plan, report, records))},
          {"cubins",
           {{"built", build.built},
            {"slowestSeconds", build.slowestSeconds},
            {"fromCache", build.fromCache},
            {"skipped", build.skipped}}},
          {"notes", textsOf(plan.notes)}};
}

std::string buildDetails(const Plan &plan, const BuildSummary &build) {
  std::string text;
  if (build.built + build.fromCache > 0) {
    const std::string slowest =
        build.built > 0 ? fmt::format(" in at most {:.2f} s each", build.slowestSeconds) : "";
    text = fmt::format("cubins for {}: {} built{}, {} from the cache\n", plan.target, build.built,
                       slowest, build.fromCache);
  }
  for (const PlanKernel &kernel : plan.kernels)
    if (kernel.spillBytes > 0)
      text += fmt::format("{} spills {} B a thread\n", kernel.name, kernel.spillBytes);
  for (const PlanNote &note : plan.notes) text += "note: " + note.text + "\n";
  return text;
}

}  // namespace weft::driver
