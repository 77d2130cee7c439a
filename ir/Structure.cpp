// weft.graph and weft.kernel, the ops that hold others, and the small ops around them.
#include "ir/Constraints.h"
#include "ir/LayerMarks.h"
#include "ir/LayoutSyntax.h"
#include "ir/TrainingMarks.h"
#include "kernel/Nearest.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "mlir/Interfaces/FunctionImplementation.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#define GET_OP_CLASSES
#include "ir/WeftOps.cpp.inc"

namespace weft {
namespace {

using Argument = mlir::OpAsmParser::Argument;

/// The name that a block argument was written with becomes its location (numbers carry nothing).
void keepName(mlir::OpAsmParser &parser, Argument &argument, llvm::StringRef name) {
  mlir::Location location = parser.getEncodedSourceLoc(argument.ssaName.location);
  if (!name.empty() && !llvm::isDigit(name.front()))
    location = mlir::NameLoc::get(parser.getBuilder().getStringAttr(name), location);
  argument.sourceLoc = location;
}

void nameArguments(mlir::Region &region, mlir::OpAsmSetValueNameFn setName) {
  if (region.empty()) return;
  for (mlir::BlockArgument argument : region.getArguments())
    if (auto location = mlir::dyn_cast<mlir::NameLoc>(argument.getLoc()))
      setName(argument, location.getName());
}

/// A body holds ops of this dialect only; a kernel stands in a graph, never in a kernel.
mlir::LogicalResult checkBody(mlir::Operation *op, llvm::StringRef id) {
  for (mlir::Operation &inner : op->getRegion(0).front().without_terminator()) {
    const bool allowed =
        mlir::isa<WeftOp>(inner) || (mlir::isa<GraphOp>(op) && mlir::isa<KernelOp>(inner));
    if (!allowed)
      return broken(&inner, id) << "'" << inner.getName() << "' cannot stand in " << op->getName();
  }
  return mlir::success();
}

mlir::LogicalResult checkTerminator(mlir::Operation *op, llvm::StringRef id, mlir::Block &block,
                                    mlir::TypeRange expected) {
  mlir::Operation *terminator = block.getTerminator();
  if (terminator->getOperandTypes() == expected) return mlir::success();
  return broken(terminator, id) << "returns (" << terminator->getOperandTypes() << "), "
                                << op->getName() << " declares (" << expected << ")";
}

mlir::LogicalResult checkInitialValues(GraphOp graph, llvm::StringRef id) {
  for (unsigned argument = 0; argument < graph.getNumArguments(); ++argument) {
    const mlir::Attribute value = graph.getArgAttr(argument, GraphOp::initialAttribute);
    if (value && !graph.initialValue(argument))
      return broken(graph, id) << GraphOp::initialAttribute << " of argument " << argument << " is "
                               << value << ", not " << initialValueForms;
  }
  return mlir::success();
}

/// As marks name a value: its name, every other character than letters and digits as "_". Empty
/// where it has none.
std::string nameInMarks(mlir::Location location, unsigned index) {
  const auto named = mlir::dyn_cast<mlir::NameLoc>(location);
  if (!named) return "";
  llvm::SmallVector<llvm::StringRef> names;
  named.getName().getValue().split(names, ',');
  std::string name = index < names.size() ? names[index].trim().str() : "";
  std::ranges::replace_if(
      name, [](unsigned char c) { return !std::isalnum(c); }, '_');
  return name;
}
std::string nameInMarks(mlir::Value value) {
  if (const auto argument = mlir::dyn_cast<mlir::BlockArgument>(value))
    return nameInMarks(argument.getLoc(), 0);
  return nameInMarks(value.getDefiningOp()->getLoc(),
                     mlir::cast<mlir::OpResult>(value).getResultNumber());
}

/// weft.master_of and weft.update_of of a graph.
class TrainingMarks {
public:
  explicit TrainingMarks(GraphOp graph) : graph(graph) {
    for (mlir::BlockArgument argument : graph.getBody().front().getArguments())
      if (std::string name = nameInMarks(argument); !name.empty())
        arguments.try_emplace(name, argument.getType());
  }

