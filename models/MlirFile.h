// A graph written as text: parsed, verified, exactly one weft.graph.
#pragma once

#include "models/LayerSpecification.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <string>

namespace weft::models {

/// Throws Error(badInput) with the first diagnostic, its notes and "file:line:column" for text that
/// does not parse or verify, and for a module that is not exactly one weft.graph.
mlir::OwningOpRef<mlir::ModuleOp> readMlir(const std::string &path, mlir::MLIRContext &context);

/// The same for text that was read already; `path` names it in diagnostics.
mlir::OwningOpRef<mlir::ModuleOp> parseMlir(const std::string &text, const std::string &path,
                                            mlir::MLIRContext &context);

/// Runs the verifier; Error(checkFailed) with the diagnostic, for graphs that we built ourselves.
void verifyBuilt(mlir::ModuleOp module, const std::string &name);

/// Extents by axis name over the graph's arguments and results; names with several extents are left
/// out.
Dims dimsOf(mlir::ModuleOp module);

}  // namespace weft::models
