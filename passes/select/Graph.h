// The selection graph: nodes are (finished ops, layouts of live tensors), edges are kernels and
// transposes.
//
// Invariant: edges are sorted by source, and `order` lists the nodes so that every edge goes
// forward.
#pragma once

#include "passes/select/FinishedOpLattice.h"
#include "passes/select/LagrangianBound.h"
#include "passes/select/Outcomes.h"

#include <memory>

namespace weft::select {

struct Node {
  int layer = 0;       ///< of the lattice; the start and the goal belong to none
  int transposes = 0;  ///< made since the state that this node belongs to
};

struct Edge {
  int source = -1, target = -1;
  double seconds = 0;
  int candidate = -1;          ///< -1: a transpose, or (if tensor is -1 too) the way in or out
  size_t entry = 0;            ///< of the candidate's table
  int tensor = -1;             ///< of a transpose
  int from = -1, to = -1;      ///< its layouts
  int64_t temporaryBytes = 0;  ///< live while it runs, with what it works in
};

struct Selection::Graph {
  Problem problem;
  Options options;
  const CostModel *model = nullptr;
  Statistics statistics;
  std::unique_ptr<Prices> prices;
  std::unique_ptr<FinishedOpLattice> lattice;
  std::unique_ptr<LagrangianBound> lagrangianBound;

  /// No plan is as fast as one that another variant is known to have: searched only for what its
  /// best plan about takes, among the candidates that are `considered`.
  bool isExcluded = false;
  std::vector<bool> considered = {};  ///< by number
  double excludingBound = 0;          ///< seconds that none of its plans takes less than
  double roughSeconds = infinite;     ///< of the plan that the first pass found
  std::map<int, std::vector<Masks>> roughStates;  ///< its states: masks by layer

  std::vector<Node> nodes;
  std::vector<Edge> edges;
  int start = 0, goal = 1;
  double lowerBound = infinite;
  int64_t smallestPeak = -1;  ///< over all paths, before the memory limit

  std::vector<int> order;                  ///< nodes, topological
  std::vector<size_t> firstEdge;           ///< per node, into edges
  std::vector<std::vector<int>> incoming;  ///< per node, edge indices
  std::vector<double> forward, backward;   ///< shortest distances from the start and to the goal
  SelectionResult best;
  std::vector<int> bestPath;  ///< edge indices
};

/// Sums in another order differ by less.
constexpr double rounding = 1 - 1e-12;

/// Fills lattice and lowerBound, for which prices need no tables.
void openLattice(Selection::Graph &graph);
/// By candidate, whether some plan that it is part of takes at most `slack` times the lower bound,
/// if layouts are free.
std::vector<bool> candidatesWithin(const Selection::Graph &graph, double slack);
/// Fills lagrangianBound, with as many steps as the options allow.
void openBound(Selection::Graph &graph);
/// First pass: fills nodes, edges, the rough plan and the counts of `statistics`.
void searchRoughly(Selection::Graph &graph);
/// Raises the bound of the lagrangianBound as far as that says more: up to the rough plan, or
/// beyond `rival` seconds.
void raiseBound(Selection::Graph &graph, double rival);
/// Second pass: replaces nodes and edges by those that are left within the rough plan's time, if
/// that is needed to prove that no plan is faster than `rival` seconds, which some plan takes,
/// perhaps of another variant; or by those around it, if it is that plan.
void searchExactly(Selection::Graph &graph, double rival);

/// Where memory was short: takes back what would be proven otherwise.
void reportUnproven(Selection::Graph &graph);

/// Drops what leads nowhere: states that were cut, and all that leads to them alone.
void dropDeadEnds(Selection::Graph &graph);

/// Sorts edges, orders nodes, runs the shortest paths. Throws Error(unsupported) if the goal is not
/// reached.
void solve(Selection::Graph &graph);

/// Shortest distance from start to goal over the edges that `isAllowed`; infinite if there is no
/// path.
double shortestOver(const Selection::Graph &graph,
                    const std::function<bool(const Edge &)> &isAllowed);
/// The edges of that path; empty where there is none.
std::vector<int> pathOver(const Selection::Graph &graph,
                          const std::function<bool(const Edge &)> &isAllowed);
SelectionResult planOf(const Selection::Graph &graph, const std::vector<int> &path);
/// Adds the runner-up of every step to the best plan.
void addRunnersUp(Selection::Graph &graph);

}  // namespace weft::select
