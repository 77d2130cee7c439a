// The one text form of every statement of a graph:
//
//   %r = weft.name ["spec" | kind] %operands [over axes] [along (axes)] [{attributes}] : types [->
//       result types]
//
// Invariants: what is printed parses to the same op. Dimensions print as axis names of operand 0
// where that is unambiguous, else as positions. One type stands for all operands and results if
// they are equal; results are left out if each has the type of operand 0. SSA names live on as
// NameLoc, so that a graph keeps its names through every pass.
#include "ir/Syntax.h"

#include "llvm/ADT/StringExtras.h"

#include <fmt/format.h>

namespace weft {

const std::map<llvm::StringRef, Notation> &vocabulary() {
  static const std::map<llvm::StringRef, Notation> words = {
      {"axis", Notation::dimension},   {"position", Notation::dimension},
      {"dim", Notation::dimension},    {"query", Notation::dimension},
      {"key", Notation::dimension},    {"axes", Notation::dimensions},
      {"along", Notation::dimensions}, {"permutation", Notation::dimensions},
      {"heads", Notation::dimensions}, {"distance", Notation::integer},
      {"steepness", Notation::real},   {"scale", Notation::real},
      {"factor", Notation::real},      {"p", Notation::real},
      {"epsilon", Notation::real},     {"base", Notation::real},
      {"absolute", Notation::real},    {"relative", Notation::real},
      {"stream", Notation::integer},   {"tile", Notation::integer},
      {"left", Notation::integer},     {"right", Notation::integer},
      {"global", Notation::integer},   {"size", Notation::integer},
      {"start", Notation::integer},    {"count", Notation::integer},
      {"sizes", Notation::integers},   {"into", Notation::integers},
      {"fill", Notation::real},        {"weight", Notation::real},
      {"direction", Notation::word},   {"precision", Notation::word},
      {"kind", Notation::word},        {"style", Notation::word},
      {"empty_row", Notation::word},   {"pattern", Notation::word},
      {"turned", Notation::integer},   {"original", Notation::integer},
      {"low", Notation::real},         {"high", Notation::real},
      {"bound", Notation::integer},    {"among", Notation::dimension},
      {"begin", Notation::integer},    {"end", Notation::integer},
      {"packed", Notation::flag},      {"unread", Notation::flag},
      {"spec", Notation::spec}};
  return words;
}

namespace {

/// The shortest decimal text that reads back to the same double, with the point that MLIR's lexer
/// asks for.
std::string shortest(double value) {
  std::string text = fmt::format("{}", value);
  const size_t exponent = text.find('e');
  if (text.find('.') == std::string::npos && std::isfinite(value))
    text.insert(exponent == std::string::npos ? text.size() : exponent, ".0");
  return text;
}

class StatementPrinter {
public:
  StatementPrinter(mlir::OpAsmPrinter &printer, mlir::Operation *op) : printer(printer), op(op) {
    if (op->getNumOperands() > 0) names = axisNames(op->getOperand(0).getType());
  }

  void print() {
    if (auto spec = op->getAttrOfType<mlir::StringAttr>("spec")) printer << ' ' << spec;
    if (auto kind = op->getAttrOfType<mlir::StringAttr>("kind")) {
      printer << ' ';
      printer.printKeywordOrString(kind.getValue());
    }
    if (op->getNumOperands() > 0) printer << ' ';
    printer.printOperands(op->getOperands());
    printAxes();
    printAttributes();
    printTypes();
  }

private:
  bool normalization() {
    return mlir::cast<WeftOp>(op).operatorClass() == OperatorClass::normalization;
  }
  bool inHeader(llvm::StringRef name) {
    return name == "spec" || name == "kind" || name == "along" || name == "axes" ||
           (name == "axis" && normalization());
  }

  void printAxes() {
    if (auto axis = op->getAttrOfType<mlir::IntegerAttr>("axis"); axis && normalization()) {
      printer << " over ";
      printDimension(axis.getInt());
    }
    if (auto axes = op->getAttrOfType<mlir::DenseI64ArrayAttr>("axes")) {
      printer << " over ";
      printDimensions(axes.asArrayRef());
    }
    if (auto along = op->getAttrOfType<mlir::DenseI64ArrayAttr>("along")) {
      printer << " along (";
      printDimensions(along.asArrayRef());
      printer << ')';
    }
  }

  void printDimension(int64_t dimension) {
    const bool inRange = dimension >= 0 && dimension < static_cast<int64_t>(names.size());
    if (inRange && std::count(names.begin(), names.end(), names[dimension]) == 1)
      printer.printKeywordOrString(names[dimension]);
    else printer << dimension;
  }
  void printDimensions(llvm::ArrayRef<int64_t> dimensions) {
    llvm::interleave(
        dimensions, printer.getStream(), [&](int64_t dimension) { printDimension(dimension); },
        ", ");
  }

