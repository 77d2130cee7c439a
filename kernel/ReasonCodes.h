// Every reason for which weft does not do something that would save time or memory, in one table:
// what a code means, an example, and what to do about it. `weft explain CODE` prints an entry,
// docs/reason-codes.md holds all of them.
//
// Invariant: a code is stable. Once published it keeps its meaning; a code that is no longer given
// is left out but never reused.
//   F...  two ops (or sets of ops) may not share a kernel
//   A...  projections may not be stacked
//   N...  a norm may not be decomposed
//   V...  a slice or a concatenation copies instead of being a view
#pragma once

#include <array>
#include <string_view>

namespace weft {

struct ReasonCode {
  std::string_view code, reason, meaning;
  std::string_view example;  ///< ops or a command for which the code is given
  std::string_view remedy;   ///< what a user can do, or why there is nothing to do
};

namespace reasons {
inline constexpr ReasonCode spaceMismatch{
    "F001", "iteration-space-mismatch",
    "the iteration spaces differ by more than one reduced axis; the detail names the axes of both",
    "a bias over (b,j,u) beside a layer norm over (b,j,i): u and i are different axes",
    "none by a flag: the ops walk different elements. Fuse each with its own neighbours (weft "
    "explain DIR --fusion A,B)"};
inline constexpr ReasonCode accessTwice{"F002", "axis-identified-twice",
                                        "one intermediate tensor is read under two index maps, so "
                                        "two axes of the kernel would be one; the detail names it",
                                        "y = add x, transpose(x) with x computed by the same "
                                        "kernel: element (j,k) needs (j,k) and (k,j)",
                                        "none by a flag: store the intermediate tensor. Where the "
                                        "graph is yours, read it under one index map"};
inline constexpr ReasonCode extentMismatch{
    "F010", "extent-mismatch",
    "independent ops whose axes correspond by position have different extents there",
    "a bias over (b,j,i=1024) and one over (b,j,u=4096), merged into one launch",
    "none by a flag: one launch walks one extent. Equal extents (--dim) would allow it"};
inline constexpr ReasonCode reductionAxisMismatch{
    "F012", "reduction-axis-mismatch",
    "both sides reduce, over different axes: one kernel walks one reduced axis",
    "softmax over k -> sum over j: a block that holds a whole row of k holds one j",
    "none by a flag. A sum that an epilogue can take (a bias gradient behind a contraction) fuses "
    "with that contraction instead"};
inline constexpr ReasonCode contractionRule{
    "F020", "contraction",
    "rules `paper`: only scaling fuses into a contraction (its `scale` attribute)",
    "contract -> bias under --fuse-rules paper",
    "--fuse-rules default lets contractions take epilogues and prologues"};
inline constexpr ReasonCode contractionEpilogueOff{
    "F021", "contraction-epilogue-off",
    "no kernel family of the target takes the contraction with these ops after it; the detail "
    "names the contraction, or each "
    "family with its reason",
    "contract of f32 operands -> bias -> gelu: the tensor-core families take 8- and 16-bit "
    "operands, or tf32",
    "change what the detail names: --dtype f16, --tf32, another --device, or extents that the "
    "families take"};
inline constexpr ReasonCode contractionPrologue{
    "F022", "contraction-prologue",
    "a contraction reads its operand from memory: what computes it is no function of single "
    "elements, or the result has other readers",
    "layer_norm -> contract: a row's statistics need the whole row before its first element can be "
    "normalized",
    "--norms decomposed makes the norm sums and element-wise factors, which a contraction can "
    "take; --attention decomposed does so for a softmax"};
inline constexpr ReasonCode besideContraction{
    "F023", "beside-contraction",
    "the op does not need the contraction's result, so that its kernel would gain nothing by it",
    "a residual add that reads the contraction's input, and not its result",
    "nothing to do: no tensor would be saved"};
inline constexpr ReasonCode noEpilogue{
    "F024", "no-epilogue",
    "an op is no element-wise function of the contraction's result; the detail names it and says "
    "why",
    "contract -> residual -> layer_norm over the contraction's n axis: the norm needs values of "
    "other tiles",
    "--norms decomposed leaves row sums in the epilogue and applies them in the next kernel; "
    "--norms auto prices all forms"};
inline constexpr ReasonCode noPrologue{
    "F025", "no-prologue",
    "the ops before the contraction make no operand of single elements, rows and columns; the "
    "detail says why",
    "dropout -> contract: every tile that reads the operand would draw its mask again",
    "none by a flag: store the operand. The detail names the op; without it (--dropout 0 in "
    "inference) the rest may fuse"};
inline constexpr ReasonCode contractionPrologueOff{
    "F026", "contraction-prologue-off",
    "no kernel family of the target takes the contraction with these ops before it; the detail "
    "names each family with its reason",
    "normalize -> contract of f32 operands: prologues compute 16-bit operands",
    "change what the detail names: --dtype f16 or bf16, or another --device"};
inline constexpr ReasonCode attentionRegion{
    "F027", "attention-region",
    "an online_softmax_contract shares a kernel with the contraction and the element-wise ops that "
    "make its scores, and with a rotary op that turns its queries, if nothing else reads what they "
    "give; the detail names what is in the way",
    "contract -> rotary -> online_softmax_contract: an element's partner may lie in another tile "
    "of scores",
    "--attention unfused or decomposed stores the scores; return none of them, and let nothing "
    "else read them"};
inline constexpr ReasonCode attentionOff{
    "F028", "attention-off",
    "no kernel family of the target takes the fused attention; the detail names each family with "
    "its reason",
    "contract of f32 operands -> online_softmax_contract: tensor cores take 16-bit operands, or "
    "tf32",
    "change what the detail names: --dtype f16 or bf16, --tf32, or another --device; --attention "
    "unfused or decomposed runs everywhere"};
inline constexpr ReasonCode attentionBackwardRegion{
    "F032", "attention-backward-region",
    "a softmax_from_log_sums shares a kernel with the contractions of scores and of their "
    "gradients, and with those of d_q, d_k and d_v, if nothing else reads what lies between but "
    "one gradient of scores, which a bias may get; the detail names what is in the way",
    "biases in front of a soft cap and behind it, which have two gradients of scores",
    "none by a flag: the contractions run one by one, with the ops between in their epilogues. "
    "Where the bias needs no gradient, leave it out of --gradients-of"};
inline constexpr ReasonCode attentionBackwardOff{
    "F033", "attention-backward-off",
    "no kernel family of the target takes the backward pass of the fused attention; the detail "
    "names each family with its reason",
    "f32 operands: tensor cores take 16-bit operands",
    "change what the detail names: --dtype f16 or bf16, or another --device; without it forward "
    "may be fused all the same, and the backward pass runs kernel by kernel"};
inline constexpr ReasonCode attentionFamily{
    "F034", "attention-family",
    "a fused attention over packed tokens is taken by a kernel family of the target, though not by "
    "the one that is preferred to it; the detail names that one with its reason. The plan has what "
    "is predicted to be faster: the other family, or the preferred one between kernels that unpack "
    "and pack its tokens",
    "a block mask over packed tokens: the preferred family does not support block masks, another "
    "family of the target does",
    "leave out --ragged, so that tokens stay padded, or the block mask"};
inline constexpr ReasonCode wouldCreateCycle{
    "F030", "would-create-cycle",
    "a path between the ops leads through an op outside; the detail names that op",
    "local_softmax -> factors -> global_scaling: the first and the last in one kernel would wait "
    "for the factors, which wait for them",
    "include the op that the detail names (weft explain DIR --fusion A,OP), or choose a form "
    "without it (--attention unfused)"};
inline constexpr ReasonCode forwardAndBackward{
    "F031", "forward-and-backward",
    "one op belongs to the forward pass, which must run without the backward one; the detail names "
    "both ops",
    "the layer norm that ends the forward pass and the gradient that begins the backward pass",
    "none by a flag: entry points are called one by one, with the loss between them"};
inline constexpr ReasonCode partnerAccess{
    "F040", "partner-access",
    "a rotary op reads the partner of each element, so its operand must come from memory, and not "
    "from the same kernel, unless it is the contraction right before it: the detail says what is "
    "in "
    "the way",
    "norm of each head -> rotary: the partner of an element lies half a head away",
    "none by a flag: the operand is stored, and the rotary op is a separate kernel or joins what "
    "follows it"};
inline constexpr ReasonCode subVectorAccess{
    "F042", "sub-vector-access",
    "the op reduces sub-vectors of an axis, the other side whole axes: their rows differ",
    "local_softmax over sub-vectors of k -> sum over k",
    "--attention unfused keeps the softmax whole"};
inline constexpr ReasonCode forbiddenByOption{"F050", "forbidden-by-option",
                                              "--no-fuse names a pair of the ops",
                                              "--no-fuse residual1,norm1", "leave the flag out"};
inline constexpr ReasonCode rulesNone{"F051", "fusion-off", "--fuse-rules none",
                                      "--fuse-rules none",
                                      "--fuse-rules default, or --fuse A,B for single pairs"};
inline constexpr ReasonCode movementOp{
    "F060", "movement-op",
    "the op changes the index space and computes nothing: a view, or a separate kernel",
    "slice -> bias: the slice of a stacked projection is a view of it",
    "nothing to do where it is a view (0 us); weft explain DIR --all says why a copy is one (V001 "
    "to V005)"};
inline constexpr ReasonCode alreadyFused{
    "F061", "already-fused", "the op is a kernel region that the input fixed",
    "a .mlir file with weft.kernel regions, as --stop-after select writes it",
    "start from a graph without regions (--stop-after attention) to let selection choose"};
inline constexpr ReasonCode candidateBound{
    "F070", "candidate-bound",
    "the search stopped at its bound on ops in a candidate or on candidates",
    "thirteen element-wise ops in a row: a candidate holds at most twelve",
    "--fuse A,B admits the pair that matters; --part or fewer layers make a smaller graph"};

inline constexpr ReasonCode stackWeightIsNotParameter{
    "A010", "weight-is-not-a-parameter",
    "stacking concatenates weights at load, so they must be graph parameters",
    "q = contract x, wq where wq is computed by the graph",
    "declare the weight as a parameter ({weft.parameter} in a .mlir graph)"};
inline constexpr ReasonCode stackEinsumDiffers{
    "A011", "einsum-differs",
    "the contractions are not the same GEMM, even with letters renamed and neighbouring axes "
    "merged",
    "\"phi,bji->phbj\" beside \"hpi,bji->bjhp\"",
    "write both contractions with one einsum, or give the weights one order of axes"};
inline constexpr ReasonCode stackExtentsDiffer{
    "A012", "extents-differ", "the weights differ in more than one axis, so no axis can be stacked",
    "wq [64,16,1024] beside wk [32,8,1024]: p and h both differ",
    "none by a flag: a stack needs one axis along which the weights lie side by side"};
inline constexpr ReasonCode stackTypeDiffers{
    "A013", "element-types-differ", "the contractions store different types",
    "q in f16 beside k in f8e4m3",
    "give both contractions one element type and one precision (--dtype, --tf32)"};

inline constexpr ReasonCode normStatisticsAreRead{
    "N010", "statistics-are-read",
    "the mean or rstd of the norm is a result of the graph or an operand of its gradient, which "
    "reads what the whole norm gives",
    "any layer norm under --train: its gradient reads mean and rstd",
    "none in training; in inference, return neither statistic"};
inline constexpr ReasonCode normFactorStays{
    "N020", "factor-stays-before",
    "the factor of a row cannot be applied behind what reads the norm, or nothing before the norm "
    "could leave its sums; the detail says why",
    "a layer norm under --norms deferred: its mean has to be taken away before the GEMM sums "
    "along a row",
    "--norms decomposed applies the factors before the GEMM instead; --norms auto prices all "
    "forms"};

inline constexpr ReasonCode stridedViewNotTaken{
    "V001", "strided-view-not-supported",
    "the view would have strides, and who touches it takes none: a kernel that may read it, "
    "--strict without its measurements, or the caller",
    "a slice of a stacked projection along an inner axis, read by an epilogue",
    "measure strided views (weft profile DIR) where --strict rejects them; --stacking separate "
    "needs none"};
inline constexpr ReasonCode viewNotAligned{
    "V002", "part-not-aligned", "a view does not start at a multiple of the tensor's alignment",
    "a slice that starts at element 3 of an f16 axis whose rows are read 16 bytes at a time",
    "choose extents that are multiples of 8 (f16) or 4 (f32) elements (--dim)"};
inline constexpr ReasonCode callersBuffer{
    "V003", "callers-buffer", "arguments and results have separate buffers",
    "a graph that returns a slice of a tensor which it also stores",
    "return the whole tensor, and slice it where it is used"};
inline constexpr ReasonCode viewNotFree{
    "V004", "part-not-free",
    "an operand of the concatenation has another place already: it is given, kept for another "
    "entry point, in another stack, or the whole is the caller's",
    "concat of an argument and a computed tensor: the argument lies in the caller's memory",
    "--stacking separate avoids the concatenation; arguments can be given concatenated"};
inline constexpr ReasonCode viewNotWholeLines{
    "V005", "runs-not-whole-lines",
    "the view's contiguous runs are no multiples of a line of memory (128 bytes)",
    "a slice of 16 f16 elements along the fastest axis: runs of 32 bytes",
    "--pin the tensor so that the sliced axis is the slowest, or slice multiples of 64 f16 "
    "elements"};
}  // namespace reasons

/// The whole table, by letter and number.
inline constexpr std::array reasonCodes{reasons::stackWeightIsNotParameter,
                                        reasons::stackEinsumDiffers,
                                        reasons::stackExtentsDiffer,
                                        reasons::stackTypeDiffers,
                                        reasons::spaceMismatch,
                                        reasons::accessTwice,
                                        reasons::extentMismatch,
                                        reasons::reductionAxisMismatch,
                                        reasons::contractionRule,
                                        reasons::contractionEpilogueOff,
                                        reasons::contractionPrologue,
                                        reasons::besideContraction,
                                        reasons::noEpilogue,
                                        reasons::noPrologue,
                                        reasons::contractionPrologueOff,
                                        reasons::attentionRegion,
                                        reasons::attentionOff,
                                        reasons::wouldCreateCycle,
                                        reasons::forwardAndBackward,
                                        reasons::attentionBackwardRegion,
                                        reasons::attentionBackwardOff,
                                        reasons::attentionFamily,
                                        reasons::partnerAccess,
                                        reasons::subVectorAccess,
                                        reasons::forbiddenByOption,
                                        reasons::rulesNone,
                                        reasons::movementOp,
                                        reasons::alreadyFused,
                                        reasons::candidateBound,
                                        reasons::normStatisticsAreRead,
                                        reasons::normFactorStays,
                                        reasons::stridedViewNotTaken,
                                        reasons::viewNotAligned,
                                        reasons::callersBuffer,
                                        reasons::viewNotFree,
                                        reasons::viewNotWholeLines};

}  // namespace weft
