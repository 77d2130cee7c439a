// The backward pass of a fused attention: one kernel of
//
//    contraction of queries and keys ────────────> scores ─┐
//                                                          ├─[element-wise ops]─> kept, d_scores
//    contraction of d_output and values ─────────> d_kept ─┘
//
//    contraction of kept and d_output over queries ──> d_v
//    contraction of d_scores and queries over queries ──> d_k
//    contraction of d_scores and keys over keys ──> d_q
//
// (FlashAttention, section 3.1 and algorithm 4.) Scores are computed again: a
// `softmax_from_log_sums` among the element-wise ops makes probabilities of them and of the row
// statistic that forward stored. What remains of the softmax's derivative is element-wise, with the
// sums of d_output * output over rows as a tensor.
//
// Recognised here once, by iteration spaces and never by names, for the families that accept such
// kernels and for the pass that proposes them.
//
// Invariant: the body has five contractions of two operands: two whose operands are inputs and
// whose results have the axes of scores, and three that read what element-wise ops give of these
// and an input that is an operand of the first two. All other ops are element-wise over exactly the
// axes of the scores; they read each other's results and scores at the element's own coordinates,
// and otherwise inputs as score ops of AttentionRegion.h do. One of them, and one alone, is
// `softmax_from_log_sums`. The results of the last three contractions are outputs, all of them, and
// d_scores or a gradient in front of it, zero wherever the probability is, may be one more: what
// the gradient of a bias is, or is summed from. So a kernel that has
// tiles of both products in registers computes what lies between element by element, and nothing
// else of the extent of scores reaches memory.
//
// Packed tokens (kernel/Ragged.h): ops may unpack queries, keys, values, d_output and tensors of
// rows in front of who reads them, and others pack the three gradients, all by the same offsets;
// then the tensors in memory are the packed ones.
#pragma once

#include "kernel/AttentionRegion.h"
#include "kernel/Expected.h"

namespace weft {

/// A tensor of rows that lies packed: what ops read, and what is in memory.
struct PackedRow {
  ValueId read = -1, stored = -1;
  AxisId tokens = -1;  ///< of what is in memory
  bool operator==(const PackedRow &) const = default;
};

/// As PackedTokens of an attention: operands and gradients that lie packed.
struct PackedGradients {
  size_t input = 0;       ///< of the offsets: position in Kernel::inputs
  ValueId offsets = -1;   ///< Kernel::inputs[input]
  AxisId sequences = -1;  ///< axis of the batch whose elements are the sequences
  AxisId positions = -1;  ///< of queries in their sequence; those of keys run along keyAxis
  AxisId q = -1, k = -1, v = -1, dOutput = -1;  ///< the axis of tokens of each
  AxisId dQ = -1, dK = -1, dV = -1;
  std::vector<PackedRow> rows = {};  ///< the logarithms of sums come first
  bool operator==(const PackedGradients &) const = default;
};

struct AttentionBackwardRegion {
  // In Kernel::body.
  OpId scoresContraction = 0;    ///< of queries and keys
  OpId dKeptContraction = 0;     ///< of d_output and values
  OpId probability = 0;          ///< softmax_from_log_sums
  std::vector<OpId> scoreOps;    ///< element-wise ops from scores to the probability's operand
  std::vector<OpId> elementOps;  ///< all element-wise ops, in order: `scoreOps`, `probability`,
                                 ///< dropouts, the derivatives
  OpId dVContraction = 0, dQContraction = 0, dKContraction = 0;

  // Values. Of packed tokens the inputs, the gradients and `logSums` are what is in memory.
  ValueId q = -1, k = -1, v = -1, dOutput = -1;  ///< inputs of the kernel
  ValueId logSums = -1;                          ///< input: of probability, f32
  ValueId scores = -1, dKept = -1;               ///< results of the first two contractions
  ValueId kept = -1;  ///< operand of dV's contraction: probabilities, or what dropout keeps of them
  ValueId dScores = -1;               ///< operand of those of dQ and dK
  ValueId dQ = -1, dK = -1, dV = -1;  ///< outputs of the kernel
  ValueId storedScores = -1;          ///< output, too: dScores, or another of elementOps; -1: none
  double scoresScale = 1, dKeptScale = 1, dVScale = 1, dQScale = 1, dKScale = 1;
  bool hasDropout = false;  ///< some dropout among elementOps drops anything
  bool readsTf32 = false;   ///< all five contractions may read f32 as tf32
  /// Inputs of the element-wise ops, in the order of Kernel::inputs; `logSums` and the sums of rows
  /// are among them, where they are not packed.
  std::vector<ScoreInput> inputs;
  std::optional<PackedGradients> packed = {};

  // Axes of the kernel; each has one role, as in AttentionRegion.
  AxisId keyAxis = -1;           ///< of keys and values; dQ's contraction reduces it
  std::vector<AxisId> headDim;   ///< of queries, keys, dQ, dK
  std::vector<AxisId> valueDim;  ///< of values, d_output, dV
  std::vector<AxisId> queries;   ///< of queries, scores and d_output, not of keys or values:
                                 ///< positions of queries, and the query heads of a group
  std::vector<AxisId> batch;     ///< of all tensors
  bool operator==(const AttentionBackwardRegion &) const = default;
};

/// Or why there is none: names the op, axis or tensor. The reference holds until the thread has
/// asked about other kernels (kernel/RecentAnswers.h).
const Expected<AttentionBackwardRegion, Reason> &attentionBackwardRegion(const Kernel &kernel);

}  // namespace weft
