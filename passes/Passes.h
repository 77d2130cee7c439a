// The graph passes and the bridge from graphs to selection problems. Pipeline.cpp is the ordered
// list.
#pragma once

#include "kernel/Kernel.h"
#include "passes/Choices.h"
#include "passes/fuse/Fusion.h"
#include "passes/select/Selection.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

#include <functional>
#include <limits>
#include <set>
#include <string>
#include <vector>

namespace weft {

/// Proposes candidates by the four structural patterns ("Data Movement Is All You Need", section 4,
/// Fig. 3), to a fixed point.
FusionResult proposeFusions(mlir::Operation *graph, const FuseOptions &options);

/// Whole variants of a graph: each is a rewritten clone with what was rewritten. The first
/// is the graph unchanged.
struct Variant {
  std::vector<Rewrite> rewrites;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  /// Of each op of the graph, in its order, the rewrites that made it together; none for ops that
  /// were there before. No elements: not known.
  std::vector<std::vector<Rewrite>> rewritesOfOp = {};
  std::vector<FusionRecord> stackings =
      {};  ///< every attempt to stack two projections; op numbers of the graph before
  std::vector<FusionRecord> norms = {};  ///< every attempt to decompose a norm, likewise
  /// Why a softmax is in no fused attention, or not recomposed, although others are: "softmax
  /// 'prob' is in no fused attention: softmax_dx 'd_score' reads it, too".
  std::vector<std::string> unfused = {};
  int64_t leftOut =
      0;  ///< variants that VariantOptions::most did not admit, of all; the same in each
  /// Where groups of projections in different parts of the graph are stacked alike, a projection of
  /// each part that has some, by the name of its result; the same in each variant.
  std::vector<std::string> projectionOfPart = {};
};
struct VariantOptions {
  AttentionChoice attention = AttentionChoice::automatic;
  NormChoice norms = NormChoice::fused;
  StackingChoice stacking = StackingChoice::automatic;
  RecomputeChoice recompute = RecomputeChoice::automatic;
  // Sites that have one form in every variant; the three above are of all others.
  std::vector<SitePin<AttentionChoice>> attentionAt = {};
  std::vector<SitePin<NormChoice>> normsAt = {};
  std::vector<SitePin<StackingChoice>> stackingAt = {};
  /// T of the softmax decomposition, elements; the first is decomposed beside every stacking.
  std::vector<int> subVectors = {64};
  bool canFuseAttention = false;  ///< whether a kernel family of the target takes a fused attention
  /// Why, where none does.
  std::string noFusedAttention = "no kernel family of the target takes a fused attention";
  /// Whether a kernel family of the target takes a rotary embedding behind a contraction.
  bool canRotateBehindGemm = false;
  /// Whether one takes its backward pass. Where none does, a trained attention is fused only if
  /// that is asked for.
  bool canFuseAttentionBackward = true;
  /// Whether weights change every step: they are not packed at load, and to stack them is a copy a
  /// step. Projections are then separate unless it is asked otherwise.
  bool updatesWeights = false;
  /// Whether the graph computes saved tensors again already, to take less memory: nothing more is
  /// recomputed, and projections are stacked whole unless it is asked otherwise.
  bool isRecomputed = false;
  /// By op number, in which part of the graph it is. Groups in different parts are stacked alike:
  /// the search combines what the variants have in each (CombineVariants.h). Asked where there are
  /// several groups; nothing: all is one part.
  std::function<std::vector<int>(mlir::ModuleOp)> partOfOp = {};
  /// Where the ways to stack all groups of a part, with those of softmax, are more, all groups are
  /// stacked alike; and what is still more is left out.
  int64_t most = std::numeric_limits<int64_t>::max();
};
/// What messages name in the place of fused where it cannot be had, and what that takes.
inline constexpr std::string_view besideFused =
    "auto, which takes it unfused or decomposed, whichever is faster";
/// Throws Error(unsupported) where fused attention is asked for and no softmax of the graph, or no
/// kernel family of the target, can be in one; where none can be recomposed as was asked; and for a
/// site that cannot have the form that is asked of it. Pins of sites that the graph lacks are
/// passed over.
std::vector<Variant> proposeVariants(mlir::ModuleOp module, const VariantOptions &options);

/// Op numbers of a graph: position of each op in its block (terminator excluded).
std::vector<mlir::Operation *> numberedOps(mlir::Operation *graph);

/// The canonical kernel of a set of ops (or of a weft.kernel region). Axes are unified through the
/// dataflow.
Kernel toKernel(const std::vector<mlir::Operation *> &ops, const std::string &name);

/// The selection problem of one variant with its candidates.
select::Problem toProblem(mlir::Operation *graph, const std::vector<Rewrite> &rewrites,
                          const FusionResult &fusions);

/// Writes a plan into the graph: chosen ops become weft.kernel regions with `layouts` and `config`
/// attributes. Throws Error(checkFailed) if the plan leaves an op without a kernel.
mlir::OwningOpRef<mlir::ModuleOp> materialize(mlir::ModuleOp module, const select::Problem &problem,
                                              const select::SelectionResult &plan);

/// One line of the ordered list of graph passes, with the reason for its place.
struct PipelineStep {
  std::string_view pass, reason;
};
const std::vector<PipelineStep> &graphPipeline();

/// "paper", "default" or "none"; throws Error(badInput).
FuseRules parseFuseRules(const std::string &text);

/// Candidates as a graph attribute: [{name, ops, pattern}].
mlir::ArrayAttr candidatesAttribute(mlir::Operation *graph, const FusionResult &fusions);

/// Writes a proposal into its graph as the attributes weft.candidates and weft.records; earlier
/// records are kept.
void attachFusions(mlir::Operation *graph, const FusionResult &fusions);
/// Reads back what attachFusions wrote, edited or not. Throws Error(badInput) where the graph has
/// no candidates, and for a candidate that no fusion rule admits (rules `standard`; of `target`
/// what its families take).
FusionResult attachedFusions(mlir::Operation *graph, const FuseOptions &target = {});
/// Takes both away: a graph that is proposed for again starts without them.
void detachFusions(mlir::Operation *graph);

void registerGraphPipeline();  ///< --graph-pipeline: all passes with their defaults
void registerWeftPasses();     ///< for weft-opt: --fuse, --decompose-softmax, --decompose-norms,
                               ///< --stack-projections, ..

}  // namespace weft
