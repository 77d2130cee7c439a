// A configuration as attributes of a weft.kernel and back: `layouts` and `config`. Everything
// needed to emit the kernel.
#pragma once

#include "kernel/Configuration.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"

namespace weft {

/// {family = "loop", vector_axis = "i", vector_width = 8, ...}; axes are names of the kernel, ""
/// for none.
mlir::DictionaryAttr knobsAttribute(mlir::MLIRContext *context, const Kernel &kernel,
                                    const Knobs &knobs);
/// The way back. Throws Error(badInput) naming the member that is missing or no value of its field.
Knobs knobsFromAttribute(const Kernel &kernel, mlir::DictionaryAttr config);

/// Sets `layouts` and `config` of a weft.kernel.
void setConfiguration(mlir::Operation *kernelOp, const Kernel &kernel,
                      const Configuration &configuration);

/// Reads them back. Throws Error(badInput) naming the kernel and the attribute that is missing or
/// not understood.
Configuration configurationOf(mlir::Operation *kernelOp);

/// Marks a kernel of a materialized graph that moves one tensor from one layout to another: nothing
/// of the model, unlike an identity that the model has.
inline constexpr llvm::StringLiteral transposeName = "weft.transpose";
bool isTranspose(mlir::Operation *kernelOp);

}  // namespace weft
