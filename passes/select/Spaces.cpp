// The configurations of a candidate that selection considers: its measurements, if any is in the
// pinned layouts, else all legal configurations.
#include "passes/select/Prices.h"

#include "kernel/AttentionBackwardRegion.h"
#include "kernel/AttentionRegion.h"
#include "kernel/Error.h"
#include "passes/configure/StridedViews.h"

#include <algorithm>

namespace weft::select {
namespace {

/// Which entry point computes a tensor.
int entryOf(const Problem &problem, int tensor) {
  for (size_t op = 0; op < problem.opOutputs.size(); ++op)
    if (std::count(problem.opOutputs[op].begin(), problem.opOutputs[op].end(), tensor) > 0)
      return problem.opEntries.empty() ? 0 : problem.opEntries[op];
  return -1;
}

/// Whether kernels may write the operands of a concatenation into its result: each operand is the
/// result of a launched kernel of the same entry point (a tensor saved for another one would keep
/// the whole result alive), and an operand of this concatenation only.
bool mayLieInResult(const Problem &problem, const Candidate &concat) {
  for (const int input : concat.inputs) {
    const Tensor &tensor = problem.tensors[static_cast<size_t>(input)];
    if (tensor.isArgument || tensor.isParameter || tensor.isResult ||
        std::count(concat.inputs.begin(), concat.inputs.end(), input) > 1)
      return false;
    if (entryOf(problem, input) != entryOf(problem, concat.outputs.front())) return false;
    for (const Candidate &other : problem.candidates) {
      if (&other == &concat || other.ops.size() > 1 ||
          other.kernel.body[0].operatorClass != OperatorClass::movement)
        continue;
      const bool reads = std::count(other.inputs.begin(), other.inputs.end(), input) > 0;
      if (std::count(other.outputs.begin(), other.outputs.end(), input) > 0 ||
          (reads && other.kernel.body[0].kind == OpKind::concat))
        return false;
    }
  }
  return true;
}

/// Whether a kernel may write the operand of a regrouping into the caller's buffer of its result:
/// it lies nowhere else. Another entry point that reads it is given the result.
bool mayBeResult(const Problem &problem, const Candidate &view) {
  const OpKind kind = view.kernel.body[0].kind;
  if (kind == OpKind::slice || kind == OpKind::concat || !mayLieInResult(problem, view))
    return false;
  const int input = view.inputs.front();
  // Two results are two buffers.
  return std::ranges::none_of(problem.candidates, [&](const Candidate &other) {
    return &other != &view && other.ops.size() == 1 &&
           other.kernel.body[0].operatorClass == OperatorClass::movement &&
           std::ranges::count(other.inputs, input) > 0;
  });
}

/// Whether all other candidates that write or read the operands and results of a concatenation or
/// slice accept them as strided views.
bool mayBeStridedView(const Problem &problem, const Candidate &view, const LayoutTuple &places) {
  const auto operandsOf = [](const Candidate &candidate) {
    std::vector<int> operands = candidate.inputs;
    operands.insert(operands.end(), candidate.outputs.begin(), candidate.outputs.end());
    return operands;
  };
  const auto agrees = [&](const Candidate &other, int tensor, const Layout &place) {
    const std::vector<int> operands = operandsOf(other);
    for (size_t operand = 0; operand < operands.size(); ++operand)
      if (operands[operand] == tensor &&
          !stridedViewRejection(other.kernel, operand, place).empty())
        return false;
    return true;
  };
  const std::vector<int> operands = operandsOf(view);
  for (size_t operand = 0; operand < operands.size(); ++operand)
    for (const Candidate &other : problem.candidates)
      if (&other != &view && !places[operand].strides.empty() &&
          !agrees(other, operands[operand], places[operand]))
        return false;
  return true;
}

/// Keeps the views that the rest of the problem admits. A result lies in the caller's buffer: it is
/// no part of another tensor, and one that it regroups lies there as well. With --strict there are
/// no strided views: they would be priced as contiguous.
void leaveViews(const Problem &problem, const Candidate &candidate, bool isStrict,
                ConfigurationSpace &space) {
  const bool leaves = std::any_of(candidate.outputs.begin(), candidate.outputs.end(), [&](int t) {
    return problem.tensors[static_cast<size_t>(t)].isResult;
  });
  const bool isConcat = candidate.kernel.body[0].kind == OpKind::concat;
  if ((leaves && !mayBeResult(problem, candidate)) ||
      (isConcat && !mayLieInResult(problem, candidate)))
    space.tuples.clear();
  std::erase_if(space.tuples, [&](const LayoutTuple &places) {
    const bool isStrided = std::any_of(places.begin(), places.end(),
                                       [](const Layout &place) { return !place.strides.empty(); });
    return isStrided && (isStrict || !mayBeStridedView(problem, candidate, places));
  });
}

}  // namespace

void Prices::openSpaces(int index, SharedSpaces &shared) {
  const Candidate &candidate = problem.candidates[static_cast<size_t>(index)];
  CandidatePrices &prices = candidates[static_cast<size_t>(index)];
  SharedSpaces::Entry &entry = shared.of(
      candidate.kernel, {.softmax = options.softmax, .mostWorkspace = options.mostWorkspace});
  entries[static_cast<size_t>(index)] = &entry;
  const KernelSpaces &known = entry.spaces;
  const bool fits =
      std::any_of(known.points.begin(), known.points.end(), [&](const MeasuredPoint &point) {
        return reachesPins(prices.operands, known.measured[static_cast<size_t>(point.space)]
                                                ->tuples[static_cast<size_t>(point.tuple)]);
      });
  bool isModelled = false;
  for (const KernelSpaces::Legal &legal : known.legal) {
    if (legal.isView) {
      openViews(candidate, *legal.space, prices);
      continue;
    }
    statistics.legalConfigurations += legal.configurations;
    if (fits || legal.waitsForMeasurements) {
      statistics.prunedConfigurations += legal.withoutMeasurements;
      if (!fits) prices.waiting.emplace_back(legal.space->family->name);
      continue;
    }
    isModelled = true;
    prices.spaces.push_back(legal.space);
  }
  if (isModelled) openSeveralStrides(candidate, known, prices);
  prices.pricedSpaces = prices.spaces.size();
  findBests(index, known,
            fits ? known.measuredBests : shared.modelledBests(candidate.kernel, entry));
  if (fits) addMeasured(known, prices);
  if (!isModelled || !model.hasMeasurements()) return;
  const std::string reason = known.points.empty()
                                 ? "no configuration was measured"
                                 : "no measured configuration takes the pinned layouts";
  if (!model.admitsModelled())
    throw Error::strictMiss("kernel '{}' of '{}': {} ({})", candidate.name, problem.name, reason,
                            model.description());
  ++statistics.unmeasuredKernels;
  if (!known.points.empty())
    statistics.notes.push_back(
        fmt::format("kernel {}: {}; priced by the model", candidate.name, reason));
}

/// Adds layouts with several strides along a group of axes only for pins that no other layout of
/// the contraction meets; they are unmeasured.
void Prices::openSeveralStrides(const Candidate &candidate, const KernelSpaces &known,
                                CandidatePrices &prices) {
  if (!contractionValues(candidate.kernel) || attentionRegion(candidate.kernel) ||
      attentionBackwardRegion(candidate.kernel))
    return;
  const auto reaches = [&](const LayoutTuple &tuple) {
    return reachesPins(prices.operands, tuple);
  };
  if (std::ranges::any_of(known.legal, [&](const KernelSpaces::Legal &legal) {
        return std::ranges::any_of(legal.space->tuples, reaches);
      }))
    return;
  FixedLayouts wanted;
  for (const int operand : prices.operands)
    wanted.push_back(takesAnyLayout(operand) ? std::nullopt : pins[static_cast<size_t>(operand)]);
  auto space = severalStridesSpace(candidate.kernel, model.device(), wanted);
  if (!space) return;
  statistics.legalConfigurations += countConfigurations(candidate.kernel, *space);
  prices.spaces.push_back(std::make_shared<ConfigurationSpace>(std::move(*space)));
}

void Prices::openViews(const Candidate &candidate, ConfigurationSpace space,
                       CandidatePrices &prices) {
  leaveViews(problem, candidate, !model.admitsModelled(), space);
  if (space.isEmpty()) return;
  statistics.legalConfigurations += countConfigurations(candidate.kernel, space);
  prices.spaces.push_back(std::make_shared<ConfigurationSpace>(std::move(space)));
}

/// `others`: of all spaces but the views and what pins alone have opened.
void Prices::findBests(int index, const KernelSpaces &known,
                       const std::shared_ptr<const Bests> &others) {
  const Candidate &candidate = problem.candidates[static_cast<size_t>(index)];
  std::shared_ptr<const Bests> &result = bests[static_cast<size_t>(index)];
  result = others;
  for (const SharedSpace &space : candidates[static_cast<size_t>(index)].spaces) {
    if (std::ranges::find(known.legal, space, &KernelSpaces::Legal::space) != known.legal.end())
      continue;
    Bests own{.byLayout = std::vector<std::map<Layout, Bests::Best>>(others->byLayout.size())};
    own.offerModelled(candidate.kernel, *space, model);
    own.offer(*others);
    result = std::make_shared<Bests>(std::move(own));
  }
}

/// Whether layouts of the operands leave every pinned one as it is pinned.
bool Prices::reachesPins(const std::vector<int> &operands, const LayoutTuple &layouts) const {
  for (size_t i = 0; i < operands.size(); ++i)
    if (const auto &pin = pins[static_cast<size_t>(operands[i])];
        pin && !takesAnyLayout(operands[i]) && layouts[i] != *pin)
      return false;
  return true;
}

void Prices::addMeasured(const KernelSpaces &known, CandidatePrices &prices) {
  const auto first = static_cast<int>(prices.spaces.size());
  prices.spaces.insert(prices.spaces.end(), known.measured.begin(), known.measured.end());
  prices.measured = known.points;
  for (MeasuredPoint &point : prices.measured) point.space += first;
}

}  // namespace weft::select
