// The one phase that decides: from the variants of a model and the kernels proposed for them to the
// plan that every command speaks of. Selection finds the shortest path of each variant under the
// pins; what lies outside of the shortest path is decided here, too: chunks, a limit of memory,
// concurrency, and the choice by measuring. Which combinations of the variants are variants, too,
// is decided before these are made (Combinations.h); of several layers, the parts before the whole
// (LayeredDecision.h). No MLIR.
//
// Invariant: a decision is a function of problem, options and measurements alone; its plan is built
// once and honours every pin.
#pragma once

#include "kernel/BlockCombine.h"
#include "kernel/Expected.h"
#include "kernel/SearchMemory.h"
#include "passes/decide/PathPlan.h"
#include "passes/decide/Pins.h"
#include "passes/select/Selection.h"
#include "plan/EarlyStarts.h"
#include "plan/PlanBuilder.h"

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace weft::decision {

/// One graph of the model and what was proposed for it.
struct Variant {
  select::Problem problem;         ///< without pins
  std::vector<std::string> notes;  ///< what its plan says of how the graph was rewritten
  std::set<std::pair<int, int>> forced, forbidden;  ///< ops that --fuse and --no-fuse name
  bool isCut = false;  ///< more kernels could be proposed than the memory of the search admits
  const std::string &name() const { return problem.name; }
};

struct Problem {
  std::vector<Variant> variants;
  PlanContext context;
  int64_t leftOut = 0;  ///< variants that the memory of the search did not admit
  /// Seconds that no combination of what the variants have in parts of the graph beats, by kernels
  /// alone; nothing where each combination is a variant.
  std::optional<double> boundOfCombinations = {};
  std::vector<std::string> cutsOfCombinations = {};  ///< what the search of these left out
  /// The tensors of all variants that the graph has, whatever the flags leave of them; for
  /// messages.
  std::function<std::vector<select::Problem>()> everyVariant;
};

/// Seconds of every variant's best plan, by its name.
using VariantTimes = std::map<std::string, double>;

/// What the variants and the chosen plan take without pins.
struct WithoutPins {
  VariantTimes times;
  double seconds = 0;
};

enum class Concurrency : uint8_t { off, on, measured };

struct Options {
  std::vector<Pin> pins;
  int alternatives = 8;              ///< k of the k best paths
  int chunks = 1;                    ///< 0: chosen (ChunkChoice.h)
  int slices = 1;                    ///< of a pipelined plan; 0: chosen (PipelineChoice.h)
  std::optional<int64_t> maxMemory;  ///< bytes of workspace
  std::string maxMemoryText;         ///< as it was asked for; for messages
  double memoryTrade =
      0;  ///< share by which a plan may be slower for its workspace (ChunkChoice.h)
  Concurrency concurrent = Concurrency::off;    ///< measured: off unless measuring finds it faster
  std::optional<BlockCombine> softmax;          ///< nothing: whatever is fastest
  EarlyStarts earlyStarts = EarlyStarts::none;  ///< of the decided plan
  SearchMemory searchMemory;
  bool strict = false;     ///< no search may reach its limits
  int plansToMeasure = 0;  ///< with a measure: how many plans are compared
  /// Every question with pins asks what the same takes without: remembered where these are set.
  std::function<std::optional<WithoutPins>()> recall = {};
  std::function<void(const WithoutPins &)> remember = {};

  bool isConcurrent() const { return concurrent == Concurrency::on; }
};

/// A graph to decide, and how.
struct Question {
  Problem problem;
  Options options;
};

/// The fastest plan of a variant that the limit of memory admits.
struct FittedPath {
  select::SelectionResult path;
  int chunks = 1;  ///< PlanChunks.h
  int64_t workspaceBytes = 0;
  double seconds = 0;
};

struct SelectedVariant {
  size_t index = 0;  ///< of Problem::variants
  std::string name;
  std::vector<std::string> notes;  ///< Variant::notes
  select::Selection selection;
  std::optional<FittedPath> fitted = {};  ///< nothing without a limit of memory
  const select::SelectionResult &path() const { return fitted ? fitted->path : selection.best(); }
  const std::vector<Rewrite> &rewrites() const { return selection.problem().rewrites; }
};

/// What a pin costs: the best plan with all pins against the best without this one.
struct PinRegret {
  std::string tensor, layout;
  double seconds = 0;
};

/// A variant that has no plan under the given choices, and why.
struct DroppedVariant {
  std::string name, reason;
  bool lacksPinned = false;  ///< a pinned tensor
};

/// A plan that was timed as a whole.
struct TimedPath {
  std::string variant;
  int chunks = 1;
  bool concurrent = false;
  bool isPipelined = false;   ///< the chunks are slices
  double predicted = 0;       ///< seconds, of its kernels one by one
  double predictedGraph = 0;  ///< seconds, of the whole graph
  double optimistic = 0;      ///< the same with estimates at their optimistic end: their order
  bool chosen = false;
  std::optional<PlanMeasurement> measurement = {};
  std::string problem = {};  ///< why there is no measurement
  std::vector<std::string> different =
      {};  ///< steps that the predicted best plan of the same variant lacks
};

/// A path whose kernels around its largest temporary run in so many chunks (ChunkChoice.h), or
/// slices (PipelineChoice.h).
struct PricedChunking {
  int chunks = 1;
  double seconds = 0;     ///< predicted, as a whole graph
  double sumSeconds = 0;  ///< of its kernels' prices
  int64_t workspaceBytes = 0;
  bool isMeasured = false;  ///< all its kernels' prices
};

struct Decision {
  std::vector<SelectedVariant>
      variants;  ///< by predicted time, best first; ties in the order of proposal
  std::vector<DroppedVariant> dropped;
  VariantTimes skipped;  ///< variants that were not searched, none of their plans with pins being
                         ///< as fast: what they take without
  std::vector<std::string>
      searchCuts;  ///< what the limits of the search left out; then the plan is the best found
  std::vector<Pin> asked;  ///< pins, which the chosen plan honours
  std::vector<PinRegret> pins;
  std::vector<TimedPath> timed;  ///< the chosen first, then by TimedPath::optimistic; empty unless
                                 ///< plans were timed
  double lowerBound =
      0;  ///< seconds that no plan of any variant beats, those dropped for their memory among them
  /// Whether that holds for variants and kernels that limits of the search left out unsearched,
  /// too: there were none.
  bool isBoundOfAll = true;
  size_t chosen = 0;  ///< the variant that the plan is of
  std::optional<select::SelectionResult>
      chosenPath;           ///< its path, where measuring, chunks or a limit of memory chose it
  bool concurrent = false;  ///< its kernels may run at once (Plan::concurrent)
  int chunks = 1;           ///< in how many its largest temporary is computed (PlanChunks.h)
  std::vector<PricedChunking>
      pricedChunkings;       ///< what these were chosen from; empty where there was no choice
  bool isPipelined = false;  ///< these chunks are slices, which run at once
  std::vector<PricedChunking>
      pricedPipelines;            ///< numbers of slices that were weighed, of the chosen path where
                                  ///< one of them was; empty where there was no choice
  double freeWorkspaceBytes = 0;  ///< workspace that any plan may take (ChunkChoice.h)
  /// Where Options::memoryTrade decided: how much slower than the fastest the plan is as one graph,
  /// as a share, and how many bytes of workspace less it takes. Else both 0.
  double tradedShare = 0;
  int64_t tradedBytes = 0;
  /// What all of this comes to: everything but what emission and build find out.
  PlannedKernels planned;

  const SelectedVariant &best() const { return variants[chosen]; }
  const select::SelectionResult &path() const {
    return chosenPath ? *chosenPath : best().selection.best();
  }
};

/// A plan to be timed, and what a person calls it.
struct PlanToMeasure {
  std::string name;  ///< "plan 1 of 4 (variant qkv-stacked, 2 chunks)"
  PlannedKernels planned;
};
struct MeasuredPlans {
  struct Time {
    std::optional<PlanMeasurement> measurement;  ///< without its ratio
    std::string problem;                         ///< why there is none
  };
  std::vector<Time> times;  ///< one for each plan
  size_t kept = 0;          ///< which of them to keep: the first unless another is faster
};
/// Times plans as whole graphs, interleaved; differences within noise leave the order as it is.
using Measure = std::function<MeasuredPlans(std::vector<PlanToMeasure>)>;

/// Selects in every variant, orders them, and decides what lies outside of the shortest path, with
/// the price of each pin. With `measure`, the best plans are compared by it. The error says why no
/// plan honours the pins, the limits or --strict, and what could be asked instead. Throws
/// Error(badInput) for pins that contradict the problem.
Expected<Decision> decide(const Problem &problem, const Options &options,
                          const Measure &measure = {});
/// The same without the prices of the pins, for questions that ask for the plan alone.
Expected<Decision> decidePlan(const Problem &problem, const Options &options);

/// The plan of the decided path as a whole and, where chunks were a choice, in every number of
/// chunks up to `most` in which it runs: what a profile of chunks measures. `asked`:
/// Options::chunks.
std::vector<PlannedKernels> plansInChunks(const PlanContext &context, const Decision &decision,
                                          int asked, int most);

/// A variant to select in under these pins. `together`: variants that share the memory of the
/// search.
select::VariantProblem variantProblem(const Problem &problem, const Variant &variant,
                                      const Options &options, const std::vector<Pin> &pins,
                                      size_t together);

/// selectVariants() by the prices of the problem, with what its earlier selections found.
select::VariantSelections selectIn(const Problem &problem,
                                   std::vector<select::VariantProblem> variants,
                                   const select::Compared &compared = {});

/// What --search-memory left out, on one line; empty where the search was whole.
std::string memoryLine(const Decision &decision);
/// What Options::memoryTrade cost and gave, on one line; empty where the plan is the fastest.
std::string tradeLine(const Decision &decision);
/// Seconds of a variant's plan: of the chosen one those of the plan, with its chunks, of others as
/// far as they were decided.
double secondsOf(const Decision &decision, const SelectedVariant &variant);

}  // namespace weft::decision