  void printAttributes() {
    const char *separator = " {";
    for (mlir::NamedAttribute attribute : op->getAttrs()) {
      if (inHeader(attribute.getName())) continue;
      printer << separator;
      printer.printKeywordOrString(attribute.getName());
      if (!mlir::isa<mlir::UnitAttr>(attribute.getValue())) {
        printer << " = ";
        printValue(attribute.getName(), attribute.getValue());
      }
      separator = ", ";
    }
    if (separator[0] == ',') printer << '}';
  }

  void printValue(llvm::StringRef name, mlir::Attribute value) {
    const auto word = vocabulary().find(name);
    if (word == vocabulary().end() || !op->getRegisteredInfo() ||
        !llvm::is_contained(op->getRegisteredInfo()->getAttributeNames(), name))
      return printer.printAttribute(value);
    if (auto real = mlir::dyn_cast<mlir::FloatAttr>(value); real && real.getValue().isFinite())
      printer << shortest(real.getValueAsDouble());
    else if (auto integer = mlir::dyn_cast<mlir::IntegerAttr>(value))
      word->second == Notation::dimension ? printDimension(integer.getInt())
                                          : void(printer << integer.getInt());
    else if (auto text = mlir::dyn_cast<mlir::StringAttr>(value))
      printer.printKeywordOrString(text.getValue());
    else if (auto list = mlir::dyn_cast<mlir::DenseI64ArrayAttr>(value)) {
      printer << '[';
      if (word->second == Notation::dimensions) printDimensions(list.asArrayRef());
      else llvm::interleaveComma(list.asArrayRef(), printer.getStream());
      printer << ']';
    } else {
      printer.printAttribute(value);
    }
  }

  void printTypes() {
    const auto operands = op->getOperandTypes();
    const auto results = op->getResultTypes();
    printer << " : ";
    if (operands.empty() || !llvm::all_equal(operands)) llvm::interleaveComma(operands, printer);
    else printer << operands[0];
    const bool inferred = llvm::all_of(
        results, [&](mlir::Type type) { return !operands.empty() && type == operands[0]; });
    if (inferred && results.size() <= 1) return;
    printer << " -> ";
    llvm::interleaveComma(results, printer);
  }

  mlir::OpAsmPrinter &printer;
  mlir::Operation *op;
  std::vector<std::string> names;
};

}  // namespace

void printStatement(mlir::OpAsmPrinter &printer, mlir::Operation *op) {
  StatementPrinter(printer, op).print();
}

void nameResults(mlir::Operation *op, mlir::OpAsmSetValueNameFn setName) {
  llvm::SmallVector<llvm::StringRef> names;
  if (auto location = mlir::dyn_cast<mlir::NameLoc>(op->getLoc()))
    llvm::SplitString(location.getName(), names, ", ");
  for (mlir::OpResult result : op->getResults()) {
    const unsigned number = result.getResultNumber();
    if (number < names.size()) setName(result, names[number]);
    else if (number == 0) setName(result, op->getName().stripDialect());
  }
}

/// Attributes as plain data, for the canonical kernel: positions stay positions.
KernelAttributes kernelAttributesOf(mlir::Operation *op) {
  KernelAttributes attributes;
  for (mlir::NamedAttribute named : op->getAttrs()) {
    const std::string name = named.getName().str();
    if (vocabulary().count(name) == 0) continue;
    if (auto real = mlir::dyn_cast<mlir::FloatAttr>(named.getValue()))
      attributes[name] = real.getValueAsDouble();
    else if (auto integer = mlir::dyn_cast<mlir::IntegerAttr>(named.getValue()))
      attributes[name] = integer.getInt();
    else if (auto text = mlir::dyn_cast<mlir::StringAttr>(named.getValue()))
      attributes[name] = text.str();
    else if (auto list = mlir::dyn_cast<mlir::DenseI64ArrayAttr>(named.getValue()))
      attributes[name] = list.asArrayRef().vec();
    else if (mlir::isa<mlir::UnitAttr>(named.getValue())) attributes[name] = int64_t(1);
  }
  // A constant that is one value everywhere; a table of several is no plain data, and no kernel
  // takes it.
  if (const auto splat = op->getAttrOfType<mlir::SplatElementsAttr>("value")) {
    if (mlir::isa<mlir::FloatType>(splat.getElementType()))
      attributes["value"] = splat.getSplatValue<llvm::APFloat>().convertToDouble();
    else if (mlir::isa<mlir::IntegerType>(splat.getElementType()))
      attributes["value"] = int64_t(splat.getSplatValue<llvm::APInt>().getZExtValue());
  }
  return attributes;
}

}  // namespace weft
