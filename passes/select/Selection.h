// Layout, fusion and algorithm selection as one shortest path (design: "Selection, precisely").
// MLIR-free.
//
// A Problem is one variant of the graph, or several that differ at some sites. Nodes of the
// selection graph are (set of finished ops, layout of every live tensor); an edge is a candidate
// kernel in a configuration, or a transpose; weights are seconds. The shortest path from (nothing
// finished, arguments in the caller's layouts) to (everything finished, results in the caller's
// layouts) is the plan. Selection keeps the graph, so that the k best plans, the regret of a pin
// and "what if" queries need no new search.
#pragma once

#include "kernel/BlockCombine.h"
#include "passes/configure/CostModel.h"
#include "passes/configure/Families.h"
#include "passes/select/Problem.h"

#include <functional>
#include <limits>
#include <optional>
#include <set>

namespace weft::select {

class SharedSpaces;  // KernelSpaces.h

struct Options {
  double nearBest =
      1.5;  ///< a tensor keeps layouts of configurations within this factor of some kernel's best
  int beam = 4096;  ///< states kept per set of finished ops of those that could better the best
                    ///< plan known,
  int64_t states =
      200000;  ///< but of all sets together about as many, those that lead nowhere included
  int alternativeStates = 24;  ///< and of the others, for runners-up and what-if answers; also
                               ///< kernel outcomes per state
  int alternatives = 8;        ///< k of the k best plans
  std::set<std::pair<int, int>> forceFused, forbidFused;  ///< op pairs (--fuse, --no-fuse)
  bool free = false;                 ///< arguments and results are not pinned (--free)
  std::optional<int64_t> maxMemory;  ///< bytes of live temporaries and of what a launch works in;
                                     ///< filters paths
  int64_t mostWorkspace =
      std::numeric_limits<int64_t>::max();  ///< bytes that one launch may work in
  /// Bytes of one temporary that a kernel may store. What a view is of has been stored before.
  int64_t mostTemporary = std::numeric_limits<int64_t>::max();
  int64_t searchBytes =
      std::numeric_limits<int64_t>::max();  ///< that the tables, layers and states of the search
                                            ///< may take, as accounted
  /// Steps that one pass of the search may take, of about 50 ns: a table entry looked up is one, an
  /// outcome of a kernel (Outcomes.h) sixteen. All tables together hold at most a thirty-second as
  /// many entries, and bounds are raised by at most twice as many looks. The largest of the
  /// profiled workloads takes a tenth of it.
  int64_t searchWork = 64'000'000;
  /// Kernels with a softmax reduce each row by a block that combines so (--softmax); those whose
  /// rows are too short for a block stay as they are.
  std::optional<BlockCombine> softmax = {};
};

struct Statistics {
  /// Configurations that the search considered with a separate price: measured, or modelled one by
  /// one or as a sum over operands. Not counted: those that a bound over all layouts excluded,
  /// those in layouts that a tensor does not keep, and views, which launch nothing.
  int64_t configurations = 0;
  double legalConfigurations =
      0;  ///< size of the space they are from: all legal layouts x knobs of all candidates
  int64_t kernels = 0;            ///< candidates
  int64_t states = 0, edges = 0;  ///< of the selection graph
  int64_t peakStates = 0;         ///< kept at one set of finished ops, at most
  int64_t dominated = 0, beamCut = 0;
  int64_t work = 0;  ///< of the passes of the search, as Options::searchWork counts it
  bool isProven =
      false;  ///< no plan that was cut is faster, by its lower bound: the plan is the shortest path
  double mostGain = 0;  ///< share of the plan's time by which one that was cut may be faster; 0
                        ///< where it is proven
  bool isBeyondBest = false;  ///< one pass only: even the bound of what it cut is slower than
                              ///< another variant's plan
  std::vector<std::string>
      layoutCuts;               ///< "tensor q: kept 6 of 24 layouts (within 1.5x of the best)"
  double seconds = 0;           ///< wall time; of several variants, each one's share of it
  int64_t measured = 0;         ///< of `configurations`: those whose time was measured
  double coverageMeasured = 0;  ///< measured / configurations
  int64_t unmeasuredKernels =
      0;  ///< candidates that were modelled although the model has measurements
  /// Pruned because what is measured is chosen among its measurements: unmeasured legal
  /// configurations, and ordered pairs of a tensor's kept layouts whose transpose is unmeasured.
  double prunedConfigurations = 0;
  int64_t prunedTransposes = 0;
  int64_t modelledTransposes =
      0;  ///< pairs that were offered by the model although it has measurements
  std::vector<std::string> searchCuts;  ///< what Options::searchBytes and Options::searchWork left
                                        ///< out of the search: then the plan is the best found, and
                                        ///< nothing is proven
  std::vector<std::string> notes;  ///< by name: kernels measured, but not in the pinned layouts;
                                   ///< transposes pruned or modelled
};

/// Why a kernel has no price although its family accepts it (Selection::waitsForMeasurements).
inline constexpr const char *waitingReason =
    "with --strict considered only if measured, and the profile has no measurement of it, or none "
    "in the pinned "
    "layouts (weft profile)";

/// A path to draw, and what became of it in the plan: chunks, and with them other times.
struct DrawnPlan {
  struct Step {
    double seconds = 0;
    int chunks = 1;
  };
  const SelectionResult *path = nullptr;
  std::vector<Step> steps = {};  ///< of the path
  double seconds = 0;            ///< of the whole plan
  std::string title = {};        ///< beside it, e.g. "2 chunks, workspace 60.8 MB"
};

/// The solved selection graph of one variant.
class Selection {
public:
  Selection();
  Selection(Selection &&) noexcept;
  Selection &operator=(Selection &&) noexcept;
  ~Selection();

