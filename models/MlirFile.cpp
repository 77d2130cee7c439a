// Diagnostics of the parser and the verifiers become the text of one Error; nothing is thrown
// inside MLIR.
#include "models/MlirFile.h"

#include "ir/Types.h"
#include "ir/Weft.h"
#include "kernel/Error.h"
#include "kernel/Nearest.h"
#include "kernel/Nesting.h"
#include "kernel/PlainText.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

#include "llvm/ADT/StringExtras.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

namespace weft::models {
namespace {

/// "file:3:7" of the place a location stands for; empty if it is unknown.
std::string placeOf(mlir::Location location) {
  std::string place;
  location->walk([&](mlir::Location inner) {
    const auto at = mlir::dyn_cast<mlir::FileLineColLoc>(inner);
    if (!at) return mlir::WalkResult::advance();
    place = fmt::format("{}:{}:{}", at.getFilename().str(), at.getLine(), at.getColumn());
    return mlir::WalkResult::interrupt();
  });
  return place;
}

/// Collects errors and their notes while it lives, so that they do not reach the terminal twice.
class CapturedDiagnostics {
public:
  explicit CapturedDiagnostics(mlir::MLIRContext &context)
      : handler_(&context, [this](mlir::Diagnostic &diagnostic) {
          if (diagnostic.getSeverity() != mlir::DiagnosticSeverity::Error) return mlir::success();
          append(diagnostic);
          for (mlir::Diagnostic &note : diagnostic.getNotes()) append(note);
          return mlir::success();
        }) {}

  /// All messages, one a line; `where` stands in for unknown places.
  std::string text(const std::string &where) const {
    std::string all;
    for (const auto &[place, message] : messages_)
      all +=
          fmt::format("{}{}: {}", all.empty() ? "" : "\n", place.empty() ? where : place, message);
    return all;
  }

private:
  void append(mlir::Diagnostic &diagnostic) {
    const bool isNote = diagnostic.getSeverity() == mlir::DiagnosticSeverity::Note;
    messages_.emplace_back(placeOf(diagnostic.getLocation()),
                           (isNote ? "note: " : "") + diagnostic.str());
  }

