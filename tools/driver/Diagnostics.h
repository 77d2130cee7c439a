// MLIR's diagnostics as text, so that a failure deep in a pass reaches the user as one error with
// its location.
#pragma once

#include "kernel/Error.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"

#include <string>
#include <vector>

namespace weft::driver {

/// Collects errors (with their notes) while it lives; warnings go to standard error.
class CapturedDiagnostics {
public:
  explicit CapturedDiagnostics(mlir::MLIRContext &context);
  /// "FILE:LINE:COLUMN: error: text" lines, in order; empty if none.
  std::string text() const;
  /// An error of the given kind with the captured text, or `otherwise` where MLIR said nothing.
  Error error(ErrorKind kind, const std::string &otherwise) const;

private:
  std::vector<std::string> errors;
  mlir::ScopedDiagnosticHandler handler;
};

}  // namespace weft::driver
