// Legal spaces, measurements as spaces, and the cache of both.
#include "passes/select/KernelSpaces.h"

#include "kernel/CanonicalNames.h"
#include "kernel/RecentAnswers.h"
#include "kernel/StridedBatchedGemm.h"
#include "passes/configure/OperandSums.h"
#include "passes/select/Prices.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace weft::select {
namespace {

/// Of all tables that are kept from one search to the next, and of one of their keys, about.
constexpr int64_t mostTableBytes = int64_t(64) << 20, keyBytes = 1024;

/// Configurations that are priced one by one where the model is not separable.
constexpr double maximumPricedOneByOne = 20000;

double combinations(const std::vector<std::vector<Layout>> &choices) {
  double product = 1;
  for (const auto &layouts : choices) product *= static_cast<double>(layouts.size());
  return product;
}

/// Leaves the knobs of block reductions that combine as asked, if the kernel has a softmax and
/// there are any.
void combineSoftmax(const Kernel &kernel, BlockCombine combine, ConfigurationSpace &space) {
  const auto isSoftmax = [](const BodyOp &op) {
    return op.kind == OpKind::softmax || op.kind == OpKind::localSoftmax;
  };
  if (std::none_of(kernel.body.begin(), kernel.body.end(), isSoftmax)) return;
  std::vector<Knobs> asked;
  for (const Knobs &knobs : space.knobs) {
    if (space.family->blockCombine && space.family->blockCombine(knobs) == combine)
      asked.push_back(knobs);
  }
  if (!asked.empty()) space.knobs = std::move(asked);
}

/// Leaves the knobs whose launches work in no more than that, whatever the layouts: a workspace
/// follows from extents and knobs. Where a family's does not, the check of the plan finds it.
void limitWorkspace(const Kernel &kernel, int64_t most, ConfigurationSpace &space) {
  if (!space.family->workspaceBytes) return;
  LayoutTuple layouts;
  forEachTuple(space, [&](const LayoutTuple &first) {
    layouts = first;
    return false;
  });
  if (layouts.empty()) return;
  std::erase_if(space.knobs, [&](const Knobs &knobs) {
    return launchWorkspaceBytes(kernel, toConfiguration(kernel, layouts, knobs)) > most;
  });
}

/// How many configurations of the space are unmeasured. The algorithms of a library depend on the
/// GPU and are not in the space, so a library space counts layouts.
double withoutMeasurements(const KernelSpaces &spaces, const ConfigurationSpace &space,
                           double configurations) {
  std::set<int> tuples;
  double count = 0;
  for (const MeasuredPoint &point : spaces.points) {
    const ConfigurationSpace &measured = *spaces.measured[static_cast<size_t>(point.space)];
    if (measured.family != space.family || point.hasSeveralStrides != space.hasSeveralStrides)
      continue;
    count += !space.family->isLibrary || tuples.insert(point.tuple).second ? 1 : 0;
  }
  return std::max(0.0, configurations - count);
}

/// Turns measurements into spaces of layout tuples, one for each family.
void addMeasured(const Kernel &kernel, const std::vector<PricedConfiguration> &measurements,
                 const std::set<Knobs> &listed, int64_t mostWorkspace, KernelSpaces &result) {
  std::vector<ConfigurationSpace> spaces;
  std::map<const Family *, int> spaceOf;
  std::map<std::pair<int, LayoutTuple>, int> tupleOf;
  std::map<std::pair<int, Knobs>, int> knobsOf;
  for (const PricedConfiguration &measurement : measurements) {
    const Knobs &measuredKnobs = measurement.configuration.knobs;
    if (measuredKnobs.family().listsEveryKnob && !listed.contains(measuredKnobs))
      continue;  // not wanted by these options, or no longer legal
    if (launchWorkspaceBytes(kernel, measurement.configuration) > mostWorkspace) continue;
    const Family &family = measuredKnobs.family();
    const auto [space, isNewSpace] = spaceOf.try_emplace(&family, static_cast<int>(spaces.size()));
    if (isNewSpace) spaces.push_back({.family = &family});
    ConfigurationSpace &target = spaces[static_cast<size_t>(space->second)];
    const Configuration &configuration = measurement.configuration;
    LayoutTuple layouts = configuration.inputs;
    layouts.insert(layouts.end(), configuration.outputs.begin(), configuration.outputs.end());
    const auto [tuple, isNewTuple] =
        tupleOf.try_emplace({space->second, layouts}, static_cast<int>(target.tuples.size()));
    if (isNewTuple) target.tuples.push_back(std::move(layouts));
    const auto [knobs, isNewKnobs] =
        knobsOf.try_emplace({space->second, measuredKnobs}, static_cast<int>(target.knobs.size()));
    if (isNewKnobs) target.knobs.push_back(measuredKnobs);
    const bool hasSeveralStrides =
        family.severalStrides && !stridedBatchedGemm(kernel, configuration);
    result.points.push_back({.space = space->second,
                             .tuple = tuple->second,
                             .knobs = knobs->second,
                             .seconds = measurement.cost.seconds,
                             .isMeasured = measurement.cost.measured,
                             .hasSeveralStrides = hasSeveralStrides});
  }
  for (ConfigurationSpace &space : spaces)
    result.measured.push_back(std::make_shared<ConfigurationSpace>(std::move(space)));
}

/// Whether a space is considered only if measured: with --strict, kernels whose ops can run without
/// them. A library GEMM with an epilogue, an epilogue with a reduction or a local softmax, an
/// operand that a prologue transforms. Else they take part as estimates, with their margins
/// (passes/configure/Margins.h).
bool waitsForMeasurements(const Kernel &kernel, const ConfigurationSpace &space,
                          const CostModel &model) {
  if (model.admitsModelled() || !space.family->isGemm || kernel.body.size() == 1) return false;
  const bool leavesStatistics = std::ranges::any_of(kernel.body, [](const BodyOp &op) {
    return op.kind == OpKind::reduce || op.kind == OpKind::localSoftmax;
  });
  return space.family->isLibrary || leavesStatistics || contractionIndex(kernel).value_or(0) > 0;
}

Bests measuredBestsOf(const Kernel &kernel, const KernelSpaces &spaces) {
  Bests bests{.byLayout = std::vector<std::map<Layout, Bests::Best>>(operandValues(kernel).size())};
  for (const MeasuredPoint &point : spaces.points)
    bests.offer(
        spaces.measured[static_cast<size_t>(point.space)]->tuples[static_cast<size_t>(point.tuple)],
        point.seconds, true);
  return bests;
}

}  // namespace

