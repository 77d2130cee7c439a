// What a candidate is chosen among: its measured rows where it has any that reach the pins, else all that is legal.
#include "passes/select/Prices.h"

#include "kernel/Error.h"
#include "passes/configure/Gaps.h"

#include <algorithm>

namespace weft::select {
namespace {

/// Leaves the knobs of block reductions that combine as asked, if the kernel has a softmax and there are any.
void combineSoftmax(const Kernel &kernel, BlockCombine combine, ConfigurationSpace &space) {
  const auto isSoftmax = [](const BodyOp &op) { return op.name == "softmax" || op.name == "local_softmax"; };
  if (std::none_of(kernel.body.begin(), kernel.body.end(), isSoftmax)) return;
  std::vector<Knobs> asked;
  for (const Knobs &knobs : space.knobs) {
    const auto *loop = std::get_if<LoopKnobs>(&knobs);
    if (loop && loop->reduction == ReductionMapping::block && loop->combine == combine) asked.push_back(knobs);
  }
  if (!asked.empty()) space.knobs = std::move(asked);
}

/// How many configurations of the space have no row. The algorithms of a library are of the GPU, not of the space: its
/// layouts count.
double withoutRows(const Kernel &kernel, const ConfigurationSpace &space, const std::vector<PricedConfiguration> &rows) {
  std::set<LayoutTuple> layouts;
  double count = 0;
  for (const PricedConfiguration &row : rows) {
    if (familyOf(row.configuration.knobs) != space.family) continue;
    const bool isLibrary = std::holds_alternative<LibraryKnobs>(row.configuration.knobs);
    LayoutTuple tuple = row.configuration.inputs;
    tuple.insert(tuple.end(), row.configuration.outputs.begin(), row.configuration.outputs.end());
    count += !isLibrary || layouts.insert(std::move(tuple)).second ? 1 : 0;
  }
  return std::max(0.0, countConfigurations(kernel, space) - count);
}

/// Which entry point computes a tensor.
int entryOf(const Problem &problem, int tensor) {
  for (size_t op = 0; op < problem.opOutputs.size(); ++op)
    if (std::count(problem.opOutputs[op].begin(), problem.opOutputs[op].end(), tensor) > 0) return problem.opEntries.empty() ? 0 : problem.opEntries[op];
  return -1;
}

/// Whether the operands of a concatenation may be computed in their places in the result: each is the result of a kernel that runs,
/// in the same entry point (what is kept for another should not keep room for the whole), and part of this concatenation only.
bool mayLieInResult(const Problem &problem, const Candidate &concat) {
  for (const int input : concat.inputs) {
    const Tensor &tensor = problem.tensors[static_cast<size_t>(input)];
    if (tensor.isArgument || tensor.isParameter || tensor.isResult || std::count(concat.inputs.begin(), concat.inputs.end(), input) > 1) return false;
    if (entryOf(problem, input) != entryOf(problem, concat.outputs.front())) return false;
    for (const Candidate &other : problem.candidates) {
      if (&other == &concat || other.ops.size() > 1 || other.kernel.body[0].operatorClass != OperatorClass::movement) continue;
      const bool reads = std::count(other.inputs.begin(), other.inputs.end(), input) > 0;
      if (std::count(other.outputs.begin(), other.outputs.end(), input) > 0 || (reads && other.kernel.body[0].name == "concat")) return false;
    }
  }
  return true;
}

/// Whether whatever else may write or read the parts of a concatenation or slice takes them with the gaps that they have in their places.
bool mayHaveGaps(const Problem &problem, const Candidate &view, const LayoutTuple &places) {
  const auto operandsOf = [](const Candidate &candidate) {
    std::vector<int> operands = candidate.inputs;
    operands.insert(operands.end(), candidate.outputs.begin(), candidate.outputs.end());
    return operands;
  };
  const auto agrees = [&](const Candidate &other, int tensor, const Layout &place) {
    const std::vector<int> operands = operandsOf(other);
    for (size_t operand = 0; operand < operands.size(); ++operand)
      if (operands[operand] == tensor && !gapsRefusal(other.kernel, operand, place).empty()) return false;
    return true;
  };
  const std::vector<int> parts = operandsOf(view);
  for (size_t part = 0; part < parts.size(); ++part)
    for (const Candidate &other : problem.candidates)
      if (&other != &view && !places[part].strides.empty() && !agrees(other, parts[part], places[part])) return false;
  return true;
}

/// Leaves the views that the rest of the problem admits. A result lies in the caller's buffer: no view there. With --strict no
/// operand has gaps: its kernels would be priced by rows without.
void leaveViews(const Problem &problem, const Candidate &candidate, bool isStrict, ConfigurationSpace &space) {
  const bool leaves = std::any_of(candidate.outputs.begin(), candidate.outputs.end(), [&](int t) { return problem.tensors[static_cast<size_t>(t)].isResult; });
  const bool isConcat = candidate.kernel.body[0].name == "concat";
  if (leaves || (isConcat && !mayLieInResult(problem, candidate))) space.tuples.clear();
  std::erase_if(space.tuples, [&](const LayoutTuple &places) {
    const bool isStrided = std::any_of(places.begin(), places.end(), [](const Layout &place) { return !place.strides.empty(); });
    return isStrided && (isStrict || !mayHaveGaps(problem, candidate, places));
  });
}

/// What an epilogue of a library saves, only measurements say: beside those of others it is offered by its own rows alone.
bool waitsForRows(const Kernel &kernel, const ConfigurationSpace &space, const CostModel &model) {
  return model.hasMeasurements() && space.family == familyOf(LibraryKnobs{}) && kernel.body.size() > 1;
}

}  // namespace

void Prices::openSpaces(int index) {
  const Candidate &candidate = problem.candidates[static_cast<size_t>(index)];
  CandidatePrices &prices = candidates[static_cast<size_t>(index)];
  std::vector<ConfigurationSpace> spaces = configurationSpaces(candidate.kernel, model.device());
  std::set<Knobs> loopKnobs;
  for (ConfigurationSpace &space : spaces) {
    if (options.softmax) combineSoftmax(candidate.kernel, *options.softmax, space);
    if (space.family == "loop") loopKnobs.insert(space.knobs.begin(), space.knobs.end());
  }
  std::vector<PricedConfiguration> rows = model.measured(candidate.kernel);
  std::erase_if(rows, [&](const PricedConfiguration &row) {  // what is asked for now, and still legal
    return std::holds_alternative<LoopKnobs>(row.configuration.knobs) && !loopKnobs.contains(row.configuration.knobs);
  });
  const bool fits = std::any_of(rows.begin(), rows.end(), [&](const PricedConfiguration &row) { return reachesPins(index, row); });
  bool isModelled = false;
  for (ConfigurationSpace &space : spaces) {
    const bool isView = space.family == "view";
    if (isView) leaveViews(problem, candidate, !model.admitsModelled(), space);
    if (isView && space.isEmpty()) continue;
    statistics.legalConfigurations += countConfigurations(candidate.kernel, space);
    if (!isView && (fits || waitsForRows(candidate.kernel, space, model))) {
      statistics.prunedConfigurations += withoutRows(candidate.kernel, space, rows);
      continue;
    }
    isModelled = isModelled || !isView;
    prices.spaces.push_back(std::move(space));
  }
  prices.pricedSpaces = prices.spaces.size();
  if (fits) addMeasured(index, rows);
  if (!isModelled || !model.hasMeasurements()) return;
  const std::string reason = rows.empty() ? "no configuration was measured" : "no measured configuration takes the pinned layouts";
  if (!model.admitsModelled())
    throw Error::strictMiss("kernel '{}' of '{}': {} ({})", candidate.name, problem.name, reason, model.description());
  ++statistics.unmeasuredKernels;
  if (!rows.empty()) statistics.notes.push_back(fmt::format("kernel {}: {}; priced by the model", candidate.name, reason));
}

/// Whether a row leaves every pinned operand as it is pinned.
bool Prices::reachesPins(int index, const PricedConfiguration &row) const {
  const Candidate &candidate = problem.candidates[static_cast<size_t>(index)];
  const auto agrees = [&](int tensor, const Layout &layout) {
    const auto &pin = pins[static_cast<size_t>(tensor)];
    return !pin || freeToPack[static_cast<size_t>(tensor)] || layout == *pin;
  };
  for (size_t i = 0; i < candidate.inputs.size(); ++i)
    if (!agrees(candidate.inputs[i], row.configuration.inputs[i])) return false;
  for (size_t i = 0; i < candidate.outputs.size(); ++i)
    if (!agrees(candidate.outputs[i], row.configuration.outputs[i])) return false;
  return true;
}

/// Rows become spaces of tuples, one a family, in which only the measured points are offered.
void Prices::addMeasured(int index, const std::vector<PricedConfiguration> &rows) {
  CandidatePrices &prices = candidates[static_cast<size_t>(index)];
  std::map<std::string_view, int> spaceOf;
  std::map<std::pair<int, LayoutTuple>, int> tupleOf;
  std::map<std::pair<int, Knobs>, int> knobsOf;
  for (const PricedConfiguration &row : rows) {
    const std::string_view family = familyOf(row.configuration.knobs);
    const auto [space, isNewSpace] = spaceOf.try_emplace(family, static_cast<int>(prices.spaces.size()));
    if (isNewSpace) prices.spaces.push_back({.family = std::string(family)});
    ConfigurationSpace &target = prices.spaces[static_cast<size_t>(space->second)];
    LayoutTuple layouts = row.configuration.inputs;
    layouts.insert(layouts.end(), row.configuration.outputs.begin(), row.configuration.outputs.end());
    const auto [tuple, isNewTuple] = tupleOf.try_emplace({space->second, layouts}, static_cast<int>(target.tuples.size()));
    if (isNewTuple) target.tuples.push_back(std::move(layouts));
    const auto [knobs, isNewKnobs] = knobsOf.try_emplace({space->second, row.configuration.knobs}, static_cast<int>(target.knobs.size()));
    if (isNewKnobs) target.knobs.push_back(row.configuration.knobs);
    prices.measured.push_back({.space = space->second, .tuple = tuple->second, .knobs = knobs->second, .seconds = row.cost.seconds});
  }
}

}  // namespace weft::select
