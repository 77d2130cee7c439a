// What is before a contraction in a fused kernel: element-wise ops on the way from one tensor
// in memory to one of the operands. Recognised here once; kernel/ContractionRegion.h joins it with
// what follows the contraction.
//
// Invariant: every op before the contraction makes, of the tensor that is read or of what such an
// op made, a tensor over exactly the axes of the operand, and the last result is read by the
// contraction alone. What else they read is one scalar, one element a row of the operand, or one
// along k. So a kernel that has a few neighbouring elements of the operand on the way to the
// tensor cores makes them one by one, in fp32, and rounds them to the operand's element type, as if
// they had been stored, or scales sums of products in their place (ir/SPEC.md, "Contraction").
#pragma once

#include "kernel/StridedBatchedGemm.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace weft {

/// A tensor that the prologue reads beside the one that becomes the operand. Of the operand's
/// groups of axes (batch; outer: m or n; k) it has each as a whole or not at all, and never both
/// outer and k; none: a scalar.
struct PrologueInput {
  size_t input = 0;  ///< position in Kernel::inputs
  int value = -1;    ///< Kernel::inputs[input]
  bool isOverBatch = false, isOverOuter = false, isOverK = false;
  /// The factors of a global_scaling: beside the rows they run along sub-vectors of so many
  /// elements of k, a separate kernel axis.
  int64_t subVector = 0;
  int subVectorAxis = -1;
  bool operator==(const PrologueInput &) const = default;
};

struct ContractionPrologue {
  size_t contraction = 0;  ///< in Kernel::body; all ops before it are the prologue
  bool isOfA = true;       ///< which operand of the contraction it makes
  size_t input = 0;        ///< position in Kernel::inputs of the tensor that becomes the operand
  int read = -1;           ///< Kernel::inputs[input]
  int made = -1;           ///< the operand
  std::vector<PrologueInput> inputs;  ///< the others, in the order of Kernel::inputs
  bool operator==(const ContractionPrologue &) const = default;
};

struct ContractionPrologueOrRejection {
  std::optional<ContractionPrologue> prologue =
      {};  ///< none also where the contraction is the first op
  std::string rejection =
      {};  ///< why the ops before the contraction are no prologue: names the op or tensor
};
/// Of a kernel that has contractionValues().
ContractionPrologueOrRejection contractionPrologue(const Kernel &kernel);

/// Why an op cannot stand in a prologue, by what it is alone; empty if it can. Ops whose meaning is
/// a scalar expression can, and a global_scaling of whole vectors of eight.
std::string prologueRejection(const BodyOp &op);

/// Element strides of an input of the prologue, 0 along what it does not have; k is that of
/// sub-vectors where it runs along these.
struct PrologueStrides {
  int64_t batch = 0, outer = 0, k = 0;
  bool operator==(const PrologueStrides &) const = default;
};
/// Nothing where a group of axes does not merge in the order that the GEMM's operands have.
std::optional<PrologueStrides> prologueStrides(const Kernel &kernel,
                                               const Configuration &configuration,
                                               const ContractionPrologue &prologue,
                                               const PrologueInput &input);
/// Why the inputs of a prologue do not lie so that a kernel reads them; empty if they do.
std::string prologueLayoutRejection(const Kernel &kernel, const Configuration &configuration,
                                    const ContractionPrologue &prologue);

}  // namespace weft
