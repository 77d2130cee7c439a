// A fused contraction: one kernel of
//
//    [prologue] ──> contraction of two operands ──> C ──> [epilogue]
//
//    prologue   element-wise ops between a tensor and one operand (kernel/ContractionPrologue.h)
//    epilogue   element-wise ops on C; reductions of their results to the rows or the columns of C;
//               or a local softmax at the end, and a dropout of its exponentials
//
// Recognised here once, for the families that accept such kernels and for the passes that propose
// them.
//
// Invariant: every op after the contraction except reductions and the local softmax reads C or a
// value computed from C and writes a tensor over exactly the axes of C (perhaps in another logical
// order); what else it reads is an input over some of these axes, or the element's coordinates
// along them (masks). A rotary embedding, at the start, reads the partner of its element besides.
// So a kernel that has the accumulators of C in registers computes the epilogue
// element by element. No op reads a reduction, which is complete only when all of C is. A local
// softmax is the last op, but for a dropout of its exponentials.
#pragma once

#include "kernel/ContractionPrologue.h"
#include "kernel/Expected.h"
#include "kernel/RotaryStyle.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace weft {

/// Along which axes of C an input of the epilogue runs; axes of extent 1 do not count.
enum class EpilogueRole : uint8_t {
  result,    ///< all of them: one element for each of C (residual, the operand of a derivative, a
             ///< mask)
  m,         ///< those of group m: one element a row of the GEMM
  n,         ///< those of group n: one element a column
  scalar,    ///< none
  mixed,     ///< any others: part of a group, the batch, or several groups
  gathered,  ///< not at C's coordinates: ops compute where they read it, in any axes
};
/// "result", "m".
std::string_view nameOf(EpilogueRole role);

/// A tensor that the epilogue reads.
struct EpilogueInput {
  size_t input = 0;    ///< position in Kernel::inputs
  ValueId value = -1;  ///< Kernel::inputs[input]
  EpilogueRole role = EpilogueRole::result;
  bool operator==(const EpilogueInput &) const = default;
};

/// A reduction: the sum of C, or of a value of the epilogue, over all axes of C but those of one
/// group: the gradient of a bias (n), the sums from which the statistics of a norm follow (m).
struct EpilogueReduction {
  OpId op = 0;                          ///< in Kernel::body
  size_t output = 0;                    ///< position in Kernel::outputs, never the first
  ValueId value = -1;                   ///< what is summed: C or a value of the epilogue
  EpilogueRole role = EpilogueRole::n;  ///< the group whose axes are kept: m or n
  bool operator==(const EpilogueReduction &) const = default;
};

/// A local softmax at the end ("Recomposing Softmax Layers", section 3.2): the first output has
/// exponentials, each against the maximum of its sub-vector, or what a dropout keeps of them; two
/// others have one element a sub-vector.
struct EpilogueSoftmax {
  OpId op = 0;                ///< in Kernel::body, the last one
  ValueId value = -1;         ///< the operand: C or a value of the epilogue
  int64_t length = 0;         ///< of sub-vectors, elements; the last one of a row may be shorter
  AxisId subVectorAxis = -1;  ///< of the kernel, which numbers them
  EpilogueRole role = EpilogueRole::n;  ///< the group whose only axis they divide: m or n
  size_t maxima = 0, sums = 0;          ///< positions in Kernel::outputs
  /// A dropout of the exponentials: the op in Kernel::body, and the position of its result in
  /// Kernel::outputs. A backward pass reads all exponentials; without one the result is the first
  /// output, and they are not stored.
  struct Dropped {
    OpId op = 0;
    size_t output = 0;
    bool operator==(const Dropped &) const = default;
  };
  std::optional<Dropped> dropped = {};
  bool operator==(const EpilogueSoftmax &) const = default;
};

struct ContractionRegion {
  OpId contraction = 0;            ///< in Kernel::body; the first op but those of the prologue
  GemmInputs operands;             ///< positions of A and B in Kernel::inputs; for the operand of a
                                   ///< prologue the tensor that becomes it
  ValueId a = -1, b = -1, c = -1;  ///< their values
  std::optional<ContractionPrologue> prologue = {};
  std::vector<OpId>
      epilogue;  ///< element-wise ops in Kernel::body, in order; empty for the contraction alone
  std::vector<EpilogueInput> inputs;  ///< of the epilogue, in the order of Kernel::inputs
  std::vector<EpilogueReduction>
      reductions;  ///< in the order of the body; only GEMMs without a batch have them
  std::optional<EpilogueSoftmax> softmax = {};  ///< nothing but its results is stored then
  /// A rotary embedding of what the contraction gives: the only op that reads another element than
  /// its own, its partner. It comes first, but for masks of tokens, which turn with what they mask.
  /// Pairs and `among` are on one side of the GEMM, positions on the other one or in the batch.
  std::optional<RotatedPairs> rotary = {};
  bool storesAccumulator = false;  ///< C itself is an output, besides values computed from it
  bool operator==(const ContractionRegion &) const = default;

