// weft select: choose, print the plan and its rivals, or draw the selection graph. Writes no
// artifact.
#include "kernel/Error.h"
#include "kernel/LayerNames.h"
#include "passes/decide/PathPlan.h"
#include "passes/decide/PriceQuestions.h"
#include "passes/select/Prices.h"
#include "passes/select/StepText.h"
#include "plan/PlanFigures.h"
#include "tools/driver/Console.h"
#include "tools/driver/LayeredModel.h"
#include "tools/driver/commands/Commands.h"
#include "tools/driver/commands/Listings.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>

namespace weft::driver {
namespace {

struct SelectFlags {
  ModelFlags model;
  ChoiceFlags choices;
  TargetFlags target;
  std::string startFrom = "import";
  std::string dot, output;
};

/// What is printed: the chosen plan as compile writes it, and what it was chosen among.
struct Answer {
  const decision::Decision &decision;
  const Plan &plan = decision.planned.plan;
  std::vector<decision::PlannedStep> steps =
      decision::plannedSteps(decision.planned, decision.path());
};

nlohmann::json stepsJson(const select::Problem &problem, const select::SelectionResult &plan,
                         const std::vector<decision::PlannedStep> *planned) {
  nlohmann::json steps = nlohmann::json::array();
  for (size_t index = 0; index < plan.steps.size(); ++index) {
    const select::Step &step = plan.steps[index];
    steps.push_back({{"step", select::printStep(problem, step)},
                     {"seconds", planned ? (*planned)[index].seconds : step.cost.seconds},
                     {"chunks", planned ? (*planned)[index].chunks : 1},
                     {"measured", step.cost.measured},
                     {"bound", nameOf(step.cost.bound)},
                     {"runnerUp", step.runnerUp},
                     {"runnerUpLoss", step.runnerUpLoss}});
  }
  return steps;
}

nlohmann::json pathJson(const select::Selection &selection, const select::SelectionResult &plan) {
  return {{"seconds", plan.seconds},
          {"lowerBound", plan.lowerBound},
          {"peakTemporaryBytes", plan.peakTemporaryBytes},
          {"steps", stepsJson(selection.problem(), plan, nullptr)}};
}

/// Whether a variant's best plan may take less than the one that was found, by more than noise: the
/// search ends where a variant cannot be chosen any more.
bool isAtMost(const select::Selection &selection) {
  return selection.statistics().mostGain > select::noise;
}

nlohmann::json toJson(const Answer &answer, int alternatives) {
  const decision::Decision &decision = answer.decision;
  nlohmann::json list = nlohmann::json::array();
  for (const decision::SelectedVariant &variant : decision.variants) {
    const bool isChosen = &variant == &decision.best();
    nlohmann::json object =
        pathJson(variant.selection, isChosen ? decision.path() : variant.path());
    object["name"] = variant.name;
    object["chosen"] = isChosen;
    object["seconds"] = secondsOf(decision, variant);
    object["planSeconds"] = object["seconds"];  // in as many chunks as its plan would have
    object["isAtMost"] = !isChosen && isAtMost(variant.selection);
    object["loss"] = secondsOf(decision, variant) - answer.plan.predictedSeconds;
    if (isChosen)
      object["steps"] = stepsJson(variant.selection.problem(), decision.path(), &answer.steps);
    list.push_back(object);
  }
  nlohmann::json rivals = nlohmann::json::array();
  for (const select::SelectionResult &plan : decision::bestPaths(decision, alternatives)) {
    rivals.push_back(pathJson(decision.best().selection, plan));
    rivals.back()["loss"] = plan.seconds - rivals.front()["seconds"].get<double>();
  }
  nlohmann::json pins = nlohmann::json::array();
  for (const decision::PinRegret &pin : decision.pins)
    pins.push_back({{"tensor", pin.tensor}, {"layout", pin.layout}, {"regret", pin.seconds}});
  return {
      {"plan", planFigures(answer.plan)},
      {"variants", list},
      {"lowerBound", decision.lowerBound},
      {"freeWorkspaceBytes", decision.freeWorkspaceBytes},
      {"memoryTrade", {{"slowerShare", decision.tradedShare}, {"bytesLess", decision.tradedBytes}}},
      {"searchLimits",
       {{"reached", !decision.searchCuts.empty()},
        {"leftOut", decision.searchCuts},
        {"boundIsOfAll", decision.isBoundOfAll}}},
      {"alternatives", rivals},
      {"pins", pins}};
}

std::string variantsTable(const Answer &answer) {
  Table table({{"variant", left},
               {"time", right},
               {"loss", right},
               {"chunks", right},
               {"best weft could choose", right},
               {"configurations", right}});
  const decision::Decision &decision = answer.decision;
  const double best = answer.plan.predictedSeconds;
  bool isAnyAtMost = false;
  for (const decision::SelectedVariant &variant : decision.variants) {
    const bool isChosen = &variant == &decision.best();
    const select::Statistics &statistics = variant.selection.statistics();
    const double seconds = secondsOf(decision, variant);
    const double bound = variant.path().lowerBound;  // 0 where the search was cut before any
    const int chunks = isChosen         ? chunkCount(answer.plan)
                       : variant.fitted ? variant.fitted->chunks
                                        : 1;
    const std::string most = !isChosen && isAtMost(variant.selection) ? "<= " : "";
    isAnyAtMost = isAnyAtMost || !most.empty();
    table.addRow({(isChosen ? "* " : "") + variant.name, most + formatSeconds(seconds),
                  (seconds < best ? "-" : "+") + formatSeconds(std::abs(seconds - best)),
                  std::to_string(chunks), bound > 0 ? formatSeconds(bound) : "unknown",
                  formatCount(statistics.configurations)});
  }
  return table.print() + (isAnyAtMost ? std::string(atMostNote) + "\n" : "");
}

/// Why a slower variant was chosen; empty if the chosen one is the fastest.
std::string whySlower(const Answer &answer) {
  const decision::Decision &decision = answer.decision;
  const Plan &plan = answer.plan;
  if (decision.freeWorkspaceBytes <= 0 ||
      std::ranges::none_of(decision.variants, [&](const decision::SelectedVariant &variant) {
        return secondsOf(decision, variant) < plan.predictedSeconds;
      }))
    return "";
  if (decision.tradedShare > 0)
    return fmt::format(
        "* is slower, chosen for its workspace (--memory-trade): the fastest plan in chunks within "
        "{}; the other rows are of kernels without chunks\n",
        formatBytes(int64_t(decision.freeWorkspaceBytes)));
  if (decision.pricedChunkings.size() < 2) return "";
  return "* is slower kernel by kernel, and the fastest as one graph: its chunks find in L2 what "
         "earlier kernels wrote; the other rows are of kernels without chunks (--chunks 1 chooses "
         "among them)\n";
}

/// Steps that differ in the numbers of their layers alone.
struct FoldedSteps {
  std::vector<size_t> steps;
  std::set<int64_t> layers;
};

/// "1..4", and how many steps these are where a layer has several: "1..4 x8".
std::string layersText(const FoldedSteps &repeats) {
  if (repeats.steps.size() == 1) return "";
  const std::string layers = layerRanges(repeats.layers);
  return repeats.steps.size() == repeats.layers.size()
             ? layers
             : fmt::format("{} x{}", layers, repeats.steps.size());
}

std::string runnerUpText(const select::Step &step) {
  return step.runnerUpLoss == 0
             ? step.runnerUp  // ties, or none
             : fmt::format("+{} {}", formatSeconds(step.runnerUpLoss), step.runnerUp);
}

/// In the order of the first of each.
std::vector<FoldedSteps> foldedSteps(const Answer &answer) {
  std::vector<FoldedSteps> folded;
  std::map<std::string, size_t> known;
  const select::SelectionResult &path = answer.decision.path();
  const select::Problem &problem = answer.decision.best().selection.problem();
  for (size_t index = 0; index < path.steps.size(); ++index) {
    const std::string name = select::printStep(problem, path.steps[index]);
    const int64_t layer = select::layerOf(problem, path.steps[index]);
    const std::string text =
        fmt::format("{} {} {} {}", name, runnerUpText(path.steps[index]),
                    formatSeconds(answer.steps[index].seconds), answer.steps[index].chunks);
    const std::string key = layer > 0 ? withoutLayers(text) : fmt::format("{} {}", index, text);
    const auto [at, isNew] = known.emplace(key, folded.size());
    if (isNew) folded.emplace_back();
    folded[at->second].steps.push_back(index);
    if (layer > 0) folded[at->second].layers.insert(layer);
  }
  return folded;
}

std::string stepsTable(const Answer &answer) {
  const select::SelectionResult &path = answer.decision.path();
  const select::Problem &problem = answer.decision.best().selection.problem();
  const std::vector<FoldedSteps> folded = foldedSteps(answer);
  const bool hasRepeats = folded.size() < path.steps.size();
  std::vector<std::pair<std::string, Table::Align>> columns = {
      {"time", right}, {"chunks", right}, {"step", broken}, {"runner-up", broken}};
  if (hasRepeats) columns.insert(columns.begin() + 2, {"layers", left});
  Table table(columns);
  for (const FoldedSteps &repeats : folded) {
    const size_t first = repeats.steps.front();
    const bool areSeveral = repeats.steps.size() > 1;
    const auto shown = [&](const std::string &text) {
      return areSeveral ? withoutLayers(text) : text;
    };
    double seconds = 0;
    for (const size_t step : repeats.steps) seconds += answer.steps[step].seconds;
    const int chunks = answer.steps[first].chunks;
    std::vector<std::string> row = {formatSeconds(seconds),
                                    chunks > 1 ? std::to_string(chunks) : "",
                                    shown(select::printStep(problem, path.steps[first])),
                                    shown(runnerUpText(path.steps[first]))};
    if (hasRepeats) row.insert(row.begin() + 2, layersText(repeats));
    table.addRow(row);
  }
  return table.print();
}

/// Lines that differ in the numbers of their layers alone as one, in the place of the first.
std::vector<std::string> foldedLines(const std::vector<std::string> &lines) {
  std::map<std::string, std::set<int64_t>> layersOf;
  for (const std::string &line : lines)
    if (const int64_t layer = firstLayerIn(line); layer > 0)
      layersOf[withoutLayers(line)].insert(layer);
  std::vector<std::string> folded;
  std::set<std::string> said;
  for (const std::string &line : lines) {
    const std::string whole = withoutLayers(line);
    const auto layers = layersOf.find(whole);
    if (firstLayerIn(line) == 0 || layers->second.size() == 1) folded.push_back(line);
    else if (said.insert(whole).second)
      folded.push_back(fmt::format("layers {}: {}", layerRanges(layers->second), whole));
  }
  return folded;
}

std::string text(const Answer &answer, int alternatives) {
  const decision::Decision &decision = answer.decision;
  const select::Selection &selection = decision.best().selection;
  std::string result = variantsTable(answer) + whySlower(answer) + "\n" + stepsTable(answer) + "\n";
  for (const std::string &cut : foldedLines(selection.statistics().layoutCuts))
    result += cut + "\n";
  for (const std::string &note : foldedLines(selection.statistics().notes)) result += note + "\n";
  const std::vector<select::SelectionResult> plans = decision::bestPaths(decision, alternatives);
  result +=
      fmt::format("{} best paths of {}, their kernels whole: ", plans.size(), decision.best().name);
  for (size_t index = 0; index < plans.size(); ++index)
    result += (index ? ", +" : "") +
              formatSeconds(index ? plans[index].seconds - plans[0].seconds : plans[0].seconds);
  result += "\n";
  for (const decision::PinRegret &pin : decision.pins)
    result +=
        fmt::format("pin {}={} costs {}\n", pin.tensor, pin.layout, formatSeconds(pin.seconds));
  const int chunks = chunkCount(answer.plan);
  result += fmt::format("total {} of variant {}{}, workspace {}\n",
                        formatSeconds(answer.plan.predictedSeconds), answer.plan.variant,
                        chunks > 1 ? fmt::format(" in {} chunks", chunks) : "",
                        formatBytes(answer.plan.workspaceBytes));
  return result + selectionLines(decision);
}

std::string drawing(const Answer &answer) {
  const Plan &plan = answer.plan;
  select::DrawnPlan drawn{
      .path = &answer.decision.path(),
      .steps = {},
      .seconds = plan.predictedSeconds,
      .title = fmt::format("{} chunks, workspace {} bytes", chunkCount(plan), plan.workspaceBytes)};
  for (const decision::PlannedStep &step : answer.steps)
    drawn.steps.push_back({.seconds = step.seconds, .chunks = step.chunks});
  return answer.decision.best().selection.dot(drawn);
}

/// A file on standard output would stand beside the object that --json promises alone there.
void rejectJson(const SelectFlags &flags) {
  for (const auto &[name, file] : {std::pair("--dot", &flags.dot), std::pair("-o", &flags.output)})
    if (*file == "-")
      throw Error::badInput(
          "select {} - and --json both print to standard output: leave out --json, or name a file "
          "({} FILE --json)",
          name, name);
}

int run(const SelectFlags &flags, bool json) {
  if (json) rejectJson(flags);
  flags.target.checkTarget();
  Compilation compilation(flags.model, flags.choices, flags.target);
  const Phase first = parsePhase(flags.startFrom);
  if (first > Phase::select)
    throw Error::badInput("--start-from {}: lies after select", flags.startFrom);
  compilation.import(first);
  const DecidedModel decided = decideModel(compilation, first);
  const Answer answer{.decision = decided.decision};
  if (!flags.output.empty())
    writeFile(flags.output, compilation.materialized(decided.proposed, decided.decision));
  if (!flags.dot.empty()) {
    writeFile(flags.dot, drawing(answer));
    if (flags.dot == "-") return 0;
  }
  if (json) printResult(toJson(answer, flags.choices.alternatives));
  else printResult(text(answer, flags.choices.alternatives));
  return 0;
}

}  // namespace

Action addSelect(CLI::App &command) {
  auto flags = std::make_shared<SelectFlags>();
  flags->model.declare(command);
  flags->choices.declare(command);
  flags->target.declare(command, false);
  command.add_option("--start-from", flags->startFrom, startFromHelp)
      ->capture_default_str()
      ->type_name("PHASE")
      ->group("Phases");
  command.add_option("--dot", flags->dot, "draw the selection graph for Graphviz")
      ->type_name("FILE")
      ->group("Output");
  command.add_option("-o,--output", flags->output, "write the graph with the chosen kernels")
      ->type_name("FILE");
  return [flags](bool json) { return run(*flags, json); };
}

}  // namespace weft::driver
