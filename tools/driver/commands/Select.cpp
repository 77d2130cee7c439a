// weft select: choose, print the plan and its rivals, or draw the selection graph. Writes no artifact.
#include "kernel/Error.h"
#include "tools/driver/Compilation.h"
#include "tools/driver/Console.h"
#include "tools/driver/Report.h"
#include "tools/driver/commands/Commands.h"
#include "tools/driver/commands/Listings.h"

#include <fmt/format.h>

#include <memory>

namespace weft::driver {
namespace {

constexpr auto left = Table::Align::left, right = Table::Align::right;

struct SelectFlags {
  ModelFlags model;
  ChoiceFlags choices;
  TargetFlags target;
  std::string startFrom = "import";
  std::string dot, output;
};

nlohmann::json planJson(const select::Selection &selection, const select::Plan &plan) {
  nlohmann::json steps = nlohmann::json::array();
  for (const select::Step &step : plan.steps)
    steps.push_back({{"step", printStep(selection.problem(), step)}, {"seconds", step.cost.seconds},
                     {"measured", step.cost.measured}, {"bound", nameOf(step.cost.bound)},
                     {"runnerUp", step.runnerUp}, {"runnerUpLoss", step.runnerUpLoss}});
  return {{"seconds", plan.seconds}, {"lowerBound", plan.lowerBound},
          {"peakTemporaryBytes", plan.peakTemporaryBytes}, {"steps", steps}};
}

double secondsOf(const SelectedVariant &variant) { return variant.fitted ? variant.fitted->seconds : variant.path().seconds; }

nlohmann::json toJson(const Selected &selected, int alternatives) {
  nlohmann::json list = nlohmann::json::array();
  for (const SelectedVariant &variant : selected.variants) {
    nlohmann::json object = planJson(variant.selection, variant.path());
    object["name"] = variant.proposed.name();
    object["planSeconds"] = secondsOf(variant);  // in as many chunks as its plan would have
    object["loss"] = secondsOf(variant) - secondsOf(selected.best());
    list.push_back(object);
  }
  nlohmann::json rivals = nlohmann::json::array();
  for (const select::Plan &plan : selected.best().selection.kBest(alternatives)) {
    rivals.push_back(planJson(selected.best().selection, plan));
    rivals.back()["loss"] = plan.seconds - rivals.front()["seconds"].get<double>();
  }
  nlohmann::json pins = nlohmann::json::array();
  for (const PinRegret &pin : selected.pins)
    pins.push_back({{"tensor", pin.tensor}, {"layout", pin.layout}, {"regret", pin.seconds}});
  return {{"variants", list}, {"lowerBound", selected.lowerBound}, {"alternatives", rivals}, {"pins", pins}};
}

std::string variantsTable(const Selected &selected) {
  Table table({{"variant", left}, {"time", right}, {"loss", right}, {"lower bound", right}, {"configurations", right},
               {"states", right}, {"edges", right}});
  const double best = secondsOf(selected.best());
  for (const SelectedVariant &variant : selected.variants) {
    const select::Plan &plan = variant.path();
    const select::Statistics &statistics = variant.selection.statistics();
    const double seconds = secondsOf(variant);
    const bool isInParts = variant.fitted && variant.fitted->parts > 1;
    table.addRow({variant.proposed.name() + (isInParts ? fmt::format(", {} parts", variant.fitted->parts) : ""), formatSeconds(seconds),
                  "+" + formatSeconds(seconds - best),
                  formatSeconds(plan.lowerBound), formatCount(statistics.configurations), formatCount(statistics.states),
                  formatCount(statistics.edges)});
  }
  return table.print();
}

std::string stepsTable(const select::Selection &selection, const select::Plan &path) {
  Table table({{"time", right}, {"step", Table::Align::text}, {"runner-up", Table::Align::text}});
  for (const select::Step &step : path.steps)
    table.addRow({formatSeconds(step.cost.seconds), printStep(selection.problem(), step),
                  step.runnerUpLoss == 0 ? step.runnerUp  // ties, or none
                                         : fmt::format("+{} {}", formatSeconds(step.runnerUpLoss), step.runnerUp)});
  return table.print();
}

std::string text(const Selected &selected, int alternatives) {
  const select::Selection &selection = selected.best().selection;
  std::string result = variantsTable(selected) + "\n" + stepsTable(selection, selected.path()) + "\n";
  for (const std::string &cut : selection.statistics().layoutCuts) result += cut + "\n";
  for (const std::string &note : selection.statistics().notes) result += note + "\n";
  const std::vector<select::Plan> plans = selection.kBest(alternatives);
  result += fmt::format("{} best plans of {}: ", plans.size(), selected.best().proposed.name());
  for (size_t index = 0; index < plans.size(); ++index)
    result += (index ? ", +" : "") + formatSeconds(index ? plans[index].seconds - plans[0].seconds : plans[0].seconds);
  result += "\n";
  for (const PinRegret &pin : selected.pins)
    result += fmt::format("pin {}={} costs {}\n", pin.tensor, pin.layout, formatSeconds(pin.seconds));
  return result + selectionLines(selected);
}

int run(const SelectFlags &flags, bool json) {
  Compilation compilation(flags.model, flags.choices, flags.target);
  const Phase first = parsePhase(flags.startFrom);
  if (first > Phase::select)
    throw Error::badInput("--start-from {}: lies after select", flags.startFrom);
  compilation.import(first);
  const Selected selected = compilation.select(compilation.propose(first));
  if (!flags.output.empty()) writeFile(flags.output, compilation.materialized(selected.best(), selected.path()));
  if (!flags.dot.empty()) {
    writeFile(flags.dot, selected.best().selection.dot());
    if (flags.dot == "-") return 0;
  }
  if (json) printResult(toJson(selected, flags.choices.alternatives));
  else printResult(text(selected, flags.choices.alternatives));
  return 0;
}

}  // namespace

Action addSelect(CLI::App &command) {
  auto flags = std::make_shared<SelectFlags>();
  flags->model.declare(command);
  flags->choices.declare(command);
  flags->target.declare(command, false);
  command.add_option("--start-from", flags->startFrom, startFromHelp)
      ->capture_default_str()->type_name("PHASE")->group("Phases");
  command.add_option("--dot", flags->dot, "draw the selection graph for Graphviz")->type_name("FILE")->group("Output");
  command.add_option("-o,--output", flags->output, "write the graph with the chosen kernels")->type_name("FILE");
  return [flags](bool json) { return run(*flags, json); };
}

}  // namespace weft::driver