void Bests::offer(size_t operand, const Layout &layout, double offered, bool isRun) {
  Best &best = byLayout[operand].try_emplace(withoutPlace(layout)).first->second;
  best.seconds = std::min(best.seconds, offered);
  best.isRun = best.isRun || isRun;
}

void Bests::offer(const LayoutTuple &layouts, double offered, bool isRun) {
  if (offered < seconds) seconds = offered, tuple = layouts;
  for (size_t operand = 0; operand < layouts.size(); ++operand)
    offer(operand, layouts[operand], offered, isRun);
}

void Bests::offer(const Bests &others) {
  if (others.seconds < seconds) seconds = others.seconds, tuple = others.tuple;
  for (size_t operand = 0; operand < byLayout.size(); ++operand)
    for (const auto &[layout, best] : others.byLayout[operand])
      offer(operand, layout, best.seconds, best.isRun);
}

void Bests::offerModelled(const Kernel &kernel, const ConfigurationSpace &space,
                          const CostModel &model) {
  const CostModel &pricer = model.modelled();
  const double configurations =
      combinations(space.choices) * static_cast<double>(space.knobs.size());
  if (space.family->operandSums && space.tuples.empty() &&
      (pricer.isSeparable(kernel) || configurations > maximumPricedOneByOne)) {
    const Kernel priced = pricer.separableKernel(kernel);
    const std::unique_ptr<OperandSums> sums = space.family->operandSums(
        priced, model.device(), pricer.separableMargin(), space, space.choices);
    const OperandSums &table = *sums;
    for (size_t row = 0; row < table.knobsCount(); ++row) {
      seconds = std::min(seconds, table.best(row, -1, 0));
      for (size_t operand = 0; operand < space.choices.size(); ++operand)
        for (size_t l = 0; l < space.choices[operand].size(); ++l)
          offer(operand, space.choices[operand][l],
                table.best(row, static_cast<int>(operand), static_cast<int>(l)), true);
    }
    return;
  }
  const SteadyKernel steady(kernel);
  forEachTuple(space, [&](const LayoutTuple &layouts) {
    double least = infinite;
    for (const Knobs &knobs : space.knobs)
      if (isUseful(kernel, layouts, knobs))
        least =
            std::min(least, pricer.cost(kernel, toConfiguration(kernel, layouts, knobs)).seconds);
    offer(layouts, least, !space.family->isView);
    return true;
  });
}

