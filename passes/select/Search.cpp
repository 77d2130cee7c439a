// Builds the selection graph layer by layer. A layer is a set of finished ops
// (FinishedOpLattice.h). A state says in which layouts each live tensor exists: one mask per
// tensor, and a transposed copy adds a bit.
//
// Bounds. A completion of a state costs at least its cost so far, plus the cheapest kernels for the
// remaining ops, plus the layout-conflict bound: what readers of its tensors lose by their layouts
// (LayoutConflictBound.h). It also costs at least the Lagrangian bound (LagrangianBound.h), which
// is mostly the tighter one. A first pass keeps the most promising states of every layer and finds
// a plan. If no state that it cut has a bound below that plan, the plan is the shortest path.
// Otherwise a second pass keeps every state whose bound is below that plan, and finds the shortest
// path. For a large graph (forward and backward) the second pass is skipped where the bounds leave
// less to gain than could be measured. Each layer also keeps `alternativeStates` states that cannot
// better the plan, because runners-up and what-if questions are answered from them. For these, a
// second pass runs around the best plan of all variants even if that plan is proven.
//
// Transposes. A state that equals another one plus transposes is dominated by it. Transposes are
// therefore added only at a kernel that needs a missing layout, from the cheapest copy.
#include "passes/select/Dominance.h"
#include "passes/select/FinishedOpLattice.h"
#include "passes/select/Graph.h"
#include "passes/select/LayoutConflictBound.h"
#include "passes/select/States.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

namespace weft::select {
namespace {

/// Dominated states are kept while a layer has fewer states than this, so that prices of
/// alternatives are exact.
constexpr int roomyLayer = 32;
/// Layers beyond which a second pass is worth its time only where it may gain what could be
/// measured.
constexpr size_t largeLattice = 256;
/// However many layers there are.
constexpr int64_t fewestAlternatives = 8;
/// A layer may hold one in so many of all states: of those that could better the plan; and around a
/// plan that is proven, of those within noise of it.
constexpr int64_t layerDivisor = 3, layerDivisorAroundBest = 10;
/// As accounted: what is kept of each, and what paths over them take.
constexpr int64_t bytesOfNode = sizeof(Node) + 200, bytesOfEdge = sizeof(Edge) + 60;
/// States that are never dropped: masks by layer.
using Path = std::map<int, std::vector<Masks>>;

bool isStateOf(const Path &path, int layer, MaskView masks) {
  const auto found = path.find(layer);
  return found != path.end() && std::ranges::any_of(found->second, [&](const Masks &state) {
           return std::ranges::equal(state, masks);
         });
}

int slotIn(const std::vector<int> &tracked, int tensor) {
  const auto found = std::find(tracked.begin(), tracked.end(), tensor);
  return found == tracked.end() ? -1 : static_cast<int>(found - tracked.begin());
}

class Search {
public:
  /// `known`: what states must promise to be kept: seconds of a plan that is known, infinite in a
  /// first pass; `path`: its states.
  Search(Selection::Graph &graph, const FinishedOpLattice &lattice, double known, Path path,
         int64_t divisor)
      : graph(graph),
        problem(graph.problem),
        prices(*graph.prices),
        lattice(lattice),
        lagrangianBound(*graph.lagrangianBound),
        outcomes(problem, prices),
        layoutConflicts(problem, prices),
        known(known),
        path(std::move(path)),
        states(lattice.layers().size()),
        layerConflictBounds(lattice.layers().size()),
        alternativesHere(graph.isExcluded ? fewestAlternatives
                                          : std::clamp<int64_t>(share(graph.options.states) / 35,
                                                                fewestAlternatives,
                                                                graph.options.alternativeStates)),
        beam(std::clamp<int64_t>(share(graph.options.states) / divisor, alternativesHere,
                                 graph.options.beam)) {}

  void run() {
    graph.nodes.assign(2, {});  // start, goal
    graph.statistics.peakStates = 0;
    graph.edges.clear();
    cameFrom.assign(2, -1);
    openFirstLayer();
    for (size_t l = 0; l < states.size(); ++l) {
      const Layer &layer = lattice.layers()[l];
      states[l].sort();
      if (lattice.isComplete(layer)) {
        close(layer, states[l]);
        continue;
      }
      if (states[l].all().empty()) continue;
      prune(static_cast<int>(l));
      bytesOf.clear();
      for (const auto &[masks, state] : states[l].all()) bytesOf.push_back(copyBytes(layer, masks));
      for (const Transition &transition : layer.next)
        if (graph.considered.empty() || graph.considered[static_cast<size_t>(transition.candidate)])
          expand(static_cast<int>(l), transition);
      layerConflictBounds[l].reset();
      transposedNodes.clear();
    }
  }

