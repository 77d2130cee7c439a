// The decisions of one compilation, from a model description to the best path of the best variant:
// import, the proposing passes, selection. Emission and build follow in Emission.h. This and its
// two .cpp (Compilation, Decisions) are the only files of the driver that know MLIR, beside
// Diagnostics.
#pragma once

#include "models/Models.h"
#include "passes/Passes.h"
#include "passes/select/Selection.h"
#include "runtime/artifact/Artifact.h"
#include "tools/driver/Accounting.h"
#include "tools/driver/Flags.h"
#include "tools/driver/KnownTimes.h"
#include "tools/driver/Phase.h"
#include "tools/driver/VariantFile.h"

#include "mlir/IR/MLIRContext.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace weft::driver {

/// One variant with everything that was proposed for it.
struct ProposedVariant {
  std::vector<std::string> rewrites;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  FusionResult fusions;
  std::vector<FusionRecord> stackings =
      {};  ///< attempts to stack projections; op numbers of the imported graph
  std::vector<FusionRecord> norms = {};  ///< attempts to decompose norms, likewise
  std::vector<std::string> notes = {};   ///< what was rewritten in every variant
  Dataflow counted =
      {};  ///< the ops as they are accounted for: before rewrites that the paper does not have
  int64_t leftOut = 0;  ///< variants that the memory of the search did not admit
  std::set<std::pair<int, int>> forced,
      forbidden;             ///< ops of this graph that --fuse and --no-fuse name
  std::string name() const;  ///< rewrites joined by '+'; "unchanged" for none
};

/// The fastest plan of a variant that --max-memory admits.
struct FittedPath {
  select::SelectionResult path;
  int chunks = 1;  ///< PlanChunks.h
  int64_t workspaceBytes = 0;
  double seconds = 0;
};

/// From so many ops on, the tensors of a graph keep the order of their axes. The states of an exact
/// search are layouts of all that is live, and a backward pass keeps everything live.
constexpr size_t manyOps = 100;
/// A variant to select in under these pins. `together`: variants that share the memory of the
/// search.
select::VariantProblem variantProblem(const ChoiceFlags &choices, const ProposedVariant &variant,
                                      select::Problem problem, const std::vector<Pin> &pins,
                                      size_t together);

/// Each with a copy of its graph.
std::vector<ProposedVariant> copyOf(const std::vector<ProposedVariant> &variants);

struct SelectedVariant {
  ProposedVariant proposed;
  select::Selection selection;
  std::optional<FittedPath> fitted = {};  ///< nothing without --max-memory
  const select::SelectionResult &path() const { return fitted ? fitted->path : selection.best(); }
};

/// What a --pin costs: the best plan with all pins against the best without this one.
struct PinRegret {
  std::string tensor, layout;
  double seconds = 0;
};

/// A variant that has no plan under the given choices, and why.
struct DroppedVariant {
  std::string name, reason;
  bool lacksPinned = false;  ///< a tensor that --pin names
};

/// A plan that was timed as a whole (compile --measure).
struct TimedPath {
  std::string variant;
  int chunks = 1;
  bool concurrent = false;
  double predicted = 0;       ///< seconds, of its kernels one by one
  double predictedGraph = 0;  ///< seconds, of the whole graph, by which plans are ordered
  bool chosen = false;
  std::optional<PlanMeasurement> measurement = {};
  std::string problem = {};  ///< why there is no measurement
  std::vector<std::string> different =
      {};  ///< steps that the predicted best plan of the same variant lacks
};

/// A path whose kernels around its largest temporary run in so many chunks (ChunkChoice.h).
struct PricedChunking {
  int chunks = 1;
  double seconds = 0;     ///< predicted, as a whole graph
  double sumSeconds = 0;  ///< of its kernels' prices
  int64_t workspaceBytes = 0;
  bool isMeasured = false;  ///< all its kernels' prices
};

/// Seconds of every variant's best plan, by its name.
using VariantTimes = std::map<std::string, double>;

