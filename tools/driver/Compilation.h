// One compilation, from a model description to what there is to decide (passes/decide/Decide.h):
// import and the proposing passes. Emission and build follow in Emission.h. This and its .cpp are
// the only files of the driver that know MLIR, beside Diagnostics.
#pragma once

#include "models/Models.h"
#include "passes/Passes.h"
#include "passes/Rewrites.h"
#include "passes/decide/Decide.h"
#include "passes/decide/Roofline.h"
#include "passes/select/JoinVariants.h"
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
  std::vector<Rewrite> rewrites;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::vector<std::vector<Rewrite>> rewritesOfOp = {};  ///< weft::Variant::rewritesOfOp
  FusionResult fusions = {};
  std::vector<FusionRecord> stackings =
      {};  ///< attempts to stack projections; op numbers of the imported graph
  std::vector<FusionRecord> norms = {};  ///< attempts to decompose norms, likewise
  std::vector<std::string> notes = {};   ///< what was rewritten in every variant
  Dataflow counted =
      {};  ///< the ops as they are accounted for: before rewrites that the paper does not have
  int64_t leftOut = 0;  ///< variants that the memory of the search did not admit
  std::vector<std::string> projectionOfPart = {};  ///< weft::Variant::projectionOfPart
  /// Of the first variant: decision::Problem::boundOfCombinations.
  std::optional<double> boundOfCombinations = {};
  std::vector<std::string> cutsOfCombinations = {};  ///< likewise
  std::set<std::pair<int, int>> forced,
      forbidden;             ///< ops of this graph that --fuse and --no-fuse name
  std::string name() const;  ///< rewrites joined by '+'; "unchanged" for none
};

/// The one graph of a module. Throws Error(badInput) if it has none, Error(unsupported) if several.
mlir::Operation *graphOf(mlir::ModuleOp module);

/// Says on standard error what a config.json asks of the elements and gets, and which keys did not
/// influence the graph, and why, one line a reason.
void noteConfig(const models::Description &description);

/// What a compilation prices kernels by, and what its decisions have found by these prices.
struct SharedPrices {
  std::shared_ptr<CostModel> unfilled;  ///< what `model` is of, if the graph counts tokens
  std::shared_ptr<CostModel> model;
  std::shared_ptr<select::SharedSpaces> spaces;                        ///< of `model`
  std::shared_ptr<decision::ChunkConfigurations> chunkConfigurations;  ///< of `model`
  std::optional<ExpectedFill> fill;  ///< at which `model` prices; nothing if no tokens are counted
  std::string key;                   ///< equal for equal prices
};

class Compilation {
public:
  Compilation(ModelFlags model, ChoiceFlags choices, TargetFlags target);
  /// Of a part of another one's graph, in its context, by its flags and prices.
  Compilation(const Compilation &whole, mlir::OwningOpRef<mlir::ModuleOp> part);
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
  std::vector<VariantText> importedTexts() const;
  /// The phase with which to go on from these texts.
  Phase resumesAt() const { return std::max(firstPhase, Phase::algebra); }
  bool importedOneOfSeveral() const { return isVariantChosen; }
  const models::Description &description() const { return described; }
  mlir::ModuleOp graph() const { return *imported.front().module; }
  /// Of graph(), where differentiate made its backward pass here.
  const GradientOrigins &gradientOrigins() const { return origins; }

  /// Whether the graph has several layers, or is a whole model: then its parts are decided one by
  /// one (LayeredModel.h), and no pass proposes for the whole.
  bool isLayered() const { return !isPart && (described.layers > 1 || described.isWhole); }
  /// The fusions of what was imported, without rewrites.
  FusionResult unchangedFusions() const;

  /// Runs the proposing passes. From Phase::fuse on, the imported variants are taken as they are;
  /// from Phase::configure on, so are the candidates that they carry.
  /// With --max-memory those of proposeForMemory().
  std::vector<ProposedVariant> propose(Phase first) const;
  /// Those, and of a graph that trains variants with each of recomputedSets() computed again.
  std::vector<ProposedVariant> proposeForMemory(Phase first) const;
  /// Throws Error(unsupported) for a form that is asked for and that none of these has: all
  /// variants of a graph, or of all parts of a model, since a part need not have what another has.
  void checkChoicesHold(const std::vector<const ProposedVariant *> &rewritten) const;
  /// Of a graph that trains: what --recompute could name for its memory.
  std::vector<std::vector<std::string>> recomputableNames() const;
  /// decision::recomputedSets() of these; nothing where --recompute names some.
  std::vector<std::vector<std::string>> recomputedSets() const;
  /// The variants of the graph with these results computed again, as --recompute names them.
  std::vector<ProposedVariant> proposeRecomputed(const std::vector<std::string> &names) const;
  /// Rewrites alone, without fusions: what --stop-after algebra and attention print.
  std::vector<ProposedVariant> rewrite(Phase first, Phase last) const;
  /// What there is to decide about variants, and how the flags want it decided. Both refer to the
  /// compilation.
  decision::Problem problem(const std::vector<ProposedVariant> &proposed) const;
  decision::Options options(const std::vector<ProposedVariant> &proposed) const;
  /// The selection problems of variants, without pins.
  std::vector<select::Problem> problems(const std::vector<ProposedVariant> &proposed) const;
  /// decide() of problem and options; its error is thrown.
  decision::Decision decide(const std::vector<ProposedVariant> &proposed,
                            const decision::Measure &measure = {}, int plansToMeasure = 0) const;
  /// What all plans of the model share.
  decision::PlanContext planContext() const;
  /// The graph with the chosen regions, layouts and configurations.
  std::string materialized(const std::vector<ProposedVariant> &proposed,
                           const decision::Decision &decision) const;

