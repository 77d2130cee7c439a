// MLIR's diagnostics as text; see Diagnostics.h.
#include "tools/driver/Diagnostics.h"

#include "tools/driver/Console.h"

#include "llvm/Support/raw_ostream.h"

namespace weft::driver {
namespace {

/// "graph.mlir:3:9: " for a file location, else what MLIR prints for it, without MLIR's "loc(...)".
std::string place(mlir::Location location) {
  if (auto file = location->findInstanceOf<mlir::FileLineColLoc>())
    return fmt::format("{}:{}:{}: ", file.getFilename().str(), file.getLine(), file.getColumn());
  return "";
}

std::string print(const mlir::Diagnostic &diagnostic) {
  std::string text = place(diagnostic.getLocation()) + diagnostic.str();
  for (const mlir::Diagnostic &note : diagnostic.getNotes())
    text += "\n  note: " + place(note.getLocation()) + note.str();
  return text;
}

}  // namespace

CapturedDiagnostics::CapturedDiagnostics(mlir::MLIRContext &context)
    : handler(&context, [this](mlir::Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error)
          errors.push_back(print(diagnostic));
        else printNote(print(diagnostic));
        return mlir::success();
      }) {}

std::string CapturedDiagnostics::text() const { return fmt::format("{}", fmt::join(errors, "\n")); }

Error CapturedDiagnostics::error(ErrorKind kind, const std::string &otherwise) const {
  return Error(kind, errors.empty() ? otherwise : text());
}

}  // namespace weft::driver