struct Selected {
  std::vector<SelectedVariant>
      variants;  ///< by predicted time, best first; ties in the order of proposal
  std::vector<DroppedVariant> dropped;
  VariantTimes skipped;  ///< variants that were not searched, none of their plans with pins being
                         ///< as fast: what they take without
  std::vector<std::string>
      searchCuts;  ///< what the limits of the search left out; then the plan is the best found
  double plannedSeconds =
      0;  ///< of the chosen plan, all its chunks: the total that every command says
  std::vector<Pin> asked;  ///< pins, which the chosen plan honours
  std::vector<PinRegret> pins;
  std::vector<TimedPath> timed;  ///< by predicted time; empty unless plans were timed
  double lowerBound =
      0;  ///< seconds that no plan of any variant beats, those dropped for their memory among them
  size_t chosen = 0;  ///< the variant that the artifact holds
  std::optional<select::SelectionResult>
      chosenPath;           ///< its path, where measuring, chunks or a limit of memory chose it
  bool concurrent = false;  ///< its kernels may run at once (Plan::concurrent)
  int chunks = 1;           ///< in how many its largest temporary is computed (PlanChunks.h)
  std::vector<PricedChunking>
      pricedChunkings;            ///< what these were chosen from; empty where there was no choice
  double freeWorkspaceBytes = 0;  ///< workspace that any plan may take (ChunkChoice.h)
  const SelectedVariant &best() const { return variants[chosen]; }
  const select::SelectionResult &path() const {
    return chosenPath ? *chosenPath : best().selection.best();
  }
};

/// Says on standard error what a config.json asks of the elements and gets, and which keys did not
/// influence the graph, and why, one line a reason.
void noteConfig(const models::Description &description);

class Compilation {
public:
  Compilation(ModelFlags model, ChoiceFlags choices, TargetFlags target);
  ~Compilation();

  /// Builds the graph of the model. `Error(badInput)` or `Error(unsupported)`, with locations where
  /// there are any. A file may hold several variants (VariantFile.h): all are kept when `first`
  /// takes several, else --variant must name one. With --train the backward pass is appended, where
  /// `first` and `last` hold the phase between them.
  void import(Phase first = Phase::import, Phase last = Phase::build);
  /// The graphs of one or several variants from their texts, in place of import(); `first`: with
  /// which phase to go on.
  void importTexts(const std::vector<VariantText> &texts, Phase first);
  /// What was imported, and differentiated where that was asked for.
  std::vector<std::pair<std::vector<std::string>, std::string>> importedTexts() const;
  /// The phase with which to go on from these texts.
  Phase resumesAt() const { return std::max(firstPhase, Phase::algebra); }
  bool importedOneOfSeveral() const { return isVariantChosen; }
  const models::Description &description() const { return described; }
  mlir::ModuleOp graph() const { return *imported.front().module; }

  /// Runs the proposing passes. From Phase::fuse on, the imported variants are taken as they are;
  /// from Phase::configure on, so are the candidates that they carry.
  std::vector<ProposedVariant> propose(Phase first) const;
  /// Rewrites alone, without fusions: what --stop-after algebra and attention print.
  std::vector<ProposedVariant> rewrite(Phase first, Phase last) const;
  /// The selection problems of variants, without pins.
  std::vector<select::Problem> problems(const std::vector<ProposedVariant> &proposed) const;
  /// Selects in every variant, orders them, and decides what lies outside of the shortest path:
  /// chunks and memory. With the price of each --pin. Throws Error(unsupported) for a pin that no
  /// plan honours, saying why and what could be pinned instead.
  Selected select(std::vector<ProposedVariant> proposed) const;
  /// What select() would choose with these pins in place of --pin, without their prices.
  Selected decide(const std::vector<ProposedVariant> &proposed, const std::vector<Pin> &pins) const;
  /// The graph with the chosen regions, layouts and configurations.
  std::string materialized(const SelectedVariant &variant,
                           const select::SelectionResult &path) const;

  bool variantHasTensor(const ProposedVariant &variant, const std::string &name) const;
  /// What a variant computes and moves, as plain data.
  Account account(const ProposedVariant &variant) const;

