// The dialect, its attributes and the interface that every op answers. Meaning and constraints:
// SPEC.md.
#ifndef WEFT_DIALECT_TD
#define WEFT_DIALECT_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/TensorEncoding.td"

def Weft_Dialect : Dialect {
  let name = "weft";
  let cppNamespace = "::weft";
  let summary = "Dataflow graphs of transformer layers, fused kernels and their layouts";
  let useDefaultAttributePrinterParser = 1;
  let usePropertiesForAttributes = 1;
  let extraClassDeclaration = "void registerAttributes();";
}

//===-- Attributes ----------------------------------------------------------------------------===//

class Weft_Attr<string name, string mnemonicText, list<Trait> traits = []> : AttrDef<Weft_Dialect,
    name, traits> {
  let mnemonic = mnemonicText;
  let hasCustomAssemblyFormat = 1;
}

def Weft_AxesAttr : Weft_Attr<"Axes", "axes", [VerifiableTensorEncoding]> {
  let summary = "One name per dimension of a tensor: #weft.axes<b, j, i>";
  let description = [{
    Names are labels. `ragged t` reserves an axis whose extent is a maximum; it parses and prints,
        ops reject it.
  }];
  let parameters = (ins ArrayRefParameter<"::mlir::StringAttr">:$names,
                        ArrayRefParameter<"int64_t">:$ragged);
  let extraClassDeclaration = [{
    static AxesAttr get(::mlir::MLIRContext *context, ::llvm::ArrayRef<std::string> names);
    ::mlir::LogicalResult verifyEncoding(::llvm::ArrayRef<int64_t> shape, ::mlir::Type elementType,
                                         ::llvm::function_ref<::mlir::InFlightDiagnostic()>
                                             emitError) const;
  }];
  let extraClassDefinition = "";
}

def Weft_LayoutAttr : Weft_Attr<"Layout", "layout"> {
  let summary = "Where the elements of one tensor lie: #weft.layout<[1, 0, 2]>";
  let description = [{
    `order` lists dimension positions, slowest first. `strides` (elements,
        one per dimension in logical order) is empty
    for a dense tensor; a `pitch_unit` above 1 (elements) pads its rows. The attribute form of
        weft::Layout; inside weft.kernel positions print as axis names.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$order, ArrayRefParameter<"int64_t">:$strides,
                        "int64_t":$offset, "int64_t":$alignment, "int64_t":$pitchUnit);
  let extraClassDeclaration = [{
    static LayoutAttr get(::mlir::MLIRContext *context, const ::weft::Layout &layout);
    ::weft::Layout toLayout() const;
  }];
}

def Weft_LayoutsAttr : Weft_Attr<"Layouts", "layouts"> {
  let summary = "Layouts of all operands and results of a kernel: #weft.layouts<[0, 1], [0] -> [1, "
      "0]>";
  let parameters = (ins ArrayRefParameter<"::weft::LayoutAttr">:$inputs,
                        ArrayRefParameter<"::weft::LayoutAttr">:$outputs);
}

//===-- The interface of every op -------------------------------------------------------------===//

def WeftOpInterface : OpInterface<"WeftOp"> {
  let cppNamespace = "::weft";
  let description = "What every op of a graph knows about itself. Conventions: SPEC.md, section "
      "Counting.";
  let methods = [
    InterfaceMethod<"The class of section 3.2 of 'Data Movement Is All You Need'.",
      "::weft::OperatorClass", "operatorClass">,
    InterfaceMethod<"Independent and reduced axes, each as the operand and result dimensions that "
        "run along it.",
      "::weft::IterationSpace", "iterationSpace">,
    InterfaceMethod<"Floating-point operations of one evaluation.", "double", "flop">,
    InterfaceMethod<"Elements of all operands, each operand once.", "int64_t", "elementsRead",
        (ins), [{}], [{
      return ::weft::elementsOf($_op->getOperandTypes());
    }]>,
    InterfaceMethod<"Elements of all results.", "int64_t", "elementsWritten", (ins), [{}], [{
      return ::weft::elementsOf($_op->getResultTypes());
    }]>,
    InterfaceMethod<"The op's attributes under their names in SPEC.md, for the canonical kernel.",
      "::weft::KernelAttributes", "kernelAttributes", (ins), [{}], [{
      return ::weft::kernelAttributesOf($_op);
    }]>,
    InterfaceMethod<"Element-wise ops: an element of the result over elements of the operands; "
        "coordinates are dimensions of the result. Empty for every other op, and for dropout.",
      "::weft::Expression", "expression", (ins), [{}], [{ return {}; }]>,
    InterfaceMethod<"Element-wise ops with a scalar meaning: the result for one element of each "
        "operand, in double.",
      "double", "evaluateScalar", (ins "::llvm::ArrayRef<double>":$values), [{}], [{
      return std::numeric_limits<double>::quiet_NaN();
    }]>,
    InterfaceMethod<"The derivative: gives each wanted operand its gradient (ir/Derivation.h). A "
        "diagnostic where there is none.",
      "::llvm::LogicalResult", "differentiate", (ins "::weft::Derivation &":$derivation), [{}], [{
      return ::weft::noDerivative($_op);
    }]>,
    InterfaceMethod<[{The op,
        or in its place one with the further results that its derivative reads (statistics of
        rows).}],
      "::mlir::Operation *", "keepForBackward", (ins), [{}], [{ return $_op; }]>,
  ];
  // Types first, so that an op's own constraints may rely on them.
  let verify = [{
    if (::mlir::failed(::weft::verifyTypes($_op)))
      return ::mlir::failure();
    return ::llvm::cast<ConcreteOp>($_op).verifyConstraints();
  }];
}

#endif  // WEFT_DIALECT_TD