namespace {

Bests modelledBestsOf(const Kernel &kernel, const CostModel &model, const KernelSpaces &spaces) {
  Bests bests{.byLayout = std::vector<std::map<Layout, Bests::Best>>(operandValues(kernel).size())};
  for (const KernelSpaces::Legal &legal : spaces.legal)
    if (!legal.isView && !legal.waitsForMeasurements)
      bests.offerModelled(kernel, *legal.space, model);
  return bests;
}

}  // namespace

int64_t launchWorkspaceBytes(const Kernel &kernel, const Configuration &configuration) {
  if (const auto ofKnobs = configuration.knobs.family().workspaceOfKnobs)
    return ofKnobs(configuration.knobs);
  return workspaceBytesOf(kernel, configuration);
}

KernelSpaces spacesOf(const Kernel &kernel, const CostModel &model, const SpaceLimits &limits) {
  const SteadyKernel steady(kernel);
  KernelSpaces result;
  std::set<Knobs> listed;
  std::vector<ConfigurationSpace> spaces = everySpace(kernel, model.device());
  for (ConfigurationSpace &space : spaces) {
    if (limits.softmax) combineSoftmax(kernel, *limits.softmax, space);
    limitWorkspace(kernel, limits.mostWorkspace, space);
    if (space.family->listsEveryKnob) listed.insert(space.knobs.begin(), space.knobs.end());
  }
  std::erase_if(spaces, [](const ConfigurationSpace &space) {
    return space.family->workspaceBytes && space.knobs.empty();
  });
  addMeasured(kernel, model.measured(kernel), listed, limits.mostWorkspace, result);
  for (ConfigurationSpace &space : spaces) {
    const double configurations = countConfigurations(kernel, space);
    const double unmeasured = withoutMeasurements(result, space, configurations);
    const bool isView = space.family->isView, waits = waitsForMeasurements(kernel, space, model);
    result.legal.push_back({.space = std::make_shared<ConfigurationSpace>(std::move(space)),
                            .configurations = configurations,
                            .withoutMeasurements = unmeasured,
                            .isView = isView,
                            .waitsForMeasurements = waits});
  }
  result.measuredBests = std::make_shared<Bests>(measuredBestsOf(kernel, result));
  return result;
}

SharedSpaces::Entry &SharedSpaces::of(const Kernel &kernel, const SpaceLimits &limits) {
  // Configurations name a kernel's axes by their numbers, which equal texts may give in another
  // order; a model may know kernels by their names.
  const std::string key =
      fmt::format("{}\n{}{} {} {}", kernel.name, canonicalText(kernel),
                  fmt::join(CanonicalNames(kernel).axesInOrder(), ","),
                  limits.softmax ? nameOf(*limits.softmax) : "", limits.mostWorkspace);
  Entry &entry = [&]() -> Entry & {
    const std::lock_guard lock(mutex);
    return entries[key];
  }();
  std::call_once(entry.opened, [&] { entry.spaces = spacesOf(kernel, model, limits); });
  return entry;
}

bool SharedSpaces::Entry::has(const SharedSpace &space) const {
  return std::ranges::find(spaces.legal, space, &KernelSpaces::Legal::space) !=
             spaces.legal.end() ||
         std::ranges::find(spaces.measured, space) != spaces.measured.end();
}

std::shared_ptr<const PricedTable> SharedSpaces::table(Entry &entry, Entry::TableKey key,
                                                       const std::function<PricedTable()> &price) {
  const std::shared_ptr<Entry::Table> table = [&] {
    const std::lock_guard lock(mutex);
    std::shared_ptr<Entry::Table> &known = entry.tables[std::move(key)];
    if (!known) known = std::make_shared<Entry::Table>();
    return known;
  }();
  std::call_once(table->priced, [&] {
    table->table = std::make_shared<const PricedTable>(price());
    const std::lock_guard lock(mutex);
    tableBytes += keyBytes + std::ssize(table->table->entries) * int64_t(sizeof(Price));
  });
  return table->table;
}

void SharedSpaces::limitTables() {
  const std::lock_guard lock(mutex);
  if (tableBytes <= mostTableBytes) return;
  for (auto &[key, entry] : entries) entry.tables.clear();
  tableBytes = 0;
}

const std::shared_ptr<const Bests> &SharedSpaces::modelledBests(const Kernel &kernel,
                                                                Entry &entry) {
  std::call_once(entry.modelled, [&] {
    entry.modelledBests = std::make_shared<Bests>(modelledBestsOf(kernel, model, entry.spaces));
  });
  return entry.modelledBests;
}

}  // namespace weft::select
