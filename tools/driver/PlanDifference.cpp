// Pairing of two plans' kernels, and what makes them differ; see PlanDifference.h.
#include "tools/driver/PlanDifference.h"

#include "kernel/LaunchCheck.h"
#include "plan/KernelPositions.h"
#include "plan/PlanBuilder.h"
#include "plan/PlanChunks.h"
#include "plan/PlanFigures.h"
#include "runtime/artifact/Artifact.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace weft::driver {
namespace {

using nlohmann::json;
using runtime::Artifact;

using Names = std::vector<std::string>;

/// One side of the comparison.
struct Side {
  const Artifact &artifact;
  std::vector<PairedKernel> kernels;
  std::set<std::string> values;  ///< every name that the plan has for a value or a tensor
  std::map<std::string, std::string> pins;  ///< tensor -> layout, of --pin
};

Names logicalNames(const Plan &plan, const std::vector<int> &tensors) {
  Names names;
  for (const int tensor : tensors)
    if (const std::string &name = plan.tensors[size_t(tensor)].logical;
        std::ranges::find(names, name) == names.end())
      names.push_back(name);
  return names;
}

/// `ops`, `positions`: opsOf(artifact) and where they stand.
Side sideOf(const Artifact &artifact, const std::vector<NamedOp> &ops,
            const std::vector<int> &positions) {
  Side side{.artifact = artifact, .kernels = {}, .values = {}, .pins = {}};
  std::map<int, size_t> ofRegion;
  size_t at = 0;
  for (size_t index = 0; index < artifact.plan.kernels.size(); ++index) {
    const PlanKernel &kernel = artifact.plan.kernels[index];
    const auto known = kernel.chunk ? ofRegion.find(kernel.chunk->region) : ofRegion.end();
    const size_t folded = known == ofRegion.end() ? side.kernels.size() : known->second;
    if (folded == side.kernels.size()) {
      PairedKernel &added = side.kernels.emplace_back();
      added.name = wholeName(kernel);
      added.family = kernel.family;
      added.layer = kernel.layer;
      added.configuration = kernel.configuration;
      added.ops = textsOf(kernel.ops);
      added.reads = logicalNames(artifact.plan, kernel.inputs);
      added.writes = logicalNames(artifact.plan, kernel.outputs);
      added.isView = isView(kernel);
      added.isMeasured = true;
      for (size_t op = 0; op < kernel.ops.size(); ++op, ++at) {
        added.positions.push_back(positions[at]);
        added.precisions.push_back(ops[at].op.readsTf32 ? "tf32" : "");
        added.values.push_back(ops[at].value);
        side.values.insert(ops[at].value);
      }
      if (kernel.chunk) ofRegion[kernel.chunk->region] = folded;
    }
    PairedKernel &one = side.kernels[folded];
    one.kernels.push_back(int(index));
    one.seconds += kernel.seconds;
    one.bytesMoved += kernel.bytesMoved;
    one.isMeasured = one.isMeasured && kernel.measured;
    one.isEdited = one.isEdited || kernel.edited;
    one.isUntold = one.isUntold || kernel.isUntold;
  }
  for (const PlanTensor &tensor : artifact.plan.tensors) side.values.insert(tensor.logical);
  for (const json &pin : artifact.report.value("pins", json::array()))
    side.pins[pin.value("tensor", "")] = pin.value("layout", "");
  return side;
}

/// Disjoint sets of kernels: those of the first plan, then those of the second.
class Sets {
public:
  explicit Sets(size_t count) : parent(count) {
    std::iota(parent.begin(), parent.end(), size_t(0));
  }
  size_t root(size_t at) {
    while (parent[at] != at) at = parent[at] = parent[parent[at]];
    return at;
  }
  void join(size_t a, size_t b) {
    const auto [low, high] = std::minmax({root(a), root(b)});
    parent[high] = low;
  }

private:
  std::vector<size_t> parent;
};

/// Joins all that are found under one key.
template <typename Key>
class Meetings {
public:
  explicit Meetings(Sets &sets) : sets(sets) {}
  void meet(const Key &key, size_t kernel) {
    const auto [known, isNew] = first.emplace(key, kernel);
    if (!isNew) sets.join(known->second, kernel);
  }
  bool has(const Key &key) const { return first.contains(key); }

private:
  Sets &sets;
  std::map<Key, size_t> first;
};

/// Kernels of one plan that exchange a temporary which the other plan does not have.
void joinByPrivateTensors(const Side &side, const Side &other, size_t first, Sets &sets) {
  Meetings<std::string> users(sets);
  for (size_t index = 0; index < side.kernels.size(); ++index)
    for (const std::string &name : side.kernels[index].writes)
      if (!other.values.contains(name)) users.meet(name, first + index);
  for (size_t index = 0; index < side.kernels.size(); ++index)
    for (const std::string &name : side.kernels[index].reads)
      if (users.has(name)) users.meet(name, first + index);
}

Sets groupsOf(const Side &before, const Side &after) {
  Sets sets(before.kernels.size() + after.kernels.size());
  Meetings<int> ops(sets);
  Meetings<std::string> values(sets), transposes(sets);
  for (const auto &[side, first] :
       {std::pair(&before, size_t(0)), std::pair(&after, before.kernels.size())}) {
    std::map<std::string, int> uses;  // a transpose computes no op: the n-th of a tensor is the
                                      // n-th of it in the other plan
    for (size_t index = 0; index < side->kernels.size(); ++index) {
      const PairedKernel &kernel = side->kernels[index];
      for (const int position : kernel.positions) ops.meet(position, first + index);
      for (const std::string &value : kernel.values)
        if (!value.empty()) values.meet(value, first + index);
      if (kernel.positions.empty())
        for (const std::string &name : kernel.writes)
          transposes.meet(fmt::format("{} {}", name, ++uses[name]), first + index);
    }
  }
  joinByPrivateTensors(before, after, 0, sets);
  joinByPrivateTensors(after, before, before.kernels.size(), sets);
  return sets;
}

Names writtenBy(const std::vector<PairedKernel> &kernels) {
  Names names;
  for (const PairedKernel &kernel : kernels)
    for (const std::string &name : kernel.writes)
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  return names;
}

/// What both sides write; of a group that only one plan has, all that it writes.
std::string computedBy(const KernelGroup &group) {
  const Names before = writtenBy(group.before), after = writtenBy(group.after);
  Names both;
  std::ranges::copy_if(before, std::back_inserter(both), [&](const std::string &name) {
    return std::ranges::find(after, name) != after.end();
  });
  return fmt::format("{}", fmt::join(!both.empty() ? both : before.empty() ? after : before, ", "));
}

using Layouts = std::map<std::string, std::set<std::string>>;

Layouts layoutsOf(const Side &side, const std::vector<PairedKernel> &kernels) {
  Layouts layouts;
  const Plan &plan = side.artifact.plan;
  for (const PairedKernel &folded : kernels) {
    const PlanKernel &kernel = plan.kernels[size_t(folded.kernels.front())];
    for (const std::vector<int> *tensors : {&kernel.inputs, &kernel.outputs})
      for (const int index : *tensors) {
        const PlanTensor &tensor = plan.tensors[size_t(index)];
        layouts[tensor.logical].insert(printLayout(tensor) +
                                       (hasStridedView(tensor) ? " as a strided view" : ""));
      }
  }
  return layouts;
}

std::vector<LayoutDifference> layoutChanges(const KernelGroup &group, const Side &before,
                                            const Side &after) {
  std::vector<LayoutDifference> changes;
  const Layouts old = layoutsOf(before, group.before), now = layoutsOf(after, group.after);
  for (const auto &[tensor, layouts] : old) {
    const auto other = now.find(tensor);
    if (other == now.end() || other->second == layouts) continue;
    const auto pinBefore = before.pins.find(tensor), pinAfter = after.pins.find(tensor);
    const bool pinsDiffer = (pinBefore == before.pins.end() ? "" : pinBefore->second) !=
                            (pinAfter == after.pins.end() ? "" : pinAfter->second);
    changes.push_back({.tensor = tensor,
                       .before = fmt::format("{}", fmt::join(layouts, " ")),
                       .after = fmt::format("{}", fmt::join(other->second, " ")),
                       .isPinned = pinsDiffer});
  }
  return changes;
}

/// Ops by kernel, so that equal ones are fused the same way.
std::set<std::set<int>> partition(const std::vector<PairedKernel> &kernels) {
  std::set<std::set<int>> parts;
  for (const PairedKernel &kernel : kernels)
    parts.emplace(kernel.positions.begin(), kernel.positions.end());
  return parts;
}

std::set<int> positionsIn(const std::vector<PairedKernel> &kernels) {
  std::set<int> positions;
  for (const PairedKernel &kernel : kernels)
    positions.insert(kernel.positions.begin(), kernel.positions.end());
  return positions;
}

/// Ops with the precisions at which they read their operands.
std::set<std::pair<int, std::string>> precisionsIn(const std::vector<PairedKernel> &kernels) {
  std::set<std::pair<int, std::string>> precisions;
  for (const PairedKernel &kernel : kernels)
    for (size_t op = 0; op < kernel.positions.size(); ++op)
      if (!kernel.precisions[op].empty())
        precisions.emplace(kernel.positions[op], kernel.precisions[op]);
  return precisions;
}

std::string textOf(const Side &side, const PairedKernel &kernel) {
  const auto source =
      side.artifact.sources.find(side.artifact.plan.kernels[size_t(kernel.kernels.front())].source);
  return source == side.artifact.sources.end() ? "" : source->second;
}

std::vector<Decision> decisionsOf(const KernelGroup &group, const Side &before, const Side &after,
                                  bool sameGraph, bool sameDevice) {
  using enum Decision;
  std::vector<Decision> why;
  const auto add = [&](Decision decision, bool applies) {
    if (applies) why.push_back(decision);
  };
  const std::set<int> oldOps = positionsIn(group.before), newOps = positionsIn(group.after);
  const bool samePartition = partition(group.before) == partition(group.after) &&
                             group.before.size() == group.after.size();
  add(precision, precisionsIn(group.before) != precisionsIn(group.after));
  add(rewrite, oldOps != newOps);
  add(fusion, oldOps == newOps && !samePartition);
  if (samePartition) {
    bool chunksDiffer = false, scheduleDiffers = false, isEdit = false, textDiffers = false;
    for (size_t index = 0; index < group.before.size();
         ++index) {  // one partition: both in the order of their ops
      const PairedKernel &old = group.before[index], &now = group.after[index];
      chunksDiffer |= old.kernels.size() != now.kernels.size();
      scheduleDiffers |= old.family != now.family || old.configuration != now.configuration;
      const bool differs = textOf(before, old) != textOf(after, now);
      isEdit |= differs && (old.isEdited || now.isEdited);
      // What plan.json says of a text is worth nothing without a manifest.
      textDiffers |=
          (old.isUntold || now.isUntold) && !sameCode(textOf(before, old), textOf(after, now));
      textDiffers |= before.artifact.plan.kernels[size_t(old.kernels.front())].textHash !=
                     after.artifact.plan.kernels[size_t(now.kernels.front())].textHash;
    }
    add(chunks, chunksDiffer);
    add(pin, std::ranges::any_of(group.layouts, &LayoutDifference::isPinned));
    add(layout, std::ranges::any_of(group.layouts, [](const LayoutDifference &change) {
          return !change.isPinned;
        }));
    add(schedule, scheduleDiffers);
    add(edit, isEdit);
    add(text, textDiffers && why.empty() && sameGraph && sameDevice);
  } else {
    add(pin, std::ranges::any_of(group.layouts, &LayoutDifference::isPinned));
    add(layout, std::ranges::any_of(group.layouts, [](const LayoutDifference &change) {
          return !change.isPinned;
        }));
  }
  const bool pricesDiffer =
      group.secondsBefore() != group.secondsAfter() || group.bytesBefore() != group.bytesAfter();
  if (!sameGraph && (pricesDiffer || !why.empty())) why.insert(why.begin(), graph);
  if (!sameDevice && (pricesDiffer || !why.empty()))
    why.insert(why.begin() + (sameGraph ? 0 : 1), device);
  add(prices, why.empty() && pricesDiffer);
  return why;
}

void addChange(std::vector<Change> &changes, const std::string &what, const std::string &before,
               const std::string &after) {
  if (before != after) changes.push_back({.what = what, .before = before, .after = after});
}

/// Models of one description may price differently: of other measurements, say. Then what tells
/// them apart is named, too.
std::pair<std::string, std::string> describedPrices(const Plan &before, const Plan &after) {
  if (before.costModel != after.costModel || before.prices == after.prices ||
      before.prices.empty() || after.prices.empty())
    return {before.costModel.text(), after.costModel.text()};
  return {fmt::format("{}, {}", before.costModel.text(), before.prices),
          fmt::format("{}, {}", after.costModel.text(), after.prices)};
}

std::string shown(const std::map<std::string, std::string> &pins) {
  Names texts;
  for (const auto &[tensor, layout] : pins) texts.push_back(tensor + "=" + layout);
  return texts.empty() ? "none" : fmt::format("{}", fmt::join(texts, " "));
}

std::string precisionOf(const Plan &plan) {
  const std::string precision = contractionPrecision(plan);
  return precision.empty() ? std::string(nameOf(plan.dtype)) : precision;
}

std::string extent(const Plan &plan, const std::string &name) {
  const auto found = plan.dims.find(name);
  return found == plan.dims.end() ? "none" : std::to_string(found->second);
}

/// What is not told elsewhere: members of the plan, of kernels whose group shows no difference, and
/// files.
Names otherDifferences(const Artifact &before, const Artifact &after,
                       const std::vector<KernelGroup> &groups) {
  static const std::set<std::string> told = {
      "kernels",    "tensors",          "memoryPlan",     "entryPoints",
      "model",      "variant",          "rewrites",       "dims",
      "dtype",      "device",           "target",         "costModel",
      "concurrent", "predictedSeconds", "workspaceBytes", "lowerBoundSeconds",
      "prices"};
  static const std::set<std::string> numbers = {
      "after", "inputs", "outputs", "parameters",
      "workspaceBuffer"};  // places in lists, which any other kernel moves
  const json a = toJson(before.plan), b = toJson(after.plan);
  const bool isTold =
      std::ranges::any_of(groups, [](const KernelGroup &group) { return !group.why.empty(); });
  Names others;
  for (const auto &[member, value] : a.items())
    if (!told.contains(member) && value != b.value(member, json()))
      others.push_back("plan.json: " + member);
  std::set<std::string> members;
  for (const KernelGroup &group : groups) {
    if (!group.why.empty() || group.before.size() != group.after.size()) continue;
    for (size_t index = 0; index < group.before.size(); ++index)
      for (const auto &[member, value] :
           a["kernels"][size_t(group.before[index].kernels.front())].items())
        if (!(isTold && numbers.contains(member)) &&
            value != b["kernels"][size_t(group.after[index].kernels.front())].value(member, json()))
          members.insert(member);
  }
  for (const std::string &member : members) others.push_back("plan.json: kernels: " + member);
  if (others.empty() && !isTold)
    for (const char *member : {"tensors", "memoryPlan", "entryPoints"})
      if (a[member] != b[member]) others.push_back(fmt::format("plan.json: {}", member));
  if (before.graph != after.graph) others.emplace_back("graph.mlir");
  size_t comments = 0, codes = 0;
  for (const auto &[file, text] : before.sources)
    if (const auto other = after.sources.find(file);
        other != after.sources.end() && other->second != text)
      ++(sameCode(text, other->second) ? comments : codes);
  if (comments > 0 && !isTold)
    others.push_back(fmt::format("comments in {} kernel texts", comments));
  if (codes > 0 && !isTold) others.push_back(fmt::format("code of {} kernel texts", codes));
  return others;
}

void sortByOps(std::vector<PairedKernel> &kernels) {
  std::ranges::stable_sort(kernels, {},
                           [](const PairedKernel &kernel) { return kernel.positions; });
}

double seconds(const std::vector<PairedKernel> &kernels) {
  double sum = 0;
  for (const PairedKernel &kernel : kernels) sum += kernel.seconds;
  return sum;
}

int64_t bytes(const std::vector<PairedKernel> &kernels) {
  int64_t sum = 0;
  for (const PairedKernel &kernel : kernels) sum += kernel.bytesMoved;
  return sum;
}

}  // namespace