  std::vector<std::pair<std::string, std::string>> messages_;
  mlir::ScopedDiagnosticHandler handler_;
};

/// "; nearest is 'weft.softmax'" where the message speaks of an op that there is not.
std::string nearestOp(const std::string &message, mlir::MLIRContext &context) {
  constexpr std::string_view before = "custom op '", after = "' is unknown";
  const size_t begin = message.find(before), end = message.find(after);
  if (begin == std::string::npos || end == std::string::npos || end < begin + before.size())
    return "";
  const std::string name = message.substr(begin + before.size(), end - begin - before.size());
  std::vector<std::string> known;
  for (const mlir::RegisteredOperationName &op : context.getRegisteredOperations())
    known.push_back(op.getStringRef().str());
  const std::string near = nearest(name, known);
  return near.empty() ? "" : fmt::format("; nearest is '{}'", near);
}

void requireOneGraph(mlir::ModuleOp module, const std::string &path) {
  llvm::SmallVector<GraphOp> graphs = llvm::to_vector(module.getOps<GraphOp>());
  if (graphs.empty()) throw Error::badInput("{}: holds no weft.graph; exactly one is needed", path);
  if (graphs.size() > 1)
    throw Error::badInput("{}: a second weft.graph @{}; exactly one is supported",
                          placeOf(graphs[1]->getLoc()), graphs[1].getName().str());
  for (mlir::Operation &op : module.getOps())
    if (!mlir::isa<GraphOp>(op))
      throw Error::badInput(
          "{}: '{}' beside the weft.graph; a model is one weft.graph and nothing else",
          placeOf(op.getLoc()), op.getName().getStringRef().str());
}

/// Names of graphs and kernels become file names and identifiers, names of values and axes stand in
/// comments and tables.
void requirePlainNames(mlir::ModuleOp module, const std::string &path) {
  const auto isWord = [](llvm::StringRef name) {
    return !name.empty() && llvm::all_of(name, [](char c) {
      return llvm::isAlnum(c) || llvm::StringRef("_.$-").contains(c);
    });
  };
  const auto requireValueName = [&](mlir::Location location) {
    const auto named = mlir::dyn_cast<mlir::NameLoc>(location);
    if (named && !isPlain(std::string_view(named.getName().strref())))
      throw Error::badInput("{}: the name \"{}\" has characters that are not printable ASCII", path,
                            oneLine(std::string_view(named.getName().strref())));
  };
  const auto requireAxisNames = [&](mlir::Type type) {
    for (const std::string &name : axisNames(type))
      if (!isWord(name))
        throw Error::badInput("{}: axis \"{}\": names are letters, digits and _ . $ -", path,
                              oneLine(name));
  };
  module.walk([&](mlir::Operation *op) {
    requireValueName(op->getLoc());
    for (mlir::Region &region : op->getRegions())
      for (mlir::Block &block : region)
        for (mlir::BlockArgument argument : block.getArguments()) {
          requireValueName(argument.getLoc());
          requireAxisNames(argument.getType());
        }
    for (mlir::Type type : op->getResultTypes()) requireAxisNames(type);
    if (auto kernel = mlir::dyn_cast<KernelOp>(op); kernel && !isWord(kernel.getName()))
      throw Error::badInput("{}: kernel \"{}\": names are letters, digits and _ . $ -", path,
                            oneLine(std::string_view(kernel.getName())));
    const auto symbol = op->getAttrOfType<mlir::StringAttr>(mlir::SymbolTable::getSymbolAttrName());
    if (symbol && !isWord(symbol.strref()))
      throw Error::badInput("{}: @\"{}\": names are letters, digits and _ . $ -", path,
                            oneLine(std::string_view(symbol.strref())));
  });
}

}  // namespace

mlir::OwningOpRef<mlir::ModuleOp> readMlir(const std::string &path, mlir::MLIRContext &context) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored))
    throw Error::badInput("{}: is not a readable file", path);
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file.is_open() || file.bad()) throw Error::badInput("{}: cannot be read", path);
  return parseMlir(text, path, context);
}

mlir::OwningOpRef<mlir::ModuleOp> parseMlir(const std::string &text, const std::string &path,
                                            mlir::MLIRContext &context) {
  checkMlirNesting(text, path);
  CapturedDiagnostics diagnostics(context);
  mlir::OwningOpRef<mlir::ModuleOp> module =
      mlir::parseSourceString<mlir::ModuleOp>(text, &context, path);
  if (!module) {
    const std::string message = diagnostics.text(path);
    throw Error(ErrorKind::badInput, message + nearestOp(message, context));
  }
  requireOneGraph(*module, path);
  requirePlainNames(*module, path);
  return module;
}

void verifyBuilt(mlir::ModuleOp module, const std::string &name) {
  CapturedDiagnostics diagnostics(*module.getContext());
  if (mlir::failed(mlir::verify(module)))
    throw Error::checkFailed("the graph built for {} does not verify: {}", name,
                             diagnostics.text(name));
}

Dims dimsOf(mlir::ModuleOp module) {
  std::map<std::string, std::set<int64_t>> seen;
  module.walk([&](GraphOp graph) {
    for (mlir::Type type :
         llvm::concat<const mlir::Type>(graph.getArgumentTypes(), graph.getResultTypes())) {
      const std::vector<std::string> names = axisNames(type);
      const std::vector<int64_t> sizes = extents(type);
      for (size_t dimension = 0; dimension < names.size(); ++dimension)
        seen[names[dimension]].insert(sizes[dimension]);
    }
  });
  Dims dims;
  for (const auto &[name, sizes] : seen)
    if (sizes.size() == 1) dims[name] = *sizes.begin();
  return dims;
}

}  // namespace weft::models
