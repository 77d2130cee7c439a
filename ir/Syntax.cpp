// The one text form of every statement of a graph:
//
//   %r = weft.name ["spec" | kind] %operands [over axes] [along (axes)] [{attributes}] : types [-> result types]
//
// Invariants: what is printed parses to the same op. Dimensions print as axis names of operand 0 where that is
// unambiguous, else as positions. One type stands for all operands and results if they are equal; results are left out
// if each has the type of operand 0. SSA names live on as NameLoc, so that a graph keeps its names through every pass.
#include "ir/Weft.h"

#include "llvm/ADT/StringExtras.h"

#include <fmt/format.h>

namespace weft {
namespace {

/// How the attributes of the dialect are written. One row per name; names mean the same in every op.
enum class Notation { dimension, dimensions, real, integer, integers, word, spec };
const std::map<llvm::StringRef, Notation> &vocabulary() {
  static const std::map<llvm::StringRef, Notation> words = {
      {"axis", Notation::dimension},     {"position", Notation::dimension},  {"dim", Notation::dimension},
      {"query", Notation::dimension},    {"key", Notation::dimension},       {"axes", Notation::dimensions},
      {"along", Notation::dimensions},   {"permutation", Notation::dimensions},
      {"scale", Notation::real},         {"factor", Notation::real},         {"p", Notation::real},
      {"epsilon", Notation::real},       {"base", Notation::real},           {"absolute", Notation::real},
      {"relative", Notation::real},      {"stream", Notation::integer},      {"tile", Notation::integer},
      {"left", Notation::integer},       {"right", Notation::integer},       {"size", Notation::integer},
      {"start", Notation::integer},      {"count", Notation::integer},       {"sizes", Notation::integers},
      {"kind", Notation::word},          {"style", Notation::word},          {"empty_row", Notation::word},
      {"spec", Notation::spec}};
  return words;
}

//===-- Printing ------------------------------------------------------------------------------------------------===//

/// The shortest decimal text that reads back to the same double, with the point that MLIR's lexer asks for.
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
    if (op->getNumOperands() > 0)
      names = axisNames(op->getOperand(0).getType());
  }

  void print() {
    if (auto spec = op->getAttrOfType<mlir::StringAttr>("spec"))
      printer << ' ' << spec;
    if (auto kind = op->getAttrOfType<mlir::StringAttr>("kind")) {
      printer << ' ';
      printer.printKeywordOrString(kind.getValue());
    }
    if (op->getNumOperands() > 0)
      printer << ' ';
    printer.printOperands(op->getOperands());
    printAxes();
    printAttributes();
    printTypes();
  }

private:
  bool normalization() { return mlir::cast<WeftOp>(op).operatorClass() == OperatorClass::normalization; }
  bool inHeader(llvm::StringRef name) {
    return name == "spec" || name == "kind" || name == "along" || name == "axes" || (name == "axis" && normalization());
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
    else
      printer << dimension;
  }
  void printDimensions(llvm::ArrayRef<int64_t> dimensions) {
    llvm::interleave(dimensions, printer.getStream(), [&](int64_t dimension) { printDimension(dimension); }, ", ");
  }

  void printAttributes() {
    const char *separator = " {";
    for (mlir::NamedAttribute attribute : op->getAttrs()) {
      if (inHeader(attribute.getName()))
        continue;
      printer << separator;
      printer.printKeywordOrString(attribute.getName());
      if (!mlir::isa<mlir::UnitAttr>(attribute.getValue())) {
        printer << " = ";
        printValue(attribute.getName(), attribute.getValue());
      }
      separator = ", ";
    }
    if (separator[0] == ',')
      printer << '}';
  }

