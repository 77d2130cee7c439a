// Selection in each variant under the pins, then what lies outside of the shortest path, then the
// price of each pin; see Decide.h.
#include "passes/decide/Decide.h"

#include "kernel/Format.h"
#include "kernel/Nearest.h"
#include "passes/configure/OptimisticCost.h"
#include "passes/decide/ChunkChoice.h"
#include "passes/decide/MeasuredChoice.h"
#include "passes/decide/MemoryLimit.h"
#include "passes/decide/PinAdvice.h"
#include "passes/decide/PipelineChoice.h"
#include "passes/select/KernelSpaces.h"

#include <algorithm>
#include <ranges>

namespace weft::decision {
namespace {

/// By variant: of others than the best what their bound leaves, for none was searched to its end.
VariantTimes timesOf(const Decision &decision) {
  VariantTimes times;
  const SelectedVariant &best = decision.variants.front();
  for (const SelectedVariant &variant : decision.variants) {
    const double seconds = variant.selection.best().seconds;
    times[variant.name] = &variant == &best
                              ? seconds
                              : std::max(best.selection.best().seconds,
                                         seconds * (1 - variant.selection.statistics().mostGain));
  }
  return times;
}

/// For each pin why no plan honours it where that can be told, and the orders near it that could be
/// pinned, in the first variant that has the tensor.
std::string adviceOn(std::vector<Pin> pins, const Problem &asked) {
  std::string advice;
  std::erase_if(pins, [](const Pin &pin) { return pin.layout.order.empty(); });
  for (const Variant &variant : asked.variants) {
    select::Problem problem = variant.problem;
    applyPins(problem, pins);
    std::set<std::string> found;
    std::vector<int> pinned;
    for (size_t tensor = 0; tensor < problem.tensors.size(); ++tensor)
      if (std::ranges::find(pins, problem.tensors[tensor].name, &Pin::tensor) != pins.end()) {
        pinned.push_back(int(tensor));
        found.insert(problem.tensors[tensor].name);
      }
    advice += fusedAway(problem, pins, variant.forced) +
              pinAdvice(problem, pinned, asked.context.prices->device());
    std::erase_if(pins, [&](const Pin &pin) { return found.contains(pin.tensor); });
  }
  return advice;
}

/// Throws for axes that a pinned tensor has not, for a tensor that no variant has, and for tensors
/// that no variant has together.
void checkPins(const Problem &asked, const std::vector<Pin> &pins) {
  std::set<std::string> names;
  std::map<std::string, std::vector<std::string>> variantsWith;  // of pinned tensors
  for (const Variant &variant : asked.variants)
    for (const select::Tensor &tensor : variant.problem.tensors) {
      names.insert(tensor.name);
      for (const Pin &pin : pins)
        if (tensor.name == pin.tensor) {
          if (!pin.layout.order.empty()) pinnedLayout(pin, tensor);
          variantsWith[pin.tensor].push_back(variant.name());
        }
    }
  for (const Pin &pin : pins) {
    if (names.contains(pin.tensor)) continue;
    std::vector<std::string> others;
    for (const select::Problem &problem : asked.everyVariant())
      if (hasTensor(problem, pin.tensor)) others.push_back(problem.name);
    if (!others.empty())
      throw Error::unsupported(
          "--pin {}: no variant that the flags leave has this tensor ({}); it is in {}: leave out "
          "--variant, --attention, --norms or --stacking",
          pin.tensor, fmt::join(asked.variants | std::views::transform(&Variant::name), ", "),
          fmt::join(others, ", "));
    throw Error::badInput("--pin {}: no such tensor{}", pin.tensor,
                          nearestAndKnown(pin.tensor, {names.begin(), names.end()}));
  }
  if (std::ranges::any_of(asked.variants, [&](const Variant &variant) {
        return lackedTensor(variant.problem, pins).empty();
      }))
    return;
  std::string where;
  for (const auto &[tensor, variants] : variantsWith)
    where += fmt::format("\n  '{}' is in {}", tensor, fmt::join(variants, ", "));
  throw Error::unsupported("no variant has all pinned tensors; leave out one of the pins:{}",
                           where);
}

}  // namespace

select::VariantProblem variantProblem(const Problem &asked, const Variant &variant,
                                      const Options &options, const std::vector<Pin> &pins,
                                      size_t together) {
  select::Problem problem = variant.problem;
  applyPins(problem, pins);
  select::Options limits;
  limits.alternatives = options.alternatives;
  limits.forceFused = variant.forced;
  limits.forbidFused = variant.forbidden;
  limits.free = asked.context.free;
  limits.softmax = options.softmax;
  limits.searchBytes = options.searchMemory.bytesOfSearch(together);
  return {.problem = std::move(problem), .options = std::move(limits)};
}

select::VariantSelections selectIn(const Problem &problem,
                                   std::vector<select::VariantProblem> variants,
                                   const select::Compared &compared) {
  const PlanContext &context = problem.context;
  if (context.spaces) return select::selectVariants(std::move(variants), *context.spaces, compared);
  return select::selectVariants(std::move(variants), *context.prices, compared);
}

std::string tradeLine(const Decision &decision) {
  if (!(decision.tradedShare > 0)) return "";
  return fmt::format(
      "--memory-trade: as one graph the plan is {:.2f}% slower than the fastest, and takes {} less "
      "workspace",
      100 * decision.tradedShare, formatBytes(decision.tradedBytes));
}

std::string memoryLine(const Decision &decision) {
  const std::vector<std::string> &cuts = decision.searchCuts;
  if (cuts.empty()) return "";
  return fmt::format(
      "the search reached its limits (--search-memory) and ended with the best plan found: {}{}",
      cuts.front(), cuts.size() > 1 ? fmt::format("; and {} more cuts", cuts.size() - 1) : "");
}

double secondsOf(const Decision &decision, const SelectedVariant &variant) {
  if (&variant == &decision.best()) return decision.planned.plan.predictedSeconds;
  return variant.fitted ? variant.fitted->seconds : variant.selection.best().seconds;
}

namespace {

/// Every variant's best paths; nothing is decided yet.
Decision selectAll(const Problem &problem, const Options &options, const std::vector<Pin> &pins,
                   const VariantTimes &withoutPins) {
  Decision result;
  const std::vector<Variant> &variants = problem.variants;
  if (problem.leftOut > 0)
    result.searchCuts.push_back(
        fmt::format("{} variants were left out, {} searched", problem.leftOut, variants.size()));
  const auto cut = std::ranges::find_if(variants, &Variant::isCut);
  if (cut != variants.end())
    result.searchCuts.push_back(
        fmt::format("{} candidate kernels of '{}' were proposed and no more",
                    cut->problem.candidates.size(), cut->name()));
  std::vector<select::VariantProblem> asked;
  std::vector<size_t> askedOf;  // of the problem's
  for (size_t v = 0; v < variants.size(); ++v) {
    const Variant &variant = variants[v];
    if (const std::string reason = lackedTensor(variant.problem, pins); !reason.empty()) {
      result.dropped.push_back({.name = variant.name(), .reason = reason, .lacksPinned = true});
      continue;
    }
    asked.push_back(variantProblem(problem, variant, options, pins, variants.size()));
    if (const auto known = withoutPins.find(variant.name()); known != withoutPins.end())
      asked.back().withoutPins = known->second;
    askedOf.push_back(v);
  }
  select::VariantSelections selections;
  try {
    const bool countsMemory = options.maxMemory || options.memoryTrade > 0;
    selections =
        selectIn(problem, std::move(asked), countsMemory ? comparedByMemory : comparedPaths);
  } catch (const Error &error) {
    throw Error(error.kind, error.what() + adviceOn(pins, problem));
  }
  // Of what was not even proposed nothing is known.
  result.isBoundOfAll = result.searchCuts.empty();
  result.lowerBound = selections.lowerBound;
  if (problem.boundOfCombinations)
    result.lowerBound = std::min(result.lowerBound, *problem.boundOfCombinations);
  result.searchCuts.insert(result.searchCuts.end(), problem.cutsOfCombinations.begin(),
                           problem.cutsOfCombinations.end());
  for (size_t n = 0; n < askedOf.size(); ++n) {
    const Variant &variant = variants[askedOf[n]];
    if (selections.solved[n])
      result.variants.push_back({.index = askedOf[n],
                                 .name = variant.name(),
                                 .notes = variant.notes,
                                 .selection = std::move(*selections.solved[n])});
    else if (selections.skipped[n]) result.skipped[variant.name()] = withoutPins.at(variant.name());
    else result.dropped.push_back({.name = variant.name(), .reason = selections.reasons[n]});
  }
  for (const SelectedVariant &variant : result.variants)
    for (const std::string &cut : variant.selection.statistics().searchCuts)
      if (std::ranges::find(result.searchCuts, cut) == result.searchCuts.end())
        result.searchCuts.push_back(cut);
  if (options.strict && !result.searchCuts.empty())
    throw Error::strictMiss(
        "--strict: the search reached its limits, {} bytes of memory and {} steps a variant: {}; "
        "--search-memory gives it more memory, --variant and --no-fuse less to search",
        options.searchMemory.limit(), select::Options().searchWork,
        fmt::join(result.searchCuts, "; "));
  std::stable_sort(result.variants.begin(), result.variants.end(),
                   [](const SelectedVariant &a, const SelectedVariant &b) {
                     return a.selection.best().seconds < b.selection.best().seconds;
                   });
  return result;
}

/// The plan of what was decided, which alone says the bound, that of the plans of all variants, and
/// which of its kernels start early.
PlannedKernels chosenPlan(const Problem &problem, const Options &options,
                          const Decision &decision) {
  PlannedKernels planned =
      valueOrThrow(planOf(problem.context, decision.best(), decision.path(), decision.chunks,
                          decision.concurrent, decision.isPipelined));
  planned.plan.lowerBoundSeconds = decision.lowerBound;
  chooseEarlyStarts(planned.plan, options.earlyStarts);
  checkHonoured(planned.plan, decision.asked);
  if (const std::string line = memoryLine(decision); !line.empty())
    planned.plan.notes.push_back({.kind = NoteKind::searchLimits, .text = line});
  if (const std::string line = tradeLine(decision); !line.empty())
    planned.plan.notes.push_back({.kind = NoteKind::chunks, .text = line});
  if (const std::string line = pipelineLine(decision); !line.empty())
    planned.plan.notes.push_back({.kind = NoteKind::chunks, .text = line});
  return planned;
}

/// What lies outside of the shortest path.
void decideMemory(const Problem &problem, const Options &options, Decision &decision) {
  decision.concurrent = options.isConcurrent();
  if (options.maxMemory) chooseWithinMemory(problem, options, decision, *options.maxMemory);
  else chooseChunks(problem.context, options, decision);
  choosePipeline(problem.context, options, decision);
  decision.planned = chosenPlan(problem, options, decision);
}

Decision decideAmong(const Problem &problem, const Options &options, const std::vector<Pin> &pins,
                     const VariantTimes &withoutPins) {
  const bool isMemoryShort = options.maxMemory.has_value();  // then every variant matters
  Decision decision =
      selectAll(problem, options, pins, isMemoryShort ? VariantTimes() : withoutPins);
  decision.asked = pins;
  decideMemory(problem, options, decision);
  return decision;
}

std::pair<Decision, WithoutPins> decideWithoutPins(const Problem &problem, const Options &options) {
  WithoutPins found;
  Decision decision = selectAll(problem, options, {}, {});
  found.times = timesOf(decision);
  decideMemory(problem, options, decision);
  found.seconds = decision.planned.plan.predictedSeconds;
  if (options.remember) options.remember(found);
  return {std::move(decision), std::move(found)};
}

WithoutPins withoutPins(const Problem &problem, const Options &options) {
  if (options.recall)
    if (std::optional<WithoutPins> known = options.recall()) return std::move(*known);
  return decideWithoutPins(problem, options).second;
}

/// An error of what is asked is a result; one of input or of this program is thrown.
template <typename Function>
Expected<Decision> expected(const Function &function) {
  try {
    return function();
  } catch (const Error &error) {
    if (error.kind != ErrorKind::unsupported && error.kind != ErrorKind::strictMiss) throw;
    return Unexpected(error);
  }
}

}  // namespace

std::vector<PlannedKernels> plansInChunks(const PlanContext &context, const Decision &decision,
                                          int asked, int most) {
  std::vector<PlannedKernels> plans = {
      valueOrThrow(planOf(context, decision.best(), decision.path(), 1))};
  if (decision.isPipelined)
    plans.push_back(valueOrThrow(
        planOf(context, decision.best(), decision.path(), decision.chunks, true, true)));
  if (decision.pricedChunkings.empty()) return plans;
  for (const int count : chunkCounts({.chunks = asked})) {
    if (count == 1 || count > most) continue;
    Expected<PlannedKernels> planned =
        planOf(context, decision.best(), decision.path(), count, decision.concurrent);
    if (planned) plans.push_back(std::move(*planned));
    else if (planned.error().kind != ErrorKind::unsupported) throw planned.error();
  }
  return plans;
}

Expected<Decision> decidePlan(const Problem &problem, const Options &options) {
  return expected([&] {
    if (options.pins.empty()) return decideWithoutPins(problem, options).first;
    checkPins(problem, options.pins);
    return decideAmong(problem, options, options.pins, withoutPins(problem, options).times);
  });
}

Expected<Decision> decide(const Problem &problem, const Options &options, const Measure &measure) {
  return expected([&] {
    Decision decision;
    if (options.pins.empty()) {
      decision = decideWithoutPins(problem, options).first;
    } else {
      checkPins(problem, options.pins);
      const WithoutPins without = withoutPins(problem, options);
      decision = decideAmong(problem, options, options.pins, without.times);
      const double seconds = decision.planned.plan.predictedSeconds;
      for (size_t index = 0; index < options.pins.size(); ++index) {
        std::vector<Pin> others = options.pins;
        others.erase(others.begin() + long(index));
        const double before = others.empty() ? without.seconds
                                             : decideAmong(problem, options, others, without.times)
                                                   .planned.plan.predictedSeconds;
        decision.pins.push_back({.tensor = options.pins[index].tensor,
                                 .layout = print(options.pins[index].layout),
                                 .seconds = seconds - before});
      }
    }
    if (measure) {
      Problem asked = problem;
      const auto prices = optimisticCostModel(*problem.context.prices);
      asked.context.prices = prices.get();
      asked.context.spaces = nullptr;
      const Decision optimistic = selectAll(asked, options, options.pins, {});
      chooseByMeasuring(problem.context, options, decision,
                        {.prices = *prices, .decision = optimistic}, measure);
      decision.planned = chosenPlan(problem, options, decision);
      for (const TimedPath &timed : decision.timed)
        if (timed.chosen) decision.planned.plan.measurement = timed.measurement;
    }
    return decision;
  });
}

}  // namespace weft::decision