  /// Whether nothing follows the contraction.
  bool isPlain() const { return epilogue.empty() && reductions.empty() && !softmax; }
  /// Whether this output is a reduction.
  bool isSum(size_t output) const;
  /// Whether this output has the axes of C: all but reductions, and maxima and sums of sub-vectors.
  bool isWhole(size_t output) const;
  /// The epilogue, and the dropout of exponentials.
  std::vector<OpId> elementwiseOps() const;
  /// The number of outputs with the axes of C.
  size_t wholeOutputs(const Kernel &kernel) const;
};

/// Or why there is none: names the op or tensor. All of Kernel::outputs are C, values of the
/// epilogue over the axes of C, or reductions; the first is no reduction. The reference holds until
/// the thread has asked about other kernels (kernel/RecentAnswers.h).
const Expected<ContractionRegion, Reason> &contractionRegion(const Kernel &kernel);

/// The groups of axes of the region's GEMM, each from slowest to fastest as the first output has
/// them in `layout`.
ContractionGroups groupsAsLaidOut(const Kernel &kernel, const ContractionRegion &region,
                                  const Layout &layout);

/// Strides of a value by axis, of axes longer than 1: equal strides are equal layouts.
std::map<AxisId, int64_t> stridesByAxis(const Kernel &kernel, ValueId value, const Layout &layout);
/// Whether the axes of an input of role m or n merge to one with stride 1, in the order that
/// `groups` has them.
bool isContiguous(const Kernel &kernel, const ContractionGroups &groups, const EpilogueInput &input,
                  const Layout &layout);
/// The same of a reduction.
bool isContiguous(const Kernel &kernel, const ContractionGroups &groups,
                  const EpilogueReduction &sum, const Layout &layout);

/// Element strides of the maxima or sums of sub-vectors: along the batch, along the group that
/// sub-vectors do not divide, and from one sub-vector of a row to the next. Nothing where a group
/// does not merge.
struct SubVectorStrides {
  int64_t batch = 0, row = 0, subVector = 0;
  bool operator==(const SubVectorStrides &) const = default;
};
std::optional<SubVectorStrides> subVectorStrides(const Kernel &kernel,
                                                 const Configuration &configuration,
                                                 const ContractionRegion &region, size_t output);
/// Why a kernel whose lanes hold blocks of 16 x 16 of C cannot end with the region's local softmax;
/// empty if it can, or if there is none. columnsAreN: C is contiguous along group n.
std::string softmaxRejection(const Kernel &kernel, const Configuration &configuration,
                             const ContractionRegion &region, bool columnsAreN);

/// What of the layouts decides the time of a fused contraction: the strides of the GEMM, those of
/// all other tensors relative to its result or the operand, and how dropout draws. Configurations
/// of one kernel with equal forms and knobs differ in names of axes alone, and take the same time.
/// Throws Error(checkFailed) where the kernel is no such contraction or the layouts are no GEMM.
std::string contractionForm(const Kernel &kernel, const Configuration &configuration);

/// Side of the block of C, in elements; each lane of a warp holds eight elements of a block.
constexpr int64_t fragmentBlockSide = 16;
/// Whether one mix of words draws for the eight elements of a lane (ir/SPEC.md, "Dropout bits"),
/// where a dropout runs over `axes` and rows and columns of the block run along these groups. With
/// the groups exchanged it takes two mixes; otherwise one for every element.
bool drawsByFragment(const Kernel &kernel, const std::vector<AxisId> &axes,
                     const std::vector<AxisId> &rows, const std::vector<AxisId> &columns);

/// Why an op cannot stand in an epilogue, by what it is alone; empty if it can. Dropout and the ops
/// whose meaning is a scalar expression can, of coordinates too (masks), unless it reads an operand
/// elsewhere (rotary embedding, a mask by blocks).
std::string epilogueRejection(const BodyOp &op);

}  // namespace weft
