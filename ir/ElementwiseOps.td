// Element-wise ops: ONE RECORD IS ONE OP. Its class, text form, verifier, builder, flop count, reference evaluation and
// CUDA spelling all follow from the record; nothing else needs to change (device functions: codegen/device/math.cuh).
//   spelling   CUDA expression over float: {0}, {1}, ... are the operands, {name} a numeric attribute
//   flop       per result element
//   reference  C++ expression in double over a, b, c (the operands) with getters of the op in scope
// An op with constraints beyond elementwise_c1 to c5 sets ownConstraints and defines verifyOwnConstraints() in C++; one
// whose operands differ in type sets ownTypes and checks them there.
#ifndef WEFT_ELEMENTWISE_OPS_TD
#define WEFT_ELEMENTWISE_OPS_TD

class Weft_Elementwise<string mnemonic, string spelling, int flopPerElement, string reference, list<Trait> traits = []>
    : Weft_Op<mnemonic, !listconcat([Pure], traits)> {
  bit ownConstraints = 0;
  bit ownTypes = 0;
  string scalarReference = mnemonic # " = " # reference;  // kernel/reference takes its table of scalar functions from here
  let results = (outs Weft_Tensor:$result);
  let skipDefaultBuilders = 1;
  code extraMembers = "";
  let members = "::weft::OperatorClass operatorClass() { return ::weft::OperatorClass::elementwise; }\n"
      # "::weft::IterationSpace iterationSpace() { return ::weft::elementwiseSpace(*this); }\n"
      # "double flop() { return " # flopPerElement # ".0 * static_cast<double>(elementsWritten()); }\n"
      # "::llvm::StringRef scalarSpelling() { return \"" # spelling # "\"; }\n"
      # "double evaluateScalar(::llvm::ArrayRef<double> values);\n"
      # "::llvm::LogicalResult verifyConstraints();\n"
      # !if(ownConstraints, "::llvm::LogicalResult verifyOwnConstraints();\n", "") # extraMembers;
  let definitions = "double $cppClass::evaluateScalar(::llvm::ArrayRef<double> values) {\n"
      # "[[maybe_unused]] const auto at = [&](size_t n) { return n < values.size() ? values[n] : 0.0; };\n"
      # "[[maybe_unused]] const double a = at(0), b = at(1), c = at(2);\n"
      # "return " # reference # ";\n}\n"
      # "::llvm::LogicalResult $cppClass::verifyConstraints() {\n"
      # "if (::mlir::failed(::weft::verifyElementwise(*this, " # !if(ownTypes, "true", "false") # ")))"
      # " return ::mlir::failure();\n"
      # "return " # !if(ownConstraints, "verifyOwnConstraints()", "::mlir::success()") # ";\n}\n";
}

class Weft_Unary<string mnemonic, string spelling, int flopPerElement, string reference>
    : Weft_Elementwise<mnemonic, spelling, flopPerElement, reference> {
  let arguments = (ins Weft_Tensor:$x);
  let builders = [OpBuilder<(ins "::mlir::Value":$x), [{ ::weft::buildElementwise($_state, {x}); }]>];
}

// `along` lists, for each dimension of b, the dimension of a that it runs along; absent: equal extents.
class Weft_Binary<string mnemonic, string spelling, int flopPerElement, string reference>
    : Weft_Elementwise<mnemonic, spelling, flopPerElement, reference> {
  let arguments = (ins Weft_Tensor:$a, Weft_Tensor:$b, OptionalAttr<DenseI64ArrayAttr>:$along);
  let builders = [
    OpBuilder<(ins "::mlir::Value":$a, "::mlir::Value":$b), [{ ::weft::buildElementwise($_state, {a, b}); }]>,
    OpBuilder<(ins "::mlir::Value":$a, "::mlir::Value":$b, "::llvm::ArrayRef<int64_t>":$along), [{
      ::weft::buildElementwise($_state, {a, b});
      $_state.getOrAddProperties<Properties>().along = $_builder.getDenseI64ArrayAttr(along);
    }]>];
}