  const CostModel &costModel() const { return *prices; }
  /// What the model was built with; of a .mlir file, which has its own types, what --dtype says.
  std::string elementType() const;
  /// What of the model was built: "layer", "attention"; "graph" of a .mlir file, "model" with its
  /// embeddings and loss (of a vocabulary v); the core of attention is one whatever --part says.
  std::string part() const {
    return modelFlags.model.ends_with(".mlir") ? "graph"
           : described.dims.contains("v")      ? "model"
           : !described.dims.contains("i")     ? "attention"
                                               : modelFlags.part;
  }
  /// By --recompute NAME: computed again in every variant.
  std::vector<std::string> recomputedNames() const { return modelFlags.recomputedNames(); }
  int alternatives() const { return choices.alternatives; }
  const ChoiceFlags &choiceFlags() const { return choices; }
  const ModelFlags &model() const { return modelFlags; }
  const TargetFlags &target() const { return targetFlags; }

  /// A graph in its text form.
  static std::string print(mlir::ModuleOp module);
  /// The same with the candidates and the records of the variant as attributes.
  static std::string printWithFusions(const ProposedVariant &variant);

private:
  void importModel(Phase first);
  /// Gives all contractions of f32 operands precision tf32. Throws Error(badInput) if there are
  /// none.
  void markTf32();
  void importVariants(Phase first);
  void importText(const VariantText &variant);
  void differentiateImported();
  void noteBytes(Phase phase);
  std::vector<ProposedVariant> rewriteOne(const Variant &variant, const ChoiceFlags &asked,
                                          Phase first, Phase last) const;
  FuseOptions fuseOptions(ProposedVariant &variant, size_t variants,
                          std::vector<std::string> &missing) const;
  select::Problem problemOf(const ProposedVariant &variant) const;
  // Decisions.cpp
  std::string adviceOn(std::vector<Pin> pins, const std::vector<ProposedVariant> &proposed) const;
  void checkPins(const std::vector<select::Problem> &problems, const std::vector<Pin> &pins) const;
  /// Of all variants that the graph has, whatever the flags leave of them, without candidates; for
  /// messages.
  std::vector<select::Problem> everyProblem() const;
  /// `problems`: of the variants, without pins.
  Selected selectAll(std::vector<ProposedVariant> proposed, std::vector<select::Problem> problems,
                     const std::vector<Pin> &pins, const VariantTimes &withoutPins) const;
  Selected decideAmong(std::vector<ProposedVariant> proposed, std::vector<select::Problem> problems,
                       const std::vector<Pin> &pins, const VariantTimes &withoutPins) const;
  void decideMemory(Selected &selected) const;
  /// What the variants and the chosen plan take without pins: remembered, since every question with
  /// pins asks for it.
  struct WithoutPins {
    VariantTimes times;
    double seconds = 0;
  };
  struct KnownWithoutPins {
    KnownTimes variants, plan;
  };
  KnownWithoutPins knownWithoutPins(const std::vector<ProposedVariant> &proposed) const;
  std::pair<Selected, WithoutPins> decideWithoutPins(std::vector<ProposedVariant> proposed,
                                                     std::vector<select::Problem> problems) const;
  WithoutPins withoutPins(const std::vector<ProposedVariant> &proposed,
                          const std::vector<select::Problem> &problems) const;

  ModelFlags modelFlags;
  ChoiceFlags choices;
  SearchMemory memory;
  TargetFlags targetFlags;
  std::unique_ptr<CostModel> prices;
  std::string pricesKey;  ///< equal for equal prices
  std::function<std::string(const Kernel &)> epilogueRejection,
      prologueRejection;  ///< of the target's families; see FuseOptions
  std::unique_ptr<mlir::MLIRContext> context;
  models::Description described;
  std::vector<PhaseBytes> importedBytes;  ///< after import, and after differentiate
  Phase firstPhase = Phase::import;
  std::vector<Variant> imported;  ///< at least one; several from a file of variants
  bool isVariantChosen = false;   ///< --variant named one of the file's, not one of the proposed
};

}  // namespace weft::driver
