// The prologue of a contraction in a fused kernel: element-wise ops between one tensor in memory
// and one operand. Recognised here once; kernel/ContractionRegion.h combines it with the epilogue.
//
//    tensor in memory ──> element-wise ops ──> operand A or B ──> contraction ──> epilogue
//                            ^ scalars, one element a row, or one along k
//
// Invariant: every op before the contraction reads the tensor or the result of such an op, its
// result has exactly the axes of the operand, and only the contraction reads the last result. What
// else the ops read is one scalar, one element a row of the operand, or one along k. So a kernel
// that loads a few neighbouring elements of the operand computes them one by one, in fp32, and
// rounds them to the operand's element type, as if they had been stored, or scales the accumulators
// instead (ir/SPEC.md, "Contraction").
#pragma once

#include "kernel/Expected.h"
#include "kernel/StridedBatchedGemm.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace weft {

/// A tensor that the prologue reads besides the one that becomes the operand. It has each of the
/// operand's groups of axes (batch; outer: m or n; k) as a whole or not at all, and never both
/// outer and k; none: a scalar.
struct PrologueInput {
  size_t input = 0;    ///< position in Kernel::inputs
  ValueId value = -1;  ///< Kernel::inputs[input]
  bool isOverBatch = false, isOverOuter = false, isOverK = false;
  /// The factors of a global_scaling: besides rows they have an axis of sub-vectors, each of this
  /// many elements of k.
  int64_t subVector = 0;
  AxisId subVectorAxis = -1;
  bool operator==(const PrologueInput &) const = default;
};

struct ContractionPrologue {
  OpId contraction = 0;  ///< in Kernel::body; all ops before it are the prologue
  bool isOfA = true;     ///< which operand of the contraction it computes
  size_t input = 0;      ///< position in Kernel::inputs of the tensor that becomes the operand
  ValueId read = -1;     ///< Kernel::inputs[input]
  ValueId made = -1;     ///< the operand
  std::vector<PrologueInput> inputs;  ///< the others, in the order of Kernel::inputs
  bool operator==(const ContractionPrologue &) const = default;
};

/// Of a kernel that has contractionValues(): nothing where the contraction is the first op, or why
/// the ops before it are no prologue, naming the op or tensor.
Expected<std::optional<ContractionPrologue>, Reason> contractionPrologue(const Kernel &kernel);

/// Why an op cannot stand in a prologue, by what it is alone; empty if it can. Ops whose meaning is
/// a scalar expression can, and a global_scaling of whole vectors of eight.
std::string prologueRejection(const BodyOp &op);

/// Element strides of an input of the prologue, 0 along groups that it lacks; `k` is the stride
/// from one sub-vector to the next where the input has these.
struct PrologueStrides {
  int64_t batch = 0, outer = 0, k = 0;
  bool operator==(const PrologueStrides &) const = default;
};
/// Nothing where a group of axes does not merge in the order of the GEMM's operands.
std::optional<PrologueStrides> prologueStrides(const Kernel &kernel,
                                               const Configuration &configuration,
                                               const ContractionPrologue &prologue,
                                               const PrologueInput &input);
/// Why a kernel cannot read the inputs of a prologue under these layouts; empty if it can.
std::string prologueLayoutRejection(const Kernel &kernel, const Configuration &configuration,
                                    const ContractionPrologue &prologue);

}  // namespace weft
