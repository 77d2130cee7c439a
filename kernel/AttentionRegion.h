// A fused attention: one kernel of
//
//    contraction of queries and keys ──> scores ──> [score ops] ──> online_softmax_contract
//                                                                   with values ──> output
//
// Recognised here once, by iteration spaces and never by names, for the families that accept such
// kernels and for the pass that proposes them.
//
// Invariant: the body opens with a contraction of two operands, the scores; every op after it but
// the last is element-wise over exactly the axes of the scores, reads the scores or a value
// computed from them at the element's own coordinates, and otherwise inputs: over some of these
// axes at the element's own coordinates, or at coordinates that the op computes from these (the
// table of a relative bias, the segments of a document mask); the last op is the fold, which reads
// the last of these values as scores and an input as values. The fold's results are all outputs,
// and there is no other. So a kernel that has a tile of scores in registers computes score ops
// element by element, and no score reaches memory.
//
// Packed tokens (kernel/Ragged.h): ops may unpack queries, keys and values in front of who reads
// them, all three by the same offsets, and others pack the output behind the fold, and the row
// statistic where there is one; then the tensors in memory are the packed ones, and rows of a
// sequence lie where its offset says.
//
// Pages (kernel/Pages.h): ops may gather the pages of keys and of values in front of who reads
// them, both through the same table; then the tensors in memory are the pages.
//
// Rotated queries: a rotary op may turn the queries in memory in front of the contraction, or of
// what unpacks them. A kernel loads queries once for a tile of them, and turns them then; keys,
// which it loads once for every tile of queries, are turned before they are stored.
#pragma once

#include "kernel/Expected.h"
#include "kernel/Kernel.h"
#include "kernel/RotaryStyle.h"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace weft {

/// An input of the score ops: neither queries, keys nor values.
struct ScoreInput {
  size_t input = 0;    ///< position in Kernel::inputs
  ValueId value = -1;  ///< Kernel::inputs[input]
  bool operator==(const ScoreInput &) const = default;
};

/// Queries, keys, values and output that lie packed, token after token. Axes are the kernel's.
struct PackedTokens {
  size_t input = 0;       ///< of the offsets: position in Kernel::inputs
  ValueId offsets = -1;   ///< Kernel::inputs[input]
  AxisId sequences = -1;  ///< axis of the batch whose elements are the sequences
  AxisId positions = -1;  ///< of queries in their sequence; those of keys run along keyAxis
  AxisId q = -1, k = -1, v = -1, output = -1;  ///< the axis of tokens of each
  AxisId logSums = -1;                         ///< the same; -1 where none are stored
  bool operator==(const PackedTokens &) const = default;
};

/// Keys and values that lie in pages. Axes are the kernel's.
struct PagedKeys {
  size_t input = 0;                         ///< of the table: position in Kernel::inputs
  ValueId table = -1;                       ///< Kernel::inputs[input]
  AxisId sequences = -1;                    ///< axis of the batch whose elements are the sequences
  AxisId kPages = -1, vPages = -1;          ///< axes of the pages
  AxisId kPositions = -1, vPositions = -1;  ///< axes of the positions in a page
  bool operator==(const PagedKeys &) const = default;
};

/// Queries that a rotary op rotates before scores are made of them: all of their heads, along the
/// one axis that scores are summed over, by positions of queries.
struct RotatedQueries {
  RotatedPairs pairs;   ///< `pairs.op` comes before the contraction
  size_t input = 0;     ///< of the starts: position in Kernel::inputs
  ValueId starts = -1;  ///< Kernel::inputs[input]: of sequences, or of packed tokens; -1: none
  bool operator==(const RotatedQueries &) const = default;
};

struct AttentionRegion {
  OpId contraction = 0;        ///< in Kernel::body: scores of queries and keys; first but for what
                               ///< unpacks, gathers or turns
  OpId fold = 0;               ///< in Kernel::body: online_softmax_contract; last but for packing
  std::vector<OpId> scoreOps;  ///< in Kernel::body, between the two, in order
  ValueId q = -1, k = -1, v = -1;             ///< values in memory
  size_t qInput = 0, kInput = 0, vInput = 0;  ///< their positions in Kernel::inputs
  ValueId scores = -1;                        ///< the contraction's result
  ValueId folded = -1;             ///< what the fold reads: `scores`, or the last score op's result
  ValueId output = -1;             ///< the fold's first result, or what packs it
  ValueId logSums = -1;            ///< its second, or what packs it; -1 if there is none
  double scale = 1;                ///< of the contraction
  bool hasDropout = false;         ///< the fold drops probabilities; a share of 0 is none
  bool readsTf32 = false;          ///< both contractions may read f32 as tf32
  std::vector<ScoreInput> inputs;  ///< in the order of Kernel::inputs
  std::optional<PackedTokens> packed = {};
  std::optional<PagedKeys> paged = {};
  std::optional<RotatedQueries> turned = {};

  // Axes of the kernel; each has one role. Axes of extent 1 have theirs too.
  AxisId keyAxis = -1;           ///< of keys and values: the fold reduces it
  std::vector<AxisId> headDim;   ///< reduced by the contraction: queries and keys have them
  std::vector<AxisId> valueDim;  ///< of values and output
  std::vector<AxisId> queries;  ///< of queries, scores and output, not of keys or values: positions
                                ///< of queries, and the query heads of a group
  std::vector<AxisId> batch;    ///< of all tensors: batch, heads (of keys)
  bool operator==(const AttentionRegion &) const = default;
};

/// Or why there is none: names the op, axis or tensor. The reference holds until the thread has
/// asked about other kernels (kernel/RecentAnswers.h).
const Expected<AttentionRegion, Reason> &attentionRegion(const Kernel &kernel);

/// Why an op cannot stand between scores and fold, by what it is alone; empty if it can.
std::string scoreOpRejection(const BodyOp &op);

/// Whether these ops of the body read an input at coordinates that they compute, and nowhere else:
/// its axes are then none of the scores'.
bool isReadElsewhereAlone(const Kernel &kernel, std::span<const OpId> ops, ValueId value);

}  // namespace weft