  bool variantHasTensor(const ProposedVariant &variant, const std::string &name) const;
  /// What a variant computes and moves, as plain data.
  Account account(const ProposedVariant &variant) const;
  /// What of its bytes a kernel moves at expectedFill(): all of most; of one over packed tokens or
  /// cached keys, those of the expected lengths, as its price has it.
  double movedShare(const Kernel &kernel) const;
  double movedShare(const Dataflow &flow, const std::vector<int> &ops) const;

  /// For several compilations whose graphs have kernels in common: after the import, goes on with
  /// equal prices from `known` and with what was found by them, or adds its prices there. What is
  /// decided stays the same.
  void sharePrices(std::vector<SharedPrices> &known);

  const CostModel &costModel() const { return *priced.model; }
  /// What costModel() is at full length, of any graph.
  const CostModel &unfilledPrices() const {
    return priced.unfilled ? *priced.unfilled : *priced.model;
  }
  /// At which costModel() prices a graph of packed tokens; nothing for any other.
  const std::optional<ExpectedFill> &expectedFill() const { return priced.fill; }
  const decision::TokensOfGraph &tokensOfGraph() const { return tokens; }
  /// The same prices of sequences at full length.
  std::unique_ptr<CostModel> pricesAtFullLength() const {
    return filledCostModel(*priced.unfilled, {});
  }
  /// What the model was built with; of a .mlir file, which has its own types, what --dtype says.
  DType elementType() const;
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
  std::vector<ProposedVariant> proposeForTime(Phase first) const;
  void importModel(Phase first);
  /// Throws Error(badInput) where --attention, --norms or --stacking name a site that the graph
  /// lacks.
  void checkSites() const;
  /// Gives all contractions of f32 operands precision tf32. Throws Error(badInput) if there are
  /// none.
  void priceTokens();
  void markTf32();
  /// By --ragged. Throws Error(unsupported) with the reason where sequences cannot be packed.
  void packImported();
  void importVariants(Phase first);
  void importText(const VariantText &variant);
  void differentiateImported();
  void noteBytes(Phase phase);
  PhaseBytes bytesAfter(Phase phase, mlir::Operation *graph) const;
  /// `isRecomputed`: VariantOptions::isRecomputed. `inParts`: choices in different parts of the
  /// graph are made alike (VariantOptions::partOfOp).
  std::vector<ProposedVariant> rewriteOne(const Variant &variant, const ChoiceFlags &asked,
                                          bool isRecomputed, Phase first, Phase last,
                                          bool inParts = false) const;
  std::vector<ProposedVariant> rewriteAll(Phase first, Phase last, bool inParts) const;
  std::vector<int> partsOfOps(mlir::ModuleOp module) const;
  /// Searches the combinations of what the variants have in parts of the graph, and adds the best
  /// as one more variant, if it is none of them. False if what they have in different parts
  /// (ProposedVariant::projectionOfPart) cannot be combined.
  bool addCombination(std::vector<ProposedVariant> &variants, Phase first) const;
  ProposedVariant combined(const std::vector<const ProposedVariant *> &variants,
                           const select::JoinedVariants &joined,
                           const std::vector<size_t> &variantOfSite) const;
  /// With their fusions; those that cannot fuse what --fuse names are left out.
  std::vector<ProposedVariant> withFusions(std::vector<ProposedVariant> rewritten,
                                           Phase first) const;
  FuseOptions fuseOptions(ProposedVariant &variant, size_t variants,
                          std::vector<std::string> &missing) const;
  select::Problem problemOf(const ProposedVariant &variant) const;
  /// Of all variants that the graph has, whatever the flags leave of them, without candidates; for
  /// messages.
  std::vector<select::Problem> everyProblem() const;
  struct KnownWithoutPins {
    KnownTimes variants, plan;
  };
  KnownWithoutPins knownWithoutPins(const std::vector<ProposedVariant> &proposed) const;

  ModelFlags modelFlags;
  ChoiceFlags choices;
  SearchMemory memory;
  TargetFlags targetFlags;
  SharedPrices priced;
  decision::TokensOfGraph tokens;
  std::function<std::string(const Kernel &)> epilogueRejection, prologueRejection,
      attentionRejection,
      attentionBackwardRejection;  ///< of the target's families; see FuseOptions
  std::shared_ptr<mlir::MLIRContext> context;
  models::Description described;
  std::vector<PhaseBytes> importedBytes;  ///< after import, and after differentiate
  Phase firstPhase = Phase::import;
  GradientOrigins origins;        ///< of the first one imported
  std::vector<Variant> imported;  ///< at least one; several from a file of variants
  bool isPart = false;            ///< of another compilation
  bool isVariantChosen = false;   ///< --variant named one of the file's, not one of the proposed
};

}  // namespace weft::driver
