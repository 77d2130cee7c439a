// select() and the questions that the solved graph answers without a new search.
#include "passes/select/Selection.h"

#include "kernel/Error.h"
#include "passes/select/Graph.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <exception>
#include <thread>

namespace weft::select {

int64_t Tensor::elements() const {
  int64_t product = 1;
  for (const Axis &axis : axes) product *= axis.extent;
  return product;
}

int64_t Tensor::bytes() const { return elements() * sizeOf(dtype); }

std::vector<int64_t> Tensor::extents() const {
  std::vector<int64_t> extents;
  for (const Axis &axis : axes) extents.push_back(axis.extent);
  return extents;
}

Selection::Selection() : graph(std::make_unique<Graph>()) {}
Selection::Selection(Selection &&) noexcept = default;
Selection &Selection::operator=(Selection &&) noexcept = default;
Selection::~Selection() = default;

const Problem &Selection::problem() const { return graph->problem; }
const SelectionResult &Selection::best() const { return graph->best; }
const Statistics &Selection::statistics() const { return graph->statistics; }
int64_t Selection::leastLiveBytes() const {
  return graph->lattice ? graph->lattice->leastTemporaryBytes(false) : 0;
}
int64_t Selection::leastStoredBytes() const {
  return graph->lattice ? graph->lattice->leastTemporaryBytes(true) : 0;
}

namespace {

/// Finds the bound of kernels alone; there are no tables yet.
Selection open(Problem problem, const CostModel &model, const Options &options,
               SharedSpaces &shared) {
  Selection selection;
  Selection::Graph &graph = *selection.graph;
  graph.problem = std::move(problem);
  graph.options = options;
  graph.model = &model;
  graph.prices =
      std::make_unique<Prices>(graph.problem, model, graph.options, graph.statistics, shared);
  openLattice(graph);
  return selection;
}

/// A tensor that has more layouts than are kept keeps those first that kernels of plans near the
/// bound want: others, e.g. of stored scores beside a fused attention, would crowd them out.
constexpr double nearBound = 1.1;
void keepNearBound(Selection::Graph &graph) {
  graph.prices->keepLayoutsFirst(candidatesWithin(graph, nearBound));
}

void openTables(Selection::Graph &graph) {
  keepNearBound(graph);
  const bool isOpenedAgain = graph.lattice->leftOut() > 0;  // for what tables say of single ops
  if (isOpenedAgain) graph.statistics.searchCuts.clear();
  graph.prices->buildTables();
  if (isOpenedAgain) openLattice(graph);
}

void searchOnce(Selection::Graph &graph) {
  searchRoughly(graph);
  if (graph.roughSeconds < infinite || !graph.prices->admitModelledTransposes()) return;
  openLattice(graph);
  graph.lagrangianBound.reset();
  searchRoughly(graph);
}

/// `rival`: seconds of the best plan known of any variant.
void finishOnce(Selection::Graph &graph, double rival) {
  if (!graph.isExcluded) raiseBound(graph, rival);
  const bool isBeyond =
      graph.roughSeconds < infinite &&
      (graph.isExcluded || graph.roughSeconds * (1 - graph.statistics.mostGain) > rival);
  graph.statistics.isBeyondBest = isBeyond && !graph.statistics.isProven;
  if (!isBeyond) searchExactly(graph, rival);
  reportUnproven(graph);
  graph.lagrangianBound.reset();  // takes as much as the tables, and answers no questions
  solve(graph);
  addRunnersUp(graph);
}

Selection solveOnce(Problem problem, const CostModel &model, const Options &options,
                    SharedSpaces &shared) {
  Selection selection = open(std::move(problem), model, options, shared);
  openTables(*selection.graph);
  searchOnce(*selection.graph);
  finishOnce(*selection.graph, infinite);
  return selection;
}

class Stopwatch {
public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

private:
  std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
};

/// Calls `work` for 0 to count - 1 on all processors; throws what the lowest of them threw.
void forEachInParallel(size_t count, const std::function<void(size_t)> &work) {
  std::vector<std::exception_ptr> failures(count);
  std::atomic<size_t> next = 0;
  const auto worker = [&] {
    for (size_t index = next++; index < count; index = next++) {
      try {
        work(index);
      } catch (...) {
        failures[index] = std::current_exception();
      }
    }
  };
  std::vector<std::jthread> threads;
  for (size_t t = 1; t < std::min<size_t>(count, std::max(1u, std::thread::hardware_concurrency()));
       ++t)
    threads.emplace_back(worker);
  worker();
  threads.clear();
  for (const std::exception_ptr &failure : failures)
    if (failure) std::rethrow_exception(failure);
}

/// Whether nothing fixes the layout of a tensor beforehand.
bool isFree(const Tensor &tensor, const Options &options) {
  return !tensor.pinned && (options.free || !(tensor.isArgument || tensor.isResult));
}

bool hasFreeTies(const Problem &problem, const Options &options) {
  return std::any_of(problem.tiedTensors.begin(), problem.tiedTensors.end(), [&](const auto &tie) {
    return isFree(problem.tensors[static_cast<size_t>(tie.first)], options) &&
           isFree(problem.tensors[static_cast<size_t>(tie.second)], options);
  });
}

/// Tied tensors that nothing pins: every layout of the pair is pinned in turn, and the best wins.
Selection solveTied(const Problem &problem, const CostModel &model, const Options &options,
                    SharedSpaces &shared) {
  for (const auto &[a, b] : problem.tiedTensors) {
    const Tensor &tensor = problem.tensors[static_cast<size_t>(a)];
    if (!isFree(tensor, options) || !isFree(problem.tensors[static_cast<size_t>(b)], options))
      continue;
    std::optional<Selection> best;
    std::optional<Error> failure;
    double lowerBound = infinite;  // over all layouts, not of the best one alone
    for (const Layout &layout : distinctLayouts(tensor.extents())) {
      Problem pinned = problem;
      pinned.tensors[static_cast<size_t>(a)].pinned =
          pinned.tensors[static_cast<size_t>(b)].pinned = layout;
      try {
        Selection selection = solveTied(pinned, model, options, shared);
        lowerBound = std::min(lowerBound, selection.best().lowerBound);
        if (!best || selection.best().seconds < best->best().seconds)
          best.emplace(std::move(selection));
      } catch (const Error &error) {
        if (error.kind != ErrorKind::unsupported) throw;
        failure.emplace(error);
      }
    }
    if (!best) throw *failure;
    best->graph->lowerBound = best->graph->best.lowerBound = lowerBound;
    return std::move(*best);
  }
  return solveOnce(problem, model, options, shared);
}

/// Position of a tensor among the operands of every candidate that decides its layout: the
/// producers, or for arguments and parameters the consumers; -1 elsewhere.
std::vector<int> decidingOperand(const Selection::Graph &graph, int tensor) {
  const Tensor &facts = graph.problem.tensors[static_cast<size_t>(tensor)];
  const bool byConsumers = facts.isArgument || graph.prices->isFreeToPack(tensor);
  std::vector<int> positions;
  for (const Candidate &candidate : graph.problem.candidates) {
    const auto &tensors = byConsumers ? candidate.inputs : candidate.outputs;
    const auto found = std::find(tensors.begin(), tensors.end(), tensor);
    const auto first = byConsumers ? 0 : candidate.inputs.size();
    positions.push_back(
        found == tensors.end()
            ? -1
            : static_cast<int>(first + static_cast<size_t>(found - tensors.begin())));
  }
  return positions;
}

}  // namespace

namespace {

Selection selectTimed(const Problem &problem, const CostModel &model, const Options &options,
                      SharedSpaces &shared) {
  const Stopwatch stopwatch;
  Selection selection = solveTied(problem, model, options, shared);
  selection.graph->statistics.seconds = stopwatch.seconds();
  return selection;
}

}  // namespace

Selection select(Problem problem, const CostModel &model, const Options &options) {
  SharedSpaces shared(model);
  return selectTimed(problem, model, options, shared);
}

namespace {

/// Runs the work of every variant that has no reason yet; an Error(unsupported) becomes the
/// variant's reason, and so does an Error(strictMiss): what lacks a measurement is not chosen, as
/// long as another variant lacks none.
void forEachSolvable(std::vector<std::string> &reasons, std::atomic<bool> &isAnyMiss,
                     const std::function<void(size_t)> &work) {
  forEachInParallel(reasons.size(), [&](size_t v) {
    if (!reasons[v].empty()) return;
    try {
      work(v);
    } catch (const Error &error) {
      if (error.kind != ErrorKind::unsupported && error.kind != ErrorKind::strictMiss) throw;
      if (error.kind == ErrorKind::strictMiss) isAnyMiss = true;
      reasons[v] = error.what();
    }
  });
}

void requireOne(const std::vector<std::string> &reasons, bool isAnyMiss) {
  if (reasons.empty() || std::any_of(reasons.begin(), reasons.end(),
                                     [](const std::string &reason) { return reason.empty(); }))
    return;
  const std::set<std::string> distinct(reasons.begin(), reasons.end());
  std::string text;
  for (const std::string &reason : distinct) text += (text.empty() ? "" : "\n  ") + reason;
  if (isAnyMiss) throw Error::strictMiss("{}", text);
  throw Error::unsupported("{}", text);
}

/// Whether the bound of a variant that has tables excludes a plan in at most `slowest` seconds.
bool isSlowerThan(Selection::Graph &graph, double slowest) {
  if (!(slowest < infinite) || graph.statistics.prunedTransposes > 0 ||
      !graph.statistics.searchCuts.empty())
    return false;  // there may be plans beyond the bound
  if (!graph.lagrangianBound) openBound(graph);
  graph.lagrangianBound->raise(slowest / rounding);
  return graph.lagrangianBound->bound() > slowest;
}

/// The least that plans of a variant take among the layouts that it keeps, raised by so many steps
/// towards `slowest` seconds. What limits of the search left out of its tables may take less, and
/// no search of it finds that either. Zero where no bound holds for what the search may admit.
double boundAmongKept(Selection::Graph &graph, double slowest, int steps) {
  if (graph.statistics.prunedTransposes > 0) return 0;  // they are admitted where no plan is found
  if (!graph.lagrangianBound) openBound(graph);
  graph.lagrangianBound->raise(slowest / rounding, steps);
  return graph.lagrangianBound->bound();
}

/// Whether that is above `slowest` seconds.
bool isExcludedBy(Selection::Graph &graph, double slowest) {
  return slowest < infinite && boundAmongKept(graph, slowest, LagrangianBound::mostSteps) > slowest;
}

/// What the search of a variant that is excluded may take, as a part of what others may.
constexpr int64_t excludedPart = 16;

/// Marks the open variants that no plan of theirs makes faster than `rival` seconds, and gives
/// what they need not of the memory to the others.
void excludeSlower(const std::vector<Selection::Graph *> &open, double rival) {
  constexpr int64_t unlimited = int64_t(1) << 50;
  std::vector<Selection::Graph *> others;
  int64_t freed = 0;
  for (Selection::Graph *graph : open) {
    graph->isExcluded = graph->lowerBound * rounding > rival;
    if (!graph->isExcluded) {
      others.push_back(graph);
      continue;
    }
    const int64_t half = std::min(graph->options.searchBytes, unlimited) / 2;
    freed += half;
    graph->options.searchBytes -= half;
    graph->options.searchWork /= excludedPart;
  }
  for (Selection::Graph *graph : others)
    if (graph->options.searchBytes < unlimited)
      graph->options.searchBytes += freed / std::ssize(others);
}

/// What an excluded variant's plan about takes: among the kernels of plans that take at most so
/// many times its bound if layouts are free. False if these alone make no plan.
constexpr double excludedSlack = 1.005;
bool searchNearBound(Selection::Graph &graph) {
  graph.considered = candidatesWithin(graph, excludedSlack);
  if (!graph.prices->hasTables()) {
    keepNearBound(graph);
    graph.prices->buildTablesOf(graph.considered);
  }
  searchRoughly(graph);
  graph.lagrangianBound.reset();
  if (graph.roughSeconds < infinite) return true;
  graph.considered.clear();
  return false;
}

/// The first pass of a variant that has a bound: of one that this excludes, or its Lagrangian bound
/// does, only what its plan about takes. `rival`: seconds of a plan that another has.
void searchBeside(Selection::Graph &graph, double rival, SharedSpaces &shared) {
  if (graph.isExcluded) {
    if (searchNearBound(graph)) return;
    graph.statistics = {};
    graph.prices = std::make_unique<Prices>(graph.problem, *graph.model, graph.options,
                                            graph.statistics, shared);
    openLattice(graph);
  }
  if (!graph.prices->hasTables()) openTables(graph);
  if (!graph.isExcluded && isExcludedBy(graph, rival)) {
    graph.isExcluded = true;
    graph.excludingBound = graph.lagrangianBound->bound();
    if (searchNearBound(graph)) return;
    graph.isExcluded = false;
  }
  searchOnce(graph);
}

/// Seconds of the slowest of the variant's plans that are compared, if it has that many.
double slowestOf(const Selection &selection, const Compared &compared) {
  const double limit = selection.best().seconds * (1 + compared.within);
  const auto last = static_cast<size_t>(compared.plans) - 1;
  const std::vector<SelectionResult> plans =
      compared.within > 0
          ? selection.kBest(2 * compared.plans)
          : std::vector<SelectionResult>();  // some may be one plan in another order
  return plans.size() <= last ? limit : std::min(limit, plans[last].seconds);
}

/// Solves the variant that is fastest without pins, and skips those that are slower without than
/// its plans with them. Returns the seconds of these, infinite where nothing is known without pins.
double skipSlower(const std::vector<VariantProblem> &variants, const CostModel &model,
                  SharedSpaces &shared, const Compared &compared,
                  std::vector<Selection> &selections, VariantSelections &result) {
  const auto fastest = std::ranges::min_element(variants, {}, &VariantProblem::withoutPins);
  if (fastest == variants.end() || fastest->withoutPins <= 0) return infinite;
  const auto first = static_cast<size_t>(fastest - variants.begin());
  try {
    selections[first] = selectTimed(fastest->problem, model, fastest->options, shared);
  } catch (const Error &error) {
    if (error.kind != ErrorKind::unsupported && error.kind != ErrorKind::strictMiss) throw;
    result.reasons[first] = error.what();
    return infinite;
  }
  const double slowest = slowestOf(selections[first], compared);
  for (size_t v = 0; v < variants.size(); ++v) {
    result.skipped[v] = v != first && variants[v].withoutPins > slowest;
    if (result.skipped[v]) result.reasons[v] = "its best plan without pins is slower";
  }
  return slowest;
}

}  // namespace

namespace {

/// With the candidates alone that some plan has which takes at most `slack` times the lower bound,
/// if layouts are free.
Problem onlyWithin(const Selection::Graph &graph, double slack) {
  const std::vector<bool> isWithin = candidatesWithin(graph, slack);
  Problem result = graph.problem;
  result.candidates.clear();
  for (size_t c = 0; c < isWithin.size(); ++c)
    if (isWithin[c]) result.candidates.push_back(graph.problem.candidates[c]);
  return result;
}

/// Seconds of a plan of the problem; infinite where the first pass finds none.
double secondsOfSome(Problem problem, SharedSpaces &shared, const Options &options) {
  try {
    Selection selection = open(std::move(problem), shared.costModel(), options, shared);
    openTables(*selection.graph);
    searchOnce(*selection.graph);
    return selection.graph->roughSeconds;
  } catch (const Error &error) {
    if (error.kind != ErrorKind::unsupported) throw;
    return infinite;
  }
}

}  // namespace

Selection selectAmongAlternatives(const Problem &problem, SharedSpaces &shared,
                                  const Options &options) {
  const Stopwatch stopwatch;
  constexpr std::array slacks = {1.005, 1.03, 1.2};
  const Selection all = open(problem, shared.costModel(), options, shared);
  double seconds = infinite;
  if (all.graph->lowerBound < infinite && all.graph->lattice->leftOut() == 0)
    for (const double slack : slacks)
      if (!(seconds < infinite))
        seconds = secondsOfSome(onlyWithin(*all.graph, slack), shared, options);
  Selection selection = solveOnce(
      seconds < infinite ? onlyWithin(*all.graph, seconds / all.graph->lowerBound) : problem,
      shared.costModel(), options, shared);
  selection.graph->statistics.seconds = stopwatch.seconds();
  return selection;
}

double lowerBoundOf(const Problem &problem, SharedSpaces &shared, const Options &options) {
  return open(problem, shared.costModel(), options, shared).graph->lowerBound;
}

VariantSelections selectVariants(std::vector<VariantProblem> variants, const CostModel &model,
                                 const Compared &compared) {
  SharedSpaces shared(model);
  return selectVariants(std::move(variants), shared, compared);
}

namespace {

/// First passes of those variants that are not excluded, in the order of their bounds with layouts,
/// a few at once, until the bounds of all others exclude them. Lowers `fastest` to the best plan.
void searchByBound(std::vector<Selection> &selections, std::vector<char> &isSearched,
                   const Compared &compared, std::vector<std::string> &reasons,
                   std::atomic<bool> &isAnyMiss, double &fastest) {
  constexpr size_t atOnce = 4;  // whatever the processors: what is excluded must not depend on them
  constexpr int fewSteps = 16;  // that tell which bounds are low, not where they end
  std::vector<double> bounds(selections.size(), 0);
  const auto rival = [&] { return fastest * (1 + compared.within); };
  const auto isLeft = [&](size_t v) {
    return reasons[v].empty() && !isSearched[v] && selections[v].graph->bestPath.empty() &&
           !selections[v].graph->isExcluded && bounds[v] <= rival();
  };
  const auto forEachOf = [&](const std::vector<char> &chosen, const auto &work) {
    forEachSolvable(reasons, isAnyMiss, [&](size_t v) {
      if (!chosen[v]) return;
      const Stopwatch stopwatch;
      work(v, *selections[v].graph);
      selections[v].graph->statistics.seconds += stopwatch.seconds();
    });
  };
  const auto raiseAll = [&](int steps) {
    std::vector<char> left;
    for (size_t v = 0; v < selections.size(); ++v) left.push_back(isLeft(v));
    forEachOf(left, [&](size_t v, Selection::Graph &graph) {
      if (!graph.prices->hasTables()) openTables(graph);
      bounds[v] = boundAmongKept(graph, rival(), steps);
    });
  };
  for (raiseAll(fewSteps);; raiseAll(LagrangianBound::mostSteps)) {
    std::vector<std::pair<double, size_t>> next;
    for (size_t v = 0; v < selections.size(); ++v)
      if (isLeft(v)) next.emplace_back(bounds[v], v);
    if (next.empty()) return;
    std::ranges::sort(next);
    next.resize(std::min(next.size(), atOnce));
    std::vector<char> isNext(selections.size(), false);
    for (const auto &[bound, v] : next) isNext[v] = isSearched[v] = true;
    forEachOf(isNext, [](size_t, Selection::Graph &graph) { searchOnce(graph); });
    for (const auto &[bound, v] : next)
      if (reasons[v].empty()) fastest = std::min(fastest, selections[v].graph->roughSeconds);
  }
}

}  // namespace

VariantSelections selectVariants(std::vector<VariantProblem> variants, SharedSpaces &shared,
                                 const Compared &compared) {
  const CostModel &model = shared.costModel();
  shared.limitTables();
  const Stopwatch whole;
  VariantSelections result{.solved = {},
                           .reasons = std::vector<std::string>(variants.size()),
                           .skipped = std::vector<bool>(variants.size(), false),
                           .lowerBound = infinite};
  std::vector<Selection> selections(variants.size());
  const double slowest = skipSlower(variants, model, shared, compared, selections, result);
  // First every variant's rough plan, then every exact one: what is skipped must not depend on
  // which thread was faster.
  std::atomic<bool> isAnyMiss = false;
  std::vector<char> isSlower(
      variants.size(), false);  // each by one thread, which bits of a vector<bool> do not allow
  const auto isOpen = [&](size_t v) {
    return result.reasons[v].empty() && selections[v].graph->bestPath.empty();
  };
  forEachSolvable(result.reasons, isAnyMiss, [&](size_t v) {
    if (!isOpen(v)) return;
    const Stopwatch stopwatch;
    if (hasFreeTies(variants[v].problem, variants[v].options))
      selections[v] = solveTied(variants[v].problem, model, variants[v].options, shared);
    else selections[v] = open(std::move(variants[v].problem), model, variants[v].options, shared);
    Selection::Graph &graph = *selections[v].graph;
    if (isOpen(v) && (slowest < infinite || !(graph.lowerBound < infinite)))
      openTables(graph);  // says of which op no kernel is known
    if (isOpen(v) && isSlowerThan(graph, slowest)) {
      isSlower[v] = true;
      result.reasons[v] = "none of its plans is as fast as those of another variant";
    }
    graph.statistics.seconds = stopwatch.seconds();
  });
  // The variant of the least bound first, until one has a plan: it excludes most others.
  std::vector<char> isSearched(variants.size(), false);
  double fastest = infinite;
  for (size_t v = 0; v < variants.size(); ++v)
    if (result.reasons[v].empty() && !isOpen(v))
      fastest = std::min(fastest, selections[v].graph->best.seconds);
  while (!(fastest < infinite)) {
    std::optional<size_t> first;
    for (size_t v = 0; v < variants.size(); ++v)
      if (isOpen(v) && !isSearched[v] &&
          (!first || selections[v].graph->lowerBound < selections[*first].graph->lowerBound))
        first = v;
    if (!first) break;
    isSearched[*first] = true;
    forEachSolvable(result.reasons, isAnyMiss, [&](size_t v) {
      if (v != *first) return;
      const Stopwatch stopwatch;
      Selection::Graph &graph = *selections[v].graph;
      if (!graph.prices->hasTables()) openTables(graph);
      searchOnce(graph);
      graph.statistics.seconds += stopwatch.seconds();
      fastest = graph.roughSeconds;
    });
  }
  std::vector<Selection::Graph *> unsearched;
  for (size_t v = 0; v < variants.size(); ++v)
    if (isOpen(v) && !isSearched[v]) unsearched.push_back(selections[v].graph.get());
  if (!compared.ofAll) {
    excludeSlower(unsearched, fastest * (1 + compared.within));
    searchByBound(selections, isSearched, compared, result.reasons, isAnyMiss, fastest);
  }
  const double rival = fastest * (1 + compared.within);
  forEachSolvable(result.reasons, isAnyMiss, [&](size_t v) {
    if (!isOpen(v) || isSearched[v]) return;
    const Stopwatch stopwatch;
    Selection::Graph &graph = *selections[v].graph;
    const double seconds = graph.statistics.seconds;
    searchBeside(graph, compared.ofAll ? infinite : rival, shared);
    graph.statistics.seconds = seconds + stopwatch.seconds();
  });
  for (size_t v = 0; v < variants.size(); ++v) result.skipped[v] = result.skipped[v] || isSlower[v];
  for (size_t v = 0; v < variants.size(); ++v)
    if (result.reasons[v].empty())
      fastest = std::min(
          fastest, isOpen(v) ? selections[v].graph->roughSeconds : selections[v].best().seconds);
  forEachSolvable(result.reasons, isAnyMiss, [&](size_t v) {
    const Stopwatch stopwatch;
    if (selections[v].graph->bestPath.empty()) finishOnce(*selections[v].graph, fastest);
    selections[v].graph->statistics.seconds += stopwatch.seconds();
  });
  requireOne(result.reasons, isAnyMiss);
  double sum = 0;
  for (size_t v = 0; v < variants.size(); ++v)
    if (result.reasons[v].empty()) sum += selections[v].statistics().seconds;
  for (size_t v = 0; v < variants.size(); ++v) {
    result.solved.emplace_back();
    if (!result.reasons[v].empty()) continue;
    if (sum > 0) selections[v].graph->statistics.seconds *= whole.seconds() / sum;
    result.lowerBound = std::min(result.lowerBound, selections[v].best().lowerBound);
    result.solved.back() = std::move(selections[v]);
  }
  return result;
}

Selection givenSelection(Problem problem, SelectionResult path, Statistics statistics) {
  Selection selection;
  selection.graph->problem = std::move(problem);
  selection.graph->best = std::move(path);
  selection.graph->statistics = std::move(statistics);
  return selection;
}

std::optional<double> Selection::whatIfLayout(int tensor, const Layout &layout) const {
  if (!graph->lattice) return std::nullopt;
  const int number = graph->prices->numberOf(
      tensor, normalized(layout, graph->problem.tensors[static_cast<size_t>(tensor)].extents()));
  if (number < 0) return std::nullopt;
  const std::vector<int> positions = decidingOperand(*graph, tensor);
  const double seconds = shortestOver(*graph, [&](const Edge &edge) {
    const int position = edge.candidate < 0 ? -1 : positions[static_cast<size_t>(edge.candidate)];
    if (position < 0) return true;
    const CandidatePrices &prices = graph->prices->candidate(edge.candidate);
    if (prices.isFolded) return true;
    const std::vector<int> choice = prices.choiceOf(edge.entry);
    return prices.choices[static_cast<size_t>(position)]
                         [static_cast<size_t>(choice[static_cast<size_t>(position)])] == number;
  });
  if (!(seconds < infinite)) return std::nullopt;
  return std::max(0.0, seconds - graph->best.seconds);
}

std::optional<SelectionResult> Selection::planIfFused(int opA, int opB, bool fused) const {
  if (!graph->lattice) return std::nullopt;
  std::vector<bool> hasOne, hasBoth;
  for (const Candidate &candidate : graph->problem.candidates) {
    const OpSet ops(candidate.ops);
    hasOne.push_back(ops.contains(opA) != ops.contains(opB));
    hasBoth.push_back(ops.contains(opA) && ops.contains(opB));
  }
  const std::vector<int> path = pathOver(*graph, [&](const Edge &edge) {
    return edge.candidate < 0 || !(fused ? hasOne : hasBoth)[static_cast<size_t>(edge.candidate)];
  });
  return path.empty() ? std::nullopt : std::optional(planOf(*graph, path));
}

std::optional<double> Selection::whatIfFused(int opA, int opB, bool fused) const {
  const std::optional<SelectionResult> plan = planIfFused(opA, opB, fused);
  return plan ? std::optional(std::max(0.0, plan->seconds - graph->best.seconds)) : std::nullopt;
}

bool Selection::waitsForMeasurements(int opA, int opB) const {
  if (!graph->lattice) return false;
  for (size_t c = 0; c < graph->problem.candidates.size(); ++c) {
    const OpSet ops(graph->problem.candidates[c].ops);
    const int candidate = static_cast<int>(c);
    if (ops.contains(opA) && ops.contains(opB) && !graph->prices->isPriced(candidate) &&
        graph->prices->waitsForMeasurements(candidate))
      return true;
  }
  return false;
}

const std::vector<Layout> &Selection::layouts(int tensor) const {
  static const std::vector<Layout> none;
  if (!graph->lattice) return none;
  return graph->prices->layouts(tensor);
}

std::vector<std::pair<Layout, double>> Selection::layoutPrices(int tensor) const {
  std::vector<std::pair<Layout, double>> prices;
  for (const Layout &layout : layouts(tensor))
    if (const auto loss = whatIfLayout(tensor, layout)) prices.emplace_back(layout, *loss);
  std::stable_sort(prices.begin(), prices.end(),
                   [](const auto &a, const auto &b) { return a.second < b.second; });
  return prices;
}

}  // namespace weft::select
