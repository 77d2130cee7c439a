// Graph rewrites that variants are made of. Each keeps what the graph computes; none decides
// whether it pays.
#pragma once

#include "passes/fuse/Fusion.h"

#include "ir/Weft.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace weft {

struct DifferentiateOptions {
  std::vector<std::string> withRespectTo = {};  ///< names of arguments; empty: all that hold floats
  std::vector<std::string> recompute =
      {};  ///< element-wise results and norms that the backward pass computes again
  bool scalesLoss =
      false;  ///< the gradient of a loss is an argument, which scales all gradients; else it is 1
};

/// Appends the backward pass to a graph. Its results gain the gradient of every wanted argument
/// (result attribute weft.gradient_of), its arguments the gradient of every result (d_NAME), unless
/// the graph ends in a loss: a scalar, or the result marked weft.loss. Forward tensors that the
/// backward ops read are listed in the graph's attribute weft.saved. Fails with a diagnostic at the
/// op or argument: no derivative, an argument of integers, a loss that is no scalar, unknown names.
/// `origins`, if any, gets for each op of the backward pass the forward op that it is a derivative
/// of, or whose result's gradient it adds up; sums of gradients of arguments have none.
using GradientOrigins = std::map<mlir::Operation *, mlir::Operation *>;
mlir::LogicalResult differentiate(GraphOp graph, const DifferentiateOptions &options,
                                  GradientOrigins *origins = nullptr);

/// An element-wise result that the backward pass of a differentiated graph reads, and that it may
/// compute again instead.
struct Recomputation {
  std::vector<mlir::Operation *>
      chain;  ///< what is computed again, in graph order; the last one's result is saved now
  int64_t bytesLess =
      0;  ///< moved, if forward need not store the result and every kernel can be fused
  std::string name() const;  ///< of the last one's result
};

/// Those that may pay, the one that moves least first: nothing stores the result but for the
/// backward pass, and what it is computed from is stored anyway. Nothing for a graph without a
/// backward pass.
std::vector<Recomputation> findRecomputations(GraphOp graph);

/// Clones the chain in front of its first reader in the backward pass, and lists anew what is
/// saved.
void recompute(GraphOp graph, const Recomputation &recomputation);

/// What a differentiated graph may compute again for its memory, each as names for recompute(): the
/// chains of findRecomputations(), and every norm whose result the backward pass reads.
std::vector<std::vector<std::string>> recomputableNames(GraphOp graph);
/// Clones the ops of these names into the backward pass, and lists anew what is saved. A diagnostic
/// for a name that is no saved tensor, or whose op is neither element-wise nor a norm.
mlir::LogicalResult recompute(GraphOp graph, const std::vector<std::string> &names);

struct AdamWOptions {
  double beta1 = 0.9, beta2 = 0.999;
};

/// Replaces the gradient of every parameter among the results of a differentiated graph by one step
/// of AdamW: parameters become arguments NAME, with f32 arguments NAME_mean and NAME_square beside
/// them, and of f16 and bf16 NAME_master, marked weft.master_of, which NAME is the rounding of.
/// Results NAME_next, NAME_mean_next, NAME_square_next and NAME_master_next, marked weft.update_of,
/// are what the next step takes. Rate, decay and bias correction come as the scalars keep,
/// step_size and epsilon, and with a master what undoes the scale of the loss as inverse_loss_scale
/// (differentiate/AdamW.cpp). Fails with a diagnostic without gradients, and for parameters of
/// other floats.
mlir::LogicalResult appendAdamW(GraphOp graph, const AdamWOptions &options);

/// Contractions of one tensor with weights that could be one contraction with stacked weights, in
/// graph order.
struct ProjectionGroup {
  mlir::Value data;
  std::vector<ContractOp> projections;
  std::string name() const;  ///< the names of the results: "q-k-v"
};

/// Groups of at least two. Projections that read a common tensor but cannot be stacked leave a
/// record (codes A...).
std::vector<ProjectionGroup> findProjectionGroups(GraphOp graph,
                                                  std::vector<FusionRecord> &records);

/// What becomes of the rotary embeddings of stacked projections.
enum class StackedRotation : uint8_t {
  together,  ///< neighbours that turn alike are turned as one slice of the stack
  inStack,   ///< one of the whole stack turns them alone: it may stand behind the contraction
  apart      ///< each turns its slice: that of queries may stand in an attention that loads them
};

/// Replaces members `first` .. `last` of a group by one contraction ("Data Movement Is All You
/// Need", A.5.2): weights are concatenated along the head axis (else along the slowest axis that
/// stays; a pair of head axes is merged first, see algebra/Projection.h), results are slices.
/// Biases that follow every member are concatenated too and added once, before slicing.
/// Concatenations of parameters happen once, at load.
void stackProjections(const ProjectionGroup &group, size_t first, size_t last,
                      StackedRotation turn = StackedRotation::together);

