// Builds the selection graph layer by layer. A layer is a set of finished ops; its states are the layouts in which the live
// tensors exist (a mask a tensor: a transposed copy adds a bit).
//
// Order of kernels. Independent kernels must not be permuted, or layers explode. The next kernel contains the lowest
// unfinished op; if that kernel waits for an op outside, the kernels that contain the lowest such op come first. Every
// acyclic partition of the ops has such an order, so no plan is lost.
//
// Transposes. A state that equals another one plus transposes is dominated by it, so transposes are made only where a kernel
// asks for a layout that is not there: at the kernel, from the cheapest copy.
#include "passes/select/Graph.h"

#include "kernel/Error.h"

#include <algorithm>

namespace weft::select {
namespace {

/// Dominated states are kept while a layer has fewer states than this, so that prices of alternatives are exact.
constexpr int roomyLayer = 32;

using Masks = std::vector<LayoutMask>;

struct State {
  int node = -1;
  double seconds = infinite;
};

struct Layer {
  OpSet finished;
  std::vector<int> tracked;        ///< live tensors with a choice of layouts
  int64_t untrackedBytes = 0;      ///< live temporaries without
  double bound = infinite;         ///< cheapest cover of the finished ops, ignoring layouts
  std::map<Masks, State> states;
};

/// One way to run a candidate from given input masks.
struct Outcome {
  double seconds = infinite;        ///< kernel and transposes
  size_t entry = 0;
  std::vector<std::pair<int, int>> transposes;  ///< (tensor, layout) to be made first, ascending
};

class Search {
public:
  explicit Search(Selection::Graph &graph) : graph(graph), problem(graph.problem), prices(*graph.prices) {}

  void run() {
    findDependencies();
    graph.nodes.resize(2);  // start, goal
    openFirstLayer();
    const OpSet all = OpSet::firstOps(static_cast<int>(problem.ops.size()));
    while (!layers.empty()) {
      const auto first = layers.begin();
      Layer layer = std::move(first->second);
      layers.erase(first);
      if (layer.finished == all) {
        close(layer);
        graph.lowerBound = layer.bound;
        continue;
      }
      prune(layer);
      for (int candidate : nextCandidates(layer.finished)) expand(layer, candidate);
    }
    graph.statistics.states = static_cast<int64_t>(graph.nodes.size());
    graph.statistics.edges = static_cast<int64_t>(graph.edges.size());
  }

private:
  void findDependencies() {
    const size_t count = problem.ops.size();
    if (count > OpSet::capacity)
      throw Error::unsupported("'{}' has {} ops; selection takes up to {}", problem.name, count, OpSet::capacity);
    ancestors.resize(count);
    consumers.resize(problem.tensors.size());
    producers.resize(problem.tensors.size(), -1);
    for (size_t op = 0; op < count; ++op) {
      for (int tensor : problem.opInputs[op]) {
        consumers[static_cast<size_t>(tensor)].insert(static_cast<int>(op));
        const int before = producers[static_cast<size_t>(tensor)];
        if (before < 0) continue;
        ancestors[op] = ancestors[op] | ancestors[static_cast<size_t>(before)];
        ancestors[op].insert(before);
      }
      for (int tensor : problem.opOutputs[op]) producers[static_cast<size_t>(tensor)] = static_cast<int>(op);
    }
    for (const Candidate &candidate : problem.candidates) {
      const OpSet own(candidate.ops);
      OpSet needed;
      for (int op : candidate.ops) needed = needed | ancestors[static_cast<size_t>(op)];
      opsOf.push_back(own);
      needs.push_back(needed - own);
    }
    candidatesOf.resize(count);
    for (size_t c = 0; c < problem.candidates.size(); ++c)
      if (prices.isUsable(static_cast<int>(c)))
        for (int op : problem.candidates[c].ops) candidatesOf[static_cast<size_t>(op)].push_back(static_cast<int>(c));
  }