  void printValue(llvm::StringRef name, mlir::Attribute value) {
    const auto word = vocabulary().find(name);
    if (word == vocabulary().end() || !op->getRegisteredInfo() ||
        !llvm::is_contained(op->getRegisteredInfo()->getAttributeNames(), name))
      return printer.printAttribute(value);
    if (auto real = mlir::dyn_cast<mlir::FloatAttr>(value); real && real.getValue().isFinite())
      printer << shortest(real.getValueAsDouble());
    else if (auto integer = mlir::dyn_cast<mlir::IntegerAttr>(value))
      word->second == Notation::dimension ? printDimension(integer.getInt()) : void(printer << integer.getInt());
    else if (auto text = mlir::dyn_cast<mlir::StringAttr>(value))
      printer.printKeywordOrString(text.getValue());
    else if (auto list = mlir::dyn_cast<mlir::DenseI64ArrayAttr>(value)) {
      printer << '[';
      if (word->second == Notation::dimensions)
        printDimensions(list.asArrayRef());
      else
        llvm::interleaveComma(list.asArrayRef(), printer.getStream());
      printer << ']';
    } else {
      printer.printAttribute(value);
    }
  }

  void printTypes() {
    const auto operands = op->getOperandTypes();
    const auto results = op->getResultTypes();
    printer << " : ";
    if (operands.empty() || !llvm::all_equal(operands))
      llvm::interleaveComma(operands, printer);
    else
      printer << operands[0];
    const bool inferred = llvm::all_of(results, [&](mlir::Type type) { return !operands.empty() && type == operands[0]; });
    if (inferred && results.size() <= 1)
      return;
    printer << " -> ";
    llvm::interleaveComma(results, printer);
  }

  mlir::OpAsmPrinter &printer;
  mlir::Operation *op;
  std::vector<std::string> names;
};

//===-- Parsing -------------------------------------------------------------------------------------------------===//

/// A dimension as it was written; resolved to a position once the types are known.
struct WrittenDimension {
  llvm::SMLoc location;
  std::string name;  ///< empty: `position` was written
  int64_t position = 0;
};

class StatementParser {
public:
  StatementParser(mlir::OpAsmParser &parser, mlir::OperationState &result) : parser(parser), result(result) {}

  mlir::ParseResult parse() {
    if (parseHeader() || parseOperands() || parseAxes() || parseAttributes() || parseTypes() || resolveDimensions())
      return mlir::failure();
    keepResultNames(parser, result);
    return mlir::success();
  }

private:
  bool has(llvm::StringRef name) { return llvm::is_contained(result.name.getAttributeNames(), name); }
  mlir::Builder &builder() { return parser.getBuilder(); }

  mlir::ParseResult parseHeader() {
    std::string text;
    if (has("spec")) {
      if (parser.parseString(&text))
        return mlir::failure();
      result.addAttribute("spec", builder().getStringAttr(text));
    } else if (has("kind")) {
      if (parser.parseKeywordOrString(&text))
        return mlir::failure();
      result.addAttribute("kind", builder().getStringAttr(text));
    }
    return mlir::success();
  }

  mlir::ParseResult parseOperands() {
    operandsAt = parser.getCurrentLocation();
    return parser.parseOperandList(operands);
  }

  mlir::ParseResult parseAxes() {
    if (mlir::succeeded(parser.parseOptionalKeyword("over")) && parseWritten(has("axes") ? "axes" : "axis", has("axes")))
      return mlir::failure();
    if (mlir::failed(parser.parseOptionalKeyword("along")))
      return mlir::success();
    if (parser.parseLParen())
      return mlir::failure();
    if (mlir::succeeded(parser.parseOptionalRParen())) {
      written["along"] = {};
      return mlir::success();
    }
    return mlir::failure(parseWritten("along", true) || parser.parseRParen());
  }

  mlir::ParseResult parseWritten(llvm::StringRef attribute, bool list) {
    std::vector<WrittenDimension> &dimensions = written[attribute.str()];
    const auto parseOne = [&]() -> mlir::ParseResult {
      WrittenDimension &dimension = dimensions.emplace_back();
      dimension.location = parser.getCurrentLocation();
      if (mlir::succeeded(parser.parseOptionalKeywordOrString(&dimension.name)))
        return mlir::success();
      return parser.parseInteger(dimension.position);
    };
    return list ? parser.parseCommaSeparatedList(parseOne) : parseOne();
  }

