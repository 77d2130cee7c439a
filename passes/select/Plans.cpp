// Shortest paths over the selection graph, and what can be asked of them: the plan, its runners-up,
// the k best, what-ifs.
#include "passes/select/Graph.h"

#include "kernel/Error.h"
#include "passes/select/StepText.h"

#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <boost/graph/dag_shortest_paths.hpp>

#include <algorithm>
#include <map>
#include <numeric>

namespace weft::select {
namespace {

/// Rank of a node: finished ops, then transposes; the start first, the goal last.
void orderNodes(Selection::Graph &graph) {
  graph.order.resize(graph.nodes.size());
  std::iota(graph.order.begin(), graph.order.end(), 0);
  std::vector<int> finished;
  for (const Layer &layer : graph.lattice->layers()) finished.push_back(layer.finished.size());
  std::vector<std::pair<int, int>> rank;
  for (const Node &node : graph.nodes)
    rank.emplace_back(finished[static_cast<size_t>(node.layer)], node.transposes);
  rank[static_cast<size_t>(graph.start)] = {-1, 0};
  rank[static_cast<size_t>(graph.goal)] = {static_cast<int>(graph.problem.ops.size()) + 1, 0};
  std::stable_sort(graph.order.begin(), graph.order.end(), [&](int a, int b) {
    return rank[static_cast<size_t>(a)] < rank[static_cast<size_t>(b)];
  });
}

void indexEdges(Selection::Graph &graph) {
  std::stable_sort(graph.edges.begin(), graph.edges.end(),
                   [](const Edge &a, const Edge &b) { return a.source < b.source; });
  graph.firstEdge.assign(graph.nodes.size() + 1, 0);
  for (const Edge &edge : graph.edges) ++graph.firstEdge[static_cast<size_t>(edge.source) + 1];
  std::partial_sum(graph.firstEdge.begin(), graph.firstEdge.end(), graph.firstEdge.begin());
  graph.incoming.assign(graph.nodes.size(), {});
  for (size_t e = 0; e < graph.edges.size(); ++e)
    graph.incoming[static_cast<size_t>(graph.edges[e].target)].push_back(static_cast<int>(e));
}

/// The least peak of temporaries over all paths.
int64_t leastPeak(const Selection::Graph &graph) {
  constexpr int64_t unreached = std::numeric_limits<int64_t>::max();
  std::vector<int64_t> peak(graph.nodes.size(), unreached);
  peak[static_cast<size_t>(graph.start)] = 0;
  for (int node : graph.order) {
    const auto n = static_cast<size_t>(node);
    if (peak[n] == unreached) continue;
    for (size_t e = graph.firstEdge[n]; e < graph.firstEdge[n + 1]; ++e) {
      int64_t &target = peak[static_cast<size_t>(graph.edges[e].target)];
      target = std::min(target, std::max(peak[n], graph.edges[e].temporaryBytes));
    }
  }
  return peak[static_cast<size_t>(graph.goal)];
}

void limitMemory(Selection::Graph &graph) {
  graph.smallestPeak = leastPeak(graph);
  if (!graph.options.maxMemory) return;
  const int64_t limit = *graph.options.maxMemory;
  if (graph.smallestPeak > limit)
    throw Error::unsupported(
        "'{}': no plan keeps its temporaries within {} bytes; the smallest peak found is {} bytes",
        graph.problem.name, limit, graph.smallestPeak);
  std::erase_if(graph.edges, [&](const Edge &edge) { return edge.temporaryBytes > limit; });
  indexEdges(graph);
}

struct Weight {
  double seconds = 0;
};

/// Forward distances from the start.
std::vector<double> forwardDistances(const Selection::Graph &graph) {
  using CsrGraph = boost::compressed_sparse_row_graph<boost::directedS, boost::no_property, Weight,
                                                      boost::no_property, size_t, size_t>;
  std::vector<std::pair<size_t, size_t>> ends;
  std::vector<Weight> weights;
  for (const Edge &edge : graph.edges) {
    ends.emplace_back(static_cast<size_t>(edge.source), static_cast<size_t>(edge.target));
    weights.push_back({edge.seconds});
  }
  const CsrGraph csr(boost::edges_are_sorted, ends.begin(), ends.end(), weights.begin(),
                     graph.nodes.size());
  std::vector<double> distances(graph.nodes.size(), infinite);
  const auto distanceMap =
      boost::make_iterator_property_map(distances.begin(), boost::get(boost::vertex_index, csr));
  boost::dag_shortest_paths(csr, static_cast<size_t>(graph.start),
                            boost::weight_map(boost::get(&Weight::seconds, csr))
                                .distance_map(distanceMap)
                                .distance_inf(infinite));
  return distances;
}

std::vector<double> backwardDistances(const Selection::Graph &graph) {
  std::vector<double> distances(graph.nodes.size(), infinite);
  distances[static_cast<size_t>(graph.goal)] = 0;
  for (auto node = graph.order.rbegin(); node != graph.order.rend(); ++node)
    for (auto e = graph.firstEdge[static_cast<size_t>(*node)];
         e < graph.firstEdge[static_cast<size_t>(*node) + 1]; ++e) {
      double &distance = distances[static_cast<size_t>(*node)];
      distance = std::min(
          distance, graph.edges[e].seconds + distances[static_cast<size_t>(graph.edges[e].target)]);
    }
  return distances;
}

/// Backwards from the goal along edges that attain the distance; ties go to the first edge.
std::vector<int> shortestPath(const Selection::Graph &graph) {
  std::vector<int> path;
  for (int node = graph.goal; node != graph.start;) {
    const auto &incoming = graph.incoming[static_cast<size_t>(node)];
    const auto attains = std::find_if(incoming.begin(), incoming.end(), [&](int e) {
      const Edge &edge = graph.edges[static_cast<size_t>(e)];
      return graph.forward[static_cast<size_t>(edge.source)] + edge.seconds ==
             graph.forward[static_cast<size_t>(node)];
    });
    path.push_back(*attains);
    node = graph.edges[static_cast<size_t>(*attains)].source;
  }
  std::reverse(path.begin(), path.end());
  return path;
}

[[noreturn]] void reportUnreached(const Selection::Graph &graph) {
  OpSet furthest;
  for (size_t node = 0; node < graph.nodes.size(); ++node) {
    const OpSet &finished =
        graph.lattice->layers()[static_cast<size_t>(graph.nodes[node].layer)].finished;
    if (graph.forward[node] < infinite && finished.size() > furthest.size()) furthest = finished;
  }
  const int op = (OpSet::firstOps(static_cast<int>(graph.problem.ops.size())) - furthest).lowest();
  if (op < 0)
    throw Error::unsupported("'{}': no transpose brings the results into the asked layouts",
                             graph.problem.name);
  throw Error::unsupported("'{}': no kernel takes op {} '{}' under these pins and fusions",
                           graph.problem.name, op, graph.problem.ops[static_cast<size_t>(op)]);
}

}  // namespace

void solve(Selection::Graph &graph) {
  orderNodes(graph);
  indexEdges(graph);
  limitMemory(graph);
  graph.forward = forwardDistances(graph);
  if (!(graph.forward[static_cast<size_t>(graph.goal)] < infinite)) reportUnreached(graph);
  graph.backward = backwardDistances(graph);
  graph.bestPath = shortestPath(graph);
  // Bound and plan may be the same kernels, added up in another order.
  const double seconds = graph.forward[static_cast<size_t>(graph.goal)];
  if (graph.lowerBound > seconds && graph.lowerBound * (1 - 1e-12) < seconds)
    graph.lowerBound = seconds;
  graph.best = planOf(graph, graph.bestPath);
}

namespace {

/// Distances of all nodes from the start over the edges that are allowed, and the last edge to
/// each.
struct Distances {
  std::vector<double> seconds;
  std::vector<int> last;

