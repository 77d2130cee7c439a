// weft.graph and weft.kernel, the ops that hold others, and the small ops around them.
#include "ir/Spaces.h"

#include "mlir/Interfaces/FunctionImplementation.h"
#include "llvm/ADT/StringExtras.h"

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
  if (region.empty())
    return;
  for (mlir::BlockArgument argument : region.getArguments())
    if (auto location = mlir::dyn_cast<mlir::NameLoc>(argument.getLoc()))
      setName(argument, location.getName());
}

}  // namespace

//===-- graph ---------------------------------------------------------------------------------------------------===//

void GraphOp::build(mlir::OpBuilder &builder, mlir::OperationState &state, llvm::StringRef name,
                    llvm::ArrayRef<mlir::Type> argumentTypes, llvm::ArrayRef<mlir::Type> resultTypes,
                    llvm::ArrayRef<std::string> argumentNames) {
  Properties &properties = state.getOrAddProperties<Properties>();
  properties.sym_name = builder.getStringAttr(name);
  properties.function_type = mlir::TypeAttr::get(builder.getFunctionType(argumentTypes, resultTypes));
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

mlir::ParseResult GraphOp::parse(mlir::OpAsmParser &parser, mlir::OperationState &result) {
  mlir::StringAttr name;
  llvm::SmallVector<Argument> arguments;
  llvm::SmallVector<mlir::Type> resultTypes;
  llvm::SmallVector<mlir::DictionaryAttr> resultAttributes;
  bool isVariadic = false;
  mlir::Builder &builder = parser.getBuilder();
  if (parser.parseSymbolName(name, "sym_name", result.attributes) ||
      mlir::function_interface_impl::parseFunctionSignatureWithArguments(parser, false, arguments, isVariadic,
                                                                         resultTypes, resultAttributes))
    return mlir::failure();
  llvm::SmallVector<mlir::Type> argumentTypes;
  for (Argument &argument : arguments) {
    argumentTypes.push_back(argument.type);
    keepName(parser, argument, argument.ssaName.name.drop_front());
  }
  result.addAttribute("function_type", mlir::TypeAttr::get(builder.getFunctionType(argumentTypes, resultTypes)));
  if (parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return mlir::failure();
  mlir::call_interface_impl::addArgAndResultAttrs(builder, result, arguments, resultAttributes,
                                                  builder.getStringAttr("arg_attrs"),
                                                  builder.getStringAttr("res_attrs"));
  return parser.parseRegion(*result.addRegion(), arguments);
}

void GraphOp::print(mlir::OpAsmPrinter &printer) {
  printer << ' ';
  printer.printSymbolName(getSymName());
  mlir::function_interface_impl::printFunctionSignature(printer, *this, getArgumentTypes(), false, getResultTypes());
  mlir::function_interface_impl::printFunctionAttributes(
      printer, *this, {"sym_name", "function_type", "arg_attrs", "res_attrs"});
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

void GraphOp::getAsmBlockArgumentNames(mlir::Region &region, mlir::OpAsmSetValueNameFn setName) {
  nameArguments(region, setName);
}

mlir::LogicalResult GraphOp::verify() { return mlir::success(); }
mlir::LogicalResult GraphOp::verifyRegions() { return mlir::success(); }

//===-- kernel --------------------------------------------------------------------------------------------------===//

void KernelOp::build(mlir::OpBuilder &builder, mlir::OperationState &state, llvm::StringRef name,
                     mlir::ValueRange inputs, mlir::TypeRange outputTypes) {
  state.addOperands(inputs);
  state.addTypes(outputTypes);
  state.getOrAddProperties<Properties>().name = builder.getStringAttr(name);
  mlir::Block &block = state.addRegion()->emplaceBlock();
  for (mlir::Value input : inputs)
    block.addArgument(input.getType(), input.getLoc());
}

// %r = weft.kernel @name (%a = %x : T, %b = %y : U) -> (V) [attributes {...}] { ... }
mlir::ParseResult KernelOp::parse(mlir::OpAsmParser &parser, mlir::OperationState &result) {
  mlir::StringAttr name;
  llvm::SmallVector<Argument> arguments;
  llvm::SmallVector<mlir::OpAsmParser::UnresolvedOperand> operands;
  llvm::SmallVector<mlir::Type> types;
  if (parser.parseSymbolName(name, "name", result.attributes))
    return mlir::failure();
  const llvm::SMLoc operandsAt = parser.getCurrentLocation();
  const auto parseOne = [&]() -> mlir::ParseResult {
    Argument &argument = arguments.emplace_back();
    if (parser.parseArgument(argument) || parser.parseEqual() || parser.parseOperand(operands.emplace_back()) ||
        parser.parseColonType(argument.type))
      return mlir::failure();
    types.push_back(argument.type);
    keepName(parser, argument, argument.ssaName.name.drop_front());
    return mlir::success();
  };
  if (parser.parseCommaSeparatedList(mlir::AsmParser::Delimiter::Paren, parseOne) ||
      parser.parseOptionalArrowTypeList(result.types) ||
      parser.resolveOperands(operands, types, operandsAt, result.operands) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes) || parser.parseRegion(*result.addRegion(), arguments))
    return mlir::failure();
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
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(), {"name"});
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

void KernelOp::getAsmResultNames(mlir::OpAsmSetValueNameFn setName) {
  if (mlir::isa<mlir::NameLoc>(getLoc()))
    nameResults(*this, setName);
  else if (getNumResults() > 0)
    setName(getResult(0), getName());
}

void KernelOp::getAsmBlockArgumentNames(mlir::Region &region, mlir::OpAsmSetValueNameFn setName) {
  nameArguments(region, setName);
}

mlir::LogicalResult KernelOp::verify() { return mlir::success(); }
mlir::LogicalResult KernelOp::verifyRegions() { return mlir::success(); }

//===-- constant and expect_close -------------------------------------------------------------------------------===//

mlir::LogicalResult ConstantOp::verify() { return mlir::success(); }
IterationSpace ConstantOp::iterationSpace() { return alignedSpace(*this, {0}); }

mlir::LogicalResult ExpectCloseOp::verify() {
  return verifySameExtents(*this, "expect_close_c1", getA().getType(), getB().getType(), "b");
}
IterationSpace ExpectCloseOp::iterationSpace() { return alignedSpace(*this, {0, 1}); }

}  // namespace weft
