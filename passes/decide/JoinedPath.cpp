// Paths of parts as one path; see JoinedPath.h.
#include "passes/decide/JoinedPath.h"

#include "kernel/Error.h"

#include <algorithm>
#include <map>

namespace weft::decision {
namespace {

/// The whole's tensor of every tensor of a part.
std::vector<int> tensorsInWhole(const select::Problem &whole, const PlacedPart &part) {
  const select::Problem &own = *part.problem;
  std::vector<int> tensors(own.tensors.size(), -1);
  const auto match = [&](const std::vector<int> &from, const std::vector<int> &to) {
    for (size_t index = 0; index < from.size(); ++index)
      tensors[size_t(from[index])] = to.at(index);
  };
  for (size_t op = 0; op < own.ops.size(); ++op) {
    match(own.opInputs[op], whole.opInputs.at(part.firstOp + op));
    match(own.opOutputs[op], whole.opOutputs.at(part.firstOp + op));
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
    for (select::Step step : part.path->steps) {
      if (step.candidate < 0) step.tensor = tensors[size_t(step.tensor)];
      else step.candidate = candidateIn(part, size_t(step.candidate), tensors);
      step.runnerUp = part.placedText(step.runnerUp);
      result.steps.push_back(std::move(step));
    }
    result.seconds += part.path->seconds;
    result.lowerBound += part.path->lowerBound;
    result.peakTemporaryBytes = std::max(result.peakTemporaryBytes, part.path->peakTemporaryBytes);
  }

  select::SelectionResult result;

private:
  int candidateIn(const PlacedPart &part, size_t index, const std::vector<int> &tensors) const {
    const select::Candidate &own = part.problem->candidates[index];
    std::vector<int> ops;
    for (const int op : own.ops) ops.push_back(op + int(part.firstOp));
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
};

}  // namespace

select::SelectionResult joinedPath(const select::Problem &whole,
                                   const std::vector<PlacedPart> &parts) {
  Joiner joiner(whole);
  for (const PlacedPart &part : parts) joiner.add(part);
  joiner.result.variant = whole.name;
  return std::move(joiner.result);
}

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

}  // namespace weft::decision