  mlir::ParseResult parseAttributes() {
    return parser.parseCommaSeparatedList(mlir::AsmParser::Delimiter::OptionalBraces, [&]() -> mlir::ParseResult {
      std::string name;
      const llvm::SMLoc location = parser.getCurrentLocation();
      if (parser.parseKeywordOrString(&name))
        return mlir::failure();
      if (result.attributes.get(name) || written.count(name))
        return parser.emitError(location) << "attribute '" << name << "' is given twice";
      if (mlir::failed(parser.parseOptionalEqual())) {
        result.addAttribute(name, builder().getUnitAttr());
        return mlir::success();
      }
      return parseValue(name);
    });
  }

  mlir::ParseResult parseValue(const std::string &name) {
    const auto word = vocabulary().find(name);
    if (word != vocabulary().end() && has(name)) {
      switch (word->second) {
      case Notation::dimension: return parseWritten(name, false);
      case Notation::dimensions:
        return mlir::failure(parser.parseLSquare() || parseWritten(name, true) || parser.parseRSquare());
      case Notation::word: {
        std::string text;
        if (parser.parseKeywordOrString(&text))
          return mlir::failure();
        result.addAttribute(name, builder().getStringAttr(text));
        return mlir::success();
      }
      case Notation::integers: return parseIntegers(name);
      case Notation::real: return parseReal(name);
      case Notation::integer: {
        int64_t value = 0;
        if (parser.parseInteger(value))
          return mlir::failure();
        result.addAttribute(name, builder().getI64IntegerAttr(value));
        return mlir::success();
      }
      case Notation::spec: break;
      }
    }
    mlir::Attribute value;
    if (parser.parseAttribute(value))
      return mlir::failure();
    result.addAttribute(name, value);
    return mlir::success();
  }

  mlir::ParseResult parseReal(llvm::StringRef name) {
    const llvm::SMLoc location = parser.getCurrentLocation();
    mlir::Attribute value;
    if (parser.parseAttribute(value, builder().getF64Type()))
      return mlir::failure();
    if (!mlir::isa<mlir::FloatAttr>(value))
      return parser.emitError(location) << "attribute '" << name << "' must be a number such as 0.5";
    result.addAttribute(name, value);
    return mlir::success();
  }

  mlir::ParseResult parseIntegers(llvm::StringRef name) {
    llvm::SmallVector<int64_t> values;
    if (parser.parseCommaSeparatedList(mlir::AsmParser::Delimiter::Square,
                                       [&] { return parser.parseInteger(values.emplace_back()); }))
      return mlir::failure();
    result.addAttribute(name, builder().getDenseI64ArrayAttr(values));
    return mlir::success();
  }

  mlir::ParseResult parseTypes() {
    llvm::SmallVector<mlir::Type> types, resultTypes;
    if (parser.parseColon() || parser.parseTypeList(types))
      return mlir::failure();
    if (types.size() == 1 && operands.size() > 1)
      types.assign(operands.size(), types.front());
    if (mlir::succeeded(parser.parseOptionalArrow())) {
      if (parser.parseTypeList(resultTypes))
        return mlir::failure();
    } else if (!types.empty() && !result.name.hasTrait<mlir::OpTrait::ZeroResults>()) {
      resultTypes.push_back(types.front());
    }
    result.addTypes(resultTypes);
    return parser.resolveOperands(operands, types, operandsAt, result.operands);
  }

  mlir::ParseResult resolveDimensions() {
    for (const auto &[attribute, dimensions] : written) {
      llvm::SmallVector<int64_t> positions;
      for (const WrittenDimension &dimension : dimensions)
        if (mlir::failed(resolve(attribute, dimension, positions.emplace_back())))
          return mlir::failure();
      if (vocabulary().at(attribute) == Notation::dimensions)
        result.addAttribute(attribute, builder().getDenseI64ArrayAttr(positions));
      else
        result.addAttribute(attribute, builder().getI64IntegerAttr(positions.front()));
    }
    return mlir::success();
  }

