// What is left of a search: edges are in the order in which they were made, in which no edge of a
// node comes before those that lead to it.
#include "passes/select/Graph.h"

namespace weft::select {

void dropDeadEnds(Selection::Graph &graph) {
  std::vector<bool> isAlive(graph.nodes.size(), false), isUsed(graph.edges.size(), false);
  isAlive[static_cast<size_t>(graph.goal)] = isAlive[static_cast<size_t>(graph.start)] = true;
  for (size_t e = graph.edges.size(); e-- > 0;) {
    if (!isAlive[static_cast<size_t>(graph.edges[e].target)]) continue;
    isUsed[e] = true;
    isAlive[static_cast<size_t>(graph.edges[e].source)] = true;
  }
  std::vector<int> numbers(graph.nodes.size(), -1);
  size_t nodes = 0, edges = 0;
  for (size_t node = 0; node < graph.nodes.size(); ++node) {
    if (!isAlive[node]) continue;
    numbers[node] = static_cast<int>(nodes);
    graph.nodes[nodes++] = graph.nodes[node];
  }
  graph.nodes.resize(nodes);
  for (size_t e = 0; e < graph.edges.size(); ++e) {
    if (!isUsed[e]) continue;
    Edge &edge = graph.edges[edges++] = graph.edges[e];
    edge.source = numbers[static_cast<size_t>(edge.source)],
    edge.target = numbers[static_cast<size_t>(edge.target)];
  }
  graph.edges.resize(edges);
  graph.nodes.shrink_to_fit();
  graph.edges.shrink_to_fit();
}

}  // namespace weft::select