  bool isLive(int tensor, const OpSet &finished) const {
    const Tensor &facts = problem.tensors[static_cast<size_t>(tensor)];
    const int producer = producers[static_cast<size_t>(tensor)];
    if (producer >= 0 ? !finished.contains(producer) : !facts.isArgument) return false;
    return facts.isResult || !finished.containsAll(consumers[static_cast<size_t>(tensor)]);
  }

  bool isTemporary(int tensor) const {
    const Tensor &facts = problem.tensors[static_cast<size_t>(tensor)];
    return !facts.isArgument && !facts.isResult && !prices.isFreeToPack(tensor);
  }

  Layer &layerOf(const OpSet &finished) {
    const auto [found, isNew] = layers.try_emplace({finished.size(), finished});
    Layer &layer = found->second;
    if (!isNew) return layer;
    layer.finished = finished;
    for (int tensor = 0; tensor < static_cast<int>(problem.tensors.size()); ++tensor) {
      if (!isLive(tensor, finished) || prices.isFreeToPack(tensor)) continue;
      if (prices.layouts(tensor).size() > 1) layer.tracked.push_back(tensor);
      else if (isTemporary(tensor)) layer.untrackedBytes += problem.tensors[static_cast<size_t>(tensor)].bytes();
    }
    return layer;
  }

  int addNode(const OpSet &finished, int transposes) {
    graph.nodes.push_back({.finished = finished, .transposes = transposes});
    return static_cast<int>(graph.nodes.size()) - 1;
  }

  /// Every free argument may come in any of its layouts.
  void openFirstLayer() {
    Layer &layer = layerOf({});
    layer.bound = 0;
    std::vector<Masks> starts = {{}};
    for (int tensor : layer.tracked) {
      std::vector<Masks> longer;
      const std::optional<int> pin = prices.pinned(tensor);
      for (const Masks &start : starts)
        for (int l = 0; l < static_cast<int>(prices.layouts(tensor).size()); ++l) {
          if (pin && *pin != l) continue;
          longer.push_back(start);
          longer.back().push_back(LayoutMask(1) << l);
        }
      starts = std::move(longer);
      if (starts.size() > static_cast<size_t>(graph.options.beam)) {
        graph.statistics.beamCut += static_cast<int64_t>(starts.size()) - graph.options.beam;
        starts.resize(static_cast<size_t>(graph.options.beam));
      }
    }
    for (const Masks &start : starts) {
      const int node = addNode({}, 0);
      layer.states[start] = {node, 0};
      graph.edges.push_back({.source = graph.start, .target = node});
    }
  }

  double transposesBetween(const Layer &layer, const Masks &from, const Masks &to) const {
    double sum = 0;
    for (size_t i = 0; i < from.size(); ++i) {
      const LayoutMask missing = to[i] & ~from[i];
      for (int l = 0; missing >> l; ++l)
        if (missing >> l & 1) sum += prices.cheapestTranspose(layer.tracked[i], from[i], l).second;
    }
    return sum;
  }

  /// What the next readers of the live tensors lose at least: states that cost the same so far are told apart by it.
  double regretOf(const Layer &layer, const Masks &masks) const {
    double sum = 0;
    for (size_t i = 0; i < masks.size(); ++i) {
      double least = infinite;
      for (int l = 0; masks[i] >> l; ++l)
        if (masks[i] >> l & 1) least = std::min(least, prices.regret(layer.tracked[i], l));
      sum += least;
    }
    return sum;
  }