/// Whether rotary embeddings turn some projections of a group, and not all.
bool isRotatedInPart(const ProjectionGroup &group);
/// Whether any projection is read by a rotary embedding alone, wherever its positions start.
bool isRotatedAnywhere(const ProjectionGroup &group);

/// One projection of a group in the backward pass: the gradient of its result, and the products
/// that it is an operand of.
struct GradientProjection {
  mlir::Value weight, gradient;
  ContractOp ofInput, ofWeight;
  /// Where two neighbouring axes (groups of heads) count as one, the position of the first in the
  /// weight and in the gradient.
  std::optional<std::pair<size_t, size_t>> merged = {};
};

/// Members `first` to `last`.
struct MemberRange {
  size_t first = 0, last = 0;
};

/// The backward pass of a group of projections, in their order. Gradients of the input are terms of
/// one sum.
struct GradientGroup {
  std::vector<GradientProjection> members;
  size_t weightDimension = 0,
         gradientDimension = 0;  ///< along which weights and gradients are stacked
  std::string name(const MemberRange &range) const;  ///< the names of the weights: "wq-wk"
};

/// Nothing where the graph has no backward pass, or its products cannot be stacked.
std::optional<GradientGroup> gradientsOf(const ProjectionGroup &group);

/// One GEMM for the gradient of the common input of some members, and one for those of their
/// weights. What is stacked both ways stands in one tensor. `afterInputs`, if any, is called when
/// the first is there.
void stackGradients(const GradientGroup &group, const std::optional<MemberRange> &inputs,
                    const std::optional<MemberRange> &weights,
                    const std::function<void()> &afterInputs = {});

/// softmax -> local_softmax {tile}, reduce_subvectors, global_scaling ("Recomposing Softmax
/// Layers", section 3.2).
GlobalScalingOp decomposeSoftmax(SoftmaxOp softmax, int64_t tile);

/// Why a softmax cannot be recomposed: names the forward reader of its probabilities that forbids
/// it, as attentionRejection() does. Empty if it can.
std::string recomposeRejection(SoftmaxOp softmax);
/// decomposeSoftmax() whose last step can join the contraction that reads it: a dropout behind the
/// scaling goes before it, and a backward pass scales and drops exponentials again, for which these
/// and the factors are saved ("Recomposing Softmax Layers", section 6). Requires an empty
/// recomposeRejection().
void recomposeSoftmax(SoftmaxOp softmax, int64_t tile);
/// All of a graph that can. Returns how many.
int recomposeSoftmaxes(GraphOp graph, int64_t tile);

/// What becomes of factors between probabilities and the contraction that reads them.
enum class Gates : uint8_t {
  stay,    ///< as ops that read probabilities
  commute  ///< commuteGates() moves them
};

/// Why probabilities (the result of a softmax or of its global scaling, along `axis`) cannot reach
/// a fold: names the reader that forbids it. Empty if their only reader, through casts, a dropout
/// and gates that commute at most, is a contraction over that axis alone. `counts`: which readers
/// count.
std::string attentionRejection(
    mlir::Value probabilities, int64_t axis, Gates gates,
    llvm::function_ref<bool(mlir::Operation *)> counts = [](mlir::Operation *) { return true; });

/// attentionRejection() of all readers of a softmax. Gates stay in a graph with a backward pass,
/// whose derivatives read what they read.
std::string forwardRejection(SoftmaxOp softmax);

/// Gates of probabilities, by which scale, mul and div multiply them element by element, move to
/// where no product of keys and queries is: a constant into the factor of the contraction that
/// reads the probabilities, one without the softmax's axis behind it, one with that axis and no
/// axis of queries to the values. Requires an empty forwardRejection(). Returns how many.
int commuteGates(SoftmaxOp softmax);
/// All of a graph that can: before differentiate(), which gives gates gradients where they stand.
/// Gates stay where ops that would vanish or change have one of these names.
int commuteGates(GraphOp graph, const std::vector<std::string> &kept = {});

/// global_scaling, [dropout], contract -> subvector_contract, which drops exponentials, and
/// contract over the sub-vectors with the factors. Requires an empty attentionRejection(). Returns
/// the second contraction.
ContractOp commuteScaling(GlobalScalingOp scaling);
/// All of a graph that can. Returns how many.
int commuteScalings(GraphOp graph);

