// The report of one compilation; see Report.h.
#include "tools/driver/Report.h"

#include "codegen/Program.h"
#include "codegen/families/contraction/MaskedTiles.h"
#include "kernel/AttentionBackwardRegion.h"
#include "kernel/AttentionRegion.h"
#include "kernel/BlockMask.h"
#include "kernel/Family.h"
#include "kernel/LayerNames.h"
#include "kernel/ReasonCodes.h"
#include "passes/account/Stages.h"
#include "passes/decide/KernelPrices.h"
#include "passes/decide/PathPlan.h"
#include "passes/decide/PriceQuestions.h"
#include "passes/decide/Roofline.h"
#include "plan/PlanFigures.h"
#include "tools/driver/Accounting.h"
#include "tools/driver/Console.h"
#include "tools/driver/Fills.h"
#include "tools/driver/MemoryReport.h"
#include "tools/driver/Request.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>

namespace weft::driver {

using decision::Decision, decision::DroppedVariant, decision::PinRegret, decision::PricedChunking,
    decision::SelectedVariant, decision::TimedPath, select::printLayout, select::printStep;

namespace {

using nlohmann::json;

json modelReport(const Compilation &compilation) {
  const models::Description &description = compilation.description();
  json report = {{"name", description.name},
                 {"part", description.part ? nameOf(*description.part) : "graph"},
                 {"dims", description.dims},
                 {"ignoredKeys", description.ignoredKeys},
                 {"dropoutKeys", description.dropoutKeys},
                 {"allowedKeys", description.allowedKeys}};
  if (description.layers > 1) report["layers"] = description.layers;
  if (compilation.isLayered() && !description.weightNames.empty())
    report["weightNames"] = description.weightNames;
  return report;
}

json measuredReport(const std::vector<TimedPath> &timed) {
  json list = json::array();
  for (const TimedPath &one : timed) {
    list.push_back({{"variant", one.variant},
                    {"chunks", one.chunks},
                    {"concurrent", one.concurrent},
                    {"chosen", one.chosen},
                    {"predicted", one.predicted},
                    {"predictedGraph", one.predictedGraph},
                    {"optimistic", one.optimistic},
                    {"different", one.different}});
    if (one.isPipelined) list.back()["pipelined"] = true;
    if (one.measurement)
      list.back().update({{"measured", one.measurement->seconds},
                          {"spread", one.measurement->spread},
                          {"ratio", one.measurement->ratio}});
    else list.back()["notMeasured"] = one.problem;
  }
  return list;
}

/// `number`: what the member that counts them is called. `chosen`: how many were chosen.
json pricedReport(const std::vector<PricedChunking> &priced, const char *number, int chosen) {
  json list = json::array();
  for (const PricedChunking &one : priced)
    list.push_back({{number, one.chunks},
                    {"seconds", one.seconds},
                    {"sumSeconds", one.sumSeconds},
                    {"workspace", one.workspaceBytes},
                    {"measured", one.isMeasured},
                    {"chosen", one.chunks == chosen}});
  return list;
}

/// What --memory-trade allowed and what became of it.
json memoryTradeReport(const Decision &decision, double allowed) {
  return {{"allowedShare", allowed},
          {"slowerShare", decision.tradedShare},
          {"bytesLess", decision.tradedBytes}};
}

json statisticsReport(const select::Statistics &statistics) {
  return {{"configurations", statistics.configurations},
          {"legalConfigurations", statistics.legalConfigurations},
          {"kernels", statistics.kernels},
          {"isProven", statistics.isProven},
          {"isBeyondBest", statistics.isBeyondBest},
          {"mostGain", statistics.mostGain},
          {"states", statistics.states},
          {"peakStates", statistics.peakStates},
          {"edges", statistics.edges},
          {"dominated", statistics.dominated},
          {"beamCut", statistics.beamCut},
          {"layoutCuts", statistics.layoutCuts},
          {"coverageMeasured", statistics.coverageMeasured},
          {"measured", statistics.measured},
          {"unmeasuredKernels", statistics.unmeasuredKernels},
          {"prunedConfigurations", statistics.prunedConfigurations},
          {"prunedTransposes", statistics.prunedTransposes},
          {"modelledTransposes", statistics.modelledTransposes}};
}

json variantsReport(const Decision &decision) {
  json list = json::array();
  for (const SelectedVariant &variant : decision.variants)
    list.push_back({{"name", variant.name},
                    {"rewrites", textsOf(variant.rewrites())},
                    {"chosen", &variant == &decision.best()},
                    {"seconds", secondsOf(decision, variant)},
                    {"lowerBound", variant.selection.best().lowerBound},
                    {"statistics", statisticsReport(variant.selection.statistics())}});
  for (const DroppedVariant &variant : decision.dropped)
    list.push_back({{"name", variant.name}, {"chosen", false}, {"noPlan", variant.reason}});
  for (const auto &[name, seconds] : decision.skipped)
    list.push_back({{"name", name}, {"chosen", false}, {"withoutPins", seconds}});
  return list;
}

json recordsReport(const std::vector<FusionRecord> &records, const Device &device) {
  json list = json::array();
  for (const FusionRecord &record : records) {
    list.push_back({{"pass", record.pass},
                    {"pattern", text(record.patterns)},
                    {"ops", record.ops},
                    {"opNames", record.opNames},
                    {"accepted", record.accepted},
                    {"code", record.code},
                    {"reason", record.reason},
                    {"detail", record.detail},
                    {"savedBytes", record.savedBytes},
                    {"savedSeconds", decision::copySeconds(record.savedBytes, device)}});
    if (!record.steps.empty()) list.back()["steps"] = record.steps;
  }
  return list;
}

/// Pairs of ops that exchange a tensor, in order.
std::set<std::pair<int, int>> neighbours(const select::Problem &problem) {
  std::map<int, int> producer;
  std::set<std::pair<int, int>> pairs;
  for (size_t op = 0; op < problem.ops.size(); ++op) {
    for (const int tensor : problem.opInputs[op])
      if (const auto found = producer.find(tensor); found != producer.end())
        pairs.emplace(found->second, int(op));
    for (const int tensor : problem.opOutputs[op]) producer[tensor] = int(op);
  }
  return pairs;
}

constexpr size_t mostSteps = 6;  // of either plan that are still read

/// The steps of a path that another one of the same variant lacks, with their times. One kernel at
/// one price in both is no difference, whatever its layouts: of ties any may be chosen.
json stepsBeside(const select::Problem &problem, const select::SelectionResult &path,
                 const select::SelectionResult &other) {
  const auto keyOf = [](const select::Step &step) {
    return std::tuple(step.candidate, step.tensor, step.cost.seconds);
  };
  std::multiset<std::tuple<int, int, double>> known;
  for (const select::Step &step : other.steps) known.insert(keyOf(step));
  json list = json::array();
  for (const select::Step &step : path.steps)
    if (const auto same = known.find(keyOf(step)); same != known.end()) known.erase(same);
    else if (std::string text = printStep(problem, step); step.cost.seconds > 0)
      list.push_back({{"step", std::move(text)},
                      {"seconds", step.cost.seconds},
                      {"measured", step.cost.measured}});
  return list;
}

/// "--no-fuse q,score": the flag with the names of two ops.
std::string pairFlag(const char *flag, const select::Problem &problem, std::pair<int, int> pair) {
  const auto name = [&](int op) {
    return problem.tensors[size_t(problem.opOutputs[size_t(op)].front())].name;
  };
  return fmt::format("{} {},{}", flag, name(pair.first), name(pair.second));
}

/// The option that keeps two ops apart or together, where one does: by the attempt to fuse both
/// that has the fewest other ops. Empty where no option is the cause.
std::string optionAgainstOther(const SelectedVariant &variant, const ProposedVariant &proposed,
                               const ChoiceFlags &choices, int a, int b, bool fused) {
  const select::Problem &problem = variant.selection.problem();
  const std::pair<int, int> asked = std::minmax(a, b);
  if (fused)
    return proposed.forced.contains(asked) ? pairFlag("--fuse", problem, asked) + " fuses them"
                                           : "";
  if (proposed.forbidden.contains(asked))
    return pairFlag("--no-fuse", problem, asked) + " keeps them apart";
  const FusionRecord *fewest = nullptr;
  for (const FusionRecord &record : proposed.fusions.records)
    if (!record.accepted && std::ranges::count(record.ops, a) > 0 &&
        std::ranges::count(record.ops, b) > 0 &&
        (!fewest || record.ops.size() < fewest->ops.size()))
      fewest = &record;
  if (!fewest) return "";
  if (fewest->code == reasons::forbiddenByOption.code)
    for (const std::pair<int, int> &pair : proposed.forbidden)
      if (std::ranges::count(fewest->ops, pair.first) > 0 &&
          std::ranges::count(fewest->ops, pair.second) > 0)
        return pairFlag("--no-fuse", problem, pair) + " forbids their common kernel";
  if (fewest->code == reasons::rulesNone.code || fewest->code == reasons::contractionRule.code)
    return fmt::format("--fuse-rules {} forbids it", choices.fuseRules.text);
  return "";
}

/// For every two ops that exchange a tensor: whether the plan fuses them, what the best plan of the
/// other kind loses, and by which kernels the two differ.
json fusionPricesReport(const SelectedVariant &variant, const ProposedVariant &proposed,
                        const select::SelectionResult &chosen, const ChoiceFlags &choices) {
  const select::Problem &problem = variant.selection.problem();
  std::map<int, size_t> kernelOf;
  for (size_t step = 0; step < chosen.steps.size(); ++step)
    if (const int candidate = chosen.steps[step].candidate; candidate >= 0)
      for (const int op : problem.candidates[size_t(candidate)].ops) kernelOf[op] = step;
  json list = json::array();
  for (const auto &[a, b] : neighbours(problem)) {
    const bool fused = kernelOf[a] == kernelOf[b];
    const decision::FusedOtherwise other =
        decision::fusedOtherwise(variant.selection, chosen, a, b, fused);
    if (!other.path) {
      list.push_back({{"ops", {a, b}},
                      {"fused", fused},
                      {"lossOfOther", json()},
                      {"option", optionAgainstOther(variant, proposed, choices, a, b, fused)},
                      {"whyNone", other.whyNone.empty() ? json() : json(other.whyNone)}});
    } else {
      json own = stepsBeside(problem, chosen, *other.path),
           others = stepsBeside(problem, *other.path, chosen);
      if (std::max(own.size(), others.size()) > mostSteps) own = others = json::array();
      list.push_back({{"ops", {a, b}},
                      {"fused", fused},
                      {"lossOfOther", other.loss},
                      {"steps", std::move(own)},
                      {"otherSteps", std::move(others)}});
    }
  }
  return list;
}

json layoutsReport(const select::Selection &selection) {
  json object = json::object();
  const select::Problem &problem = selection.problem();
  for (size_t index = 0; index < problem.tensors.size(); ++index) {
    const select::Tensor &tensor = problem.tensors[index];
    if (tensor.axes.size() < 2) continue;
    json prices = json::array();
    for (const auto &[layout, loss] : decision::layoutLosses(selection, int(index)))
      prices.push_back({{"layout", printLayout(layout, tensor)}, {"loss", loss}});
    object[tensor.name] = {{"prices", prices}, {"pinned", tensor.pinned.has_value()}};
  }
  return object;
}

json alternativesReport(const Decision &decision, int count) {
  const select::SelectionResult &chosen = decision.path();
  const select::Problem &problem = decision.best().selection.problem();
  std::set<std::string> best;
  for (const select::Step &step : chosen.steps) best.insert(printStep(problem, step));
  json list = json::array();
  std::set<std::vector<std::string>> listed;  // steps in another order are no other plan
  for (const select::SelectionResult &plan : decision::bestPaths(decision, count)) {
    std::vector<std::string> different;
    for (const select::Step &step : plan.steps)
      if (const std::string text = printStep(problem, step); !best.contains(text))
        different.push_back(text);
    std::vector<std::string> sorted = different;
    std::ranges::sort(sorted);
    if (!listed.insert(std::move(sorted)).second) continue;
    list.push_back({{"seconds", plan.seconds},
                    {"loss", plan.seconds - chosen.seconds},
                    {"peakTemporaryBytes", plan.peakTemporaryBytes},
                    {"different", different}});
  }
  return list;
}

/// The ledger by operator class: bytes that the ops move alone, that the chosen kernels must move
/// and do move, and what transposes add.
json movementClasses(const select::Problem &problem, const PlannedKernels &planned) {
  json classes = json::object();
  const auto add = [&](const std::string &name, const char *member, int64_t bytes) {
    json &entry = classes[name];
    if (entry.is_null())
      entry = {{"unfused", 0},   {"fused", 0},   {"moved", 0},
               {"seconds", 0.0}, {"kernels", 0}, {"measured", 0}};
    entry[member] = entry[member].get<int64_t>() + bytes;
  };
  for (const select::Candidate &candidate : problem.candidates)
    if (candidate.ops.size() == 1)
      add(std::string(nameOf(candidate.kernel.operatorClass())), "unfused",
          candidate.kernel.necessaryBytes());
  for (const ChosenKernel &chosen : planned.kernels) {
    const std::string name =
        chosen.graphOps.empty() ? "transpose" : std::string(nameOf(chosen.kernel.operatorClass()));
    add(name, "fused", chosen.cost.bytesNecessary);
    add(name, "moved", chosen.cost.bytesMoved);
    if (chosen.configuration.knobs.isView()) continue;
    add(name, "kernels", 1);
    add(name, "measured", chosen.cost.measured);
    classes[name]["seconds"] = classes[name]["seconds"].get<double>() + chosen.cost.seconds;
  }
  return classes;
}

json movementReport(const Compilation &compilation, const ProposedVariant &proposed,
                    const SelectedVariant &variant, const PlannedKernels &planned) {
  std::vector<AccountedKernel> kernels;
  PhaseBytes moved{.phase = nameOf(Phase::select), .ops = 0, .bytes = 0};
  json peaks = json::object();
  std::set<std::vector<int>> accounted;  // a kernel that runs in chunks is one
  for (const ChosenKernel &chosen : planned.kernels) {
    if (!chosen.configuration.knobs.isView()) ++moved.ops;
    moved.bytes += chosen.cost.bytesMoved;
    peaks[chosen.kernel.name] =
        percentOfPeak(chosen.cost, chosen.kernel, compilation.costModel().device());
    if (!chosen.graphOps.empty() && accounted.insert(chosen.graphOps).second)
      kernels.push_back({.name = chosen.kernel.name,
                         .ops = chosen.graphOps,
                         .share = compilation.movedShare(chosen.kernel)});
  }
  Account account = compilation.account(proposed);
  json report = accountReport(account, kernels);
  report["phases"].push_back(toJson(moved));
  report["percentOfPeak"] = peaks;
  report["classes"] = movementClasses(variant.selection.problem(), planned);
  return report;
}

/// The stage of the layer that each kernel belongs to.
json stagesReport(const Dataflow &flow, const PlannedKernels &planned) {
  const std::vector<Stage> stages = stagesOf(flow);
  json object = json::object();
  for (const ChosenKernel &chosen : planned.kernels)
    object[chosen.kernel.name] = nameOf(stageOfKernel(flow, stages, chosen.graphOps));
  return object;
}

/// The name an op goes by: that of its first result.
json opLabels(const select::Problem &problem) {
  json labels = json::array();
  for (const std::vector<int> &outputs : problem.opOutputs)
    labels.push_back(problem.tensors[size_t(outputs.at(0))].name);
  return labels;
}

json kernelOpsReport(const PlannedKernels &planned) {
  json object = json::object();
  for (const ChosenKernel &chosen : planned.kernels)
    if (!chosen.graphOps.empty()) object[chosen.kernel.name] = chosen.graphOps;
  return object;
}

/// Of the saved tensors that were offered as recomputed: what the best variant of the other kind
/// loses.
std::map<std::string, std::pair<bool, double>> recomputationPrices(const Decision &decision) {
  const auto has = [](const SelectedVariant &variant, const Rewrite &rewrite) {
    return std::ranges::count(variant.rewrites(), rewrite) > 0;
  };
  std::map<std::string, std::pair<bool, double>> prices;
  for (const SelectedVariant &variant : decision.variants)
    for (const Rewrite &rewrite : variant.rewrites()) {
      if (rewrite.kind != Rewrite::Kind::recompute) continue;
      const bool isRecomputed = has(decision.best(), rewrite);
      double other = std::numeric_limits<double>::infinity();
      for (const SelectedVariant &rival : decision.variants)
        if (has(rival, rewrite) != isRecomputed)
          other = std::min(other, rival.selection.best().seconds);
      prices[rewrite.subject] = {isRecomputed,
                                 std::max(0.0, other - decision.best().selection.best().seconds)};
    }
  return prices;
}

std::string formOfNorms(const SelectedVariant &variant) {
  const auto has = [&](Rewrite::Kind kind) {
    return std::ranges::count(variant.rewrites(), kind, &Rewrite::kind) > 0;
  };
  return has(Rewrite::Kind::decomposeNorms) ? "decomposed"
         : has(Rewrite::Kind::deferNorms)   ? "deferred"
                                            : "whole";
}

/// Where norms were to be rewritten: what became of them, every attempt, and what the best variant
/// of each other form loses where it was priced.
json normsReport(const std::vector<ProposedVariant> &proposed, const Decision &decision,
                 const Device &device) {
  const SelectedVariant &best = decision.best();
  const SelectedVariant *tried = proposed[best.index].norms.empty() ? nullptr : &best;
  std::map<std::string, double> losses;
  for (const SelectedVariant &variant : decision.variants) {  // in the order of their times
    if (!tried && !proposed[variant.index].norms.empty()) tried = &variant;
    if (formOfNorms(variant) != formOfNorms(best))
      losses.try_emplace(formOfNorms(variant), std::max(0.0, variant.selection.best().seconds -
                                                                 best.selection.best().seconds));
  }
  return {
      {"form", formOfNorms(best)},
      {"lossOfOthers", losses},
      {"attempts", tried ? recordsReport(proposed[tried->index].norms, device) : json::array()}};
}

/// What later entry points read of earlier ones, and what is computed again instead; of both, the
/// price of the other where it was offered. asked: names that are computed again because the user
/// said so.
json savedReport(const Decision &decision, const std::vector<std::string> &asked) {
  const select::Problem &problem = decision.best().selection.problem();
  std::map<std::string, std::pair<bool, double>> prices = recomputationPrices(decision);
  json list = json::array();
  const auto add = [&](const std::string &name, int64_t bytes, bool isRecomputed) {
    list.push_back({{"tensor", name},
                    {"bytes", bytes},
                    {"recomputed", isRecomputed},
                    {"lossOfOther", json()}});
    const auto price = prices.find(name);
    if (price != prices.end() && std::isfinite(price->second.second))
      list.back()["lossOfOther"] = price->second.second;
    prices.erase(name);
  };
  std::map<std::string, int64_t> bytesOf;
  for (size_t op = 0; op < problem.ops.size(); ++op)
    for (const int tensor : problem.opOutputs[op]) {
      const select::Tensor &facts = problem.tensors[size_t(tensor)];
      bytesOf[facts.name] = facts.bytes();
      bool isSaved = false;
      for (size_t reader = op + 1; reader < problem.ops.size() && !problem.opEntries.empty();
           ++reader)
        isSaved = isSaved || (problem.opEntries[reader] > problem.opEntries[op] &&
                              std::ranges::count(problem.opInputs[reader], tensor) > 0);
      if (isSaved) add(facts.name, facts.bytes(), false);
    }
  for (const auto &[name, price] : std::map(prices))
    if (price.first) add(name, bytesOf[name], true);
  for (const std::string &name : asked)  // without a layer: of all layers
    for (const auto &[tensor, bytes] : std::map(bytesOf))
      if (tensor == name || withoutLayers(tensor) == name) add(tensor, bytes, true);
  return list;
}

constexpr size_t rejectedNotes =
    2;  // a header comment is read, not searched; `explain --fusion` has all

}  // namespace

namespace {

/// At which lengths the plan was priced, what it takes at each fill, and at full length.
json lengthsReport(const Compilation &compilation, const PlannedKernels &planned) {
  const std::unique_ptr<CostModel> full = compilation.pricesAtFullLength();
  const ExpectedFill &fill = *compilation.expectedFill();
  json report = fillJson(fill);
  report["asked"] = compilation.choiceFlags().lengths;
  report["fullSeconds"] = decision::secondsBy(*full, planned.kernels);
  report["fullGraphSeconds"] = decision::graphSecondsBy(*full, planned);
  report["fills"] = fillsJson(compilation.unfilledPrices(), fill, planned);
  return report;
}

/// Where a part stands: FoldedReport.h reads it.
json placedReport(const std::vector<DecidedPart::Place> &places) {
  json list = json::array();
  for (const DecidedPart::Place &place : places)
    list.push_back({{"ops", place.ops}, {"arguments", place.arguments}, {"shift", place.shift}});
  return list;
}

/// Of several layers: each distinct part, where it stands, its variants, and what was found of it,
/// in its numbers and names.
json partsReport(const Compilation &compilation, const DecidedModel &decided) {
  json list = json::array();
  for (const DecidedPart &part : decided.parts) {
    const select::Problem &problem = part.decision.best().selection.problem();
    std::vector<std::string> names;
    for (const std::vector<int> &outputs : problem.opOutputs)
      for (const int output : outputs) names.push_back(problem.tensors[size_t(output)].name);
    const auto placed = [&](const std::string &name, const DecidedPart::Place &place) {
      return placedText(name, place.arguments, place.shift);
    };
    std::set<int64_t> layers;
    const int64_t layer = problem.tensors[size_t(problem.opOutputs.front().front())].layer;
    for (const DecidedPart::Place &place : part.places)
      if (layer > 0) layers.insert(layer + place.shift);
    list.push_back(
        {{"first", placed(names.front(), part.places.front())},
         {"last", placed(names.back(), part.places.front())},
         {"layers", layers},
         {"places", part.places.size()},
         {"placed", placedReport(part.places)},
         {"variants", variantsReport(part.decision)},
         {"fusions",
          recordsReport(part.chosen().fusions.records, compilation.costModel().device())},
         {"fusionPrices", fusionPricesReport(part.decision.best(), part.chosen(),
                                             part.decision.path(), compilation.choiceFlags())}});
  }
  return list;
}

}  // namespace

json makeReport(const Compilation &compilation, const DecidedModel &decided,
                const PlannedKernels &planned) {
  const std::vector<ProposedVariant> &proposed = decided.proposed;
  const Decision &decision = decided.decision;
  const SelectedVariant &best = decision.best();
  const ProposedVariant &variant = proposed[best.index];
  const bool isByParts = decided.isByParts();  // then `parts` has what is of each
  json pins = json::array();
  for (const PinRegret &pin : decision.pins)
    pins.push_back({{"tensor", pin.tensor}, {"layout", pin.layout}, {"regret", pin.seconds}});
  json report = {
      {"model", modelReport(compilation)},
      {"plan", planFigures(planned.plan)},
      {"variants", variantsReport(decision)},
      {"lowerBound", decision.lowerBound},
      {"rooflineSeconds",
       decision::rooflineSeconds(best.selection.problem(), compilation.costModel().device(),
                                 compilation.expectedFill().value_or(ExpectedFill()),
                                 compilation.tokensOfGraph())},
      {"stages", stagesReport(compilation.account(variant).flow, planned)},
      {"ops", best.selection.problem().ops},
      {"opLabels", opLabels(best.selection.problem())},
      {"fusions", recordsReport(variant.fusions.records, compilation.costModel().device())},
      {"stackings", recordsReport(variant.stackings, compilation.costModel().device())},
      {"fusionPrices",
       isByParts ? json::array()
                 : fusionPricesReport(best, variant, decision.path(), compilation.choiceFlags())},
      {"layouts", isByParts ? json::object() : layoutsReport(best.selection)},
      {"alternatives", alternativesReport(decision, compilation.alternatives())},
      {"pins", pins},
      {"saved", savedReport(decision, compilation.recomputedNames())},
      {"measuredPlans", measuredReport(decision.timed)},
      {"chunks", pricedReport(decision.pricedChunkings, "chunks", decision.chunks)},
      {"freeWorkspace", decision.freeWorkspaceBytes},
      {"movement", movementReport(compilation, variant, best, planned)},
      {"memory", memoryReport(planned.plan)},
      {"kernelOps", kernelOpsReport(planned)},
      {"searchLimits",
       {{"reached", !decision.searchCuts.empty()},
        {"leftOut", decision.searchCuts},
        {"boundIsOfAll", decision.isBoundOfAll}}},
      {"request", requestReport(compilation)}};
  if (isByParts) report["parts"] = partsReport(compilation, decided);
  if (compilation.expectedFill()) report["lengths"] = lengthsReport(compilation, planned);
  if (const double allowed = compilation.choiceFlags().memoryTrade.share(); allowed > 0)
    report["memoryTrade"] = memoryTradeReport(decision, allowed);
  if (!decision.pricedPipelines.empty())
    report["pipeline"] = pricedReport(decision.pricedPipelines, "slices",
                                      decision.isPipelined ? decision.chunks : 1);
  if (json norms = normsReport(proposed, decision, compilation.costModel().device());
      !norms["attempts"].empty())
    report["norms"] = std::move(norms);
  return report;
}

namespace {

/// The share of the products of scores that the kernel does not compute, as no tile of the table
/// has them: a fused attention skips tiles of the table, a contraction those of its result.
double productsLeftOut(const BlockTable &table, const ChosenKernel &chosen) {
  const Kernel &kernel = chosen.kernel;
  if (attentionRegion(kernel) || attentionBackwardRegion(kernel)) return 1 - table.share();
  const Expected<ContractionRegion, Reason> region = contractionRegion(kernel);
  const Expected<GemmProblem, Reason> gemm = mmaSyncProblem(kernel, chosen.configuration);
  const std::optional<MaskedTiles> masked =
      region && gemm ? maskedTiles(kernel, *region, gemm->isSwapped) : std::nullopt;
  const Family &family = chosen.configuration.knobs.family();
  if (!masked || !family.lower || !family.blockTile) return 0;
  if (!family.lower(kernel, chosen.configuration).skipsMaskedTiles) return 0;
  const BlockTile tile = family.blockTile(chosen.configuration.knobs);
  return 1 - masked->seenShare(tile.rows, tile.columns);
}

/// "mask       454 of 4,096 tiles of 64 x 64 exist, 11.1% of the scores, one table for all heads;
/// ..".
std::string maskNote(const BlockTable &table, const ChosenKernel &chosen) {
  const int64_t tiles = table.rows * table.columns;
  std::string count = formatCount(table.count() / table.heads);
  if (table.heads > 1) {
    std::vector<int64_t> counts(size_t(table.heads), 0);
    for (int64_t head = 0; head < table.heads; ++head)
      for (int64_t row = 0; row < table.rows; ++row)
        for (int64_t column = 0; column < table.columns; ++column)
          counts[size_t(head)] += table.has(head, row, column) ? 1 : 0;
    const auto [least, most] = std::ranges::minmax(counts);
    count = least == most ? formatCount(least)
                          : fmt::format("{} to {}", formatCount(least), formatCount(most));
  }
  const double leftOut = productsLeftOut(table, chosen);
  return fmt::format("mask       {} of {} tiles of {} x {} exist, {:.1f}% of the scores, {}; {}",
                     count, formatCount(tiles), table.size, table.size, 100 * table.share(),
                     table.heads > 1 ? fmt::format("each of {} heads has its own", table.heads)
                                     : "one table for all heads",
                     leftOut > 0
                         ? fmt::format("{:.1f}% of the products are left out", 100 * leftOut)
                         : "this kernel hides the others, and saves nothing");
}

}  // namespace

FusionNotes::FusionNotes(const DecidedModel &decided)
    : rewritesOfOp(decided.proposed[decided.decision.best().index].rewritesOfOp) {
  const auto add = [&](const ProposedVariant &variant) {
    const std::vector<FusionRecord> &records = variant.fusions.records;
    found.push_back({.records = &records});
    for (size_t index = 0; index < records.size(); ++index)
      if (!records[index].accepted && !records[index].code.empty())
        for (const int op : records[index].ops) found.back().rejectedOf[op].push_back(index);
  };
  if (!decided.isByParts()) add(decided.proposed[decided.decision.best().index]);
  for (const DecidedPart &part : decided.parts) {
    for (const DecidedPart::Place &place : part.places)
      for (size_t op = 0; op < place.ops.size(); ++op)
        spotOf[int(place.ops[op])] = {.found = found.size(), .place = &place, .op = int(op)};
    add(part.chosen());
  }
}

void FusionNotes::addRejected(const ChosenKernel &chosen, std::vector<std::string> &notes) const {
  if (chosen.graphOps.empty()) return;
  // No kernel has ops of two parts.
  const auto first = spotOf.find(chosen.graphOps.front());
  const Spot spot = first == spotOf.end() ? Spot() : first->second;
  const Found &records = found.at(spot.found);
  std::set<size_t> touching;
  for (const int op : chosen.graphOps) {
    const auto ofPart = spotOf.find(op);
    const auto rejected = records.rejectedOf.find(ofPart == spotOf.end() ? op : ofPart->second.op);
    if (rejected != records.rejectedOf.end())
      touching.insert(rejected->second.begin(), rejected->second.end());
  }
  std::vector<size_t> order(touching.begin(), touching.end());
  std::ranges::stable_sort(order, std::ranges::greater(),
                           [&](size_t index) { return (*records.records)[index].savedBytes; });
  const auto placed = [&](const std::string &text) {
    return spot.place ? placedText(text, spot.place->arguments, spot.place->shift) : text;
  };
  for (size_t index = 0; index < std::min(order.size(), rejectedNotes); ++index) {
    const FusionRecord &record = (*records.records)[order[index]];
    std::vector<std::string> names;
    for (const std::string &name : record.opNames) names.push_back(placed(name));
    notes.push_back(fmt::format("not fused  {}: {} {} ({})", fmt::join(names, ", "), record.code,
                                record.reason, placed(record.detail)));
  }
}

std::vector<std::string> FusionNotes::of(const ChosenKernel &chosen) const {
  std::vector<std::string> notes, rewrites;
  for (const int op : chosen.graphOps)
    if (size_t(op) < rewritesOfOp.size() && !rewritesOfOp[size_t(op)].empty()) {
      const std::string name = variantName(rewritesOfOp[size_t(op)]);
      if (std::ranges::count(rewrites, name) == 0) rewrites.push_back(name);
    }
  if (!rewrites.empty()) notes.push_back(fmt::format("made by    {}", fmt::join(rewrites, ", ")));
  if (chosen.graphOps.size() > 1) notes.push_back("fused by   " + text(chosen.proposal));
  addRejected(chosen, notes);
  for (const BodyOp &op : chosen.kernel.body)
    if (const BlockTable *const table = blockTableOf(chosen.kernel, op))
      notes.push_back(maskNote(*table, chosen));
  return notes;
}

}  // namespace weft::driver
