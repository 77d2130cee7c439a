// Decisions of parts as one decision; see JoinedDecision.h.
#include "passes/decide/JoinedDecision.h"

#include "kernel/Error.h"

#include <algorithm>
#include <map>

namespace weft::decision {
namespace {

/// The whole's tensor of every tensor of a part.
std::vector<int> tensorsInWhole(const select::Problem &whole, const PlacedPart &part) {
  const select::Problem &own = part.decision->best().selection.problem();
  std::vector<int> tensors(own.tensors.size(), -1);
  const auto match = [&](const std::vector<int> &from, const std::vector<int> &to) {
    for (size_t index = 0; index < from.size(); ++index)
      tensors[size_t(from[index])] = to.at(index);
  };
  for (size_t op = 0; op < own.ops.size(); ++op) {
    match(own.opInputs[op], whole.opInputs.at(part.ops.at(op)));
    match(own.opOutputs[op], whole.opOutputs.at(part.ops.at(op)));
  }
  return tensors;
}

class Joiner {
public:
  explicit Joiner(const select::Problem &whole) : whole(whole) {
    for (size_t index = 0; index < whole.candidates.size(); ++index)
      candidateOf.try_emplace(whole.candidates[index].ops, int(index));
  }

  void add(const PlacedPart &part) {
    const std::vector<int> tensors = tensorsInWhole(whole, part);
    const select::SelectionResult &path = part.decision->path();
    std::map<int, std::vector<select::Step>> added;
    for (select::Step step : path.steps) {
      step.entry = entryIn(part, step.entry);
      if (step.candidate < 0) step.tensor = tensors[size_t(step.tensor)];
      else step.candidate = candidateIn(part, size_t(step.candidate), tensors);
      step.runnerUp = part.placedText(step.runnerUp);
      added[step.entry].push_back(std::move(step));
    }
    for (auto &[entry, steps] : added) {
      std::vector<select::Step> &all = stepsOf[entry];
      all.insert(entry == 0 ? all.end() : all.begin(), steps.begin(), steps.end());
    }
    result.seconds += path.seconds;
    result.lowerBound += part.decision->lowerBound;
    result.peakTemporaryBytes = std::max(result.peakTemporaryBytes, path.peakTemporaryBytes);
  }

  select::SelectionResult joined() {
    for (auto &[entry, steps] : stepsOf) std::ranges::move(steps, std::back_inserter(result.steps));
    return std::move(result);
  }

private:
  /// Entry points are alike by name; a part that has one alone has the whole's first.
  int entryIn(const PlacedPart &part, int entry) const {
    const select::Problem &own = part.decision->best().selection.problem();
    const auto found = std::ranges::find(whole.entryPoints, own.entryPoints.at(size_t(entry)));
    return found == whole.entryPoints.end() ? 0 : int(found - whole.entryPoints.begin());
  }

  int candidateIn(const PlacedPart &part, size_t index, const std::vector<int> &tensors) const {
    const select::Candidate &own = part.decision->best().selection.problem().candidates[index];
    std::vector<int> ops;
    for (const int op : own.ops) ops.push_back(int(part.ops.at(size_t(op))));
    const auto found = candidateOf.find(ops);
    if (found == candidateOf.end())
      throw Error::checkFailed("'{}' has no kernel of the ops of '{}' of a part", whole.name,
                               own.name);
    const select::Candidate &other = whole.candidates[size_t(found->second)];
    const auto same = [&](const std::vector<int> &from, const std::vector<int> &to) {
      return from.size() == to.size() &&
             std::ranges::equal(from, to, {}, [&](int tensor) { return tensors[size_t(tensor)]; });
    };
    if (!same(own.inputs, other.inputs) || !same(own.outputs, other.outputs))
      throw Error::checkFailed("'{}' of '{}' reads or writes other tensors than in its part",
                               other.name, whole.name);
    return found->second;
  }

  const select::Problem &whole;
  std::map<std::vector<int>, int> candidateOf;
  std::map<int, std::vector<select::Step>> stepsOf;  // by entry point
  select::SelectionResult result;
};

/// Counts of several searches together.
select::Statistics joinedStatistics(const std::vector<const select::Statistics *> &searches) {
  select::Statistics sum;
  sum.isProven = true;
  double coverage = 0;
  for (const select::Statistics *one : searches) {
    sum.configurations += one->configurations;
    sum.legalConfigurations += one->legalConfigurations;
    sum.kernels += one->kernels;
    sum.states += one->states;
    sum.edges += one->edges;
    sum.peakStates = std::max(sum.peakStates, one->peakStates);
    sum.dominated += one->dominated;
    sum.beamCut += one->beamCut;
    sum.work += one->work;
    sum.isProven = sum.isProven && one->isProven;
    sum.mostGain = std::max(sum.mostGain, one->mostGain);
    sum.seconds += one->seconds;
    sum.measured += one->measured;
    sum.unmeasuredKernels += one->unmeasuredKernels;
    sum.prunedConfigurations += one->prunedConfigurations;
    sum.prunedTransposes += one->prunedTransposes;
    sum.modelledTransposes += one->modelledTransposes;
    for (const auto &[to, from] :
         {std::pair(&sum.layoutCuts, &one->layoutCuts),
          std::pair(&sum.searchCuts, &one->searchCuts), std::pair(&sum.notes, &one->notes)})
      to->insert(to->end(), from->begin(), from->end());
    coverage += one->coverageMeasured * double(one->configurations);
  }
  if (sum.configurations > 0) sum.coverageMeasured = coverage / double(sum.configurations);
  return sum;
}

/// The searches of the distinct parts, in the order in which they first stand.
std::vector<const Decision *> distinctOf(const std::vector<PlacedPart> &parts) {
  std::vector<const Decision *> distinct;
  for (const PlacedPart &part : parts)
    if (std::ranges::find(distinct, part.decision) == distinct.end())
      distinct.push_back(part.decision);
  return distinct;
}

}  // namespace

Decision joinedDecision(const Problem &whole, const Options &options,
                        const std::vector<PlacedPart> &parts) {
  const Variant &variant = whole.variants.front();
  Joiner joiner(variant.problem);
  for (const PlacedPart &part : parts) joiner.add(part);
  select::SelectionResult path = joiner.joined();
  path.variant = variant.name();
  std::vector<const select::Statistics *> searches;
  Decision decision;
  for (const Decision *part : distinctOf(parts)) {
    searches.push_back(&part->best().selection.statistics());
    for (const std::string &cut : part->searchCuts) decision.searchCuts.push_back(cut);
    decision.isBoundOfAll = decision.isBoundOfAll && part->isBoundOfAll;
  }
  decision.lowerBound = path.lowerBound;
  decision.concurrent = options.isConcurrent();
  decision.variants.push_back({.index = 0,
                               .name = variant.name(),
                               .notes = variant.notes,
                               .selection = select::givenSelection(variant.problem, std::move(path),
                                                                   joinedStatistics(searches))});
  decision.planned =
      valueOrThrow(planOf(whole.context, decision.best(), decision.path(), 1, decision.concurrent));
  decision.planned.plan.lowerBoundSeconds = decision.lowerBound;
  chooseEarlyStarts(decision.planned.plan, options.earlyStarts);
  if (const std::string line = memoryLine(decision); !line.empty())
    decision.planned.plan.notes.push_back({.kind = NoteKind::searchLimits, .text = line});
  return decision;
}

}  // namespace weft::decision
