// A projection: the contraction of a tensor with a weight, in the form in which it is compared with
// others and stacked.
//
// Grouped query heads are two axes (g groups of r heads) where keys and values have one. Such a
// pair counts as one axis here if both stand next to each other, in one order, in the weight and in
// the result: "pgri,bji->pgrbj" is then the GEMM "phi,bji->phbj". Invariant: terms and extents
// are those after the merge; operands are those of the graph.
#pragma once

#include "passes/Rewrites.h"

#include <optional>
#include <string>
#include <vector>

namespace weft {

/// Two neighbouring axes that count as one: the position of the first in the weight and in the
/// result.
struct MergedPair {
  size_t weight = 0, result = 0;
};

struct Projection {
  ContractOp op;
  unsigned weightOperand = 0;
  std::string weightTerm, dataTerm, resultTerm;  ///< letters
  std::vector<int64_t> weightExtents;
  std::vector<std::string> weightAxes;  ///< names
  std::optional<MergedPair> merged = {};

  mlir::Value weight() const { return op->getOperand(weightOperand); }
  mlir::Value data() const { return op->getOperand(1 - weightOperand); }
  std::string spec() const;
};

/// Whether a value is an argument of the graph that is marked as a weight.
bool isParameter(mlir::Value value);
/// The operand that is a weight, if exactly one is.
std::optional<unsigned> weightOperandOf(ContractOp op);
Projection projectionOf(ContractOp op, unsigned weightOperand);

/// All members as the same GEMM after renaming letters, a pair of axes merged where that is
/// needed; nothing if they are different products. Extents are not compared.
std::optional<std::vector<Projection>> asOneGemm(const std::vector<Projection> &members);

/// The weight dimension to stack along: the only one whose extents differ; where all are equal the
/// heads, else the slowest that stays in the result. Nothing if extents differ in a dimension that
/// is reduced, or in two.
std::optional<size_t> stackedDimension(const std::vector<Projection> &members);

}  // namespace weft