  double seconds() const { return best; }
  bool isMemoryShort() const { return isShort && !isWorkDone; }
  bool isWorkSpent() const { return isWorkDone; }
  int64_t work() const { return outcomes.work(); }
  /// No plan that was cut is cheaper than this.
  double cutBound() const { return cut; }

  Path bestStates() const {
    std::set<int> nodes;
    for (int edge = cameFrom[static_cast<size_t>(graph.goal)]; edge >= 0;) {
      const int node = graph.edges[static_cast<size_t>(edge)].source;
      nodes.insert(node);
      edge = cameFrom[static_cast<size_t>(node)];
    }
    Path result;
    for (size_t l = 0; l < states.size(); ++l)
      for (const auto &[masks, state] : states[l].all())
        if (nodes.contains(state.node))
          result[static_cast<int>(l)].emplace_back(masks.begin(), masks.end());
    return result;
  }

private:
  /// What falls to one layer.
  int64_t share(int64_t states) const {
    return states / std::max<int64_t>(1, static_cast<int64_t>(lattice.layers().size()));
  }
  bool isFirstPass() const { return path.empty(); }
  const Tensor &tensor(int index) const { return problem.tensors[static_cast<size_t>(index)]; }

  /// From here on each layer keeps its most promising state, and goes on by the best outcome of
  /// every kernel, where memory is short or the work is spent.
  void account(int64_t more) {
    bytes += more;
    if (isShort) return;
    isWorkDone = outcomes.work() > graph.options.searchWork;
    isShort = isWorkDone || bytes + outcomes.bytes() > graph.options.searchBytes / 3;
    if (!isShort) return;
    alternativesHere = beam = 1;
  }

  int addNode(int layer, int transposes) {
    graph.nodes.push_back({.layer = layer, .transposes = transposes});
    cameFrom.push_back(-1);
    account(bytesOfNode);
    return static_cast<int>(graph.nodes.size()) - 1;
  }

  int addEdge(Edge edge) {
    graph.edges.push_back(edge);
    account(bytesOfEdge);
    return static_cast<int>(graph.edges.size()) - 1;
  }

  bool fitsMemory(int64_t bytes) const {
    return !isFirstPass() || !graph.options.maxMemory || bytes <= *graph.options.maxMemory;
  }

  /// Every free argument may come in any of its layouts.
  void openFirstLayer() {
    const Layer &layer = lattice.layers().front();
    std::vector<Masks> starts = {{}};
    for (int index : layer.tracked) {
      std::vector<Masks> longer;
      const std::optional<int> pin = prices.pinned(index);
      for (const Masks &start : starts)
        for (int l = 0; l < static_cast<int>(prices.layouts(index).size()); ++l) {
          if (pin && *pin != l) continue;
          longer.push_back(start);
          longer.back().push_back(LayoutMask(1) << l);
        }
      starts = std::move(longer);
      if (starts.size() > static_cast<size_t>(graph.options.beam)) {
        graph.statistics.beamCut += static_cast<int64_t>(starts.size()) - graph.options.beam;
        cut = std::min(cut, layer.after);
        starts.resize(static_cast<size_t>(graph.options.beam));
      }
    }
    for (const Masks &start : starts) {
      const int node = addNode(0, 0);
      states[0].at(start) = {node, 0};
      addEdge({.source = graph.start, .target = node});
    }
  }

  /// No way from a state to the end takes less.
  double leastAfter(int layer, MaskView masks) const {
    return lagrangianBound.after(layer) + lagrangianBound.of(layer, masks);
  }

  const LayerConflictBound &conflictBoundOf(int layer) {
    std::optional<LayerConflictBound> &one = layerConflictBounds[static_cast<size_t>(layer)];
    if (!one) one = layoutConflicts.of(lattice.layers()[static_cast<size_t>(layer)]);
    return *one;
  }

