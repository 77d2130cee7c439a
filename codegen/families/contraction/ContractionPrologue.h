// The prologue of a fused contraction as statements: what becomes of eight neighbouring elements on
// the way to an operand. For every family that makes operands so (codegen/device/prologue.cuh).
#pragma once

#include "codegen/Names.h"
#include "codegen/Program.h"
#include "kernel/ContractionPrologue.h"

namespace weft::codegen {

/// What the family has decided and named.
struct PrologueContext {
  const Kernel &kernel;
  const Configuration &configuration;
  const ContractionPrologue &prologue;
  Names &names;
  std::vector<std::string> axes;     ///< constants with the extents of the kernel's axes
  std::vector<std::string> inputs;   ///< pointers, one per Kernel::inputs; that of the tensor that
                                     ///< the operand is made of is not used
  std::string outerExtent, kExtent;  ///< "gemm.m", "gemm.k": constants
  bool isAlongK = true;              ///< whether neighbours in memory run along k
};

/// A function `float (&x)[8], const weft::OperandPlace &at` that replaces eight elements by those
/// of the operand.
struct PrologueText {
  std::vector<std::string> headers = {};
  std::vector<ConstantLine> constants = {};
  Block before = {};           ///< before the skeleton is called: scalars
  std::string arguments = {};  ///< the function's parameters
  Block body = {};
};

/// The configuration has prologueLayoutRejection() empty.
PrologueText prologueText(const PrologueContext &context);

}  // namespace weft::codegen