  /// Drops dominated states and those beyond the beam; the most promising are kept.
  void prune(Layer &layer) {
    std::vector<std::pair<double, const Masks *>> ranked;
    for (const auto &[masks, state] : layer.states) ranked.emplace_back(state.seconds + regretOf(layer, masks), &masks);
    std::stable_sort(ranked.begin(), ranked.end(), [](const auto &a, const auto &b) { return a.first < b.first; });
    for (auto &[seconds, masks] : ranked) seconds = layer.states.at(*masks).seconds;
    std::vector<std::pair<double, const Masks *>> kept;
    std::vector<Masks> dropped;
    for (const auto &[seconds, masks] : ranked) {
      if (static_cast<int>(kept.size()) >= graph.options.beam) {
        ++graph.statistics.beamCut;
        dropped.push_back(*masks);
        continue;
      }
      const bool isDominated = std::any_of(kept.begin(), kept.end(), [&, seconds = seconds, masks = masks](const auto &other) {
        return other.first + transposesBetween(layer, *other.second, *masks) <= seconds;
      });
      if (isDominated && static_cast<int>(kept.size()) >= roomyLayer) {
        ++graph.statistics.dominated;
        dropped.push_back(*masks);
      } else {
        kept.emplace_back(seconds, masks);
      }
    }
    for (const Masks &masks : dropped) layer.states.erase(masks);

  }

  /// Candidates that may come next (see the head of the file).
  std::vector<int> nextCandidates(const OpSet &finished) const {
    std::set<int> next;
    const OpSet unfinished = OpSet::firstOps(static_cast<int>(problem.ops.size())) - finished;
    collect(finished, unfinished.lowest(), {}, next);
    return {next.begin(), next.end()};
  }

  /// Candidates with `op` outside `reserved`: those that are ready, else what they wait for.
  void collect(const OpSet &finished, int op, const OpSet &reserved, std::set<int> &next) const {
    if (reserved.contains(op)) return;  // waits for itself: not convex
    for (int candidate : candidatesOf[static_cast<size_t>(op)]) {
      const OpSet &own = opsOf[static_cast<size_t>(candidate)];
      if (own.intersects(finished) || own.intersects(reserved)) continue;
      const OpSet missing = needs[static_cast<size_t>(candidate)] - finished;
      if (missing.isEmpty()) next.insert(candidate);
      else collect(finished, missing.lowest(), reserved | own, next);
    }
  }

  struct CandidateContext {
    int candidate;
    std::vector<int> slot;         ///< per input: position among the layer's tracked tensors; -1: not tracked
    std::vector<int> outputSlot;   ///< per output: position among the next layer's tracked tensors; -1: not tracked
    std::vector<bool> staysLive;   ///< per input: tracked in the next layer
  };

  void expand(const Layer &layer, int index) {
    const Candidate &candidate = problem.candidates[static_cast<size_t>(index)];
    Layer &next = layerOf(layer.finished | opsOf[static_cast<size_t>(index)]);
    next.bound = std::min(next.bound, layer.bound + prices.candidate(index).bestSeconds);
    const auto slotIn = [](const std::vector<int> &tracked, int tensor) {
      const auto found = std::find(tracked.begin(), tracked.end(), tensor);
      return found == tracked.end() ? -1 : static_cast<int>(found - tracked.begin());
    };
    CandidateContext context{.candidate = index, .slot = {}, .outputSlot = {}, .staysLive = {}};
    for (int tensor : candidate.inputs) {
      context.slot.push_back(slotIn(layer.tracked, tensor));
      context.staysLive.push_back(slotIn(next.tracked, tensor) >= 0);
    }
    for (int tensor : candidate.outputs) context.outputSlot.push_back(slotIn(next.tracked, tensor));
    std::map<Masks, std::vector<Outcome>> outcomesOf;  // by masks of the inputs
    for (const auto &[masks, state] : layer.states) {
      Masks inputs;
      for (size_t i = 0; i < candidate.inputs.size(); ++i)
        inputs.push_back(context.slot[i] < 0 ? available(candidate.inputs[i]) : masks[static_cast<size_t>(context.slot[i])]);
      const auto [found, isNew] = outcomesOf.try_emplace(inputs);
      if (isNew) found->second = outcomes(context, inputs);
      for (const Outcome &outcome : found->second) connect(layer, masks, state, context, outcome, next);
    }
  }

  /// Layouts of a tensor that is not tracked: its only one, or the one a parameter is handed over in.
  LayoutMask available(int tensor) const { return LayoutMask(1) << prices.pinned(tensor).value_or(0); }

