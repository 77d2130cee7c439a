// Statements of a graph from text; the grammar is in Syntax.cpp. Axis names are resolved to
// positions once the types are known, and result names live on as NameLoc.
#include "ir/Syntax.h"

#include "llvm/ADT/StringExtras.h"

namespace weft {
namespace {

/// A dimension as it was written; resolved to a position once the types are known.
struct WrittenDimension {
  llvm::SMLoc location;
  std::string name;  ///< empty: `position` was written
  int64_t position = 0;
};

class StatementParser {
public:
  StatementParser(mlir::OpAsmParser &parser, mlir::OperationState &result)
      : parser(parser), result(result) {}

  mlir::ParseResult parse() {
    if (parseHeader() || parseOperands() || parseAxes() || parseAttributes() || parseTypes() ||
        resolveDimensions())
      return mlir::failure();
    keepResultNames(parser, result);
    return mlir::success();
  }

private:
  bool has(llvm::StringRef name) {
    return llvm::is_contained(result.name.getAttributeNames(), name);
  }
  mlir::Builder &builder() { return parser.getBuilder(); }

  mlir::ParseResult parseHeader() {
    std::string text;
    if (has("spec")) {
      if (parser.parseString(&text)) return mlir::failure();
      result.addAttribute("spec", builder().getStringAttr(text));
    } else if (has("kind")) {
      if (parser.parseKeywordOrString(&text)) return mlir::failure();
      result.addAttribute("kind", builder().getStringAttr(text));
    }
    return mlir::success();
  }

  mlir::ParseResult parseOperands() {
    operandsAt = parser.getCurrentLocation();
    return parser.parseOperandList(operands);
  }

  mlir::ParseResult parseAxes() {
    if (mlir::succeeded(parser.parseOptionalKeyword("over")) &&
        parseWritten(has("axes") ? "axes" : "axis", has("axes")))
      return mlir::failure();
    if (mlir::failed(parser.parseOptionalKeyword("along"))) return mlir::success();
    if (parser.parseLParen()) return mlir::failure();
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
    return parser.parseCommaSeparatedList(
        mlir::AsmParser::Delimiter::OptionalBraces, [&]() -> mlir::ParseResult {
          std::string name;
          const llvm::SMLoc location = parser.getCurrentLocation();
          if (parser.parseKeywordOrString(&name)) return mlir::failure();
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
          return mlir::failure(parser.parseLSquare() || parseWritten(name, true) ||
                               parser.parseRSquare());
        case Notation::word: {
          std::string text;
          if (parser.parseKeywordOrString(&text)) return mlir::failure();
          result.addAttribute(name, builder().getStringAttr(text));
          return mlir::success();
        }
        case Notation::integers: return parseIntegers(name);
        case Notation::real: return parseReal(name);
        case Notation::integer: {
          int64_t value = 0;
          if (parser.parseInteger(value)) return mlir::failure();
          result.addAttribute(name, builder().getI64IntegerAttr(value));
          return mlir::success();
        }
        case Notation::flag:
          return parser.emitError(parser.getCurrentLocation())
                 << "'" << name << "' takes no value: it is there or not";
        case Notation::spec: break;
      }
    }
    mlir::Attribute value;
    if (parser.parseAttribute(value)) return mlir::failure();
    result.addAttribute(name, value);
    return mlir::success();
  }

  mlir::ParseResult parseReal(llvm::StringRef name) {
    const llvm::SMLoc location = parser.getCurrentLocation();
    mlir::Attribute value;
    if (parser.parseAttribute(value, builder().getF64Type())) return mlir::failure();
    if (!mlir::isa<mlir::FloatAttr>(value))
      return parser.emitError(location)
             << "attribute '" << name << "' must be a number such as 0.5";
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
    if (parser.parseColon() || parser.parseTypeList(types)) return mlir::failure();
    if (types.size() == 1 && operands.size() > 1) types.assign(operands.size(), types.front());
    if (mlir::succeeded(parser.parseOptionalArrow())) {
      if (parser.parseTypeList(resultTypes)) return mlir::failure();
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
      else result.addAttribute(attribute, builder().getI64IntegerAttr(positions.front()));
    }
    return mlir::success();
  }

  mlir::ParseResult resolve(llvm::StringRef attribute, const WrittenDimension &dimension,
                            int64_t &position) {
    position = dimension.position;
    if (dimension.name.empty()) return mlir::success();
    auto tensor = result.operands.empty()
                      ? mlir::RankedTensorType()
                      : mlir::dyn_cast<mlir::RankedTensorType>(result.operands[0].getType());
    if (!tensor)
      return parser.emitError(dimension.location)
             << "an axis name needs a ranked tensor as first operand";
    const std::vector<std::string> names = axisNames(tensor);
    const int64_t times = std::count(names.begin(), names.end(), dimension.name);
    if (times != 1)
      return parser.emitError(dimension.location)
             << "axis_c1: " << (times ? "ambiguous" : "unknown") << " axis '" << dimension.name
             << "' in '" << attribute << "'; the operand has axes <" << llvm::join(names, ", ")
             << ">";
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

void keepResultNames(mlir::OpAsmParser &parser, mlir::OperationState &result) {
  llvm::SmallVector<llvm::StringRef> names;
  for (size_t index = 0; index < parser.getNumResults(); ++index) {
    const auto [name, sub] = parser.getResultName(index);
    if (name.empty() || llvm::isDigit(name.front())) return;
    if (sub == 0) names.push_back(name);
  }
  if (!names.empty())
    result.location = mlir::NameLoc::get(parser.getBuilder().getStringAttr(llvm::join(names, ", ")),
                                         result.location);
}

}  // namespace weft