  const Problem &problem() const;
  const SelectionResult &best() const;
  const Statistics &statistics() const;
  /// Options::maxMemory below it leaves no plan: live temporaries of every path take as much at
  /// some kernel, each in one layout. 0 where the graph has no such bound.
  int64_t leastLiveBytes() const;
  /// No plan takes less: the same between two kernels, for a kernel may write over what it reads.
  int64_t leastStoredBytes() const;
  /// k best distinct plans, best first.
  std::vector<SelectionResult> kBest(int k) const;
  /// Seconds lost by the best plan in which `tensor` has `layout` when it is produced; nothing if
  /// no such path exists.
  std::optional<double> whatIfLayout(int tensor, const Layout &layout) const;
  /// The best plan in which the ops share one kernel (fused) or do not; nothing if no such path
  /// exists.
  std::optional<SelectionResult> planIfFused(int opA, int opB, bool fused) const;
  /// Seconds that it loses.
  std::optional<double> whatIfFused(int opA, int opB, bool fused) const;
  /// Whether the ops could share one kernel if the profile had measurements of it: with --strict
  /// some kernels are considered only if measured.
  bool waitsForMeasurements(int opA, int opB) const;
  /// The layouts that a tensor may have in the graph.
  const std::vector<Layout> &layouts(int tensor) const;
  /// All layouts of a tensor that occur in the graph, with the loss of each, best first.
  std::vector<std::pair<Layout, double>> layoutPrices(int tensor) const;
  /// Graphviz text of the selection graph along one of its paths, as Fig. 6 of "Data Movement Is
  /// All You Need".
  std::string dot(const DrawnPlan &drawn) const;
  std::string dot() const;  ///< along the best one

  struct Graph;
  std::unique_ptr<Graph> graph;
};

/// Throws Error(unsupported) naming the op when no path exists, Error(badInput) when pins
/// contradict. The result refers to the model, which must outlive it.
Selection select(Problem problem, const CostModel &model, const Options &options);

/// The same of a problem with sites, in time that their alternatives far from the best do not add
/// to: a first search among the candidates of plans near the bound finds a plan, and the second is
/// among those of plans that may be as fast. Nothing that another search could choose is lost.
Selection selectAmongAlternatives(const Problem &problem, SharedSpaces &shared,
                                  const Options &options);

/// Seconds that no plan of the problem takes less than, by its kernels alone, each in its best
/// layouts.
double lowerBoundOf(const Problem &problem, SharedSpaces &shared, const Options &options);

/// A selection of one path that was found elsewhere, part by part: it has no other plans, and every
/// question about another layout, fusion or plan has no answer.
Selection givenSelection(Problem problem, SelectionResult path, Statistics statistics);

/// A variant and what its user asked of it.
struct VariantProblem {
  Problem problem;
  Options options;
  double withoutPins =
      0;  ///< seconds that no plan of it beats even if no tensor is pinned; 0: not known
};
/// Which plans of all variants together are compared afterwards, by other measures: so many of the
/// best, as far as they are within so large a share of the best one's time.
struct Compared {
  int plans = 1;
  double within = 0;
  bool ofAll = false;  ///< best plans of slower variants matter, too: they may take less memory
};
/// Selects in every variant, on all processors; results in the order given, as select() gives them,
/// except that a variant that cannot be faster than the best plan of another, by the bound of what
/// was cut, is only searched roughly (Statistics::isBeyondBest). A variant without any plan (a
/// memory limit, a pin, a forced fusion that it cannot take) does not stop the others: its entry is
/// empty and `reasons` says why. So is that of a variant of which the variant that is best without
/// pins, solved first, shows that it has no plan to be compared: what it takes without pins, or its
/// bound with them, is slower. It is `skipped`. Only when no variant has a plan, Error(unsupported)
/// lists all reasons.
struct VariantSelections {
  std::vector<std::optional<Selection>> solved;  ///< one per variant
  std::vector<std::string> reasons;              ///< one per variant; empty where solved
  std::vector<bool> skipped;                     ///< one per variant
  /// No plan of any variant takes less: the least bound of those solved. What is known of a skipped
  /// variant's plans lies above the best plan.
  double lowerBound = 0;
};
VariantSelections selectVariants(std::vector<VariantProblem> variants, const CostModel &model,
                                 const Compared &compared = {});
/// The same with what earlier selections by the same model found of equal kernels, for several
/// questions about one problem.
VariantSelections selectVariants(std::vector<VariantProblem> variants, SharedSpaces &shared,
                                 const Compared &compared = {});

}  // namespace weft::select