  Distances(const Selection::Graph &graph, const std::function<bool(const Edge &)> &isAllowed)
      : seconds(graph.nodes.size(), infinite), last(graph.nodes.size(), -1) {
    seconds[static_cast<size_t>(graph.start)] = 0;
    for (int node : graph.order) {
      const auto n = static_cast<size_t>(node);
      if (!(seconds[n] < infinite)) continue;
      for (size_t e = graph.firstEdge[n]; e < graph.firstEdge[n + 1]; ++e) {
        const Edge &edge = graph.edges[e];
        const auto target = static_cast<size_t>(edge.target);
        if (seconds[n] + edge.seconds < seconds[target] && isAllowed(edge))
          seconds[target] = seconds[n] + edge.seconds, last[target] = int(e);
      }
    }
  }
};

}  // namespace

double shortestOver(const Selection::Graph &graph,
                    const std::function<bool(const Edge &)> &isAllowed) {
  return Distances(graph, isAllowed).seconds[static_cast<size_t>(graph.goal)];
}

std::vector<int> pathOver(const Selection::Graph &graph,
                          const std::function<bool(const Edge &)> &isAllowed) {
  const Distances distances(graph, isAllowed);
  std::vector<int> path;
  for (int edge = distances.last[static_cast<size_t>(graph.goal)]; edge >= 0;
       edge = distances.last[static_cast<size_t>(graph.edges[static_cast<size_t>(edge)].source)])
    path.push_back(edge);
  std::ranges::reverse(path);
  return path;
}

namespace {

/// A transpose belongs to the entry point of the kernel that it is made for, the first one of
/// several entry points that read what it gives; at the end, where results are brought into the
/// caller's layouts, to that of the kernel which computes the result. Steps of one entry point stay
/// in their order.
void orderByEntryPoint(const Problem &problem, SelectionResult &plan) {
  if (problem.entryPoints.size() < 2) return;
  const auto entryOf = [&](const std::vector<int> &ops) {
    return problem.opEntries[static_cast<size_t>(ops.front())];
  };
  int next = -1;
  for (auto step = plan.steps.rbegin(); step != plan.steps.rend(); ++step) {
    if (step->candidate >= 0)
      next = entryOf(problem.candidates[static_cast<size_t>(step->candidate)].ops);
    if (next >= 0) step->entry = next;
    for (size_t op = 0; next < 0 && op < problem.ops.size(); ++op)
      if (std::ranges::count(problem.opOutputs[op], step->tensor) > 0)
        step->entry = problem.opEntries[op];
  }
  for (auto step = plan.steps.begin(); step != plan.steps.end(); ++step)
    for (auto reader = step + 1; step->candidate < 0 && reader != plan.steps.end(); ++reader) {
      if (reader->candidate < 0) continue;
      const std::vector<int> &inputs =
          problem.candidates[static_cast<size_t>(reader->candidate)].inputs;
      for (size_t input = 0; input < inputs.size(); ++input)
        if (inputs[input] == step->tensor &&
            reader->configuration.inputs[input] == step->configuration.outputs[0])
          step->entry = std::min(step->entry, reader->entry);
    }
  std::ranges::stable_sort(plan.steps, {}, &Step::entry);
}

/// Gives every step that writes or reads an operand of a concatenation or a result of a slice, in
/// the order of the larger tensor, the strides of that view.
void allowStridedViews(const Problem &problem, SelectionResult &plan) {
  const auto operandsOf = [&](Step &step) {
    std::vector<std::pair<int, Layout *>> operands;
    const auto add = [&](const std::vector<int> &tensors, std::vector<Layout> &layouts) {
      for (size_t i = 0; i < layouts.size(); ++i)
        operands.emplace_back(step.candidate < 0 ? step.tensor : tensors[i], &layouts[i]);
    };
    const Candidate *candidate =
        step.candidate < 0 ? nullptr : &problem.candidates[static_cast<size_t>(step.candidate)];
    add(candidate ? candidate->inputs : std::vector<int>{}, step.configuration.inputs);
    add(candidate ? candidate->outputs : std::vector<int>{}, step.configuration.outputs);
    return operands;
  };
  std::map<std::pair<int, std::vector<int>>, std::vector<int64_t>> strides;  // tensor, order
  for (Step &step : plan.steps)
    for (const auto &[tensor, layout] : operandsOf(step))
      if (!layout->strides.empty())
        strides.emplace(std::pair(tensor, layout->order), layout->strides);
  for (Step &step : plan.steps)
    for (const auto &[tensor, layout] : operandsOf(step))
      if (const auto found = strides.find({tensor, layout->order});
          found != strides.end() && !layout->isPadded())
        layout->strides = found->second;
}

}  // namespace

SelectionResult planOf(const Selection::Graph &graph, const std::vector<int> &path) {
  SelectionResult plan;
  plan.variant = graph.problem.name;
  plan.lowerBound = graph.lowerBound;
  std::set<std::pair<int, int>> packed;  // a parameter is packed once for each layout
  for (int e : path) {
    const Edge &edge = graph.edges[static_cast<size_t>(e)];
    plan.seconds += edge.seconds;
    plan.peakTemporaryBytes = std::max(plan.peakTemporaryBytes, edge.temporaryBytes);
    if (edge.candidate >= 0) {
      Step step{.candidate = edge.candidate,
                .configuration = graph.prices->configuration(edge.candidate, edge.entry)};
      const Kernel &kernel = graph.problem.candidates[static_cast<size_t>(edge.candidate)].kernel;
      if (!graph.prices->candidate(edge.candidate).isFolded)
        step.cost = graph.model->cost(kernel, step.configuration);
      plan.steps.push_back(std::move(step));
    } else if (edge.tensor >= 0) {
      const bool isPacking = graph.prices->isFreeToPack(edge.tensor);
      if (isPacking && !packed.insert({edge.tensor, edge.to}).second) continue;
      Step step{
          .tensor = edge.tensor,
          .configuration = graph.prices->transposeConfiguration(edge.tensor, edge.from, edge.to)};
      if (!isPacking)
        step.cost = graph.model->cost(
            transposeKernel(graph.problem.tensors[static_cast<size_t>(edge.tensor)]),
            step.configuration);
      plan.steps.push_back(std::move(step));
    }
  }
  orderByEntryPoint(graph.problem, plan);
  allowStridedViews(graph.problem, plan);
  return plan;
}

namespace {

/// "layouts hbjp ph -> hbpj": of operands with several axes, by the names that their tensors have
/// in the graph.
std::string printLayouts(const Problem &problem, const Candidate &candidate,
                         const Configuration &configuration) {
  const auto print = [&](const std::vector<int> &tensors, const std::vector<Layout> &layouts) {
    std::string text;
    for (size_t i = 0; i < tensors.size(); ++i) {
      const Tensor &tensor = problem.tensors[static_cast<size_t>(tensors[i])];
      if (tensor.axes.size() < 2) continue;
      text += " " + printLayout(layouts[i], tensor);
    }
    return text;
  };
  return "layouts" + print(candidate.inputs, configuration.inputs) + " ->" +
         print(candidate.outputs, configuration.outputs);
}

/// "split: bias | gelu", "fused: bias_gelu", or the name of a kernel that shares some ops.
std::string printFusion(const Problem &problem, const Candidate &chosen, const Candidate &other) {
  const OpSet own(chosen.ops), others(other.ops);
  if (others.containsAll(own)) return "fused: " + other.name;
  if (!own.containsAll(others)) return "regrouped: " + other.name;
  std::vector<std::string> rest;
  for (int op : chosen.ops)
    if (!others.contains(op)) rest.push_back(problem.ops[static_cast<size_t>(op)]);
  if (rest.size() > 3) return fmt::format("split: {} | {} more ops", other.name, rest.size());
  return fmt::format("split: {} | {}", other.name, fmt::join(rest, ", "));
}

/// Seconds of the best plan through each entry of each candidate.
std::vector<std::map<size_t, double>> bestThrough(const Selection::Graph &graph) {
  std::vector<std::map<size_t, double>> through(graph.problem.candidates.size());
  for (const Edge &edge : graph.edges) {
    if (edge.candidate < 0) continue;
    const double seconds = graph.forward[static_cast<size_t>(edge.source)] + edge.seconds +
                           graph.backward[static_cast<size_t>(edge.target)];
    double &best = through[static_cast<size_t>(edge.candidate)]
                       .try_emplace(edge.entry, infinite)
                       .first->second;
    best = std::min(best, seconds);
  }
  return through;
}

/// The alternative to one step that loses least, ties with the step left out.
void addRunnerUp(const Selection::Graph &graph,
                 const std::vector<std::map<size_t, double>> &through, const Edge &edge,
                 Step &step) {
  const Problem &problem = graph.problem;
  const Candidate &chosen = problem.candidates[static_cast<size_t>(edge.candidate)];
  const Price &price = graph.prices->candidate(edge.candidate).table[edge.entry];
  const OpSet own(chosen.ops);
  // Views cost nothing, and sums of the same prices differ in their last bits: a share of a launch
  // is not measurable either.
  const double unmeasurable = noise * std::max(price.seconds, graph.model->device().launchSeconds);
  double best = price.secondSeconds - price.seconds;
  int ties = 0;
  if (best < infinite) step.runnerUp = graph.prices->runnerUpKnobs(edge.candidate, edge.entry);
  for (size_t c = 0; c < through.size(); ++c) {
    const Candidate &other = problem.candidates[c];
    if (!OpSet(other.ops).intersects(own)) continue;
    const bool isSame = static_cast<int>(c) == edge.candidate;
    for (const auto &[entry, seconds] : through[c]) {
      if (isSame && entry == edge.entry) continue;
      const double loss = seconds - graph.best.seconds;
      const bool isTie = loss <= unmeasurable;
      ties += isTie;
      if (isTie || !(loss < best)) continue;
      best = loss;
      step.runnerUp =
          isSame ? printLayouts(problem, other, graph.prices->configuration(edge.candidate, entry))
                 : printFusion(problem, chosen, other);
    }
  }
  step.runnerUpLoss = best < infinite ? best : 0;
  if (step.runnerUp.empty() && ties > 0) step.runnerUp = fmt::format("{} equal alternatives", ties);
}

}  // namespace

void addRunnersUp(Selection::Graph &graph) {
  const auto through = bestThrough(graph);
  for (int e : graph.bestPath) {
    const Edge &edge = graph.edges[static_cast<size_t>(e)];
    if (edge.candidate < 0) continue;
    addRunnerUp(graph, through, edge,
                *std::ranges::find(graph.best.steps, edge.candidate, &Step::candidate));
  }
}

std::vector<SelectionResult> Selection::kBest(int k) const {
  if (!graph->lattice) return {graph->best};
  /// The r-th best path to a node: its last edge, and which path to that edge's source it extends.
  struct Path {
    double seconds;
    int edge, rank;
  };
  constexpr int repeats = 4;  // paths may be the same kernels in another order
  const auto limit = static_cast<size_t>(std::max(1, k) * repeats);
  std::vector<std::vector<Path>> paths(graph->nodes.size());
  paths[static_cast<size_t>(graph->start)] = {{0, -1, -1}};
  for (int node : graph->order) {
    if (!(graph->backward[static_cast<size_t>(node)] < infinite)) continue;
    std::vector<Path> &own = paths[static_cast<size_t>(node)];
    for (int e : graph->incoming[static_cast<size_t>(node)]) {
      const Edge &edge = graph->edges[static_cast<size_t>(e)];
      const auto &before = paths[static_cast<size_t>(edge.source)];
      for (size_t r = 0; r < before.size(); ++r)
        own.push_back({before[r].seconds + edge.seconds, e, static_cast<int>(r)});
    }
    std::stable_sort(own.begin(), own.end(),
                     [](const Path &a, const Path &b) { return a.seconds < b.seconds; });
    if (own.size() > limit) own.resize(limit);
  }
  std::vector<SelectionResult> plans;
  std::set<std::multiset<std::array<int64_t, 5>>> seen;
  const auto &complete = paths[static_cast<size_t>(graph->goal)];
  for (size_t r = 0; r < complete.size() && static_cast<int>(plans.size()) < k; ++r) {
    std::vector<int> edges;
    std::multiset<std::array<int64_t, 5>> signature;
    auto node = static_cast<size_t>(graph->goal);
    for (auto rank = r; paths[node][rank].edge >= 0;) {
      const Path &path = paths[node][rank];
      const Edge &edge = graph->edges[static_cast<size_t>(path.edge)];
      edges.push_back(path.edge);
      signature.insert(
          {edge.candidate, static_cast<int64_t>(edge.entry), edge.tensor, edge.from, edge.to});
      node = static_cast<size_t>(edge.source);
      rank = static_cast<size_t>(path.rank);
    }
    std::reverse(edges.begin(), edges.end());
    if (seen.insert(signature).second) plans.push_back(planOf(*graph, edges));
  }
  return plans;
}

}  // namespace weft::select