  /// Drops dominated states and those beyond what the layer may hold; the most promising are kept.
  void prune(int number) {
    struct Ranked {
      double bound, seconds;
      size_t index;
    };
    const Layer &layer = lattice.layers()[static_cast<size_t>(number)];
    States &here = states[static_cast<size_t>(number)];
    std::vector<Ranked> ranked;
    for (const auto &[masks, state] : here.all()) {
      const double claimed = conflictBoundOf(number).of(masks) + layer.after;
      ranked.push_back({state.seconds + std::max(claimed, leastAfter(number, masks)), state.seconds,
                        ranked.size()});
    }
    std::stable_sort(ranked.begin(), ranked.end(),
                     [](const Ranked &a, const Ranked &b) { return a.bound < b.bound; });
    const Dominance dominance(layer, prices);
    struct Kept {
      double seconds;
      MaskView masks;
    };
    std::vector<Kept> kept;
    std::vector<bool> isKept(ranked.size(), false);
    int improving = 0, alternatives = 0;
    for (const Ranked &state : ranked) {
      const MaskView masks = here.all()[state.index].masks;
      const bool isOnPath = isStateOf(path, number, masks);
      const bool mayImprove = !isFirstPass() && state.bound < known * rounding;
      if (!isOnPath && (mayImprove ? improving >= beam : alternatives >= alternativesHere)) {
        ++graph.statistics.beamCut;
        cut = std::min(cut, state.bound);
        continue;
      }
      const bool isRoomy = static_cast<int>(kept.size()) < roomyLayer || graph.options.maxMemory;
      if (!isOnPath && !isRoomy && std::any_of(kept.begin(), kept.end(), [&](const Kept &by) {
            return dominance.reaches(by.masks, masks, state.seconds - by.seconds);
          })) {
        ++graph.statistics.dominated;
        continue;
      }
      kept.push_back({state.seconds, masks});
      isKept[state.index] = true;
      ++(mayImprove ? improving : alternatives);
    }
    here.keep(isKept);
    graph.statistics.peakStates =
        std::max(graph.statistics.peakStates, static_cast<int64_t>(kept.size()));
  }

  /// What one kernel does between two layers.
  struct Context {
    int layer = -1;
    Transition transition;
    std::vector<int> targetFrom =
        {};  ///< per tensor tracked afterwards: its slot before; -1: an output
    std::vector<int> targetOutput = {};  ///< or which output it is
    std::vector<int> inputSlots = {};
    std::vector<bool> matters = {};  ///< per operand: whether its layout is remembered afterwards
  };

  Context contextOf(int number, const Transition &transition) const {
    const Layer &layer = lattice.layers()[static_cast<size_t>(number)];
    const Layer &next = lattice.layers()[static_cast<size_t>(transition.target)];
    const Candidate &candidate = problem.candidates[static_cast<size_t>(transition.candidate)];
    Context context{.layer = number, .transition = transition};
    for (int index : next.tracked) {
      context.targetFrom.push_back(slotIn(layer.tracked, index));
      context.targetOutput.push_back(slotIn(candidate.outputs, index));
    }
    for (int index : candidate.inputs) {
      context.inputSlots.push_back(slotIn(layer.tracked, index));
      context.matters.push_back(slotIn(next.tracked, index) >= 0);
    }
    for (int index : candidate.outputs) context.matters.push_back(slotIn(next.tracked, index) >= 0);
    return context;
  }

  void expand(int number, const Transition &transition) {
    const Context context = contextOf(number, transition);
    const Candidate &candidate = problem.candidates[static_cast<size_t>(transition.candidate)];
    const double after = std::max(lattice.layers()[static_cast<size_t>(transition.target)].after,
                                  lagrangianBound.after(transition.target));
    const double covered = lattice.layers()[static_cast<size_t>(transition.target)].after;
    Masks inputs;
    size_t index = 0;
    for (const auto &[masks, state] : states[static_cast<size_t>(number)].all()) {
      inputs.clear();
      for (size_t i = 0; i < candidate.inputs.size(); ++i)
        inputs.push_back(context.inputSlots[i] < 0
                             ? available(candidate.inputs[i])
                             : masks[static_cast<size_t>(context.inputSlots[i])]);
      Outcomes::Ranked &ranked = outcomes.of(transition.candidate, inputs, context.matters);
      const int64_t bytes = bytesOf[index++];
      for (size_t tried = 0; tried < ranked.all.size(); ++tried) {
        const Outcome &outcome = ranked.all[tried];
        double bound = state.seconds + outcome.seconds + after;
        const bool isAlternative = static_cast<int64_t>(tried) < alternativesHere;
        if (!isAlternative) {  // whether this one or any behind it may improve
          const double least = state.seconds + ranked.leastFrom[tried] + after;
          if (isFirstPass() || !(least < known * rounding)) {
            cut = std::min(cut, least);
            break;
          }
        }
        bool mayImprove = !isFirstPass() && bound < known * rounding;
        if (!isAlternative && !mayImprove) {
          cut = std::min(cut, bound);
          continue;
        }
        const OutcomeSteps &steps = outcomes.stepsOf(ranked, tried, transition.candidate, inputs);
        findTarget(context, masks, steps);
        if (!isAlternative && mayImprove) {
          const double left = std::max(covered + conflictBoundOf(transition.target).of(target),
                                       leastAfter(transition.target, target));
          bound = state.seconds + outcome.seconds + left;
          mayImprove = bound < known * rounding;
        }
        if (!isAlternative && !mayImprove) cut = std::min(cut, bound);
        else connect(context, masks, state, outcome.entry, steps, bytes);
      }
    }
  }