  /// The cheapest way for every combination of output layouts and of copies that outlive the kernel.
  std::vector<Outcome> outcomes(const CandidateContext &context, const Masks &inputs) const {
    const CandidatePrices &table = prices.candidate(context.candidate);
    const std::vector<int> &tensors = problem.candidates[static_cast<size_t>(context.candidate)].inputs;
    std::vector<std::vector<double>> penalty(tensors.size());
    for (size_t i = 0; i < tensors.size(); ++i)
      for (int l : table.choices[i])
        penalty[i].push_back(inputs[i] >> l & 1 ? 0 : prices.cheapestTranspose(tensors[i], inputs[i], l).second);
    std::map<std::vector<int>, Outcome> best;
    std::vector<int> key;
    for (size_t entry = 0; entry < table.table.size(); ++entry) {
      double seconds = table.table[entry].seconds;
      if (!(seconds < infinite)) continue;
      const std::vector<int> choice = table.choiceOf(entry);
      key.clear();
      for (size_t i = 0; i < tensors.size(); ++i) {
        seconds += penalty[i][static_cast<size_t>(choice[i])];
        const int layout = table.choices[i][static_cast<size_t>(choice[i])];
        key.push_back(context.staysLive[i] && !(inputs[i] >> layout & 1) ? layout : -1);
      }
      for (size_t o = 0; o < context.outputSlot.size(); ++o)
        key.push_back(context.outputSlot[o] < 0 ? -1 : choice[tensors.size() + o]);
      if (!(seconds < infinite)) continue;
      Outcome &outcome = best[key];
      if (seconds < outcome.seconds) outcome = {.seconds = seconds, .entry = entry, .transposes = {}};
    }
    std::vector<Outcome> result;
    for (auto &[ignored, outcome] : best) {
      outcome.transposes = missingLayouts(context, inputs, outcome.entry);
      result.push_back(std::move(outcome));
    }
    return result;
  }

  std::vector<std::pair<int, int>> missingLayouts(const CandidateContext &context, const Masks &inputs, size_t entry) const {
    const CandidatePrices &table = prices.candidate(context.candidate);
    const std::vector<int> &tensors = problem.candidates[static_cast<size_t>(context.candidate)].inputs;
    const std::vector<int> choice = table.choiceOf(entry);
    std::set<std::pair<int, int>> missing;
    for (size_t i = 0; i < tensors.size(); ++i) {
      const int layout = table.choices[i][static_cast<size_t>(choice[i])];
      if (!(inputs[i] >> layout & 1)) missing.insert({tensors[i], layout});
    }
    return {missing.begin(), missing.end()};
  }

  int64_t copyBytes(const Layer &layer, const Masks &masks) const {
    int64_t bytes = layer.untrackedBytes;
    for (size_t i = 0; i < masks.size(); ++i) {
      const int copies = std::popcount(masks[i]) - (isTemporary(layer.tracked[i]) ? 0 : 1);
      bytes += copies * problem.tensors[static_cast<size_t>(layer.tracked[i])].bytes();
    }
    return bytes;
  }

