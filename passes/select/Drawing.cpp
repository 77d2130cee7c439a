// The selection graph as Graphviz text, in the manner of Fig. 6 of "Data Movement Is All You Need": one column a step of the
// best plan, one node a layout of what the step makes, edges weighted by time; the chosen path is bold.
//
// Bounded: a column shows the chosen layout and the few best alternatives to it.
#include "passes/select/Graph.h"

#include "kernel/PlainText.h"

#include <fmt/format.h>

#include <algorithm>

namespace weft::select {
namespace {

constexpr size_t maximumAlternatives = 4;

/// One node of a column: the best path through the step that leaves its first output in this layout.
struct Drawn {
  std::string label;
  double seconds = infinite;  ///< of the step alone
  double loss = infinite;     ///< of the whole plan
};

std::string microseconds(double seconds) { return fmt::format("{:.2f} us", seconds * 1e6); }

std::string layoutLabel(const Tensor &tensor, const Layout &layout) {
  std::vector<std::string> names;
  for (int dimension : layout.order) names.push_back(tensor.axes[static_cast<size_t>(dimension)].name);
  return fmt::format("{}\\n{}", tensor.name, fmt::join(names, " "));
}

/// Layout of the first output of a kernel edge, by number.
int firstOutputLayout(const Selection::Graph &graph, const Edge &edge) {
  const CandidatePrices &prices = graph.prices->candidate(edge.candidate);
  const size_t operand = graph.problem.candidates[static_cast<size_t>(edge.candidate)].inputs.size();
  return prices.choices[operand][static_cast<size_t>(prices.choiceOf(edge.entry)[operand])];
}

/// The nodes of the column of one kernel step, the chosen one first.
std::vector<Drawn> columnOf(const Selection::Graph &graph, const Edge &chosen) {
  const Candidate &candidate = graph.problem.candidates[static_cast<size_t>(chosen.candidate)];
  const int tensor = candidate.outputs.front();
  std::map<int, Drawn> byLayout;
  for (const Edge &edge : graph.edges) {
    if (edge.candidate != chosen.candidate) continue;
    const double total = graph.forward[static_cast<size_t>(edge.source)] + edge.seconds + graph.backward[static_cast<size_t>(edge.target)];
    Drawn &drawn = byLayout[firstOutputLayout(graph, edge)];
    if (total - graph.best.seconds < drawn.loss) drawn = {.label = "", .seconds = edge.seconds, .loss = total - graph.best.seconds};
  }
  const int own = firstOutputLayout(graph, chosen);
  std::vector<Drawn> alternatives, column;
  for (auto &[number, drawn] : byLayout) {
    drawn.label = layoutLabel(graph.problem.tensors[static_cast<size_t>(tensor)], graph.prices->layouts(tensor)[static_cast<size_t>(number)]);
    if (number == own) column.push_back({.label = drawn.label, .seconds = chosen.seconds, .loss = 0});
    else if (drawn.loss < infinite) alternatives.push_back(drawn);
  }
  std::stable_sort(alternatives.begin(), alternatives.end(), [](const Drawn &a, const Drawn &b) { return a.loss < b.loss; });
  if (alternatives.size() > maximumAlternatives) alternatives.resize(maximumAlternatives);
  column.insert(column.end(), alternatives.begin(), alternatives.end());
  return column;
}

std::string columnName(size_t column, size_t row) { return fmt::format("s{}_{}", column, row); }

}  // namespace

std::string Selection::dot() const {
  std::string text = "digraph selection {\n  rankdir=LR;\n  node [shape=box, fontname=\"Helvetica\"];\n"
                     "  edge [fontname=\"Helvetica\", fontsize=10];\n";
  text += fmt::format("  label=\"{}: {}, lower bound {}, {} states, {} edges\";\n", dotLabel(graph->problem.name), microseconds(graph->best.seconds),
                      microseconds(graph->lowerBound), graph->statistics.states, graph->statistics.edges);
  text += "  s0_0 [label=\"arguments\", style=bold];\n";
  size_t column = 0, rowsBefore = 1;
  for (int e : graph->bestPath) {
    const Edge &edge = graph->edges[static_cast<size_t>(e)];
    if (edge.candidate < 0 && edge.tensor < 0) continue;
    ++column;
    std::vector<Drawn> drawn;
    std::string name = "transpose";
    if (edge.candidate >= 0) {
      drawn = columnOf(*graph, edge);
      name = graph->problem.candidates[static_cast<size_t>(edge.candidate)].name;
    } else {
      const Tensor &tensor = graph->problem.tensors[static_cast<size_t>(edge.tensor)];
      drawn = {{.label = layoutLabel(tensor, graph->prices->layouts(edge.tensor)[static_cast<size_t>(edge.to)]), .seconds = edge.seconds, .loss = 0}};
      if (graph->prices->isFreeToPack(edge.tensor)) name = "packed at load";
    }
    text += fmt::format("  subgraph cluster_{} {{\n    label=\"{}\";\n    color=gray;\n", column, dotLabel(name));
    for (size_t row = 0; row < drawn.size(); ++row)
      text += fmt::format("    {} [label=\"{}{}\"{}];\n", columnName(column, row), drawn[row].label,
                          row == 0 ? "" : fmt::format("\\n+{}", microseconds(drawn[row].loss)), row == 0 ? ", style=bold" : "");
    text += "  }\n";
    for (size_t row = 0; row < drawn.size(); ++row)
      text += fmt::format("  {} -> {} [label=\"{}\"{}];\n", columnName(column - 1, 0), columnName(column, row), microseconds(drawn[row].seconds),
                          row == 0 ? ", style=bold" : ", style=dashed");
    for (size_t row = 1; row < rowsBefore; ++row)
      text += fmt::format("  {} -> {} [style=dashed];\n", columnName(column - 1, row), columnName(column, 0));
    rowsBefore = drawn.size();
  }
  return text + "}\n";
}

}  // namespace weft::select