  /// Layouts of a tensor that is not tracked: its only one, or the one a parameter is handed over
  /// in.
  LayoutMask available(int index) const {
    return LayoutMask(1) << prices.pinned(index).value_or(0);
  }

  int64_t copyBytes(const Layer &layer, MaskView masks) const {
    int64_t bytes = layer.untrackedBytes;
    for (size_t i = 0; i < masks.size(); ++i) {
      const int copies = std::popcount(masks[i]) - (lattice.isTemporary(layer.tracked[i]) ? 0 : 1);
      bytes += copies * tensor(layer.tracked[i]).bytes();
    }
    return bytes;
  }

  /// Leaves the layouts that exist after a kernel in `target`.
  void findTarget(const Context &context, MaskView masks, const OutcomeSteps &steps) {
    target.resize(context.targetFrom.size());
    for (size_t i = 0; i < target.size(); ++i)
      target[i] = context.targetOutput[i] >= 0
                      ? LayoutMask(1)
                            << steps.outputLayouts[static_cast<size_t>(context.targetOutput[i])]
                      : masks[static_cast<size_t>(context.targetFrom[i])];
    const Layer &next = lattice.layers()[static_cast<size_t>(context.transition.target)];
    for (const auto &[index, to] : steps.transposes)
      if (const int slot = slotIn(next.tracked, index); slot >= 0)
        target[static_cast<size_t>(slot)] |= LayoutMask(1) << to;
  }

  /// `bytes`: of the state's temporaries. To the layouts in `target`.
  void connect(const Context &context, MaskView masks, const State &state, size_t entry,
               const OutcomeSteps &steps, int64_t bytes) {
    const Layer &layer = lattice.layers()[static_cast<size_t>(context.layer)];
    const Candidate &candidate =
        problem.candidates[static_cast<size_t>(context.transition.candidate)];
    double seconds = state.seconds;
    int node = state.node, made = 0;
    for (const auto &[index, to] : steps.transposes) {
      const int slot = slotIn(layer.tracked, index);
      const LayoutMask present = slot < 0 ? available(index) : masks[static_cast<size_t>(slot)];
      if (!prices.isFreeToPack(index)) bytes += tensor(index).bytes();
      node = transposed(context.layer, node, ++made, {index, to}, present, bytes, seconds);
    }
    for (int index : candidate.outputs)
      if (lattice.isTemporary(index)) bytes += tensor(index).bytes();
    bytes += prices.workspaceBytes(context.transition.candidate, entry);
    if (!fitsMemory(bytes)) return;
    State &reached = states[static_cast<size_t>(context.transition.target)].at(target);
    if (reached.node < 0) reached.node = addNode(context.transition.target, 0);
    const int edge = addEdge({.source = node,
                              .target = reached.node,
                              .seconds = steps.kernelSeconds,
                              .candidate = context.transition.candidate,
                              .entry = entry,
                              .temporaryBytes = bytes});
    if (seconds + steps.kernelSeconds >= reached.seconds) return;
    reached.seconds = seconds + steps.kernelSeconds;
    cameFrom[static_cast<size_t>(reached.node)] = edge;
  }

  /// The node after one more transpose, the `made`-th of its state; transposes of one state that
  /// start alike share nodes.
  int transposed(int layer, int node, int made, std::pair<int, int> transpose, LayoutMask present,
                 int64_t bytes, double &seconds) {
    const auto [index, to] = transpose;
    const auto [from, price] = prices.cheapestTranspose(index, present, to);
    seconds += price;
    const auto [found, isNew] = transposedNodes.try_emplace(Transposed{node, index, to}, -1);
    if (!isNew) return found->second;
    found->second = addNode(layer, made);
    cameFrom[static_cast<size_t>(found->second)] = addEdge({.source = node,
                                                            .target = found->second,
                                                            .seconds = price,
                                                            .tensor = index,
                                                            .from = from,
                                                            .to = to,
                                                            .temporaryBytes = bytes});
    return found->second;
  }