//===-- Activations and functions -------------------------------------------------------------------------------===//

def Weft_ReluOp     : Weft_Unary<"relu", "weft::relu({0})", 0, "a > 0 || std::isnan(a) ? a : 0.0">;
def Weft_GeluOp     : Weft_Unary<"gelu", "weft::gelu({0})", 5, "0.5 * a * (1 + std::erf(a / std::sqrt(2.0)))">;
def Weft_GeluTanhOp : Weft_Unary<"gelu_tanh", "weft::geluTanh({0})", 9,
    "0.5 * a * (1 + std::tanh(std::sqrt(2.0 / 3.14159265358979323846) * (a + 0.044715 * a * a * a)))">;
def Weft_SiluOp     : Weft_Unary<"silu", "weft::silu({0})", 4, "a / (1 + std::exp(-a))">;
def Weft_TanhOp     : Weft_Unary<"tanh", "weft::tanh({0})", 1, "std::tanh(a)">;
def Weft_SigmoidOp  : Weft_Unary<"sigmoid", "weft::sigmoid({0})", 3, "1 / (1 + std::exp(-a))">;
def Weft_ExpOp      : Weft_Unary<"exp", "weft::exp({0})", 1, "std::exp(a)">;
def Weft_RsqrtOp    : Weft_Unary<"rsqrt", "weft::rsqrt({0})", 2, "1 / std::sqrt(a)">;

//===-- Arithmetic ----------------------------------------------------------------------------------------------===//

def Weft_AddOp      : Weft_Binary<"add", "{0} + {1}", 1, "a + b">;
def Weft_SubOp      : Weft_Binary<"sub", "{0} - {1}", 1, "a - b">;
def Weft_MulOp      : Weft_Binary<"mul", "{0} * {1}", 1, "a * b">;
def Weft_DivOp      : Weft_Binary<"div", "{0} / {1}", 1, "a / b">;
def Weft_BiasOp     : Weft_Binary<"bias", "{0} + {1}", 1, "a + b"> { let ownConstraints = 1; }
def Weft_ResidualOp : Weft_Binary<"residual", "{0} + {1}", 1, "a + b"> { let ownConstraints = 1; }

def Weft_ScaleOp : Weft_Elementwise<"scale", "{0} * {factor}", 1, "a * getFactor().convertToDouble()"> {
  let ownConstraints = 1;
  let arguments = (ins Weft_Tensor:$x, F64Attr:$factor);
  let builders = [OpBuilder<(ins "::mlir::Value":$x, "double":$factor), [{
    ::weft::buildElementwise($_state, {x});
    $_state.getOrAddProperties<Properties>().factor = $_builder.getF64FloatAttr(factor);
  }]>];
}

def Weft_CastOp : Weft_Elementwise<"cast", "{0}", 0, "a"> {
  let ownTypes = 1;
  let arguments = (ins Weft_Tensor:$x);
  let builders = [OpBuilder<(ins "::mlir::Value":$x, "::weft::DType":$dtype), [{
    $_state.addOperands(x);
    $_state.addTypes(::weft::withDType(x.getType(), dtype));
  }]>];
}

def Weft_SelectOp : Weft_Elementwise<"select", "{0} != 0.0f ? {1} : {2}", 0, "a != 0 ? b : c"> {
  let ownConstraints = 1;
  let ownTypes = 1;
  let arguments = (ins Weft_Tensor:$condition, Weft_Tensor:$a, Weft_Tensor:$b);
  let builders = [OpBuilder<(ins "::mlir::Value":$condition, "::mlir::Value":$a, "::mlir::Value":$b), [{
    $_state.addOperands({condition, a, b});
    $_state.addTypes(a.getType());
  }]>];
}

//===-- Ops of coordinates: no scalar meaning by value alone ----------------------------------------------------===//

