// Element-wise ops: ONE RECORD IS ONE OP. Its class, text form, verifier, builder, flop count,
// reference evaluation and CUDA spelling all follow from the record; nothing else needs to change
// (device functions: codegen/device/math.cuh).
//   spelling   the expression of one element (kernel/Expression.h): {0}, {1}, ... are the
//              operands, {name} a numeric attribute; the emitted text follows it
//   flop       per result element
//   reference  C++ expression in double over a, b, c (the operands) with getters of the op in scope
//   derivative the gradient of each operand as a formula over dy, the operands a, b, c and the
//       result y (ir/Derivation.h), "" for
//              an operand that has none; an empty list for an op that cannot be differentiated
// An op whose expression follows from its attributes, such as a mask, has the empty spelling and
// sets ownExpression; it defines expression() in C++.
// An op with constraints beyond elementwise_c1 to c5 sets ownConstraints and defines
// verifyOwnConstraints() in C++; one whose operands differ in type sets ownTypes and checks them
// there.
#ifndef WEFT_ELEMENTWISE_OPS_TD
#define WEFT_ELEMENTWISE_OPS_TD

class Weft_Elementwise<string mnemonic, string spelling, int flopPerElement, string reference,
    list<string> derivative,
                       list<Trait> traits = []>
    : Weft_Op<mnemonic, !listconcat([Pure], traits)> {
  bit ownConstraints = 0;
  bit ownTypes = 0;
  bit ownExpression = 0;
  string scalarReference = mnemonic # " = "
      # reference;  // kernel/reference takes its table of scalar functions from here
  let results = (outs Weft_Tensor:$result);
  let skipDefaultBuilders = 1;
  code extraMembers = "";
  let members = "::weft::OperatorClass operatorClass() { return "
      "::weft::OperatorClass::elementwise; }\n"
      # "::weft::IterationSpace iterationSpace() { return ::weft::elementwiseSpace(*this); }\n"
      # "double flop() { return " # flopPerElement
          # ".0 * static_cast<double>(elementsWritten()); }\n"
      # !if(ownExpression, "::weft::Expression expression();\n",
          !if(!empty(spelling), "::weft::Expression expression() { return {}; }\n",
          "::weft::Expression expression() {\n"
          # "static const ::weft::Expression parsed = ::weft::Expression::parse(\""
          # spelling # "\");\nreturn parsed;\n}\n"))
      # "double evaluateScalar(::llvm::ArrayRef<double> values);\n"
      # "::llvm::LogicalResult verifyConstraints();\n"
      # !if(!empty(derivative), "",
          "::llvm::LogicalResult differentiate(::weft::Derivation &derivation);\n")
      # !if(ownConstraints, "::llvm::LogicalResult verifyOwnConstraints();\n", "") # extraMembers;
  let definitions = "double $cppClass::evaluateScalar(::llvm::ArrayRef<double> values) {\n"
      # "[[maybe_unused]] const auto at = [&](size_t n) { return n < values.size() ? values[n] : "
          "0.0; };\n"
      # "[[maybe_unused]] const double a = at(0), b = at(1), c = at(2);\n"
      # "return " # reference # ";\n}\n"
      # "::llvm::LogicalResult $cppClass::verifyConstraints() {\n"
      # "if (::mlir::failed(::weft::verifyElementwise(*this, " # !if(ownTypes, "true", "false")
          # ")))"
      # " return ::mlir::failure();\n"
      # "return " # !if(ownConstraints, "verifyOwnConstraints()", "::mlir::success()") # ";\n}\n"
      # !if(!empty(derivative), "",
            "::llvm::LogicalResult $cppClass::differentiate(::weft::Derivation &derivation) {\n"
            # "[[maybe_unused]] const ::weft::Term dy = derivation.upstream(), y = "
                "derivation.result();\n"
            # "[[maybe_unused]] const ::weft::Term a = derivation.operand(0), b = "
                "derivation.operand(1);\n"
            # "[[maybe_unused]] const ::weft::Term c = derivation.operand(2);\n"
            # !interleave(!foreach(n, !range(!size(derivative)),
                  !if(!empty(derivative[n]), "",
                      "derivation.give(" # n # ", [&] { return " # derivative[n] # "; });\n")), "")
            # "return ::mlir::success();\n}\n");
}

class Weft_Unary<string mnemonic, string spelling, int flopPerElement, string reference,
    list<string> derivative>
    : Weft_Elementwise<mnemonic, spelling, flopPerElement, reference, derivative> {
  let arguments = (ins Weft_Tensor:$x);
  let builders = [OpBuilder<(ins "::mlir::Value":$x), [{ ::weft::buildElementwise($_state,
                                 {x}); }]>];
}

// `along` lists, for each dimension of b, the dimension of a that it runs along; absent: equal
// extents.
class Weft_Binary<string mnemonic, string spelling, int flopPerElement, string reference,
    list<string> derivative>
    : Weft_Elementwise<mnemonic, spelling, flopPerElement, reference, derivative> {
  let arguments = (ins Weft_Tensor:$a, Weft_Tensor:$b, OptionalAttr<DenseI64ArrayAttr>:$along);
  let builders = [
    OpBuilder<(ins "::mlir::Value":$a, "::mlir::Value":$b), [{ ::weft::buildElementwise($_state,
                   {a, b}); }]>,
    OpBuilder<(ins "::mlir::Value":$a, "::mlir::Value":$b, "::llvm::ArrayRef<int64_t>":$along), [{
      ::weft::buildElementwise($_state, {a, b});
      $_state.getOrAddProperties<Properties>().along = $_builder.getDenseI64ArrayAttr(along);
    }]>];
}

// The gradient of a function's operand from dy and the function's operand or its result.
class Weft_Dx<string mnemonic, string spelling, int flopPerElement, string reference>
    : Weft_Elementwise<mnemonic, spelling, flopPerElement, reference, []> {
  let arguments = (ins Weft_Tensor:$dy, Weft_Tensor:$from);
  let builders = [OpBuilder<(ins "::mlir::Value":$dy, "::mlir::Value":$from), [{
    ::weft::buildElementwise($_state, {dy, from});
  }]>];
}

//===-- Activations and functions -------------------------------------------------------------===//

def Weft_ReluOp     : Weft_Unary<"relu", "weft::relu({0})", 0, "a > 0 || std::isnan(a) ? a : 0.0",
    ["make<ReluDxOp>(dy, y)"]>;
def Weft_GeluOp     : Weft_Unary<"gelu", "weft::gelu({0})", 5,
    "0.5 * a * std::erfc(-a / std::sqrt(2.0))",
    ["make<GeluDxOp>(dy, a)"]>;
def Weft_GeluTanhOp : Weft_Unary<"gelu_tanh", "weft::geluTanh({0})", 9,
    "a / (1 + std::exp(-2 * std::sqrt(2.0 / 3.14159265358979323846) * (a + 0.044715 * a * a * a)))",
    ["make<GeluTanhDxOp>(dy, a)"]>;
def Weft_SiluOp     : Weft_Unary<"silu", "weft::silu({0})", 4, "a / (1 + std::exp(-a))",
    ["make<SiluDxOp>(dy, a)"]>;
def Weft_TanhOp     : Weft_Unary<"tanh", "weft::tanh({0})", 1, "std::tanh(a)",
    ["make<TanhDxOp>(dy, y)"]>;
def Weft_SigmoidOp  : Weft_Unary<"sigmoid", "weft::sigmoid({0})", 3, "1 / (1 + std::exp(-a))",
    ["make<SigmoidDxOp>(dy, y)"]>;
def Weft_ExpOp      : Weft_Unary<"exp", "weft::exp({0})", 1, "std::exp(a)", ["dy * y"]>;
def Weft_RsqrtOp    : Weft_Unary<"rsqrt", "weft::rsqrt({0})", 2, "1 / std::sqrt(a)",
    ["make<RsqrtDxOp>(dy, y)"]>;

def Weft_SqrtOp     : Weft_Unary<"sqrt", "weft::squareRoot({0})", 1, "std::sqrt(a)",
    ["dy / y * 0.5"]>;

//===-- Their derivatives ---------------------------------------------------------------------===//

def Weft_ReluDxOp     : Weft_Dx<"relu_dx", "{1} <= 0.0f ? 0.0f : {0}", 0, "b <= 0 ? 0.0 : a">;
def Weft_GeluDxOp     : Weft_Dx<"gelu_dx", "{0} * weft::slope::gelu({1})", 11,
    "a * (0.5 * std::erfc(-b / std::sqrt(2.0)) + b * std::exp(-0.5 * b * b) / std::sqrt(2 * "
        "3.14159265358979323846))">;
def Weft_GeluTanhDxOp : Weft_Dx<"gelu_tanh_dx", "{0} * weft::slope::geluTanh({1})", 18,
    "a * (0.5 * (1 + std::tanh(std::sqrt(2.0 / 3.14159265358979323846) * (b + 0.044715 * b * b * "
        "b)))"
    " + 0.5 * b * std::sqrt(2.0 / 3.14159265358979323846) * (1 + 3 * 0.044715 * b * b)"
    " / std::pow(std::cosh(std::sqrt(2.0 / 3.14159265358979323846) * (b + 0.044715 * b * b * b)), "
        "2))">;
def Weft_SiluDxOp     : Weft_Dx<"silu_dx", "{0} * weft::slope::silu({1})", 8,
    "a * (1 + b / (1 + std::exp(b))) / (1 + std::exp(-b))">;
def Weft_TanhDxOp     : Weft_Dx<"tanh_dx", "{0} * (1.0f - {1} * {1})", 3, "a * (1 - b * b)">;
def Weft_SigmoidDxOp  : Weft_Dx<"sigmoid_dx", "{0} * {1} * (1.0f - {1})", 3, "a * b * (1 - b)">;
def Weft_RsqrtDxOp    : Weft_Dx<"rsqrt_dx", "-0.5f * {0} * {1} * {1} * {1}", 4,
    "-0.5 * a * b * b * b">;

//===-- Arithmetic ----------------------------------------------------------------------------===//

def Weft_AddOp      : Weft_Binary<"add", "{0} + {1}", 1, "a + b", ["dy", "dy"]>;
def Weft_SubOp      : Weft_Binary<"sub", "{0} - {1}", 1, "a - b", ["dy", "dy * -1.0"]>;
def Weft_MulOp      : Weft_Binary<"mul", "{0} * {1}", 1, "a * b", ["dy * b", "dy * a"]>;
def Weft_DivOp      : Weft_Binary<"div", "{0} / {1}", 1, "a / b", ["dy / b", "dy * y / b * -1.0"]>;
def Weft_EqualOp    : Weft_Binary<"equal", "{0} == {1} ? 1.0f : 0.0f", 0, "a == b ? 1.0 : 0.0",
    ["", ""]>;
def Weft_BiasOp     : Weft_Binary<"bias", "{0} + {1}", 1, "a + b", ["dy",
    "dy"]> { let ownConstraints = 1; }
def Weft_ResidualOp : Weft_Binary<"residual", "{0} + {1}", 1, "a + b", ["dy",
    "dy"]> { let ownConstraints = 1; }

def Weft_ScaleOp : Weft_Elementwise<"scale", "{0} * {factor}", 1,
    "a * getFactor().convertToDouble()",
    ["dy * getFactor().convertToDouble()"]> {
  let ownConstraints = 1;
  let arguments = (ins Weft_Tensor:$x, F64Attr:$factor);
  let builders = [OpBuilder<(ins "::mlir::Value":$x, "double":$factor), [{
    ::weft::buildElementwise($_state, {x});
    $_state.getOrAddProperties<Properties>().factor = $_builder.getF64FloatAttr(factor);
  }]>];
}

// Steps of AdamW (passes/differentiate/AdamW.cpp), which have no derivative. A moving average takes
// in one more value, or its square: what AdamW keeps of gradients.
class Weft_Average<string mnemonic, string spelling, int flopPerElement, string reference>
    : Weft_Elementwise<mnemonic, spelling, flopPerElement, reference, []> {
  let ownConstraints = 1;
  let arguments = (ins Weft_Tensor:$old, Weft_Tensor:$x, F64Attr:$weight);
  let builders = [OpBuilder<(ins "::mlir::Value":$old, "::mlir::Value":$x, "double":$weight), [{
    ::weft::buildElementwise($_state, {old, x});
    $_state.getOrAddProperties<Properties>().weight = $_builder.getF64FloatAttr(weight);
  }]>];
}
def Weft_AverageOp : Weft_Average<"average", "{0} + {weight} * ({1} - {0})", 3,
    "a + getWeight().convertToDouble() * (b - a)">;
def Weft_AverageSquareOp : Weft_Average<"average_square", "{0} + {weight} * ({1} * {1} - {0})", 4,
    "a + getWeight().convertToDouble() * (b * b - a)">;

// The last three operands are scalars of the whole step.
def Weft_AdamWStepOp : Weft_Elementwise<"adamw_step",
    "{0} * {3} - {4} * {1} / (weft::squareRoot({2}) + {5})", 6,
    "a * at(3) - at(4) * b / (std::sqrt(c) + at(5))", []> {
  let ownConstraints = 1;
  let ownTypes = 1;
  let arguments = (ins Weft_Tensor:$parameter, Weft_Tensor:$mean, Weft_Tensor:$square,
                       Weft_Tensor:$keep, Weft_Tensor:$step_size, Weft_Tensor:$epsilon);
  let builders = [OpBuilder<(ins "::mlir::Value":$parameter, "::mlir::Value":$mean,
                                 "::mlir::Value":$square, "::mlir::Value":$keep,
                                 "::mlir::Value":$stepSize, "::mlir::Value":$epsilon), [{
    ::weft::buildElementwise($_state, {parameter, mean, square, keep, stepSize, epsilon});
  }]>];
}

def Weft_CastOp : Weft_Elementwise<"cast", "{0}", 0, "a", ["dy"]> {
  let ownTypes = 1;
  let arguments = (ins Weft_Tensor:$x);
  let builders = [OpBuilder<(ins "::mlir::Value":$x, "::weft::DType":$dtype), [{
    $_state.addOperands(x);
    $_state.addTypes(::weft::withDType(x.getType(), dtype));
  }]>];
}

// A gradient without the scale of the loss, in f32: what an optimizer takes of one. It has no
// derivative.
def Weft_UnscaleOp : Weft_Elementwise<"unscale", "{0} * {1}", 1, "a * b", []> {
  let ownConstraints = 1;
  let ownTypes = 1;
  let arguments = (ins Weft_Tensor:$x, Weft_Tensor:$factor);
  let builders = [OpBuilder<(ins "::mlir::Value":$x, "::mlir::Value":$factor), [{
    $_state.addOperands({x, factor});
    $_state.addTypes(::weft::withDType(x.getType(), ::weft::DType::f32));
  }]>];
}

def Weft_SelectOp : Weft_Elementwise<"select", "{0} != 0.0f ? {1} : {2}", 0, "a != 0 ? b : c",
    ["", "make<KeepIfOp>(dy, a)", "make<ZeroIfOp>(dy, a)"]> {
  let ownConstraints = 1;
  let ownTypes = 1;
  let arguments = (ins Weft_Tensor:$condition, Weft_Tensor:$a, Weft_Tensor:$b);
  let builders = [OpBuilder<(ins "::mlir::Value":$condition, "::mlir::Value":$a,
                                 "::mlir::Value":$b), [{
    $_state.addOperands({condition, a, b});
    $_state.addTypes(a.getType());
  }]>];
}

// The two halves of a select: x where the condition holds (does not hold), zero elsewhere.
class Weft_Part<string mnemonic, string spelling, string reference, string derivative>
    : Weft_Elementwise<mnemonic, spelling, 0, reference, [derivative]> {
  let ownConstraints = 1;
  let ownTypes = 1;
  let arguments = (ins Weft_Tensor:$x, Weft_Tensor:$condition);
  let builders = [OpBuilder<(ins "::mlir::Value":$x, "::mlir::Value":$condition), [{
    ::weft::buildElementwise($_state, {x, condition});
  }]>];
}
def Weft_KeepIfOp : Weft_Part<"keep_if", "{1} != 0.0f ? {0} : 0.0f", "b != 0 ? a : 0.0",
    "make<KeepIfOp>(dy, b)">;
def Weft_ZeroIfOp : Weft_Part<"zero_if", "{1} != 0.0f ? 0.0f : {0}", "b != 0 ? 0.0 : a",
    "make<ZeroIfOp>(dy, b)">;

//===-- Application of norms whose sums over a row are tensors --------------------------------===//

// What a norm is decomposed into behind its sums (passes/algebra/DecomposeNorms.cpp): `sum` and
// `squares` hold, for each row, the sum of its `count` elements and that of their squares, and run
// `along` the axes of x that are not normalized. What is of a row alone counts no flop.
class Weft_Normalize<string mnemonic, string spelling, int flopPerElement, string reference>
    : Weft_Elementwise<mnemonic, spelling, flopPerElement, reference, []> {
  let ownConstraints = 1;
}
def Weft_NormalizeOp : Weft_Normalize<"normalize",
    "({0} - {1} / {count}) * weft::rsqrt(weft::relu({2} / {count} - {1} / {count} * ({1} / "
        "{count})) + {epsilon})", 2,
    "(a - b / double(getCount())) / std::sqrt((c / double(getCount()) < b / double(getCount()) * "
        "(b / double(getCount())) ? 0.0"
    " : c / double(getCount()) - b / double(getCount()) * (b / double(getCount()))) + "
        "getEpsilon().convertToDouble())"> {
  let arguments = (ins Weft_Tensor:$x, Weft_Tensor:$sum, Weft_Tensor:$squares,
                       DenseI64ArrayAttr:$along, I64Attr:$count,
                       DefaultValuedAttr<F64Attr, "1e-5">:$epsilon);
  let builders = [OpBuilder<(ins "::mlir::Value":$x, "::mlir::Value":$sum,
                                 "::mlir::Value":$squares, "::llvm::ArrayRef<int64_t>":$along,
                                 "int64_t":$count, "double":$epsilon), [{
    ::weft::buildElementwise($_state, {x, sum, squares});
    Properties &properties = $_state.getOrAddProperties<Properties>();
    properties.along = $_builder.getDenseI64ArrayAttr(along);
    properties.count = $_builder.getI64IntegerAttr(count);
    properties.epsilon = $_builder.getF64FloatAttr(epsilon);
  }]>];
}
def Weft_RmsNormalizeOp : Weft_Normalize<"rms_normalize",
    "{0} * weft::rsqrt({1} / {count} + {epsilon})", 1,
    "a / std::sqrt(b / double(getCount()) + getEpsilon().convertToDouble())"> {
  let arguments = (ins Weft_Tensor:$x, Weft_Tensor:$squares, DenseI64ArrayAttr:$along,
                       I64Attr:$count,
                       DefaultValuedAttr<F64Attr, "1e-5">:$epsilon);
  let builders = [OpBuilder<(ins "::mlir::Value":$x, "::mlir::Value":$squares,
                                 "::llvm::ArrayRef<int64_t>":$along, "int64_t":$count,
                                 "double":$epsilon), [{
    ::weft::buildElementwise($_state, {x, squares});
    Properties &properties = $_state.getOrAddProperties<Properties>();
    properties.along = $_builder.getDenseI64ArrayAttr(along);
    properties.count = $_builder.getI64IntegerAttr(count);
    properties.epsilon = $_builder.getF64FloatAttr(epsilon);
  }]>];
}

// A softmax computed again from its scores and the logarithms of its sums of exponentials, in f32,
// which run `along` the axes of x but that of the softmax (FlashAttention, section 3.1: what the
// backward pass recomputes). Rows whose logarithm is -inf saw nothing: 0.
def Weft_SoftmaxFromLogSumsOp : Weft_Elementwise<"softmax_from_log_sums",
    "{1} == weft::negativeInfinity ? 0.0f : weft::exp({0} - {1})", 2,
    "std::isinf(b) && b < 0 ? 0.0 : std::exp(a - b)", []> {
  let ownConstraints = 1;
  let arguments = (ins Weft_Tensor:$x, Weft_Tensor:$log_sums, DenseI64ArrayAttr:$along);
  let builders = [OpBuilder<(ins "::mlir::Value":$x, "::mlir::Value":$logSums,
                                 "::llvm::ArrayRef<int64_t>":$along), [{
    ::weft::buildElementwise($_state, {x, logSums});
    $_state.getOrAddProperties<Properties>().along = $_builder.getDenseI64ArrayAttr(along);
  }]>];
}

//===-- Ops of coordinates: no scalar meaning by value alone ----------------------------------===//

// Bits of the mask: SPEC.md, section Dropout bits.
def Weft_DropoutOp : Weft_Elementwise<"dropout", "", 1, "std::numeric_limits<double>::quiet_NaN()",
    ["make<DropoutOp>(dy, getP().convertToDouble(), int64_t(getStream()))"]> {
  let ownConstraints = 1;
  let arguments = (ins Weft_Tensor:$x, F64Attr:$p, I64Attr:$stream);
  let builders = [OpBuilder<(ins "::mlir::Value":$x, "double":$p, "int64_t":$stream), [{
    ::weft::buildElementwise($_state, {x});
    $_state.getOrAddProperties<Properties>().p = $_builder.getF64FloatAttr(p);
    $_state.getOrAddProperties<Properties>().stream = $_builder.getI64IntegerAttr(stream);
  }]>];
}

// Rotates pairs of the `dim` axis by position * base^(-2 i / extent), or back by it. `starts`:
// positions count from that of their sequence, one `along` an axis. `among` an axis only elements
// from `begin` up to `end` are rotated, the others stay.
def Weft_RotaryOp : Weft_Elementwise<"rotary", "", 3, "std::numeric_limits<double>::quiet_NaN()",
    ["turnedBack(dy)"]> {
  let ownExpression = 1;
  let ownConstraints = 1;
  let ownTypes = 1;
  let arguments = (ins Weft_Tensor:$x, Optional<Weft_Tensor>:$starts, I64Attr:$position,
                       I64Attr:$dim, OptionalAttr<DenseI64ArrayAttr>:$along,
                       DefaultValuedAttr<F64Attr, "10000.0">:$base,
                       DefaultValuedStrAttr<StrAttr, "halved">:$style,
                           OptionalAttr<StrAttr>:$direction, OptionalAttr<I64Attr>:$turned,
                       OptionalAttr<F64Attr>:$factor, OptionalAttr<I64Attr>:$original,
                       OptionalAttr<F64Attr>:$low, OptionalAttr<F64Attr>:$high,
                       OptionalAttr<I64Attr>:$among, OptionalAttr<I64Attr>:$begin,
                       OptionalAttr<I64Attr>:$end);
  let extraMembers = [{
    bool isReverse() { return getDirection() == "reverse"; }
    // Of a verified op.
    ::weft::RotaryStyle style();
    int64_t turnedExtent();
    ::llvm::LogicalResult verifyStarts();
    ::llvm::LogicalResult verifyRange();
    ::weft::Term turnedBack(const ::weft::Term &x);
  }];
  let builders = [OpBuilder<(ins "::mlir::Value":$x, "int64_t":$position, "int64_t":$dim,
                                 CArg<"double", "10000.0">:$base, CArg<"::llvm::StringRef",
                                     "\"halved\"">:$style,
                                 CArg<"bool", "false">:$isReverse), [{
    ::weft::buildElementwise($_state, {x});
    Properties &properties = $_state.getOrAddProperties<Properties>();
    properties.position = $_builder.getI64IntegerAttr(position);
    properties.dim = $_builder.getI64IntegerAttr(dim);
    properties.base = $_builder.getF64FloatAttr(base);
    properties.style = $_builder.getStringAttr(style);
    if (isReverse) properties.direction = $_builder.getStringAttr("reverse");
  }]>];
}

// Excluded elements become -inf, or `fill`. `aux`: lengths of a padding mask (one per position
// `along` an axis), starts of the queries of a causal mask or a window (likewise), table of a block
// mask, segments of a document mask. A pattern mask has its
// table in `pattern` (kernel/BlockMask.h), by the head whose digits the coordinates `along` axes
// are.
def Weft_MaskOp : Weft_Elementwise<"mask", "", 0, "std::numeric_limits<double>::quiet_NaN()",
    ["filledWithZeros(dy)", ""]> {
  let ownExpression = 1;
  let ownConstraints = 1;
  let ownTypes = 1;
  let arguments = (ins Weft_Tensor:$x, Variadic<Weft_Tensor>:$others, StrAttr:$kind,
                       OptionalAttr<I64Attr>:$query,
                       I64Attr:$key, OptionalAttr<DenseI64ArrayAttr>:$along,
                           OptionalAttr<I64Attr>:$left,
                       OptionalAttr<I64Attr>:$right, OptionalAttr<I64Attr>:$global,
                           OptionalAttr<I64Attr>:$size,
                           OptionalAttr<StrAttr>:$pattern, OptionalAttr<F64Attr>:$fill,
                       UnitAttr:$packed);
  let extraMembers = [{
    ::weft::Term filledWithZeros(const ::weft::Term &x);
    static MaskOp causal(::mlir::OpBuilder &builder, ::mlir::Location location, ::mlir::Value x,
        int64_t query,
                         int64_t key);
    static MaskOp window(::mlir::OpBuilder &builder, ::mlir::Location location, ::mlir::Value x,
        int64_t query,
                         int64_t key, int64_t left, int64_t right, int64_t global = 0);
    static MaskOp padding(::mlir::OpBuilder &builder, ::mlir::Location location, ::mlir::Value x,
        int64_t key,
                          ::mlir::Value lengths, int64_t along);
    static MaskOp block(::mlir::OpBuilder &builder, ::mlir::Location location, ::mlir::Value x,
        int64_t query,
                        int64_t key, int64_t size, ::mlir::Value table);
    static MaskOp document(::mlir::OpBuilder &builder, ::mlir::Location location, ::mlir::Value x,
        int64_t query,
                           int64_t key, ::mlir::Value segments, int64_t along);
    static MaskOp byPattern(::mlir::OpBuilder &builder, ::mlir::Location location,
                            ::mlir::Value x, int64_t query, int64_t key,
                            ::llvm::ArrayRef<int64_t> heads, ::llvm::StringRef pattern);
    /// Null without a second operand: lengths, starts, a table, segments or offsets.
    ::mlir::Value getAux() { return getOthers().empty() ? ::mlir::Value() : getOthers().front(); }
    /// Of a document mask, the bounds of its segments (weft.tile_bounds); null without them.
    ::mlir::Value getBounds() {
      return getOthers().size() < 2 ? ::mlir::Value() : getOthers()[1];
    }
    void setBounds(::mlir::Value bounds);
    /// Heads whose tables may differ: the extents of `along`, as one number.
    int64_t countHeads();
    ::llvm::LogicalResult checkFloatResult();
    ::llvm::LogicalResult verifyAxesAndSizes();
    /// Queries stand from the start of their sequence on, not at the last keys.
    void setStarts(::mlir::Value starts, int64_t along);
    ::llvm::LogicalResult verifySegments();
    ::llvm::LogicalResult verifyPattern();
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

// Attention with linear biases: x + slope * (key - query), the slope from the number of the head,
// which the coordinates along `heads` are the digits of, slowest first.
def Weft_AlibiOp : Weft_Elementwise<"alibi", "", 2, "std::numeric_limits<double>::quiet_NaN()",
    ["dy"]> {
  let ownExpression = 1;
  let ownConstraints = 1;
  let arguments = (ins Weft_Tensor:$x, DenseI64ArrayAttr:$heads, I64Attr:$query, I64Attr:$key,
                       DefaultValuedAttr<F64Attr, "8.0">:$steepness);
  let builders = [OpBuilder<(ins "::mlir::Value":$x, "::llvm::ArrayRef<int64_t>":$heads,
                                 "int64_t":$query, "int64_t":$key, "double":$steepness), [{
    ::weft::buildElementwise($_state, {x});
    Properties &properties = $_state.getOrAddProperties<Properties>();
    properties.heads = $_builder.getDenseI64ArrayAttr(heads);
    properties.query = $_builder.getI64IntegerAttr(query);
    properties.key = $_builder.getI64IntegerAttr(key);
    properties.steepness = $_builder.getF64FloatAttr(steepness);
  }]>];
}

// x + the table's element at the distance of key and query (in reverse: of query and key), which is
// clipped to `distance` on either side. The table runs `along` axes of x, then has one element a
// distance; without one for the last distance, that shares the one before it.
def Weft_RelativeBiasOp : Weft_Elementwise<"relative_bias", "", 1,
    "std::numeric_limits<double>::quiet_NaN()", []> {
  let ownExpression = 1;
  let ownConstraints = 1;
  let ownTypes = 1;
  let arguments = (ins Weft_Tensor:$x, Weft_Tensor:$table, DenseI64ArrayAttr:$along,
                       I64Attr:$query, I64Attr:$key, I64Attr:$distance,
                       OptionalAttr<StrAttr>:$direction);
  let extraMembers = [{
    bool isReverse() { return getDirection() == "reverse"; }
    ::llvm::LogicalResult differentiate(::weft::Derivation &derivation);
  }];
  let builders = [OpBuilder<(ins "::mlir::Value":$x, "::mlir::Value":$table,
                                 "::llvm::ArrayRef<int64_t>":$along, "int64_t":$query,
                                 "int64_t":$key, "int64_t":$distance,
                                 CArg<"bool", "false">:$isReverse), [{
    ::weft::buildElementwise($_state, {x, table});
    Properties &properties = $_state.getOrAddProperties<Properties>();
    properties.along = $_builder.getDenseI64ArrayAttr(along);
    properties.query = $_builder.getI64IntegerAttr(query);
    properties.key = $_builder.getI64IntegerAttr(key);
    properties.distance = $_builder.getI64IntegerAttr(distance);
    if (isReverse) properties.direction = $_builder.getStringAttr("reverse");
  }]>];
}

#endif  // WEFT_ELEMENTWISE_OPS_TD
