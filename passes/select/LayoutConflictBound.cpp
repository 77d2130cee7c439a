// Losses are read off the candidates' tables once; a layer takes those of its unfinished readers.
#include "passes/select/LayoutConflictBound.h"

#include <algorithm>
#include <numeric>

namespace weft::select {
namespace {

/// Per operand and layout of its tensor: the best of the table in which the operand has the layout,
/// less the table's best.
std::vector<std::vector<double>> lossesOf(const CandidatePrices &prices,
                                          const std::vector<size_t> &layoutCounts) {
  std::vector<std::vector<double>> losses;
  for (const size_t count : layoutCounts) losses.emplace_back(count, infinite);
  double best = infinite;
  std::vector<int> choice = prices.table.empty() ? std::vector<int>() : prices.choiceOf(0);
  for (size_t entry = 0; entry < prices.table.size(); ++entry) {
    const Price &price = prices.table[entry];
    best = std::min(best, price.seconds);
    for (size_t operand = 0; operand < choice.size(); ++operand) {
      double &least = losses[operand][size_t(prices.choices[operand][size_t(choice[operand])])];
      least = std::min(least, price.seconds);
    }
    prices.advance(choice, entry);
  }
  for (std::vector<double> &ofOperand : losses)
    for (double &seconds : ofOperand) seconds = best < infinite ? seconds - best : infinite;
  return losses;
}

}  // namespace

LayoutConflictBound::LayoutConflictBound(const Problem &problem, const Prices &prices)
    : problem(problem), prices(prices), sites(problem) {
  findGroups();
  findUses();
  for (size_t tensor = 0; tensor < problem.tensors.size(); ++tensor) {
    const int count = static_cast<int>(prices.layouts(static_cast<int>(tensor)).size());
    std::vector<double> &out = transposesOut.emplace_back(count, infinite);
    for (int from = 0; from < count; ++from)
      for (int to = 0; to < count; ++to)
        if (from != to)
          out[static_cast<size_t>(from)] =
              std::min(out[static_cast<size_t>(from)],
                       prices.transposeSeconds(static_cast<int>(tensor), from, to));
  }
  findConflicts();
}

int LayoutConflictBound::groupOf(int op) const {
  while (parent[static_cast<size_t>(op)] != op) op = parent[static_cast<size_t>(op)];
  return op;
}

void LayoutConflictBound::findGroups() {
  parent.resize(problem.ops.size());
  std::iota(parent.begin(), parent.end(), 0);
  for (size_t c = 0; c < problem.candidates.size(); ++c) {
    opsOf.emplace_back(problem.candidates[c].ops);
    if (!prices.isUsable(static_cast<int>(c))) continue;
    for (const int op : problem.candidates[c].ops) {
      const int a = groupOf(op), b = groupOf(problem.candidates[c].ops.front());
      parent[static_cast<size_t>(std::max(a, b))] = std::min(a, b);
    }
  }
}

void LayoutConflictBound::findUses() {
  uses.resize(problem.tensors.size());
  writeLosses.resize(problem.candidates.size());
  for (size_t c = 0; c < problem.candidates.size(); ++c) {
    const CandidatePrices &table = prices.candidate(static_cast<int>(c));
    if (!prices.isUsable(static_cast<int>(c)) || table.isFolded || table.table.empty()) continue;
    std::vector<size_t> counts;
    for (const int tensor : table.operands) counts.push_back(prices.layouts(tensor).size());
    const std::vector<std::vector<double>> losses = lossesOf(table, counts);
    writeLosses[c].assign(
        losses.begin() + static_cast<std::ptrdiff_t>(problem.candidates[c].inputs.size()),
        losses.end());
    for (size_t operand = 0; operand < problem.candidates[c].inputs.size(); ++operand) {
      const int tensor = problem.candidates[c].inputs[operand];
      for (const int op : problem.candidates[c].ops) {
        if (std::ranges::count(problem.opInputs[static_cast<size_t>(op)], tensor) == 0) continue;
        std::vector<Use> &all = uses[static_cast<size_t>(tensor)];
        auto use = std::ranges::find(all, op, &Use::op);
        if (use == all.end()) use = all.insert(all.end(), {.op = op});
        use->readOptions.push_back({.candidate = static_cast<int>(c), .losses = losses[operand]});
      }
    }
  }
}

void LayoutConflictBound::findConflicts() {
  for (size_t op = 0; op < problem.ops.size(); ++op)
    for (const int tensor : problem.opOutputs[op]) {
      Conflict conflict{.producer = static_cast<int>(op)};
      conflict.seconds =
          prices.isFreeToPack(tensor) ? 0 : conflictOf(tensor, conflict.producer, conflict.groups);
      if (conflict.seconds > 0 && conflict.seconds < infinite)
        conflicts.push_back(std::move(conflict));
    }
  std::ranges::stable_sort(conflicts, std::ranges::greater(), &Conflict::seconds);
}

/// Zero where a kernel may hold the tensor on chip.
double LayoutConflictBound::conflictOf(int tensor, int producer, std::set<int> &members) const {
  const auto t = static_cast<size_t>(tensor);
  const size_t layouts = transposesOut[t].size();
  std::map<int, std::vector<double>> losses;  // by group: the most of its writer and its readers
  const auto add = [&](int op, const std::vector<double> &least) {
    std::vector<double> &most = losses.try_emplace(groupOf(op), layouts, 0.0).first->second;
    for (size_t l = 0; l < layouts; ++l) most[l] = std::max(most[l], least[l]);
  };
  std::vector<double> written(layouts, infinite);
  for (size_t c = 0; c < problem.candidates.size(); ++c) {
    if (!opsOf[c].contains(producer) || !prices.isUsable(static_cast<int>(c))) continue;
    const auto output = std::ranges::find(problem.candidates[c].outputs, tensor);
    if (output == problem.candidates[c].outputs.end() ||
        prices.candidate(static_cast<int>(c)).isFolded)
      return 0;
    if (writeLosses[c].empty()) continue;
    const std::vector<double> &own =
        writeLosses[c][static_cast<size_t>(output - problem.candidates[c].outputs.begin())];
    for (size_t l = 0; l < layouts; ++l) written[l] = std::min(written[l], own[l]);
  }
  add(producer, written);
  const auto isChoice = [&](int op) {
    const int site = sites.siteOf(op);
    return site >= 0 && sites.alternativesOf(site) > 1 &&
           (site != sites.siteOf(producer) ||
            sites.alternativeOf(op) != sites.alternativeOf(producer));
  };
  for (const Use &use : uses[t]) {
    if (isChoice(use.op)) continue;
    bool isOnChip = false;  // perhaps, in the kernel that writes it
    for (size_t c = 0; c < opsOf.size(); ++c)
      isOnChip = isOnChip || (prices.isUsable(static_cast<int>(c)) && opsOf[c].contains(producer) &&
                              opsOf[c].contains(use.op));
    if (isOnChip) continue;
    std::vector<double> least(layouts, infinite);
    for (const ReadOption &readOption : use.readOptions)
      for (size_t l = 0; l < layouts; ++l) least[l] = std::min(least[l], readOption.losses[l]);
    add(use.op, least);
  }
  double cheapest = std::ranges::min(transposesOut[t]);  // that of some transpose
  const std::optional<int> pin = prices.pinned(tensor);
  for (size_t l = 0; l < layouts; ++l) {
    if (problem.tensors[t].isResult && pin && static_cast<size_t>(*pin) != l)
      continue;  // not without a transpose
    double sum = 0;
    for (const auto &[group, most] : losses) sum += most[l];
    cheapest = std::min(cheapest, sum);
  }
  for (const auto &[group, most] : losses) members.insert(group);
  return cheapest;
}

LayerConflictBound LayoutConflictBound::of(const Layer &layer) const {
  LayerConflictBound bound;
  std::map<int, int> groups;
  for (const int tensor : layer.tracked) {
    const auto t = static_cast<size_t>(tensor);
    LayerConflictBound::Tracked &tracked = bound.tracked.emplace_back();
    tracked.transposes = transposesOut[t];
    const size_t layouts = tracked.transposes.size();
    const auto readerOf = [&](int key) -> LayerConflictBound::Reader & {
      const int group = groups.try_emplace(key, static_cast<int>(groups.size())).first->second;
      auto reader = std::ranges::find(tracked.readers, group, &LayerConflictBound::Reader::group);
      if (reader == tracked.readers.end())
        reader = tracked.readers.insert(
            tracked.readers.end(), {.group = group, .losses = std::vector<double>(layouts, 0)});
      return *reader;
    };
    for (const Use &use : uses[t]) {
      if (layer.finished.contains(use.op) || sites.isOpen(use.op, layer.finished)) continue;
      std::vector<double> least(layouts, infinite);
      for (const ReadOption &readOption : use.readOptions)
        if (!opsOf[static_cast<size_t>(readOption.candidate)].intersects(layer.finished))
          for (size_t l = 0; l < layouts; ++l) least[l] = std::min(least[l], readOption.losses[l]);
      LayerConflictBound::Reader &reader = readerOf(groupOf(use.op));
      for (size_t l = 0; l < layouts; ++l) reader.losses[l] = std::max(reader.losses[l], least[l]);
    }
    if (const std::optional<int> pin = prices.pinned(tensor);
        pin && problem.tensors[t].isResult) {  // the caller is a reader too
      LayerConflictBound::Reader &caller = readerOf(-1 - tensor);
      for (size_t l = 0; l < layouts; ++l)
        caller.losses[l] = prices.transposeSeconds(tensor, static_cast<int>(l), *pin);
    }
  }
  std::set<int> taken;
  for (const Conflict &conflict : conflicts) {
    if (layer.finished.contains(conflict.producer) ||
        sites.isOpen(conflict.producer, layer.finished))
      continue;
    if (std::ranges::any_of(conflict.groups, [&](int group) { return taken.contains(group); }))
      continue;
    taken.insert(conflict.groups.begin(), conflict.groups.end());
    LayerConflictBound::Pending &pending =
        bound.pending.emplace_back(LayerConflictBound::Pending{.seconds = conflict.seconds});
    for (const int group : conflict.groups)
      pending.groups.push_back(
          groups.try_emplace(group, static_cast<int>(groups.size())).first->second);
  }
  bound.groups = static_cast<int>(groups.size());
  return bound;
}

const LayerConflictBound::Share &LayerConflictBound::shareOf(const Tracked &tracked,
                                                             LayoutMask mask) {
  if (tracked.shares.empty()) tracked.shares.resize(size_t(1) << tracked.transposes.size());
  Share &share = tracked.shares[mask];
  if (share.isKnown) return share;
  share.isKnown = true;
  std::vector<double> losses;
  double sum = 0, transpose = infinite;
  for (const Reader &reader : tracked.readers) {
    double least = infinite;
    for (size_t l = 0; l < reader.losses.size(); ++l)
      if (mask >> l & 1) least = std::min(least, reader.losses[l]);
    losses.push_back(least);
    sum += least;
  }
  if (sum <= 0) return share;
  for (size_t l = 0; l < tracked.transposes.size(); ++l)
    if (mask >> l & 1) transpose = std::min(transpose, tracked.transposes[l]);
  share.cost = std::min(sum, transpose);
  // What one transpose may pay for is shared among the readers, so that no part of it counts twice.
  for (size_t r = 0; r < losses.size(); ++r)
    share.ofReaders.push_back(sum < infinite ? losses[r] * (share.cost / sum)
                              : r == 0       ? share.cost
                                             : 0);
  return share;
}

double LayerConflictBound::of(MaskView masks) const {
  double least = 0;
  thread_local std::vector<double> most;
  most.assign(static_cast<size_t>(groups), 0);
  for (size_t i = 0; i < tracked.size(); ++i) {
    const Share &share = shareOf(tracked[i], masks[i]);
    if (share.ofReaders.empty()) continue;
    if (!(share.cost < infinite)) return infinite;
    for (size_t r = 0; r < share.ofReaders.size(); ++r) {
      double &costliest = most[static_cast<size_t>(tracked[i].readers[r].group)];
      costliest = std::max(costliest, share.ofReaders[r]);
    }
  }
  for (const double seconds : most) least += seconds;
  for (const Pending &one : pending) {
    double claimed = 0;
    for (const int group : one.groups) claimed += most[static_cast<size_t>(group)];
    least += std::max(0.0, one.seconds - claimed);
  }
  return least;
}

}  // namespace weft::select