// Bits of the mask: SPEC.md, section Dropout bits.
def Weft_DropoutOp : Weft_Elementwise<"dropout", "", 1, "std::numeric_limits<double>::quiet_NaN()"> {
  let ownConstraints = 1;
  let arguments = (ins Weft_Tensor:$x, F64Attr:$p, I64Attr:$stream);
  let builders = [OpBuilder<(ins "::mlir::Value":$x, "double":$p, "int64_t":$stream), [{
    ::weft::buildElementwise($_state, {x});
    $_state.getOrAddProperties<Properties>().p = $_builder.getF64FloatAttr(p);
    $_state.getOrAddProperties<Properties>().stream = $_builder.getI64IntegerAttr(stream);
  }]>];
}

// Rotates pairs of the `dim` axis by position * base^(-2 i / extent).
def Weft_RotaryOp : Weft_Elementwise<"rotary", "", 3, "std::numeric_limits<double>::quiet_NaN()"> {
  let ownConstraints = 1;
  let arguments = (ins Weft_Tensor:$x, I64Attr:$position, I64Attr:$dim, DefaultValuedAttr<F64Attr, "10000.0">:$base,
                       DefaultValuedStrAttr<StrAttr, "halved">:$style);
  let builders = [OpBuilder<(ins "::mlir::Value":$x, "int64_t":$position, "int64_t":$dim,
                                 CArg<"double", "10000.0">:$base, CArg<"::llvm::StringRef", "\"halved\"">:$style), [{
    ::weft::buildElementwise($_state, {x});
    Properties &properties = $_state.getOrAddProperties<Properties>();
    properties.position = $_builder.getI64IntegerAttr(position);
    properties.dim = $_builder.getI64IntegerAttr(dim);
    properties.base = $_builder.getF64FloatAttr(base);
    properties.style = $_builder.getStringAttr(style);
  }]>];
}

// Excluded elements become -inf. `aux`: lengths of a padding mask (one per position `along` an axis), table of a block mask.
def Weft_MaskOp : Weft_Elementwise<"mask", "", 0, "std::numeric_limits<double>::quiet_NaN()"> {
  let ownConstraints = 1;
  let ownTypes = 1;
  let arguments = (ins Weft_Tensor:$x, Optional<Weft_Tensor>:$aux, StrAttr:$kind, OptionalAttr<I64Attr>:$query,
                       I64Attr:$key, OptionalAttr<DenseI64ArrayAttr>:$along, OptionalAttr<I64Attr>:$left,
                       OptionalAttr<I64Attr>:$right, OptionalAttr<I64Attr>:$size);
  let extraMembers = [{
    static MaskOp causal(::mlir::OpBuilder &builder, ::mlir::Location location, ::mlir::Value x, int64_t query,
                         int64_t key);
    static MaskOp window(::mlir::OpBuilder &builder, ::mlir::Location location, ::mlir::Value x, int64_t query,
                         int64_t key, int64_t left, int64_t right);
    static MaskOp padding(::mlir::OpBuilder &builder, ::mlir::Location location, ::mlir::Value x, int64_t key,
                          ::mlir::Value lengths, int64_t along);
    static MaskOp block(::mlir::OpBuilder &builder, ::mlir::Location location, ::mlir::Value x, int64_t query,
                        int64_t key, int64_t size, ::mlir::Value table);
    ::llvm::LogicalResult checkFloatResult();
    ::llvm::LogicalResult verifyAxesAndSizes();
  }];
  let builders = [OpBuilder<(ins "::mlir::Value":$x, "::llvm::StringRef":$kind, "int64_t":$key,
                                 CArg<"std::optional<int64_t>", "std::nullopt">:$query,
                                 CArg<"::mlir::Value", "{}">:$aux), [{
    ::weft::buildElementwise($_state, {x});
    if (aux) $_state.addOperands(aux);
    Properties &properties = $_state.getOrAddProperties<Properties>();
    properties.kind = $_builder.getStringAttr(kind);
    properties.key = $_builder.getI64IntegerAttr(key);
    if (query) properties.query = $_builder.getI64IntegerAttr(*query);
  }]>];
}

#endif  // WEFT_ELEMENTWISE_OPS_TD
