// From proposed variants to the one plan that every command speaks of: selection in each variant
// under the pins, then what lies outside of the shortest path (chunks, a limit of memory), then the
// price of each pin; the part of Compilation that decides.
#include "tools/driver/Compilation.h"

#include "kernel/Error.h"
#include "kernel/Nearest.h"
#include "tools/driver/ChunkChoice.h"
#include "tools/driver/KnownTimes.h"
#include "tools/driver/MemoryLimit.h"
#include "tools/driver/PinAdvice.h"
#include "tools/driver/Pins.h"
#include "tools/driver/Planning.h"

#include <algorithm>
#include <ranges>

namespace weft::driver {
namespace {

void keepLogicalLayouts(select::Problem &problem) {
  for (select::Tensor &tensor : problem.tensors)
    if (!tensor.isParameter && !tensor.pinned && !tensor.mustBeStored && tensor.axes.size() > 1)
      tensor.pinned = rowMajor(tensor.axes.size());
}

/// By variant: of others than the best what their bound leaves, for none was searched to its end.
VariantTimes timesOf(const Selected &selected) {
  VariantTimes times;
  const SelectedVariant &best = selected.variants.front();
  for (const SelectedVariant &variant : selected.variants) {
    const double seconds = variant.selection.best().seconds;
    times[variant.proposed.name()] =
        &variant == &best ? seconds
                          : std::max(best.selection.best().seconds,
                                     seconds * (1 - variant.selection.statistics().mostGain));
  }
  return times;
}

constexpr const char *wholePlan = "plan";

}  // namespace

std::vector<ProposedVariant> copyOf(const std::vector<ProposedVariant> &variants) {
  std::vector<ProposedVariant> result;
  for (const ProposedVariant &variant : variants)
    result.push_back({.rewrites = variant.rewrites,
                      .module = mlir::ModuleOp(variant.module.get()).clone(),
                      .fusions = variant.fusions,
                      .stackings = variant.stackings,
                      .norms = variant.norms,
                      .notes = variant.notes,
                      .counted = variant.counted,
                      .leftOut = variant.leftOut,
                      .forced = variant.forced,
                      .forbidden = variant.forbidden});
  return result;
}

/// For each pin why no plan honours it where that can be told, and the orders near it that could be
/// pinned, in the first variant that has the tensor.
std::string Compilation::adviceOn(std::vector<Pin> pins,
                                  const std::vector<ProposedVariant> &proposed) const {
  std::string advice;
  std::erase_if(pins, [](const Pin &pin) { return pin.order.empty(); });
  for (const ProposedVariant &variant : proposed) {
    select::Problem problem = problemOf(variant);
    applyPins(problem, pins);
    std::set<std::string> found;
    std::vector<int> pinned;
    for (size_t tensor = 0; tensor < problem.tensors.size(); ++tensor)
      if (std::ranges::find(pins, problem.tensors[tensor].name, &Pin::tensor) != pins.end()) {
        pinned.push_back(int(tensor));
        found.insert(problem.tensors[tensor].name);
      }
    advice +=
        fusedAway(problem, pins, variant.forced) + pinAdvice(problem, pinned, prices->device());
    std::erase_if(pins, [&](const Pin &pin) { return found.contains(pin.tensor); });
  }
  return advice;
}

std::vector<select::Problem> Compilation::problems(
    const std::vector<ProposedVariant> &proposed) const {
  std::vector<select::Problem> result;
  for (const ProposedVariant &variant : proposed) {
    result.push_back(problemOf(variant));
    for (select::Tensor &tensor : result.back().tensors)
      if (choices.free && !tensor.isParameter) tensor.pinned.reset();  // the caller's order
  }
  return result;
}

/// Throws for axes that a pinned tensor has not, for a tensor that no variant has, and for tensors
/// that no variant has together.
void Compilation::checkPins(const std::vector<select::Problem> &problems,
                            const std::vector<Pin> &pins) const {
  std::set<std::string> names;
  std::map<std::string, std::vector<std::string>> variantsWith;  // of pinned tensors
  for (const select::Problem &problem : problems)
    for (const select::Tensor &tensor : problem.tensors) {
      names.insert(tensor.name);
      for (const Pin &pin : pins)
        if (tensor.name == pin.tensor) {
          if (!pin.order.empty()) pinnedLayout(pin, tensor);
          variantsWith[pin.tensor].push_back(problem.name);
        }
    }
  for (const Pin &pin : pins) {
    if (names.contains(pin.tensor)) continue;
    std::vector<std::string> others;
    for (const select::Problem &problem : everyProblem())
      if (hasTensor(problem, pin.tensor)) others.push_back(problem.name);
    if (!others.empty())
      throw Error::unsupported(
          "--pin {}: no variant that the flags leave has this tensor ({}); it is in {}: leave out "
          "--variant, --attention, --norms or --stacking",
          pin.tensor, fmt::join(problems | std::views::transform(&select::Problem::name), ", "),
          fmt::join(others, ", "));
    throw Error::badInput("--pin {}: no such tensor{}", pin.tensor,
                          nearestAndKnown(pin.tensor, {names.begin(), names.end()}));
  }
  if (std::ranges::any_of(problems, [&](const select::Problem &problem) {
        return lackedTensor(problem, pins).empty();
      }))
    return;
  std::string where;
  for (const auto &[tensor, variants] : variantsWith)
    where += fmt::format("\n  '{}' is in {}", tensor, fmt::join(variants, ", "));
  throw Error::unsupported("no variant has all pinned tensors; leave out one of the pins:{}",
                           where);
}

select::VariantProblem variantProblem(const ChoiceFlags &choices, const ProposedVariant &variant,
                                      select::Problem problem, const std::vector<Pin> &pins,
                                      size_t together) {
  applyPins(problem, pins);
  if (problem.ops.size() >= manyOps) keepLogicalLayouts(problem);
  select::Options options;
  options.alternatives = choices.alternatives;
  options.forceFused = variant.forced;
  options.forbidFused = variant.forbidden;
  options.free = choices.free;
  options.softmax = choices.softmaxCombine();
  options.searchBytes = choices.memoryOfSearch().bytesOfSearch(together);
  return {.problem = std::move(problem), .options = std::move(options)};
}

Selected Compilation::selectAll(std::vector<ProposedVariant> proposed,
                                std::vector<select::Problem> problems, const std::vector<Pin> &pins,
                                const VariantTimes &withoutPins) const {
  Selected result;
  if (!proposed.empty() && proposed.front().leftOut > 0)
    result.searchCuts.push_back(fmt::format("{} variants were left out, {} searched",
                                            proposed.front().leftOut, proposed.size()));
  const auto cut = std::ranges::find_if(
      proposed, [](const ProposedVariant &variant) { return variant.fusions.isCut; });
  if (cut != proposed.end())
    result.searchCuts.push_back(
        fmt::format("{} candidate kernels of '{}' were proposed and no more",
                    cut->fusions.candidates.size(), cut->name()));
  std::vector<select::VariantProblem> asked;
  std::vector<size_t> askedOf;  // of proposed
  for (size_t v = 0; v < proposed.size(); ++v) {
    const ProposedVariant &variant = proposed[v];
    select::Problem &problem = problems[v];
    if (const std::string reason = lackedTensor(problem, pins); !reason.empty()) {
      result.dropped.push_back({.name = variant.name(), .reason = reason, .lacksPinned = true});
      continue;
    }
    asked.push_back(variantProblem(choices, variant, std::move(problem), pins, proposed.size()));
    if (const auto known = withoutPins.find(variant.name()); known != withoutPins.end())
      asked.back().withoutPins = known->second;
    askedOf.push_back(v);
  }
  select::VariantSelections selections;
  try {
    selections = select::selectVariants(std::move(asked), *prices, comparedPaths);
  } catch (const Error &error) {
    throw Error(error.kind, error.what() + adviceOn(pins, proposed));
  }
  // Of what was not even proposed nothing is known.
  result.lowerBound = result.searchCuts.empty() ? selections.lowerBound : 0;
  for (size_t n = 0; n < askedOf.size(); ++n) {
    ProposedVariant &variant = proposed[askedOf[n]];
    if (selections.solved[n])
      result.variants.push_back(
          {.proposed = std::move(variant), .selection = std::move(*selections.solved[n])});
    else if (selections.skipped[n]) result.skipped[variant.name()] = withoutPins.at(variant.name());
    else result.dropped.push_back({.name = variant.name(), .reason = selections.reasons[n]});
  }
  for (const SelectedVariant &variant : result.variants)
    for (const std::string &cut : variant.selection.statistics().searchCuts)
      if (std::ranges::find(result.searchCuts, cut) == result.searchCuts.end())
        result.searchCuts.push_back(cut);
  if (targetFlags.strict && !result.searchCuts.empty())
    throw Error::strictMiss(
        "--strict: the search reached its limits, {} bytes of memory and {} steps a variant: {}; "
        "--search-memory gives it more memory, --variant and --no-fuse less to search",
        memory.limit(), select::Options().searchWork, fmt::join(result.searchCuts, "; "));
  std::stable_sort(result.variants.begin(), result.variants.end(),
                   [](const SelectedVariant &a, const SelectedVariant &b) {
                     return a.selection.best().seconds < b.selection.best().seconds;
                   });
  return result;
}

/// What lies outside of the shortest path.
void Compilation::decideMemory(Selected &selected) const {
  selected.concurrent = choices.concurrencyRequested();
  if (const std::optional<int64_t> limit = choices.maxMemoryBytes())
    chooseWithinMemory(*this, selected, *limit);
  else chooseChunks(*this, selected);
  selected.plannedSeconds = chosenPlan(*this, selected).plan.predictedSeconds;
}

Selected Compilation::decideAmong(std::vector<ProposedVariant> proposed,
                                  std::vector<select::Problem> problems,
                                  const std::vector<Pin> &pins,
                                  const VariantTimes &withoutPins) const {
  const bool isMemoryShort = choices.maxMemoryBytes().has_value();  // then every variant matters
  Selected selected = selectAll(std::move(proposed), std::move(problems), pins,
                                isMemoryShort ? VariantTimes() : withoutPins);
  selected.asked = pins;
  decideMemory(selected);
  return selected;
}

/// Known for a graph, its choices and its prices (KnownTimes.h). Variants and fusions are functions
/// of the graph, of the rewrites that name a variant and of the choices, so they need not be
/// printed.
Compilation::KnownWithoutPins Compilation::knownWithoutPins(
    const std::vector<ProposedVariant> &proposed) const {
  KnownTimes known(pricesKey);
  for (const Variant &variant : imported) known.add(print(*variant.module));
  for (const ProposedVariant &variant : proposed) known.add(variant.name());
  known.add(fmt::format("{} {} {} {} {} {} {}", nameOf(std::max(firstPhase, Phase::algebra)),
                        choices.free, choices.softmax, choices.fuseRules,
                        fmt::join(choices.fuse, " "), fmt::join(choices.noFuse, " "),
                        choices.searchMemory));
  KnownTimes ofPlan = known;
  ofPlan.add(fmt::format("{} {} {} {} {}", wholePlan, choices.maxMemory, choices.chunks,
                         choices.concurrent, choices.alternatives));
  return {.variants = std::move(known), .plan = std::move(ofPlan)};
}

std::pair<Selected, Compilation::WithoutPins> Compilation::decideWithoutPins(
    std::vector<ProposedVariant> proposed, std::vector<select::Problem> problems) const {
  KnownWithoutPins known = knownWithoutPins(proposed);
  WithoutPins found;
  Selected selected = selectAll(std::move(proposed), std::move(problems), {}, {});
  found.times = timesOf(selected);
  decideMemory(selected);
  found.seconds = selected.plannedSeconds;
  known.variants.store(found.times);
  known.plan.store({{wholePlan, found.seconds}});
  return {std::move(selected), std::move(found)};
}

Compilation::WithoutPins Compilation::withoutPins(
    const std::vector<ProposedVariant> &proposed,
    const std::vector<select::Problem> &problems) const {
  KnownWithoutPins known = knownWithoutPins(proposed);
  const std::optional<VariantTimes> times = known.variants.find(), plan = known.plan.find();
  if (times && plan && plan->contains(wholePlan))
    return {.times = *times, .seconds = plan->at(wholePlan)};
  return decideWithoutPins(copyOf(proposed), problems).second;
}

Selected Compilation::decide(const std::vector<ProposedVariant> &proposed,
                             const std::vector<Pin> &pins) const {
  std::vector<select::Problem> problems = this->problems(proposed);
  if (pins.empty()) return decideWithoutPins(copyOf(proposed), std::move(problems)).first;
  checkPins(problems, pins);
  const VariantTimes times = withoutPins(proposed, problems).times;
  return decideAmong(copyOf(proposed), std::move(problems), pins, times);
}

Selected Compilation::select(std::vector<ProposedVariant> proposed) const {
  const std::vector<Pin> pins = choices.pinned();
  std::vector<select::Problem> problems = this->problems(proposed), unpinned;
  if (pins.empty()) return decideWithoutPins(std::move(proposed), std::move(problems)).first;
  checkPins(problems, pins);
  std::vector<ProposedVariant> copies;
  if (pins.size() > 1) copies = copyOf(proposed), unpinned = problems;
  const WithoutPins without = withoutPins(proposed, problems);
  Selected selected = decideAmong(std::move(proposed), std::move(problems), pins, without.times);
  for (size_t index = 0; index < pins.size(); ++index) {
    std::vector<Pin> others = pins;
    others.erase(others.begin() + long(index));
    const double before =
        others.empty()
            ? without.seconds
            : decideAmong(copyOf(copies), unpinned, others, without.times).plannedSeconds;
    selected.pins.push_back({.tensor = pins[index].tensor,
                             .layout = printOrder(pins[index].order),
                             .seconds = selected.plannedSeconds - before});
  }
  return selected;
}

}  // namespace weft::driver
