// weft diff: what differs between two artifacts, by what their kernels compute (PlanDifference.h),
// and which decision each difference comes from. Exit 0 when nothing differs, 1 when anything does.
#include "kernel/LayerNames.h"
#include "kernel/TextWidth.h"
#include "runtime/artifact/Artifact.h"
#include "tools/driver/Console.h"
#include "tools/driver/Fills.h"
#include "tools/driver/PlanDifference.h"
#include "tools/driver/ReEmission.h"
#include "tools/driver/commands/Commands.h"
#include "tools/driver/commands/Explain.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <set>

namespace weft::driver {
namespace {

using nlohmann::json;

/// What the decision means for a reader.
std::string_view meaningOf(Decision decision) {
  switch (decision) {
    case Decision::graph: return "other graph or extents";
    case Decision::device: return "other device";
    case Decision::precision: return "contractions at another precision (--tf32)";
    case Decision::rewrite: return "ops rewritten (variant)";
    case Decision::fusion: return "same ops, fused otherwise";
    case Decision::chunks: return "run in another number of chunks";
    case Decision::pin: return "layout pinned";
    case Decision::layout: return "other layout of a tensor";
    case Decision::schedule: return "other family or configuration";
    case Decision::edit: return "kernel edited by hand";
    case Decision::text:
      return "other text for the same choices: another version of weft, or an edit";
    case Decision::prices: return "same choices, other prices";
  }
  return "";
}

std::string delta(double before, double after) {
  return before == after ? "-"
                         : fmt::format("{}{}", after > before ? "+" : "-",
                                       formatSeconds(std::abs(after - before)));
}

std::string percent(double before, double after) {
  return before > 0 && after != before ? fmt::format(" ({:+.1f}%)", 100 * (after / before - 1))
                                       : "";
}

std::string bytesChange(int64_t before, int64_t after) {
  return before == after ? formatBytes(before)
                         : fmt::format("{} -> {}", formatBytes(before), formatBytes(after));
}

/// Kernels that run: views cost nothing and are no kernel of anyone's count.
size_t launched(const std::vector<PairedKernel> &kernels) {
  size_t count = 0;
  for (const PairedKernel &kernel : kernels) count += kernel.isView ? 0 : kernel.kernels.size();
  return count;
}

std::string kernelText(const PairedKernel &kernel) {
  std::string line = kernel.name;
  if (kernel.kernels.size() > 1) line += fmt::format(" in {} chunks", kernel.kernels.size());
  if (kernel.isView) return line + ": view";
  return line + fmt::format(": {}{}, {}, {}", formatSeconds(kernel.seconds),
                            kernel.isUntold     ? " unknown"
                            : kernel.isEdited   ? " before it was edited"
                            : kernel.isMeasured ? ""
                                                : " estimated",
                            kernel.family, kernel.configuration);
}

std::string groupText(const KernelGroup &group, const std::string &where = "") {
  std::string result = fmt::format(
      "  {}{}: {} -> {}{}, moves {}\n", group.computes, where, formatSeconds(group.secondsBefore()),
      formatSeconds(group.secondsAfter()), percent(group.secondsBefore(), group.secondsAfter()),
      bytesChange(group.bytesBefore(), group.bytesAfter()));
  for (const LayoutDifference &change : group.layouts)
    result += fmt::format("    layout of {}: {} -> {}{}\n", change.tensor, change.before,
                          change.after, change.isPinned ? " (pinned)" : "");
  std::vector<std::string> before, after;
  for (const PairedKernel &kernel : group.before) before.push_back(kernelText(kernel));
  for (const PairedKernel &kernel : group.after) after.push_back(kernelText(kernel));
  for (const std::string &line : before)
    if (std::ranges::find(after, line) == after.end()) result += "    a " + line + "\n";
  for (const std::string &line : after)
    result +=
        (std::ranges::find(before, line) == before.end() ? "    b " : "    a and b ") + line + "\n";
  return result;
}

std::string whyText(const KernelGroup &group) {
  std::string names;
  for (const Decision decision : group.why)
    names += (names.empty() ? "" : ", ") + std::string(nameOf(decision));
  return names;
}

/// What differs, that whose time changes most first.
std::vector<const KernelGroup *> different(const PlanDifference &difference) {
  std::vector<const KernelGroup *> groups;
  for (const KernelGroup &group : difference.groups)
    if (!group.why.empty()) groups.push_back(&group);
  std::ranges::stable_sort(groups, std::ranges::greater(), [](const KernelGroup *group) {
    return std::abs(group->secondsAfter() - group->secondsBefore());
  });
  return groups;
}

/// Groups that differ in the numbers of their layers alone: what differs is the same in each.
struct FoldedGroups {
  std::vector<const KernelGroup *> groups;
  std::set<int64_t> layers;
  bool areSeveral() const { return groups.size() > 1; }
  const KernelGroup &first() const { return *groups.front(); }
  std::string computes() const {
    return areSeveral() ? withoutLayers(first().computes) : first().computes;
  }
  template <typename Value>
  Value sum(Value (KernelGroup::*of)() const) const {
    Value result = {};
    for (const KernelGroup *group : groups) result += (group->*of)();
    return result;
  }
  double change() const {
    return sum(&KernelGroup::secondsAfter) - sum(&KernelGroup::secondsBefore);
  }
};

/// The layer of the first of its kernels that is of one; 0: none is.
int64_t layerOf(const KernelGroup &group) {
  for (const std::vector<PairedKernel> *kernels : {&group.before, &group.after})
    for (const PairedKernel &kernel : *kernels)
      if (kernel.layer > 0) return kernel.layer;
  return 0;
}

/// What differs, repeats of layers folded; that whose time changes most first.
std::vector<FoldedGroups> foldedDifferent(const PlanDifference &difference) {
  std::vector<FoldedGroups> folded;
  std::map<std::string, size_t> known;
  for (const KernelGroup *group : different(difference)) {
    const int64_t layer = layerOf(*group);
    const std::string text = whyText(*group) + "\n" + groupText(*group);
    const auto [at, isNew] = known.emplace(layer > 0 ? withoutLayers(text) : text, folded.size());
    if (isNew) folded.emplace_back();
    folded[at->second].groups.push_back(group);
    if (layer > 0) folded[at->second].layers.insert(layer);
  }
  std::ranges::stable_sort(folded, std::ranges::greater(),
                           [](const FoldedGroups &groups) { return std::abs(groups.change()); });
  return folded;
}

struct Share {
  size_t groups = 0;
  double seconds = 0;
};

/// Groups and seconds by the decision that explains most of a group.
std::map<Decision, Share> sharesOf(const PlanDifference &difference) {
  std::map<Decision, Share> shares;
  for (const KernelGroup *group : different(difference)) {
    Share &share = shares[group->why.front()];
    ++share.groups;
    share.seconds += group->secondsAfter() - group->secondsBefore();
  }
  return shares;
}

std::string changesText(const std::vector<Change> &changes) {
  std::string result;
  for (const Change &change : changes)
    result += fmt::format("  {}: {} -> {}\n", change.what, change.before, change.after);
  return result;
}

std::string sharesText(const PlanDifference &difference) {
  Table table({{"decision", left}, {"kernel groups", right}, {"time", right}, {"", left}});
  const std::map<Decision, Share> shares = sharesOf(difference);
  for (const auto &[decision, share] : shares)
    table.addRow({std::string(nameOf(decision)), std::to_string(share.groups),
                  delta(0, share.seconds), std::string(meaningOf(decision))});
  return shares.empty() ? "" : "\nwhy\n" + table.print();
}

std::string groupsTable(const PlanDifference &difference) {
  const std::vector<FoldedGroups> folded = foldedDifferent(difference);
  if (folded.empty()) return "";
  const bool hasRepeats = std::ranges::any_of(folded, &FoldedGroups::areSeveral);
  std::vector<std::pair<std::string, Table::Align>> columns = {
      {"what is computed", left}, {"kernels", right}, {"time a", right}, {"time b", right},
      {"change", right},          {"moved", right},   {"why", left}};
  if (hasRepeats) columns.insert(columns.begin() + 1, {"", right});
  Table table(columns);
  size_t same = 0;
  for (const KernelGroup &group : difference.groups) same += group.why.empty();
  for (const FoldedGroups &groups : folded) {
    const double before = groups.sum(&KernelGroup::secondsBefore),
                 after = groups.sum(&KernelGroup::secondsAfter);
    const int64_t moved =
        groups.sum(&KernelGroup::bytesAfter) - groups.sum(&KernelGroup::bytesBefore);
    const size_t times = groups.groups.size();
    std::vector<std::string> row = {
        groups.computes(),
        fmt::format("{} -> {}", times * launched(groups.first().before),
                    times * launched(groups.first().after)),
        formatSeconds(before),
        formatSeconds(after),
        delta(before, after),
        moved == 0 ? "-" : (moved > 0 ? "+" : "-") + formatBytes(std::abs(moved)),
        whyText(groups.first())};
    if (hasRepeats)
      row.insert(row.begin() + 1, groups.areSeveral() ? fmt::format("x{}", times) : std::string());
    table.addRow(row);
  }
  std::string result = "\n" + table.print();
  if (same > 0)
    result += fmt::format("{} group{} of kernels {} equal\n", same, same == 1 ? "" : "s",
                          same == 1 ? "is" : "are");
  result += "\n";
  for (const FoldedGroups &groups : folded)
    result +=
        groups.areSeveral()
            ? withoutLayers(groupText(
                  groups.first(), fmt::format(", each of layers {}", layerRanges(groups.layers))))
            : groupText(groups.first());
  return result;
}

/// Whether both are as weft wrote them, or were edited alike. What was edited is not what weft
/// compares.
bool areEditedAlike(const runtime::Artifact &a, const runtime::Artifact &b) {
  if (a.edited != b.edited || a.planEdits != b.planEdits) return false;
  const auto isEdited = [&](const char *file) {
    return std::ranges::find(a.edited, file) != a.edited.end();
  };
  if (isEdited("report.json") && a.report != b.report) return false;
  if (isEdited("graph.mlir") && a.graph != b.graph) return false;
  return std::ranges::all_of(a.edited, [&](const std::string &file) {
    for (const auto part : {&runtime::Artifact::sources, &runtime::Artifact::headers}) {
      const auto one = (a.*part).find(file), other = (b.*part).find(file);
      if ((one == (a.*part).end()) != (other == (b.*part).end())) return false;
      if (one != (a.*part).end() && one->second != other->second) return false;
    }
    return true;
  });
}

using EditLines = std::pair<std::vector<std::string>, std::vector<std::string>>;  // of a and of b

/// Of what work a plan's times are.
struct Work {
  std::optional<ExpectedFill> fill = {};  ///< the lengths that valid tokens are priced at
  bool trains = false;
  bool operator==(const Work &) const = default;
};

Work workOf(const runtime::Artifact &artifact) {
  const json lengths = artifact.report.value("lengths", json::object()),
             asked = artifact.report.value("request", json::object());
  Work work{.trains = asked.value("model", json::object()).value("train", false)};
  if (lengths.contains("tokens")) work.fill = fillFrom(lengths);
  return work;
}

/// By rounded shares, or by six digits and every fill where `isExact`.
std::string textOf(const Work &work, bool isExact) {
  std::string text = "every token of the bound";
  if (work.fill && !isExact)
    text = fmt::format("valid tokens, priced at {:.0f}% of the bound", 100 * work.fill->tokens);
  else if (work.fill)
    text = fmt::format("valid tokens, priced at {:.6g}% of the bound, {:.6g}% of its pairs",
                       100 * work.fill->tokens, 100 * work.fill->pairs);
  std::vector<std::string> levels;
  for (size_t n = 0; isExact && work.fill && n < work.fill->levels.size(); ++n)
    levels.push_back(
        fmt::format("{:.6g}% and {:.6g}% in {:.6g}% of runs", 100 * work.fill->levels[n].tokens,
                    100 * work.fill->levels[n].pairs, 100 * work.fill->levels[n].weight));
  if (!levels.empty()) text += fmt::format(" ({})", fmt::join(levels, ", "));
  return work.trains ? text + ", with gradients" : text;
}

/// Where the times of a and b are of different work, which no decision explains: told by rounded
/// shares where these tell them apart.
std::vector<Change> differentWork(const runtime::Artifact &a, const runtime::Artifact &b) {
  const Work before = workOf(a), after = workOf(b);
  if (before == after) return {};
  const bool isExact = textOf(before, false) == textOf(after, false);
  return {{.what = "times are of different work",
           .before = textOf(before, isExact),
           .after = textOf(after, isExact)}};
}

std::string print(const PlanDifference &difference, const EditLines &edits,
                  const std::vector<Change> &work, const Plan &a, const Plan &b) {
  std::string result;
  for (const std::string &line : edits.first) result += fmt::format("edit of a: {}\n", line);
  for (const std::string &line : edits.second) result += fmt::format("edit of b: {}\n", line);
  if (difference.isEqual && work.empty())
    return result + (edits.first.empty() && edits.second.empty()
                         ? "equal\n"
                         : "no difference beside these edits, which are not weft's\n");
  if (!difference.graph.empty())
    result +=
        "a and b compute different graphs; kernels are paired by the names of their values\n" +
        changesText(difference.graph);
  result += fmt::format(
      "{}: {} -> {}{}, workspace {}, {} -> {} kernels\n", a.model,
      formatSeconds(a.predictedSeconds), formatSeconds(b.predictedSeconds),
      percent(a.predictedSeconds, b.predictedSeconds),
      bytesChange(a.workspaceBytes, b.workspaceBytes),
      std::ranges::count_if(a.kernels, [](const auto &kernel) { return !isView(kernel); }),
      std::ranges::count_if(b.kernels, [](const auto &kernel) { return !isView(kernel); }));
  result += changesText(work) + changesText(difference.decisions) + sharesText(difference) +
            groupsTable(difference);
  if (!difference.others.empty()) {
    result += "\nalso different\n";
    for (const std::string &other : difference.others) result += "  " + other + "\n";
  }
  return result;
}

json toJson(const PairedKernel &kernel) {
  return {{"name", kernel.name},
          {"family", kernel.family.name()},
          {"configuration", kernel.configuration},
          {"ops", kernel.ops},
          {"chunks", kernel.kernels.size()},
          {"seconds", kernel.seconds},
          {"bytesMoved", kernel.bytesMoved},
          {"measured", kernel.isMeasured},
          {"edited", kernel.isEdited},
          {"view", kernel.isView}};
}

json toJson(const std::vector<PairedKernel> &kernels) {
  json list = json::array();
  for (const PairedKernel &kernel : kernels) list.push_back(toJson(kernel));
  return list;
}

json toJson(const std::vector<Change> &changes) {
  json list = json::array();
  for (const Change &change : changes)
    list.push_back({{"what", change.what}, {"a", change.before}, {"b", change.after}});
  return list;
}

template <typename Value>
json pair(const Value &a, const Value &b) {
  return {{"a", a}, {"b", b}};
}

json toJson(const KernelGroup &group) {
  json layouts = json::array(), why = json::array();
  for (const LayoutDifference &change : group.layouts)
    layouts.push_back({{"tensor", change.tensor},
                       {"a", change.before},
                       {"b", change.after},
                       {"pinned", change.isPinned}});
  for (const Decision decision : group.why) why.push_back(nameOf(decision));
  return {{"computes", group.computes},
          {"why", why},
          {"seconds", pair(group.secondsBefore(), group.secondsAfter())},
          {"bytesMoved", pair(group.bytesBefore(), group.bytesAfter())},
          {"layouts", layouts},
          {"kernels", pair(toJson(group.before), toJson(group.after))}};
}

json toJson(const PlanDifference &difference, bool isEqual, const EditLines &edits,
            const std::vector<Change> &work, const Plan &a, const Plan &b) {
  json groups = json::array(), shares = json::array(), folded = json::array();
  for (const KernelGroup *group : different(difference)) groups.push_back(toJson(*group));
  for (const FoldedGroups &repeats : foldedDifferent(difference))
    folded.push_back({{"computes", repeats.computes()},
                      {"groups", repeats.groups.size()},
                      {"layers", repeats.layers},
                      {"seconds", pair(repeats.sum(&KernelGroup::secondsBefore),
                                       repeats.sum(&KernelGroup::secondsAfter))}});
  for (const auto &[decision, share] : sharesOf(difference))
    shares.push_back(
        {{"decision", nameOf(decision)}, {"groups", share.groups}, {"seconds", share.seconds}});
  return {{"equal", isEqual},
          {"graph", toJson(difference.graph)},
          {"decisions", toJson(difference.decisions)},
          {"model", pair(a.model, b.model)},
          {"seconds", pair(a.predictedSeconds, b.predictedSeconds)},
          {"workspaceBytes", pair(a.workspaceBytes, b.workspaceBytes)},
          {"why", shares},
          {"groups", groups},
          {"folded", folded},
          {"equalGroups", difference.groups.size() - groups.size()},
          {"others", difference.others},
          {"work", toJson(work)},
          {"edits", pair(edits.first, edits.second)}};
}

}  // namespace

Action addDiff(CLI::App &command) {
  struct Flags {
    std::string a, b;
  };
  auto flags = std::make_shared<Flags>();
  command.add_option("a", flags->a, "folder that compile wrote")->required()->type_name("A");
  command.add_option("b", flags->b, "another")->required()->type_name("B");
  return [flags](bool asJson) {
    const runtime::Artifact a = runtime::readArtifact(flags->a, runtime::Cubins::left),
                            b = runtime::readArtifact(flags->b, runtime::Cubins::left);
    checkArtifact(a, flags->a, Use::toLook);
    checkArtifact(b, flags->b, Use::toLook);
    const PlanDifference difference = differenceOf(a, b);
    const EditLines edits = {editLines(a), editLines(b)};
    const std::vector<Change> work = differentWork(a, b);
    const bool isEqual = difference.isEqual && work.empty() && areEditedAlike(a, b);
    if (asJson) printResult(toJson(difference, isEqual, edits, work, a.plan, b.plan));
    else printResult(print(difference, edits, work, a.plan, b.plan));
    return isEqual ? 0 : 1;
  };
}

}  // namespace weft::driver