  mlir::ParseResult resolve(llvm::StringRef attribute, const WrittenDimension &dimension, int64_t &position) {
    position = dimension.position;
    if (dimension.name.empty())
      return mlir::success();
    auto tensor = result.operands.empty() ? mlir::RankedTensorType()
                                          : mlir::dyn_cast<mlir::RankedTensorType>(result.operands[0].getType());
    if (!tensor)
      return parser.emitError(dimension.location) << "an axis name needs a ranked tensor as first operand";
    const std::vector<std::string> names = axisNames(tensor);
    const int64_t times = std::count(names.begin(), names.end(), dimension.name);
    if (times != 1)
      return parser.emitError(dimension.location)
             << "axis_c1: " << (times ? "ambiguous" : "unknown") << " axis '" << dimension.name << "' in '" << attribute
             << "'; the operand has axes <" << llvm::join(names, ", ") << ">";
    position = std::find(names.begin(), names.end(), dimension.name) - names.begin();
    return mlir::success();
  }

  mlir::OpAsmParser &parser;
  mlir::OperationState &result;
  llvm::SMLoc operandsAt;
  llvm::SmallVector<mlir::OpAsmParser::UnresolvedOperand> operands;
  std::map<std::string, std::vector<WrittenDimension>> written;
};

}  // namespace

mlir::ParseResult parseStatement(mlir::OpAsmParser &parser, mlir::OperationState &result) {
  return StatementParser(parser, result).parse();
}

void printStatement(mlir::OpAsmPrinter &printer, mlir::Operation *op) { StatementPrinter(printer, op).print(); }

void keepResultNames(mlir::OpAsmParser &parser, mlir::OperationState &result) {
  llvm::SmallVector<llvm::StringRef> names;
  for (size_t index = 0; index < parser.getNumResults(); ++index) {
    const auto [name, sub] = parser.getResultName(index);
    if (name.empty() || llvm::isDigit(name.front()))
      return;
    if (sub == 0)
      names.push_back(name);
  }
  if (!names.empty())
    result.location = mlir::NameLoc::get(parser.getBuilder().getStringAttr(llvm::join(names, ", ")), result.location);
}

void nameResults(mlir::Operation *op, mlir::OpAsmSetValueNameFn setName) {
  llvm::SmallVector<llvm::StringRef> names;
  if (auto location = mlir::dyn_cast<mlir::NameLoc>(op->getLoc()))
    llvm::SplitString(location.getName(), names, ", ");
  for (mlir::OpResult result : op->getResults()) {
    const unsigned number = result.getResultNumber();
    if (number < names.size())
      setName(result, names[number]);
    else if (number == 0)
      setName(result, op->getName().stripDialect());
  }
}

/// Attributes as plain data, for the canonical kernel: positions stay positions.
KernelAttributes kernelAttributesOf(mlir::Operation *op) {
  KernelAttributes attributes;
  for (mlir::NamedAttribute named : op->getAttrs()) {
    const std::string name = named.getName().str();
    if (vocabulary().count(name) == 0)
      continue;
    if (auto real = mlir::dyn_cast<mlir::FloatAttr>(named.getValue()))
      attributes[name] = real.getValueAsDouble();
    else if (auto integer = mlir::dyn_cast<mlir::IntegerAttr>(named.getValue()))
      attributes[name] = integer.getInt();
    else if (auto text = mlir::dyn_cast<mlir::StringAttr>(named.getValue()))
      attributes[name] = text.str();
    else if (auto list = mlir::dyn_cast<mlir::DenseI64ArrayAttr>(named.getValue()))
      attributes[name] = list.asArrayRef().vec();
  }
  return attributes;
}

}  // namespace weft