std::string_view nameOf(Decision decision) {
  switch (decision) {
    case Decision::graph: return "graph";
    case Decision::device: return "device";
    case Decision::precision: return "precision";
    case Decision::rewrite: return "rewrite";
    case Decision::fusion: return "fusion";
    case Decision::chunks: return "chunks";
    case Decision::pin: return "pin";
    case Decision::layout: return "layout";
    case Decision::schedule: return "schedule";
    case Decision::edit: return "edit";
    case Decision::text: return "text";
    case Decision::prices: return "prices";
  }
  return "prices";
}

double KernelGroup::secondsBefore() const { return seconds(before); }
double KernelGroup::secondsAfter() const { return seconds(after); }
int64_t KernelGroup::bytesBefore() const { return bytes(before); }
int64_t KernelGroup::bytesAfter() const { return bytes(after); }

PlanDifference differenceOf(const Artifact &a, const Artifact &b) {
  const auto namesOf = [](const Artifact &artifact) {
    return artifact.report.value("opLabels", json::array());
  };
  const std::vector<NamedOp> opsA = opsOf(a.plan, namesOf(a)), opsB = opsOf(b.plan, namesOf(b));
  const Positions positions = positionsOf(opsA, opsB);
  const Side before = sideOf(a, opsA, positions.before), after = sideOf(b, opsB, positions.after);
  PlanDifference result;
  addChange(result.graph, "model", a.plan.model, b.plan.model);
  addChange(result.graph, "dtype", std::string(nameOf(a.plan.dtype)),
            std::string(nameOf(b.plan.dtype)));
  std::set<std::string> axes;
  for (const Plan *plan : {&a.plan, &b.plan})
    for (const auto &[axis, size] : plan->dims) axes.insert(axis);
  for (const std::string &axis : axes)
    addChange(result.graph, axis, extent(a.plan, axis), extent(b.plan, axis));
  addChange(result.decisions, "contractions", precisionOf(a.plan), precisionOf(b.plan));
  addChange(result.decisions, "device", a.plan.device, b.plan.device);
  addChange(result.decisions, "target", a.plan.target, b.plan.target);
  const auto [pricesA, pricesB] = describedPrices(a.plan, b.plan);
  addChange(result.decisions, "prices", pricesA, pricesB);
  addChange(result.decisions, "variant", a.plan.variant, b.plan.variant);
  addChange(result.decisions, "pins", shown(before.pins), shown(after.pins));
  addChange(result.decisions, "concurrent kernels", a.plan.concurrent ? "on" : "off",
            b.plan.concurrent ? "on" : "off");

  Sets sets = groupsOf(before, after);
  std::map<size_t, size_t> groupOf;
  for (size_t index = 0; index < before.kernels.size() + after.kernels.size(); ++index) {
    const auto [group, isNew] = groupOf.emplace(sets.root(index), result.groups.size());
    if (isNew) result.groups.emplace_back();
    const bool isAfter = index >= before.kernels.size();
    KernelGroup &into = result.groups[group->second];
    (isAfter ? into.after : into.before)
        .push_back(isAfter ? after.kernels[index - before.kernels.size()] : before.kernels[index]);
  }
  for (KernelGroup &group : result.groups) {
    sortByOps(group.before), sortByOps(group.after);
    group.computes = computedBy(group);
    group.layouts = layoutChanges(group, before, after);
    group.why =
        decisionsOf(group, before, after, result.graph.empty(), a.plan.device == b.plan.device);
  }
  result.others = otherDifferences(a, b, result.groups);
  result.isEqual = toJson(a.plan) == toJson(b.plan) && a.sources == b.sources && a.graph == b.graph;
  return result;
}

}  // namespace weft::driver