  void connect(const Layer &layer, const Masks &masks, const State &state, const CandidateContext &context,
               const Outcome &outcome, Layer &next) {
    const Candidate &candidate = problem.candidates[static_cast<size_t>(context.candidate)];
    int64_t bytes = copyBytes(layer, masks);
    Masks extended = masks;
    double seconds = state.seconds;
    int node = state.node;
    std::vector<std::pair<int, int>> made;
    for (const auto &[tensor, to] : outcome.transposes) {
      const auto slot = std::find(layer.tracked.begin(), layer.tracked.end(), tensor);
      const LayoutMask present = slot == layer.tracked.end() ? available(tensor) : masks[static_cast<size_t>(slot - layer.tracked.begin())];
      if (!prices.isFreeToPack(tensor)) bytes += problem.tensors[static_cast<size_t>(tensor)].bytes();
      if (slot != layer.tracked.end()) extended[static_cast<size_t>(slot - layer.tracked.begin())] |= LayoutMask(1) << to;
      node = transposed(layer, state.node, node, made, {tensor, to}, present, bytes, seconds);
    }
    for (int tensor : candidate.outputs)
      if (isTemporary(tensor)) bytes += problem.tensors[static_cast<size_t>(tensor)].bytes();
    const CandidatePrices &table = prices.candidate(context.candidate);
    const std::vector<int> choice = table.choiceOf(outcome.entry);
    Masks target;
    for (int tensor : next.tracked) {
      const auto slot = std::find(layer.tracked.begin(), layer.tracked.end(), tensor);
      const auto output = std::find(candidate.outputs.begin(), candidate.outputs.end(), tensor);
      if (output != candidate.outputs.end()) {
        const auto operand = candidate.inputs.size() + static_cast<size_t>(output - candidate.outputs.begin());
        target.push_back(LayoutMask(1) << table.choices[operand][static_cast<size_t>(choice[operand])]);
      } else {
        target.push_back(extended[static_cast<size_t>(slot - layer.tracked.begin())]);
      }
    }
    const double kernelSeconds = table.table[outcome.entry].seconds;
    State &reached = next.states[target];
    if (reached.node < 0) reached.node = addNode(next.finished, 0);
    reached.seconds = std::min(reached.seconds, seconds + kernelSeconds);
    graph.edges.push_back({.source = node, .target = reached.node, .seconds = kernelSeconds, .candidate = context.candidate,
                           .entry = outcome.entry, .temporaryBytes = bytes});
  }

  /// The node after one more transpose; transposes of one state that start alike share nodes.
  int transposed(const Layer &layer, int stateNode, int node, std::vector<std::pair<int, int>> &made,
                 std::pair<int, int> transpose, LayoutMask present, int64_t bytes, double &seconds) {
    const auto [tensor, to] = transpose;
    const auto [from, price] = prices.cheapestTranspose(tensor, present, to);
    seconds += price;
    made.push_back(transpose);
    const auto [found, isNew] = transposedNodes.try_emplace({stateNode, made}, -1);
    if (!isNew) return found->second;
    found->second = addNode(layer.finished, static_cast<int>(made.size()));
    graph.edges.push_back({.source = node, .target = found->second, .seconds = price, .tensor = tensor, .from = from, .to = to,
                           .temporaryBytes = bytes});
    return found->second;
  }

  /// All ops are finished: bring the results into the caller's layouts.
  void close(const Layer &layer) {
    for (const auto &[masks, state] : layer.states) {
      int node = state.node;
      int64_t bytes = copyBytes(layer, masks);
      double seconds = 0;
      std::vector<std::pair<int, int>> made;
      for (size_t i = 0; i < masks.size(); ++i) {
        const int tensor = layer.tracked[i];
        const std::optional<int> pin = prices.pinned(tensor);
        if (!problem.tensors[static_cast<size_t>(tensor)].isResult || !pin || (masks[i] >> *pin & 1)) continue;
        bytes += problem.tensors[static_cast<size_t>(tensor)].bytes();
        node = transposed(layer, state.node, node, made, {tensor, *pin}, masks[i], bytes, seconds);
      }
      graph.edges.push_back({.source = node, .target = graph.goal, .temporaryBytes = bytes});
    }
  }

  Selection::Graph &graph;
  const Problem &problem;
  const Prices &prices;
  std::vector<OpSet> ancestors, consumers, opsOf, needs;
  std::vector<int> producers;
  std::vector<std::vector<int>> candidatesOf;
  std::map<std::pair<int, OpSet>, Layer> layers;  ///< not yet expanded, fewest finished ops first
  std::map<std::pair<int, std::vector<std::pair<int, int>>>, int> transposedNodes;
};

}  // namespace

void search(Selection::Graph &graph) { Search(graph).run(); }

}  // namespace weft::select
