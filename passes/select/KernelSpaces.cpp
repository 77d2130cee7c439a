// Legal spaces, rows as spaces, and the memory of both.
#include "passes/select/KernelSpaces.h"

#include "kernel/CanonicalNames.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

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
double withoutRows(const KernelSpaces &spaces, const ConfigurationSpace &space, double configurations) {
  std::set<int> tuples;
  double count = 0;
  for (const MeasuredPoint &point : spaces.points) {
    const ConfigurationSpace &measured = *spaces.measured[static_cast<size_t>(point.space)];
    if (measured.family != space.family) continue;
    const bool isLibrary = space.family == familyOf(LibraryKnobs{});
    count += !isLibrary || tuples.insert(point.tuple).second ? 1 : 0;
  }
  return std::max(0.0, configurations - count);
}

/// Rows become spaces of tuples, one a family.
void addMeasured(const std::vector<PricedConfiguration> &rows, const std::set<Knobs> &loopKnobs, KernelSpaces &result) {
  std::vector<ConfigurationSpace> spaces;
  std::map<std::string_view, int> spaceOf;
  std::map<std::pair<int, LayoutTuple>, int> tupleOf;
  std::map<std::pair<int, Knobs>, int> knobsOf;
  for (const PricedConfiguration &row : rows) {
    const Knobs &rowKnobs = row.configuration.knobs;
    if (std::holds_alternative<LoopKnobs>(rowKnobs) && !loopKnobs.contains(rowKnobs)) continue;  // what is asked for now, and still legal
    const std::string_view family = familyOf(rowKnobs);
    const auto [space, isNewSpace] = spaceOf.try_emplace(family, static_cast<int>(spaces.size()));
    if (isNewSpace) spaces.push_back({.family = std::string(family)});
    ConfigurationSpace &target = spaces[static_cast<size_t>(space->second)];
    LayoutTuple layouts = row.configuration.inputs;
    layouts.insert(layouts.end(), row.configuration.outputs.begin(), row.configuration.outputs.end());
    const auto [tuple, isNewTuple] = tupleOf.try_emplace({space->second, layouts}, static_cast<int>(target.tuples.size()));
    if (isNewTuple) target.tuples.push_back(std::move(layouts));
    const auto [knobs, isNewKnobs] = knobsOf.try_emplace({space->second, rowKnobs}, static_cast<int>(target.knobs.size()));
    if (isNewKnobs) target.knobs.push_back(rowKnobs);
    result.points.push_back({.space = space->second, .tuple = tuple->second, .knobs = knobs->second, .seconds = row.cost.seconds});
  }
  for (ConfigurationSpace &space : spaces) result.measured.push_back(std::make_shared<ConfigurationSpace>(std::move(space)));
}

}  // namespace

KernelSpaces spacesOf(const Kernel &kernel, const CostModel &model, std::optional<BlockCombine> softmax) {
  KernelSpaces result;
  std::set<Knobs> loopKnobs;
  std::vector<ConfigurationSpace> spaces = configurationSpaces(kernel, model.device());
  for (ConfigurationSpace &space : spaces) {
    if (softmax) combineSoftmax(kernel, *softmax, space);
    if (space.family == "loop") loopKnobs.insert(space.knobs.begin(), space.knobs.end());
  }
  addMeasured(model.measured(kernel), loopKnobs, result);
  for (ConfigurationSpace &space : spaces) {
    const double configurations = countConfigurations(kernel, space);
    const double unmeasured = withoutRows(result, space, configurations);
    result.legal.push_back({.space = std::make_shared<ConfigurationSpace>(std::move(space)), .configurations = configurations, .withoutRows = unmeasured});
  }
  return result;
}

const KernelSpaces &SharedSpaces::of(const Kernel &kernel, std::optional<BlockCombine> softmax) {
  // Configurations name a kernel's axes by their numbers, which equal texts may give in another order.
  const std::string key = fmt::format("{}{} {}", canonicalText(kernel), fmt::join(CanonicalNames(kernel).axesInOrder(), ","),
                                      softmax ? nameOf(*softmax) : "");
  Entry &entry = [&]() -> Entry & {
    const std::lock_guard lock(mutex);
    return entries[key];
  }();
  std::call_once(entry.once, [&] { entry.spaces = spacesOf(kernel, model, softmax); });
  return entry.spaces;
}

}  // namespace weft::select
