// The selection graph as Graphviz text, in the manner of Fig. 6 of "Data Movement Is All You Need":
// one column a step of the plan, one node a layout of what the step makes, edges weighted by time;
// the chosen path is bold.
//
// Bounded: a column shows the chosen layout and the few best alternatives to it.
#include "passes/select/Graph.h"

#include "kernel/Error.h"
#include "kernel/PlainText.h"

#include <fmt/format.h>

#include <algorithm>

namespace weft::select {
namespace {

constexpr size_t maximumAlternatives = 4;

/// One node of a column: the best path through the step that leaves its first output in this
/// layout.
struct Drawn {
  std::string label;
  double seconds = infinite;  ///< of the step alone
  double loss = infinite;     ///< of the whole plan
};

std::string microseconds(double seconds) { return fmt::format("{:.2f} us", seconds * 1e6); }

std::string layoutLabel(const Tensor &tensor, const Layout &layout) {
  std::vector<std::string> names;
  for (int dimension : layout.order)
    names.push_back(tensor.axes[static_cast<size_t>(dimension)].name);
  const auto pitch = pitchOf(layout, tensor.extents());
  return fmt::format("{}\\n{}{}", tensor.name, fmt::join(names, " "),
                     pitch ? fmt::format(":{}", *pitch) : "");
}

/// Layout of the first output of a kernel edge, by number.
int firstOutputLayout(const Selection::Graph &graph, const Edge &edge) {
  const CandidatePrices &prices = graph.prices->candidate(edge.candidate);
  const size_t operand =
      graph.problem.candidates[static_cast<size_t>(edge.candidate)].inputs.size();
  return prices.choices[operand][static_cast<size_t>(prices.choiceOf(edge.entry)[operand])];
}

/// The nodes of the column of one kernel step, the chosen one first. `seconds`: of the plan's step;
/// `total`: of its path.
std::vector<Drawn> columnOf(const Selection::Graph &graph, const Step &step, double seconds,
                            double total) {
  const Candidate &candidate = graph.problem.candidates[static_cast<size_t>(step.candidate)];
  const int tensor = candidate.outputs.front();
  const Tensor &made = graph.problem.tensors[static_cast<size_t>(tensor)];
  std::map<int, Drawn> byLayout;
  for (const Edge &edge : graph.edges) {
    if (edge.candidate != step.candidate) continue;
    const double through = graph.forward[static_cast<size_t>(edge.source)] + edge.seconds +
                           graph.backward[static_cast<size_t>(edge.target)];
    Drawn &drawn = byLayout[firstOutputLayout(graph, edge)];
    if (through - total < drawn.loss)
      drawn = {.label = "", .seconds = edge.seconds, .loss = through - total};
  }
  const Layout own = normalized(withoutPlace(step.configuration.outputs.front()), made.extents());
  std::vector<Drawn> alternatives,
      column = {{.label = layoutLabel(made, own), .seconds = seconds, .loss = 0}};
  for (auto &[number, drawn] : byLayout) {
    const Layout &layout = graph.prices->layouts(tensor)[static_cast<size_t>(number)];
    drawn.label = layoutLabel(made, layout);
    if (layout != own && drawn.loss < infinite) alternatives.push_back(drawn);
  }
  std::stable_sort(alternatives.begin(), alternatives.end(),
                   [](const Drawn &a, const Drawn &b) { return a.loss < b.loss; });
  if (alternatives.size() > maximumAlternatives) alternatives.resize(maximumAlternatives);
  column.insert(column.end(), alternatives.begin(), alternatives.end());
  return column;
}

std::string columnName(size_t column, size_t row) { return fmt::format("s{}_{}", column, row); }

}  // namespace

std::string Selection::dot() const {
  DrawnPlan drawn{.path = &graph->best, .seconds = graph->best.seconds};
  for (const Step &step : graph->best.steps) drawn.steps.push_back({.seconds = step.cost.seconds});
  return dot(drawn);
}

std::string Selection::dot(const DrawnPlan &plan) const {
  if (!graph->lattice)
    throw Error::unsupported(
        "'{}' was selected part by part, and has no one selection graph to draw; draw that of one "
        "layer",
        graph->problem.name);
  std::string text =
      "digraph selection {\n  rankdir=LR;\n  node [shape=box, fontname=\"Helvetica\"];\n"
      "  edge [fontname=\"Helvetica\", fontsize=10];\n";
  text += fmt::format("  label=\"{}: {}{}, best weft could choose {}, {} states, {} edges\";\n",
                      dotLabel(graph->problem.name), microseconds(plan.seconds),
                      plan.title.empty() ? "" : ", " + dotLabel(plan.title),
                      microseconds(graph->lowerBound), graph->statistics.states,
                      graph->statistics.edges);
  text += "  s0_0 [label=\"arguments\", style=bold];\n";
  size_t column = 0, rowsBefore = 1;
  for (size_t index = 0; index < plan.path->steps.size(); ++index) {
    const Step &step = plan.path->steps[index];
    const DrawnPlan::Step &planned = plan.steps[index];
    ++column;
    std::vector<Drawn> drawn;
    std::string name = "transpose";
    if (step.candidate >= 0) {
      drawn = columnOf(*graph, step, planned.seconds, plan.path->seconds);
      name = graph->problem.candidates[static_cast<size_t>(step.candidate)].name;
      if (planned.chunks > 1) name += fmt::format(", {} chunks", planned.chunks);
    } else {
      const Tensor &tensor = graph->problem.tensors[static_cast<size_t>(step.tensor)];
      drawn = {{.label = layoutLabel(tensor, step.configuration.outputs.front()),
                .seconds = planned.seconds,
                .loss = 0}};
      if (graph->prices->isFreeToPack(step.tensor)) name = "packed at load";
    }
    text += fmt::format("  subgraph cluster_{} {{\n    label=\"{}\";\n    color=gray;\n", column,
                        dotLabel(name));
    for (size_t row = 0; row < drawn.size(); ++row)
      text += fmt::format("    {} [label=\"{}{}\"{}];\n", columnName(column, row), drawn[row].label,
                          row == 0 ? "" : fmt::format("\\n{:+.2f} us", drawn[row].loss * 1e6),
                          row == 0 ? ", style=bold" : "");
    text += "  }\n";
    for (size_t row = 0; row < drawn.size(); ++row)
      text += fmt::format("  {} -> {} [label=\"{}\"{}];\n", columnName(column - 1, 0),
                          columnName(column, row), microseconds(drawn[row].seconds),
                          row == 0 ? ", style=bold" : ", style=dashed");
    for (size_t row = 1; row < rowsBefore; ++row)
      text += fmt::format("  {} -> {} [style=dashed];\n", columnName(column - 1, row),
                          columnName(column, 0));
    rowsBefore = drawn.size();
  }
  return text + "}\n";
}

}  // namespace weft::select