  /// All ops are finished: bring the results into the caller's layouts.
  void close(const Layer &layer, const States &finished) {
    const int number = static_cast<int>(&layer - lattice.layers().data());
    for (const auto &[masks, state] : finished.all()) {
      int node = state.node, made = 0;
      int64_t bytes = copyBytes(layer, masks);
      double seconds = state.seconds;
      for (size_t i = 0; i < masks.size(); ++i) {
        const int index = layer.tracked[i];
        const std::optional<int> pin = prices.pinned(index);
        if (!tensor(index).isResult || !pin || (masks[i] >> *pin & 1)) continue;
        bytes += tensor(index).bytes();
        if (prices.cheapestTranspose(index, masks[i], *pin).first < 0) seconds = infinite;
        else node = transposed(number, node, ++made, {index, *pin}, masks[i], bytes, seconds);
      }
      if (!(seconds < infinite) || !fitsMemory(bytes)) continue;
      const int edge = addEdge({.source = node, .target = graph.goal, .temporaryBytes = bytes});
      if (seconds >= best) continue;
      best = seconds;
      cameFrom[static_cast<size_t>(graph.goal)] = edge;
    }
  }

  Selection::Graph &graph;
  const Problem &problem;
  const Prices &prices;
  const FinishedOpLattice &lattice;
  const LagrangianBound &lagrangianBound;
  Outcomes outcomes;
  LayoutConflictBound layoutConflicts;
  double known, best = infinite, cut = infinite;
  Path path;
  std::vector<States> states;  ///< per layer
  std::vector<std::optional<LayerConflictBound>>
      layerConflictBounds;  ///< per layer, of those that have states
  int64_t alternativesHere =
      0;  ///< states of a layer that are kept though they cannot, and outcomes of a kernel
  int64_t beam = 0;      ///< states of a layer that could better the plan known
  int64_t bytes = 0;     ///< of nodes and edges, and of what shortest paths over them take later
  bool isShort = false;  ///< of memory, or because the work is spent
  bool isWorkDone = false;
  Masks target;                  ///< of the outcome at hand; kept for its memory
  std::vector<int> cameFrom;     ///< per node: the edge of the shortest way to it
  std::vector<int64_t> bytesOf;  ///< per state of the layer that is expanded
  struct Transposed {
    int node, tensor, layout;
    bool operator==(const Transposed &) const = default;
  };
  struct TransposedHash {
    size_t operator()(const Transposed &one) const {
      return (static_cast<size_t>(one.node) * 1000003 + static_cast<size_t>(one.tensor)) *
                 maximumLayouts +
             static_cast<size_t>(one.layout);
    }
  };
  std::unordered_map<Transposed, int, TransposedHash> transposedNodes;  ///< of that layer
};

void count(Selection::Graph &graph, double best, double cut) {
  graph.statistics.states = static_cast<int64_t>(graph.nodes.size());
  graph.statistics.edges = static_cast<int64_t>(graph.edges.size());
  cut = std::max(cut, graph.lagrangianBound->bound());
  if (graph.isExcluded) cut = std::max(graph.lowerBound, graph.excludingBound);
  graph.statistics.isProven = !graph.isExcluded && !(cut < best * rounding);
  graph.statistics.mostGain = graph.statistics.isProven ? 0 : std::max(0.0, 1 - cut / best);
  if (best < infinite) dropDeadEnds(graph);
}

}  // namespace

void openLattice(Selection::Graph &graph) {
  // One that was cut would be cut again: it starts from the candidates kept last time.
  const int64_t most = graph.lattice && graph.lattice->leftOut() > 0
                           ? graph.lattice->kept()
                           : std::numeric_limits<int64_t>::max();
  graph.lattice = std::make_unique<FinishedOpLattice>(graph.problem, *graph.prices,
                                                      graph.options.searchBytes / 3, most);
  graph.lowerBound = graph.lattice->leftOut() > 0 ? graph.lattice->boundOfAll()
                                                  : graph.lattice->layers().front().after;
  if (graph.lattice->leftOut() > 0)
    graph.statistics.searchCuts.push_back(
        fmt::format("{} fused candidates of '{}', those that gain least, were left out",
                    graph.lattice->leftOut(), graph.problem.name));
}

std::vector<bool> candidatesWithin(const Selection::Graph &graph, double slack) {
  const std::vector<Layer> &layers = graph.lattice->layers();
  std::vector<double> before(layers.size(), infinite);
  std::vector<bool> within(graph.problem.candidates.size(), false);
  before.front() = 0;
  const double most = layers.front().after * slack / rounding;
  for (size_t l = 0; l < layers.size(); ++l)
    for (const Transition &transition : layers[l].next) {
      const auto target = static_cast<size_t>(transition.target);
      const double here = before[l] + graph.prices->candidate(transition.candidate).bestSeconds;
      before[target] = std::min(before[target], here);
      if (here + layers[target].after <= most)
        within[static_cast<size_t>(transition.candidate)] = true;
    }
  return within;
}

void openBound(Selection::Graph &graph) {
  graph.lagrangianBound = std::make_unique<LagrangianBound>(
      graph.problem, *graph.prices, *graph.lattice, 2 * graph.options.searchWork);
}

/// What was left out for want of memory or time may be in a faster plan. The bound of the lattice,
/// which has no states, holds all the same; where it lacks candidates it is that of all.
void reportUnproven(Selection::Graph &graph) {
  Statistics &statistics = graph.statistics;
  if (statistics.searchCuts.empty() || !(graph.roughSeconds < infinite)) return;
  statistics.isProven = statistics.isBeyondBest = false;
  statistics.mostGain = std::clamp(1 - graph.lowerBound / graph.roughSeconds, 0.0, 1.0);
}

namespace {

void noteWork(Selection::Graph &graph, const Search &search) {
  graph.statistics.work += search.work();
  if (graph.isExcluded) return;  // what was cut could not better the plan
  if (search.isMemoryShort())
    graph.statistics.searchCuts.push_back(
        fmt::format("the states of '{}' were cut to the most promising", graph.problem.name));
  if (search.isWorkSpent())
    graph.statistics.searchCuts.push_back(
        fmt::format("after {} steps the states of '{}' were cut to the "
                    "most promising, whatever the memory",
                    graph.options.searchWork, graph.problem.name));
}

}  // namespace

void searchRoughly(Selection::Graph &graph) {
  if (!graph.lagrangianBound) openBound(graph);
  if (!graph.isExcluded) graph.lagrangianBound->raise();
  Search search(graph, *graph.lattice, infinite, {}, layerDivisor);
  search.run();
  graph.roughSeconds = search.seconds();
  graph.roughStates = search.bestStates();
  noteWork(graph, search);
  count(graph, search.seconds(), search.cutBound());
}

void raiseBound(Selection::Graph &graph, double rival) {
  Statistics &statistics = graph.statistics;
  if (statistics.isProven || !(graph.roughSeconds < infinite)) return;
  graph.lagrangianBound->raise(std::min(graph.roughSeconds * rounding, rival / rounding));
  const double gain = 1 - graph.lagrangianBound->bound() / graph.roughSeconds;
  statistics.mostGain = std::clamp(gain, 0.0, statistics.mostGain);
  statistics.isProven = !(graph.lagrangianBound->bound() < graph.roughSeconds * rounding);
}

void searchExactly(Selection::Graph &graph, double rival) {
  const bool isProven = graph.statistics.isProven && graph.roughSeconds < infinite;
  const bool isCut = graph.statistics.beamCut + graph.statistics.dominated > 0;
  if (isProven && (graph.roughSeconds > rival || !isCut)) return;
  if (graph.statistics.mostGain < noise && graph.lattice->layers().size() > largeLattice) return;
  if (!graph.statistics.searchCuts.empty() && graph.roughSeconds < infinite)
    return;  // the rough plan is what there is memory and time for
  graph.statistics.beamCut = graph.statistics.dominated = 0;
  if (graph.roughStates.empty())
    graph.roughStates[-1];  // no plan is known: every state may be on the way to one
  const double known = std::min(graph.roughSeconds, rival),
               reach = isProven ? known * (1 + noise) : known;
  Search search(graph, *graph.lattice, reach, std::move(graph.roughStates),
                isProven ? layerDivisorAroundBest : layerDivisor);
  search.run();
  noteWork(graph, search);
  count(graph, search.seconds(), search.cutBound());
  graph.statistics.isBeyondBest =
      !graph.statistics.isProven && !(search.cutBound() < known * rounding);
}

}  // namespace weft::select