  mlir::LogicalResult checkMasters(llvm::StringRef id) const {
    for (mlir::BlockArgument argument : graph.getBody().front().getArguments())
      if (const mlir::Attribute mark = graph.getArgAttr(argument.getArgNumber(), masterOfName)) {
        const std::string what =
            llvm::formatv("{0} of argument {1} ('{2}') is {3}", masterOfName,
                          argument.getArgNumber(), nameInMarks(argument), mark);
        const std::optional<mlir::Type> rounding = typeNamed(mark);
        if (!rounding) return broken(graph, id) << what << ", which is no argument" << near(mark);
        const std::optional<DType> dtype = toDType(*rounding);
        if (toDType(argument.getType()) != DType::f32 ||
            (dtype != DType::f16 && dtype != DType::bf16) ||
            extents(*rounding) != extents(argument.getType()))
          return broken(graph, id)
                 << what << ", but an argument of f32 is the master of one of f16 or bf16 and of "
                 << "the same extents: " << argument.getType() << " of " << *rounding;
      }
    return mlir::success();
  }

  mlir::LogicalResult checkUpdates(llvm::StringRef id) const {
    std::map<std::string, unsigned> updated;
    const mlir::OperandRange returned = graph.getBody().front().getTerminator()->getOperands();
    for (auto [index, value] : llvm::enumerate(returned)) {
      const auto result = static_cast<unsigned>(index);
      const mlir::Attribute mark =
          result < graph.getNumResults() ? graph.getResultAttr(result, updateOfName) : nullptr;
      if (!mark) continue;
      const std::string what = llvm::formatv("{0} of result {1} ('{2}') is {3}", updateOfName,
                                             result, nameInMarks(value), mark);
      const std::optional<mlir::Type> argument = typeNamed(mark);
      if (!argument && !names(mark, nameInMarks(value)))
        return broken(graph, id) << what << ", which is neither an argument nor the result itself"
                                 << near(mark);
      if (argument && *argument != value.getType())
        return broken(graph, id) << what << ", but the next value of an argument has its type "
                                 << *argument << ", not " << value.getType();
      const auto [other, isNew] =
          updated.emplace(mlir::cast<mlir::StringAttr>(mark).getValue(), result);
      if (!isNew)
        return broken(graph, id) << what << ", and so is that of result " << other->second
                                 << ": an argument has one next value";
    }
    return mlir::success();
  }

private:
  static bool names(mlir::Attribute mark, llvm::StringRef name) {
    const auto text = mlir::dyn_cast<mlir::StringAttr>(mark);
    return text && !name.empty() && text.getValue() == name;
  }
  std::optional<mlir::Type> typeNamed(mlir::Attribute mark) const {
    const auto text = mlir::dyn_cast<mlir::StringAttr>(mark);
    const auto found = text ? arguments.find(text.getValue().str()) : arguments.end();
    return found == arguments.end() ? std::nullopt : std::optional(found->second);
  }
  /// The tail of a message.
  std::string near(mlir::Attribute mark) const {
    const auto text = mlir::dyn_cast<mlir::StringAttr>(mark);
    std::vector<std::string> known;
    for (const auto &[name, type] : arguments) known.push_back(name);
    const std::string found = text ? nearest(text.getValue().str(), known) : "";
    return found.empty() ? "" : "; nearest is '" + found + "'";
  }

