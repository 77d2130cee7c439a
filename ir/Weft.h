// The weft dialect in one header: attributes, ops and the interface every op answers. Meaning:
// SPEC.md.
#pragma once
#ifndef WEFT_IR_WEFT_H  // beside a precompiled header of a compiler cache
#define WEFT_IR_WEFT_H

#include "ir/Derivation.h"
#include "ir/IterationSpace.h"
#include "ir/Types.h"
#include "kernel/Configuration.h"
#include "kernel/InitialValue.h"
#include "kernel/Kernel.h"
#include "kernel/RotaryStyle.h"
#include "kernel/TrainingRole.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/TensorEncoding.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <cmath>
#include <limits>

#include "ir/WeftDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "ir/WeftAttributes.h.inc"

namespace weft {

// What the generated op classes share; one definition each.
mlir::ParseResult parseStatement(mlir::OpAsmParser &parser, mlir::OperationState &result);
void printStatement(mlir::OpAsmPrinter &printer, mlir::Operation *op);
/// The names that results were written with become the op's location (names that are numbers carry
/// nothing).
void keepResultNames(mlir::OpAsmParser &parser, mlir::OperationState &result);
/// Names of SSA results: those of the op's NameLoc ("y" or "y, mean, rstd") if it has one, else the
/// op's own name.
void nameResults(mlir::Operation *op, mlir::OpAsmSetValueNameFn setName);
/// type_c2 to type_c6 of SPEC.md, for one type or for all operands and results.
mlir::LogicalResult verifyType(mlir::Operation *op, mlir::Type type);
mlir::LogicalResult verifyTypes(mlir::Operation *op);
/// elementwise_c1 to c5 of SPEC.md; with `ownTypes` only c1 (the op checks its operands itself).
mlir::LogicalResult verifyElementwise(mlir::Operation *op, bool ownTypes);
/// Operands as given, one result of the first operand's type.
void buildElementwise(mlir::OperationState &state, mlir::ValueRange operands);
IterationSpace elementwiseSpace(mlir::Operation *op);
KernelAttributes kernelAttributesOf(mlir::Operation *op);

/// --print-op-properties: class, space, flop and elements of every op, one line each. Changes
/// nothing.
void registerPrintOpProperties();

}  // namespace weft

#include "ir/WeftInterfaces.h.inc"

#define GET_OP_CLASSES
#include "ir/WeftOps.h.inc"

#endif  // WEFT_IR_WEFT_H
