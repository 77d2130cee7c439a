// Text and verification of the attributes: axes of a type, layouts of a kernel.
#include "ir/LayoutSyntax.h"
#include "ir/Weft.h"

#include "llvm/ADT/TypeSwitch.h"
#include "mlir/IR/DialectImplementation.h"

#define GET_ATTRDEF_CLASSES
#include "ir/WeftAttributes.cpp.inc"

namespace weft {

void WeftDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "ir/WeftAttributes.cpp.inc"
      >();
}

//===-- axes ----------------------------------------------------------------------------------===//

AxesAttr AxesAttr::get(mlir::MLIRContext *context, llvm::ArrayRef<std::string> names) {
  llvm::SmallVector<mlir::StringAttr> attributes;
  for (const std::string &name : names) attributes.push_back(mlir::StringAttr::get(context, name));
  return get(context, attributes, llvm::ArrayRef<int64_t>{});
}

mlir::Attribute AxesAttr::parse(mlir::AsmParser &parser, mlir::Type) {
  llvm::SmallVector<mlir::StringAttr> names;
  llvm::SmallVector<int64_t> ragged;
  const auto parseName = [&]() -> mlir::ParseResult {
    std::string name;
    if (parser.parseKeywordOrString(&name)) return mlir::failure();
    std::string second;
    if (name == "ragged" && mlir::succeeded(parser.parseOptionalKeywordOrString(&second))) {
      ragged.push_back(names.size());
      name = second;
    }
    names.push_back(mlir::StringAttr::get(parser.getContext(), name));
    return mlir::success();
  };
  if (parser.parseLess()) return {};
  if (mlir::succeeded(parser.parseOptionalGreater()))
    return get(parser.getContext(), names, ragged);
  if (parser.parseCommaSeparatedList(parseName) || parser.parseGreater()) return {};
  return get(parser.getContext(), names, ragged);
}

void AxesAttr::print(mlir::AsmPrinter &printer) const {
  printer << '<';
  for (auto [position, name] : llvm::enumerate(getNames())) {
    printer << (position ? ", " : "");
    if (llvm::is_contained(getRagged(), static_cast<int64_t>(position))) printer << "ragged ";
    printer.printKeywordOrString(name.getValue());
  }
  printer << '>';
}

mlir::LogicalResult AxesAttr::verifyEncoding(
    llvm::ArrayRef<int64_t> shape, mlir::Type,
    llvm::function_ref<mlir::InFlightDiagnostic()> emitError) const {
  if (shape.size() != getNames().size())
    return emitError() << "type_c1: " << getNames().size() << " axis names on a tensor of rank "
                       << shape.size();
  return mlir::success();
}

//===-- layout --------------------------------------------------------------------------------===//

namespace {

constexpr int64_t defaultAlignment = 16;

mlir::ParseResult parseIntegers(mlir::AsmParser &parser, llvm::SmallVectorImpl<int64_t> &integers) {
  return parser.parseCommaSeparatedList(mlir::AsmParser::Delimiter::Square, [&] {
    return parser.parseInteger(integers.emplace_back());
  });
}

/// The entries of an order: positions, or axis names of `type` where it is given.
mlir::ParseResult parseOrder(mlir::AsmParser &parser, mlir::Type type,
                             llvm::SmallVectorImpl<int64_t> &order) {
  if (!type) return parseIntegers(parser, order);
  return parser.parseCommaSeparatedList(
      mlir::AsmParser::Delimiter::Square, [&]() -> mlir::ParseResult {
        std::string name;
        const llvm::SMLoc at = parser.getCurrentLocation();
        if (mlir::failed(parser.parseOptionalKeywordOrString(&name)))
          return parser.parseInteger(order.emplace_back());
        const std::optional<int64_t> dimension = dimensionOf(type, name);
        if (!dimension)
          return parser.emitError(at)
                 << "kernel_c4: '" << name << "' names no axis, or several, of " << type;
        order.push_back(*dimension);
        return mlir::success();
      });
}

/// [1, 0, 2] strides [64, 1, 8] offset 128 alignment 2; [h, b, j] where the type of the tensor is
/// known.
LayoutAttr parseLayout(mlir::AsmParser &parser, mlir::Type type = {}) {
  llvm::SmallVector<int64_t> order, strides;
  int64_t offset = 0, alignment = defaultAlignment, pitchUnit = 1;
  if (parseOrder(parser, type, order)) return {};
  if (mlir::succeeded(parser.parseOptionalKeyword("strides")) && parseIntegers(parser, strides))
    return {};
  if (mlir::succeeded(parser.parseOptionalKeyword("offset")) && parser.parseInteger(offset))
    return {};
  if (mlir::succeeded(parser.parseOptionalKeyword("alignment")) && parser.parseInteger(alignment))
    return {};
  const llvm::SMLoc at = parser.getCurrentLocation();
  if (mlir::succeeded(parser.parseOptionalKeyword("pitch_unit")) && parser.parseInteger(pitchUnit))
    return {};
  if (pitchUnit < 1 || (pitchUnit > 1 && !strides.empty())) {
    parser.emitError(at) << "kernel_c4: pitch_unit is " << pitchUnit
                         << "; it is at least 1, and stands beside no strides";
    return {};
  }
  return LayoutAttr::get(parser.getContext(), order, strides, offset, alignment, pitchUnit);
}

void printLayout(mlir::AsmPrinter &printer, LayoutAttr layout, mlir::Type type = {}) {
  const auto list = [&](llvm::ArrayRef<int64_t> integers) {
    printer << '[';
    llvm::interleaveComma(integers, printer.getStream());
    printer << ']';
  };
  const std::vector<std::string> names = type ? axisNames(type) : std::vector<std::string>();
  const auto isNamed = [&](int64_t dimension) {
    return dimension >= 0 && dimension < static_cast<int64_t>(names.size()) &&
           dimensionOf(type, names[dimension]);
  };
  printer << '[';
  llvm::interleaveComma(layout.getOrder(), printer.getStream(), [&](int64_t dimension) {
    if (isNamed(dimension)) printer.printKeywordOrString(names[dimension]);
    else printer << dimension;
  });
  printer << ']';
  if (!layout.getStrides().empty()) {
    printer << " strides ";
    list(layout.getStrides());
  }
  if (layout.getOffset() != 0) printer << " offset " << layout.getOffset();
  if (layout.getAlignment() != defaultAlignment) printer << " alignment " << layout.getAlignment();
  if (layout.getPitchUnit() != 1) printer << " pitch_unit " << layout.getPitchUnit();
}

/// One side of a kernel's layouts, one per type.
mlir::ParseResult parseLayoutsOf(mlir::AsmParser &parser, mlir::TypeRange types,
                                 llvm::SmallVectorImpl<LayoutAttr> &layouts) {
  for (mlir::Type type : types) {
    if (!layouts.empty() && parser.parseComma()) return mlir::failure();
    layouts.push_back(parseLayout(parser, type));
    if (!layouts.back()) return mlir::failure();
  }
  return mlir::success();
}

mlir::ParseResult parseLayoutList(mlir::AsmParser &parser,
                                  llvm::SmallVectorImpl<LayoutAttr> &layouts, llvm::StringRef end) {
  // An empty side is written as nothing.
  if (end == "->" ? mlir::succeeded(parser.parseOptionalArrow())
                  : mlir::succeeded(parser.parseOptionalGreater()))
    return mlir::success();
  const auto parseOne = [&]() -> mlir::ParseResult {
    layouts.push_back(parseLayout(parser));
    return mlir::success(layouts.back() != nullptr);
  };
  if (parser.parseCommaSeparatedList(parseOne)) return mlir::failure();
  return end == "->" ? parser.parseArrow() : parser.parseGreater();
}

}  // namespace