  mutable GraphOp graph;
  std::map<std::string, mlir::Type> arguments;  ///< by name
};

TrainingRole roleIn(mlir::Attribute mark) {
  const auto word = mlir::dyn_cast_or_null<mlir::StringAttr>(mark);
  return word ? trainingRoleNamed(word.getValue()).value_or(TrainingRole::none)
              : TrainingRole::none;
}

/// Of arguments, or of results; `taken`: what the graph has so far.
mlir::LogicalResult checkTrainingRole(GraphOp graph, mlir::Attribute mark, unsigned number,
                                      bool ofResult, std::set<TrainingRole> &taken,
                                      llvm::StringRef id) {
  if (!mark) return mlir::success();
  const TrainingRole role = roleIn(mark);
  const char *kind = ofResult ? "result" : "argument";
  if (role == TrainingRole::none || isOfResult(role) != ofResult)
    return broken(graph, id) << GraphOp::trainingAttribute << " of " << kind << ' ' << number
                             << " is " << mark << ", which no " << kind << " has";
  const mlir::Type type =
      ofResult ? graph.getResultTypes()[number] : graph.getArgumentTypes()[number];
  if (isScalar(role) && (rankOf(type) > 0 || !mlir::getElementTypeOrSelf(type).isF32()))
    return broken(graph, id) << GraphOp::trainingAttribute << " of " << kind << ' ' << number
                             << " is " << mark << ", which is one number of f32";
  if (!taken.insert(role).second)
    return broken(graph, id) << GraphOp::trainingAttribute << " of " << kind << ' ' << number
                             << " is " << mark << ", which another one has";
  return mlir::success();
}

mlir::LogicalResult checkTrainingRoles(GraphOp graph, llvm::StringRef id) {
  std::set<TrainingRole> taken;
  for (unsigned argument = 0; argument < graph.getNumArguments(); ++argument)
    if (mlir::failed(checkTrainingRole(graph,
                                       graph.getArgAttr(argument, GraphOp::trainingAttribute),
                                       argument, false, taken, id)))
      return mlir::failure();
  for (unsigned result = 0; result < graph.getNumResults(); ++result)
    if (mlir::failed(checkTrainingRole(graph,
                                       graph.getResultAttr(result, GraphOp::trainingAttribute),
                                       result, true, taken, id)))
      return mlir::failure();
  return mlir::success();
}

bool isLayerMark(mlir::Attribute mark) {
  const auto number = mlir::dyn_cast<mlir::IntegerAttr>(mark);
  return number && number.getType().isInteger(64) && number.getInt() > 0;
}

mlir::LogicalResult checkLayerMarks(GraphOp graph, llvm::StringRef id) {
  for (unsigned argument = 0; argument < graph.getNumArguments(); ++argument)
    if (const mlir::Attribute mark = graph.getArgAttr(argument, layerAttribute);
        mark && !isLayerMark(mark))
      return broken(graph, id) << layerAttribute << " of argument " << argument << " is " << mark
                               << ", not a layer's number from 1";
  const mlir::WalkResult walked = graph.walk([&](mlir::Operation *op) {
    const mlir::Attribute mark = op->getAttr(layerAttribute);
    if (!mark || isLayerMark(mark)) return mlir::WalkResult::advance();
    broken(op, id) << layerAttribute << " is " << mark << ", not a layer's number from 1";
    return mlir::WalkResult::interrupt();
  });
  return mlir::failure(walked.wasInterrupted());
}

}  // namespace

//===-- graph ---------------------------------------------------------------------------------===//

void GraphOp::build(mlir::OpBuilder &builder, mlir::OperationState &state, llvm::StringRef name,
                    llvm::ArrayRef<mlir::Type> argumentTypes,
                    llvm::ArrayRef<mlir::Type> resultTypes,
                    llvm::ArrayRef<std::string> argumentNames) {
  Properties &properties = state.getOrAddProperties<Properties>();
  properties.sym_name = builder.getStringAttr(name);
  properties.function_type =
      mlir::TypeAttr::get(builder.getFunctionType(argumentTypes, resultTypes));
  mlir::Block &block = state.addRegion()->emplaceBlock();
  for (auto [index, type] : llvm::enumerate(argumentTypes)) {
    mlir::Location location = state.location;
    if (index < argumentNames.size())
      location = mlir::NameLoc::get(builder.getStringAttr(argumentNames[index]), location);
    block.addArgument(type, location);
  }
}

void GraphOp::setParameter(unsigned argument) {
  setArgAttr(argument, parameterAttribute, mlir::UnitAttr::get(getContext()));
}

std::optional<InitialValue> GraphOp::initialValue(unsigned argument) {
  const auto value = getArgAttrOfType<mlir::StringAttr>(argument, initialAttribute);
  return value ? parseInitialValue(value.getValue()) : std::nullopt;
}

void GraphOp::setInitialValue(unsigned argument, const InitialValue &value) {
  setArgAttr(argument, initialAttribute, mlir::StringAttr::get(getContext(), text(value)));
}

TrainingRole GraphOp::trainingRoleOfArgument(unsigned argument) {
  return roleIn(getArgAttr(argument, trainingAttribute));
}
TrainingRole GraphOp::trainingRoleOfResult(unsigned result) {
  return roleIn(getResultAttr(result, trainingAttribute));
}
void GraphOp::setTrainingRoleOfArgument(unsigned argument, TrainingRole role) {
  setArgAttr(argument, trainingAttribute, mlir::StringAttr::get(getContext(), nameOf(role)));
}
void GraphOp::setTrainingRoleOfResult(unsigned result, TrainingRole role) {
  setResultAttr(result, trainingAttribute, mlir::StringAttr::get(getContext(), nameOf(role)));
}

mlir::ParseResult GraphOp::parse(mlir::OpAsmParser &parser, mlir::OperationState &result) {
  mlir::StringAttr name;
  llvm::SmallVector<Argument> arguments;
  llvm::SmallVector<mlir::Type> resultTypes;
  llvm::SmallVector<mlir::DictionaryAttr> resultAttributes;
  bool isVariadic = false;
  mlir::Builder &builder = parser.getBuilder();
  if (parser.parseSymbolName(name, "sym_name", result.attributes) ||
      mlir::function_interface_impl::parseFunctionSignatureWithArguments(
          parser, false, arguments, isVariadic, resultTypes, resultAttributes))
    return mlir::failure();
  llvm::SmallVector<mlir::Type> argumentTypes;
  for (Argument &argument : arguments) {
    argumentTypes.push_back(argument.type);
    keepName(parser, argument, argument.ssaName.name.drop_front());
  }
  result.addAttribute("function_type",
                      mlir::TypeAttr::get(builder.getFunctionType(argumentTypes, resultTypes)));
  if (parser.parseOptionalAttrDictWithKeyword(result.attributes)) return mlir::failure();
  mlir::call_interface_impl::addArgAndResultAttrs(builder, result, arguments, resultAttributes,
                                                  builder.getStringAttr("arg_attrs"),
                                                  builder.getStringAttr("res_attrs"));
  return parser.parseRegion(*result.addRegion(), arguments);
}

void GraphOp::print(mlir::OpAsmPrinter &printer) {
  printer << ' ';
  printer.printSymbolName(getSymName());
  mlir::function_interface_impl::printFunctionSignature(printer, *this, getArgumentTypes(), false,
                                                        getResultTypes());
  mlir::function_interface_impl::printFunctionAttributes(
      printer, *this, {"sym_name", "function_type", "arg_attrs", "res_attrs"});
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

void GraphOp::getAsmBlockArgumentNames(mlir::Region &region, mlir::OpAsmSetValueNameFn setName) {
  nameArguments(region, setName);
}

mlir::LogicalResult GraphOp::verifyRegions() {
  for (mlir::Type type : getArgumentTypes())
    if (mlir::failed(weft::verifyType(*this, type))) return mlir::failure();
  const TrainingMarks marks(*this);
  return allOf(checkInitialValues(*this, "graph_c3"), checkBody(*this, "graph_c2"),
               checkTerminator(*this, "graph_c1", getBody().front(), getResultTypes()),
               marks.checkMasters("graph_c4"), marks.checkUpdates("graph_c5"),
               checkTrainingRoles(*this, "graph_c6"), checkLayerMarks(*this, "graph_c7"));
}

//===-- kernel --------------------------------------------------------------------------------===//

void KernelOp::build(mlir::OpBuilder &builder, mlir::OperationState &state, llvm::StringRef name,
                     mlir::ValueRange inputs, mlir::TypeRange outputTypes) {
  state.addOperands(inputs);
  state.addTypes(outputTypes);
  state.getOrAddProperties<Properties>().name = builder.getStringAttr(name);
  mlir::Block &block = state.addRegion()->emplaceBlock();
  for (mlir::Value input : inputs) block.addArgument(input.getType(), input.getLoc());
}

// %r = weft.kernel @name (%a = %x : T, %b = %y : U) -> (V) [layouts ([j, i], [i] -> [i, j])]
// [attributes {...}] { ... }
mlir::ParseResult KernelOp::parse(mlir::OpAsmParser &parser, mlir::OperationState &result) {
  mlir::StringAttr name;
  llvm::SmallVector<Argument> arguments;
  llvm::SmallVector<mlir::OpAsmParser::UnresolvedOperand> operands;
  llvm::SmallVector<mlir::Type> types;
  if (parser.parseSymbolName(name, "name", result.attributes)) return mlir::failure();
  const llvm::SMLoc operandsAt = parser.getCurrentLocation();
  const auto parseOne = [&]() -> mlir::ParseResult {
    Argument &argument = arguments.emplace_back();
    if (parser.parseArgument(argument) || parser.parseEqual() ||
        parser.parseOperand(operands.emplace_back()) || parser.parseColonType(argument.type))
      return mlir::failure();
    types.push_back(argument.type);
    keepName(parser, argument, argument.ssaName.name.drop_front());
    return mlir::success();
  };
  if (parser.parseCommaSeparatedList(mlir::AsmParser::Delimiter::Paren, parseOne) ||
      parser.parseOptionalArrowTypeList(result.types) ||
      parser.resolveOperands(operands, types, operandsAt, result.operands))
    return mlir::failure();
  if (mlir::succeeded(parser.parseOptionalKeyword("layouts"))) {
    LayoutsAttr layouts = parseKernelLayouts(parser, types, result.types);
    if (!layouts) return mlir::failure();
    result.addAttribute("layouts", layouts);
  }
  if (parser.parseOptionalAttrDictWithKeyword(result.attributes) ||
      parser.parseRegion(*result.addRegion(), arguments))
    return mlir::failure();
  keepResultNames(parser, result);
  return mlir::success();
}

void KernelOp::print(mlir::OpAsmPrinter &printer) {
  printer << ' ';
  printer.printSymbolName(getName());
  printer << " (";
  llvm::interleaveComma(llvm::zip(getBody().getArguments(), getInputs()), printer, [&](auto pair) {
    auto [argument, input] = pair;
    printer << argument << " = " << input << " : " << argument.getType();
  });
  printer << ')';
  printer.printOptionalArrowTypeList(getResultTypes());
  // Layouts that do not fit the tensors (kernel_c3) print as the plain attribute.
  LayoutsAttr layouts = getLayoutsAttr();
  const bool fits = layouts && layouts.getInputs().size() == getInputs().size() &&
                    layouts.getOutputs().size() == getNumResults();
  if (fits) {
    printer << " layouts ";
    printKernelLayouts(printer, layouts, getInputs().getTypes(), getResultTypes());
  }
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(),
                                           fits ? llvm::ArrayRef<llvm::StringRef>{"name", "layouts"}
                                                : llvm::ArrayRef<llvm::StringRef>{"name"});
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

void KernelOp::getAsmResultNames(mlir::OpAsmSetValueNameFn setName) {
  if (mlir::isa<mlir::NameLoc>(getLoc())) nameResults(*this, setName);
  else if (getNumResults() > 0) setName(getResult(0), getName());
}

void KernelOp::getAsmBlockArgumentNames(mlir::Region &region, mlir::OpAsmSetValueNameFn setName) {
  nameArguments(region, setName);
}

namespace {

/// One layout per tensor, each a permutation of its dimensions, with no stride or one per
/// dimension.
mlir::LogicalResult checkLayouts(mlir::Operation *op, llvm::ArrayRef<LayoutAttr> layouts,
                                 mlir::TypeRange types) {
  if (layouts.size() != types.size())
    return broken(op, "kernel_c3")
           << layouts.size() << " layouts for " << types.size() << " tensors";
  for (auto [layout, type] : llvm::zip(layouts, types)) {
    const size_t rank = rankOf(type);
    if (layout.getOrder().size() != rank ||
        (!layout.getStrides().empty() && layout.getStrides().size() != rank))
      return broken(op, "kernel_c4") << layout << " does not have one entry per axis of " << type;
    if (mlir::failed(checkAxes(op, "kernel_c4", "layouts", layout.getOrder(), type)))
      return mlir::failure();
  }
  return mlir::success();
}

}  // namespace

mlir::LogicalResult KernelOp::verifyRegions() {
  if (getBody().getArgumentTypes() != getInputs().getTypes())
    return broken(*this, "kernel_c2") << "block arguments and operands differ in type";
  for (mlir::Type type : getOperandTypes())
    if (mlir::failed(weft::verifyType(*this, type))) return mlir::failure();
  if (getLayouts() &&
      mlir::failed(allOf(checkLayouts(*this, getLayouts()->getInputs(), getOperandTypes()),
                         checkLayouts(*this, getLayouts()->getOutputs(), getResultTypes()))))
    return mlir::failure();
  return allOf(checkBody(*this, "kernel_c5"),
               checkTerminator(*this, "kernel_c1", getBody().front(), getResultTypes()));
}

//===-- constant and expect_close -------------------------------------------------------------===//

mlir::LogicalResult ConstantOp::verifyConstraints() { return mlir::success(); }
IterationSpace ConstantOp::iterationSpace() { return alignedSpace(*this, {0}); }

mlir::LogicalResult ExpectCloseOp::verifyConstraints() {
  for (const llvm::APFloat &tolerance : {getAbsolute(), getRelative()})
    if (!tolerance.isFinite() || tolerance.isNegative())
      return broken(*this, "expect_close_c2") << "tolerances must be finite and not negative";
  return checkExtents(*this, "expect_close_c1", "b", getB().getType(), extents(getA().getType()));
}
IterationSpace ExpectCloseOp::iterationSpace() { return alignedSpace(*this, {0, 1}); }

}  // namespace weft