/// local_softmax, reduce_subvectors, subvector_contract, contract -> online_softmax_contract, and
/// scale if the contraction, which `sum` is, has one. Null, and no change, where the ops before
/// `sum` are others, or where anything else reads a result between them. With or without the
/// logarithms of the sums as a second result.
OnlineSoftmaxContractOp foldSoftmax(ContractOp sum, bool withLogSums = false);
/// All of a graph that can. Returns how many.
int foldSoftmaxes(GraphOp graph);

/// Why the backward pass of a differentiated graph cannot compute the probabilities of a softmax
/// again: names the op that forbids it. Empty if forward reads them as attentionRejection() asks,
/// and every softmax_dx of them reads the gradient that comes of that contraction.
std::string recomputeAttentionRejection(SoftmaxOp softmax);

/// Forward: softmax, [casts, dropout], contract -> online_softmax_contract with the logarithms of
/// the sums. Backward: scores are computed again, softmax_from_log_sums makes probabilities of
/// them, and softmax_dx becomes element-wise, with sums over rows of the output times its gradient.
/// What is saved is listed anew. `withAllGradients`: of queries, keys and values the gradients that
/// the backward pass lacks are computed, too, for nobody to read, since the kernel of a backward
/// pass gives all three, packed where the others are. Returns how many. Requires an empty
/// recomputeAttentionRejection().
int recomputeAttention(SoftmaxOp softmax, bool withAllGradients = false);
/// All of a graph that can. Returns how many.
int recomputeAttentions(GraphOp graph);

/// Bounds of its segments (weft.tile_bounds) for every document mask whose segments the mask of a
/// fold has, so that a kernel of both may skip tiles. One op a tensor of segments. Returns how many
/// masks.
int boundDocumentMasks(GraphOp graph);

/// layer_norm -> sums of x and of its squares by rows, in fp32, and normalize with mul and add;
/// rms_norm -> sums of squares, and rms_normalize with mul. The sums may join what computes x, the
/// rest what reads y. A norm whose statistics are read stays as it is. `deferred`: RMS norms alone,
/// of computed tensors that contractions read and sum along the rows. These read x * gamma, and the
/// factor of each row is applied behind them: rms_normalize of their results. All others stay
/// whole. One record a norm (codes N...), with op numbers of the graph before.
enum class NormSteps : uint8_t { decomposed, deferred };
using NormFilter = llvm::function_ref<bool(mlir::Operation *)>;
/// Those that are not `isMeant` stay whole, without a record.
std::vector<FusionRecord> decomposeNorms(
    GraphOp graph, NormSteps steps = NormSteps::decomposed,
    NormFilter isMeant = [](mlir::Operation *) { return true; });
/// Whether there is one that it takes.
bool hasDecomposableNorm(
    GraphOp graph, NormSteps steps = NormSteps::decomposed,
    NormFilter isMeant = [](mlir::Operation *) { return true; });
bool isNorm(mlir::Operation *op);
/// Why decomposeNorms() leaves a norm whole; empty if it does not.
std::string normRejection(mlir::Operation *norm, NormSteps steps);

/// contract, then scale -> contract {scale}: the one fusion into contractions that the paper's
/// rules allow. Returns how many were folded.
int foldScales(GraphOp graph);

/// A dropout of the backward pass that became a scale, because what its only reader reads beside it
/// holds the mask.
struct ImpliedMask {
  mlir::Value scaled, reader, dropped;
};

/// relu_dx(dropout g, dropout y), of one mask -> relu_dx(scale g, dropout y): ops keep their
/// numbers and results their names.
std::vector<ImpliedMask> leaveOutImpliedMasks(GraphOp graph);

/// Masks packed tokens from their number on, to zero, wherever a tensor over them may be stored:
/// behind each chain of element-wise ops. So a kernel says which rows it need not compute, and with
/// which number (`weft.mask tokens`). What stands there is not specified before (SPEC.md,
/// "Sequences of different lengths"). Returns how many masks it set; none in a graph that has them.
int maskUnusedTokens(GraphOp graph);

/// Runs what is computed token by token over packed tokens (weft.pack), of a graph whose padding
/// masks say how many tokens each sequence has. What relates tokens, attention above all, stays
/// padded, between weft.unpack and weft.pack; results of the graph are unpacked, and zero behind
/// the tokens of each sequence, where the padded graph's hold anything. `axis`: the name of the
/// arguments' axis of positions. Before differentiate, whose gradients are then packed, too. Why
/// the graph cannot be packed; empty if it was.
std::string packSequences(GraphOp graph, const std::string &axis);

/// Records as an attribute for FileCheck and `explain`: [{pass, pattern, ops, accepted, code,
/// ...}].
mlir::ArrayAttr recordsAttribute(mlir::MLIRContext *context,
                                 const std::vector<FusionRecord> &records);

}  // namespace weft