LayoutsAttr parseKernelLayouts(mlir::AsmParser &parser, mlir::TypeRange inputs,
                               mlir::TypeRange outputs) {
  llvm::SmallVector<LayoutAttr> in, out;
  if (parser.parseLParen() || parseLayoutsOf(parser, inputs, in) || parser.parseArrow() ||
      parseLayoutsOf(parser, outputs, out) || parser.parseRParen())
    return {};
  return LayoutsAttr::get(parser.getContext(), in, out);
}

void printKernelLayouts(mlir::AsmPrinter &printer, LayoutsAttr layouts, mlir::TypeRange inputs,
                        mlir::TypeRange outputs) {
  const auto side = [&](llvm::ArrayRef<LayoutAttr> list, mlir::TypeRange types) {
    llvm::interleaveComma(llvm::zip(list, types), printer.getStream(), [&](auto pair) {
      printLayout(printer, std::get<0>(pair), std::get<1>(pair));
    });
  };
  printer << '(';
  side(layouts.getInputs(), inputs);
  printer << " -> ";
  side(layouts.getOutputs(), outputs);
  printer << ')';
}

LayoutAttr LayoutAttr::get(mlir::MLIRContext *context, const Layout &layout) {
  llvm::SmallVector<int64_t> order(layout.order.begin(), layout.order.end());
  return get(context, order, layout.strides, layout.offset, layout.alignment, layout.pitchUnit);
}

Layout LayoutAttr::toLayout() const {
  return Layout{.order = std::vector<int>(getOrder().begin(), getOrder().end()),
                .strides = getStrides().vec(),
                .offset = getOffset(),
                .alignment = getAlignment(),
                .pitchUnit = getPitchUnit()};
}

mlir::Attribute LayoutAttr::parse(mlir::AsmParser &parser, mlir::Type) {
  if (parser.parseLess()) return {};
  LayoutAttr layout = parseLayout(parser);
  if (!layout || parser.parseGreater()) return {};
  return layout;
}

void LayoutAttr::print(mlir::AsmPrinter &printer) const {
  printer << '<';
  printLayout(printer, *this);
  printer << '>';
}

mlir::Attribute LayoutsAttr::parse(mlir::AsmParser &parser, mlir::Type) {
  llvm::SmallVector<LayoutAttr> inputs, outputs;
  if (parser.parseLess() || parseLayoutList(parser, inputs, "->") ||
      parseLayoutList(parser, outputs, ">"))
    return {};
  return get(parser.getContext(), inputs, outputs);
}

void LayoutsAttr::print(mlir::AsmPrinter &printer) const {
  const auto list = [&](llvm::ArrayRef<LayoutAttr> layouts) {
    llvm::interleaveComma(layouts, printer.getStream(),
                          [&](LayoutAttr layout) { printLayout(printer, layout); });
  };
  printer << '<';
  list(getInputs());
  printer << " -> ";
  list(getOutputs());
  printer << '>';
}

}  // namespace weft
