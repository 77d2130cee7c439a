// Every op of the dialect: bases, contraction, normalization, movement and structure. Element-wise
// ops have their own file, where one record is one op. Meaning and constraints: SPEC.md.
#ifndef WEFT_OPS_TD
#define WEFT_OPS_TD

include "ir/WeftDialect.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Weft_Tensor : Type<AnyRankedTensor.predicate, "ranked tensor", "::mlir::RankedTensorType">;

// A statement: `weft.name [spec or kind] operands [over axes] [along (axes)] {attributes} : types
// [-> types]`. Parsed and printed by Syntax.cpp for all ops alike; SSA names survive the round
// trip.
class Weft_Op<string mnemonic, list<Trait> traits = []>
    : Op<Weft_Dialect, mnemonic,
         !listconcat([WeftOpInterface, DeclareOpInterfaceMethods<OpAsmOpInterface,
             ["getAsmResultNames"]>], traits)> {
  let hasCustomAssemblyFormat = 1;
  code members = "";
  code definitions = "";
  let extraClassDeclaration = members;
  let extraClassDefinition = definitions # [{
    ::mlir::ParseResult $cppClass::parse(::mlir::OpAsmParser &parser,
        ::mlir::OperationState &result) {
      return ::weft::parseStatement(parser, result);
    }
    void $cppClass::print(::mlir::OpAsmPrinter &printer) { ::weft::printStatement(printer, *this); }
    void $cppClass::getAsmResultNames(::mlir::OpAsmSetValueNameFn setName) {
      ::weft::nameResults(*this, setName);
    }
  }];
}

// An op with a class of its members: space, flop and (if it has one) derivative are defined in
// the class's .cpp.
class Weft_SpaceOp<string mnemonic, string operatorClass, list<Trait> traits = []>
    : Weft_Op<mnemonic, !listconcat([Pure], traits)> {
  bit isDifferentiable = 0;
  bit keepsMore = 0;  // its derivative reads results that the op need not have
  bit readsByExpression = 0;  // movement that an expression states: emitted as element-wise ops are
  bit dropsOut = 0;   // `p` and `stream` are optional: what it drops of its first operand
  let members = "::weft::OperatorClass operatorClass() { return ::weft::OperatorClass::"
      # operatorClass # [{; }
    ::weft::IterationSpace iterationSpace();
    double flop();
    ::llvm::LogicalResult verifyConstraints();
  }] # !if(isDifferentiable,
      "::llvm::LogicalResult differentiate(::weft::Derivation &derivation);\n", "")
     # !if(keepsMore, "::mlir::Operation *keepForBackward();\n", "")
     # !if(readsByExpression, "::weft::Expression expression();\n", "")
     # !if(dropsOut, "std::optional<::weft::Dropout> dropout();\n", "");
}

include "ir/ElementwiseOps.td"

//===-- Contraction ---------------------------------------------------------------------------===//

def Weft_ContractOp : Weft_SpaceOp<"contract", "contraction"> {
  let isDifferentiable = 1;
  let summary = "Einsum of two operands; `offsets` of packed tokens say from where on along the "
      "one contracted axis both are zero";
  let arguments = (ins Weft_Tensor:$a, Weft_Tensor:$b, Optional<Weft_Tensor>:$offsets,
                       StrAttr:$spec, OptionalAttr<F64Attr>:$scale,
                       OptionalAttr<StrAttr>:$precision);
  let results = (outs Weft_Tensor:$result);
  let skipDefaultBuilders = 1;
  let builders = [
    // The result's axis names follow the operands' by letter, unless given; its element type is
    // that of `a`.
    OpBuilder<(ins "::llvm::StringRef":$spec, "::mlir::Value":$a, "::mlir::Value":$b,
                   CArg<"std::optional<double>", "std::nullopt">:$scale,
                   CArg<"::llvm::ArrayRef<std::string>", "{}">:$axisNames,
                   CArg<"std::optional<::weft::DType>", "std::nullopt">:$dtype)>];
}

//===-- Normalization -------------------------------------------------------------------------===//

def Weft_SoftmaxOp : Weft_SpaceOp<"softmax", "normalization"> {
  let isDifferentiable = 1;
  let summary = "Softmax along one axis; a row of -inf gives zeros";
  let arguments = (ins Weft_Tensor:$x, I64Attr:$axis, DefaultValuedStrAttr<StrAttr,
                       "zero">:$empty_row);
  let results = (outs Weft_Tensor:$result);
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$x, "int64_t":$axis)>];
}

def Weft_LayerNormOp : Weft_SpaceOp<"layer_norm", "normalization"> {
  let keepsMore = 1;
  let isDifferentiable = 1;
  let summary = "(x - mean) * rstd * gamma, plus beta if there is one, along one axis; mean and "
      "rstd as optional results in f32";
  let arguments = (ins Weft_Tensor:$x, Weft_Tensor:$gamma, Optional<Weft_Tensor>:$beta,
                       I64Attr:$axis, DefaultValuedAttr<F64Attr, "1e-5">:$epsilon);
  let results = (outs Weft_Tensor:$y, Variadic<Weft_Tensor>:$statistics);
  let skipDefaultBuilders = 1;
  // `beta` may be null.
  let builders = [OpBuilder<(ins "::mlir::Value":$x, "::mlir::Value":$gamma, "::mlir::Value":$beta,
                                 "int64_t":$axis,
                                 CArg<"double", "1e-5">:$epsilon, CArg<"bool",
                                     "false">:$withStatistics)>];
}

def Weft_RmsNormOp : Weft_SpaceOp<"rms_norm", "normalization"> {
  let keepsMore = 1;
  let isDifferentiable = 1;
  let summary = "x / sqrt(mean(x^2) + epsilon) * gamma along one axis; rstd as optional result in "
      "f32";
  let arguments = (ins Weft_Tensor:$x, Weft_Tensor:$gamma, I64Attr:$axis,
                       DefaultValuedAttr<F64Attr, "1e-5">:$epsilon);
  let results = (outs Weft_Tensor:$y, Variadic<Weft_Tensor>:$statistics);
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$x, "::mlir::Value":$gamma, "int64_t":$axis,
                                 CArg<"double", "1e-5">:$epsilon, CArg<"bool",
                                     "false">:$withStatistics)>];
}

def Weft_ReduceOp : Weft_SpaceOp<"reduce", "normalization"> {
  let isDifferentiable = 1;
  let summary = "Sum or maximum over some axes";
  let arguments = (ins Weft_Tensor:$x, StrAttr:$kind, DenseI64ArrayAttr:$axes);
  let results = (outs Weft_Tensor:$result);
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::llvm::StringRef":$kind, "::mlir::Value":$x,
                                 "::llvm::ArrayRef<int64_t>":$axes,
                                 CArg<"std::optional<::weft::DType>", "std::nullopt">:$dtype)>];
}

def Weft_CrossEntropyOp : Weft_SpaceOp<"cross_entropy", "normalization"> {
  let isDifferentiable = 1;
  let summary = "log(sum(exp(x))) - x[label] along one axis, and the logarithms of the sums; "
      "labels outside the axis lose nothing";
  let arguments = (ins Weft_Tensor:$x, Weft_Tensor:$labels, I64Attr:$axis);
  let results = (outs Weft_Tensor:$losses, Weft_Tensor:$log_sums);
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$x, "::mlir::Value":$labels, "int64_t":$axis)>];
}

def Weft_LocalSoftmaxOp : Weft_SpaceOp<"local_softmax", "normalization"> {
  let summary = "Per sub-vector of `tile` elements: exp(x - max), the maxima and the sums";
  let arguments = (ins Weft_Tensor:$x, I64Attr:$axis, I64Attr:$tile);
  let results = (outs Weft_Tensor:$exponentials, Weft_Tensor:$maxima, Weft_Tensor:$sums);
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$x, "int64_t":$axis, "int64_t":$tile)>];
}

def Weft_ReduceSubvectorsOp : Weft_SpaceOp<"reduce_subvectors", "normalization"> {
  let summary = "The factor of each sub-vector: exp(m' - m) / d over the sub-vector axis";
  let arguments = (ins Weft_Tensor:$maxima, Weft_Tensor:$sums, I64Attr:$axis);
  let results = (outs Weft_Tensor:$factors);
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$maxima, "::mlir::Value":$sums, "int64_t":$axis)>];
}

def Weft_GlobalScalingOp : Weft_SpaceOp<"global_scaling", "elementwise"> {
  let summary = "Each sub-vector times its factor";
  let arguments = (ins Weft_Tensor:$x, Weft_Tensor:$factors, I64Attr:$axis, I64Attr:$tile);
  let results = (outs Weft_Tensor:$result);
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$x, "::mlir::Value":$factors, "int64_t":$axis,
                                 "int64_t":$tile)>];
}

def Weft_SubvectorContractOp : Weft_SpaceOp<"subvector_contract", "contraction"> {
  let dropsOut = 1;
  let summary = "Einsum of the exponentials of a local softmax with values, a separate sum for "
      "each sub-vector of `tile` elements of the contracted axis; with `p` and `stream`, of the "
      "exponentials that dropout keeps";
  let arguments = (ins Weft_Tensor:$x, Weft_Tensor:$v, StrAttr:$spec, I64Attr:$tile,
                       OptionalAttr<F64Attr>:$p, OptionalAttr<I64Attr>:$stream,
                       OptionalAttr<StrAttr>:$precision);
  let results = (outs Weft_Tensor:$partials);
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::llvm::StringRef":$spec, "::mlir::Value":$x,
                                 "::mlir::Value":$v, "int64_t":$tile,
                                 CArg<"std::optional<::weft::Dropout>",
                                     "std::nullopt">:$dropout)>];
}

def Weft_OnlineSoftmaxContractOp : Weft_SpaceOp<"online_softmax_contract", "contraction"> {
  let dropsOut = 1;
  let summary = "Softmax of x along the contracted axis, then the einsum with v, as a fold of "
      "(maximum, sum, output) over tiles of that axis; the logarithms of the sums of exponentials "
      "as an optional result in f32; with `p` and `stream`, probabilities are dropped before the "
      "einsum";
  let arguments = (ins Weft_Tensor:$x, Weft_Tensor:$v, StrAttr:$spec, OptionalAttr<F64Attr>:$p,
                       OptionalAttr<I64Attr>:$stream, OptionalAttr<StrAttr>:$precision);
  let results = (outs Weft_Tensor:$result, Variadic<Weft_Tensor>:$log_sums);
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::llvm::StringRef":$spec, "::mlir::Value":$x,
                                 "::mlir::Value":$v, "::mlir::Type":$result,
                                 CArg<"bool", "false">:$withLogSums,
                                 CArg<"std::optional<::weft::Dropout>",
                                     "std::nullopt">:$dropout)>];
}

//===-- Movement ------------------------------------------------------------------------------===//

def Weft_TransposeOp : Weft_SpaceOp<"transpose", "movement"> {
  let isDifferentiable = 1;
  let summary = "Result dimension d is operand dimension permutation[d]";
  let arguments = (ins Weft_Tensor:$x, DenseI64ArrayAttr:$permutation);
  let results = (outs Weft_Tensor:$result);
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$x, "::llvm::ArrayRef<int64_t>":$permutation)>];
}

def Weft_SliceOp : Weft_SpaceOp<"slice", "movement"> {
  let isDifferentiable = 1;
  let summary = "`size` positions of one axis from `start` on";
  let arguments = (ins Weft_Tensor:$x, I64Attr:$axis, I64Attr:$start, I64Attr:$size);
  let results = (outs Weft_Tensor:$result);
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$x, "int64_t":$axis, "int64_t":$start,
                                 "int64_t":$size)>];
}

def Weft_ConcatOp : Weft_SpaceOp<"concat", "movement"> {
  let isDifferentiable = 1;
  let summary = "Operands one after the other along one axis";
  let arguments = (ins Variadic<Weft_Tensor>:$parts, I64Attr:$axis);
  let results = (outs Weft_Tensor:$result);
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::mlir::ValueRange":$parts, "int64_t":$axis)>];
}

def Weft_SplitAxisOp : Weft_SpaceOp<"split_axis", "movement"> {
  let isDifferentiable = 1;
  let summary = "One axis becomes several of the given sizes, slowest first";
  let arguments = (ins Weft_Tensor:$x, I64Attr:$axis, DenseI64ArrayAttr:$sizes);
  let results = (outs Weft_Tensor:$result);
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$x, "int64_t":$axis,
                                 "::llvm::ArrayRef<int64_t>":$sizes,
                                 "::llvm::ArrayRef<std::string>":$axisNames)>];
}

def Weft_MergeAxesOp : Weft_SpaceOp<"merge_axes", "movement"> {
  let isDifferentiable = 1;
  let summary = "`count` neighbouring axes from `axis` on become one";
  let arguments = (ins Weft_Tensor:$x, I64Attr:$axis, I64Attr:$count);
  let results = (outs Weft_Tensor:$result);
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$x, "int64_t":$axis, "int64_t":$count,
                                 "::llvm::StringRef":$axisName)>];
}

def Weft_GatherOp : Weft_SpaceOp<"gather", "movement"> {
  let isDifferentiable = 1;
  let summary = "Rows of the table's axis 0, one per index";
  let arguments = (ins Weft_Tensor:$table, Weft_Tensor:$indices);
  let results = (outs Weft_Tensor:$result);
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$table, "::mlir::Value":$indices)>];
}

def Weft_ExpandBucketsOp : Weft_SpaceOp<"expand_buckets", "movement"> {
  let readsByExpression = 1;
  let summary = "The table's row of each distance from -distance to distance, by T5's buckets of "
      "distances (`kind`: causal or bidirectional); distances are the last axis";
  let arguments = (ins Weft_Tensor:$table, StrAttr:$kind, I64Attr:$distance);
  let results = (outs Weft_Tensor:$result);
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$table, "::llvm::StringRef":$kind,
                                 "int64_t":$distance)>];
}

def Weft_TileBoundsOp : Weft_SpaceOp<"tile_bounds", "movement"> {
  let summary = "The least and the greatest of every 32 neighbouring positions of the last axis";
  let arguments = (ins Weft_Tensor:$segments);
  let results = (outs Weft_Tensor:$result);
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$segments)>];
}

def Weft_IdentityOp : Weft_SpaceOp<"identity", "movement"> {
  let isDifferentiable = 1;
  let summary = "The operand unchanged: the body of a pure change of layout";
  let arguments = (ins Weft_Tensor:$x);
  let results = (outs Weft_Tensor:$result);
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$x)>];
}

//===-- Sequences of different lengths --------------------------------------------------------===//

def Weft_OffsetsOp : Weft_SpaceOp<"offsets", "normalization"> {
  let summary = "Where each sequence begins among packed tokens, and last how many tokens there "
      "are: sums of the lengths before, each held to [0, `bound`]";
  let arguments = (ins Weft_Tensor:$lengths, I64Attr:$bound);
  let results = (outs Weft_Tensor:$result);
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$lengths, "int64_t":$bound)>];
}

def Weft_LengthsOp : Weft_SpaceOp<"lengths", "normalization"> {
  let summary = "How many tokens each sequence has by a mask over (sequences, positions), whose "
      "rows are ones and then zeros";
  let arguments = (ins Weft_Tensor:$mask);
  let results = (outs Weft_Tensor:$result);
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$mask)>];
}

def Weft_PackOp : Weft_SpaceOp<"pack", "movement"> {
  let isDifferentiable = 1;
  let summary = "The tokens of all sequences one after the other, in place of two axes (sequences, "
      "positions); zero behind the last token, or where nothing reads these rows, unspecified";
  let arguments = (ins Weft_Tensor:$x, Weft_Tensor:$offsets, DenseI64ArrayAttr:$axes,
                       UnitAttr:$unread);
  let results = (outs Weft_Tensor:$result);
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$x, "::mlir::Value":$offsets,
                                 "::llvm::ArrayRef<int64_t>":$axes,
                                 CArg<"::llvm::StringRef", "\"t\"">:$axisName)>];
}

def Weft_UnpackOp : Weft_SpaceOp<"unpack", "movement"> {
  let isDifferentiable = 1;
  let summary = "Packed tokens at dimensions `into` (sequences, positions) of the result; `fill` "
      "behind the tokens of each sequence";
  let arguments = (ins Weft_Tensor:$x, Weft_Tensor:$offsets, I64Attr:$axis,
                       DenseI64ArrayAttr:$into, DefaultValuedAttr<F64Attr, "0.0">:$fill);
  let results = (outs Weft_Tensor:$result);
  let skipDefaultBuilders = 1;
  // `names`: of the sequences and of the positions; `length`: the extent of the latter.
  let builders = [OpBuilder<(ins "::mlir::Value":$x, "::mlir::Value":$offsets, "int64_t":$axis,
                                 "::llvm::ArrayRef<int64_t>":$into, "int64_t":$length,
                                 "::llvm::ArrayRef<std::string>":$names,
                                 CArg<"double", "0">:$fill)>];
}

def Weft_AppendOp : Weft_SpaceOp<"append", "movement"> {
  let summary = "A cache with new tokens from the start of each sequence on, in the cache's place; "
      "with a table, a cache of pages";
  let arguments = (ins Weft_Tensor:$cache, Weft_Tensor:$tokens, Weft_Tensor:$starts,
                       Optional<Weft_Tensor>:$table, I64Attr:$axis, DenseI64ArrayAttr:$along);
  let results = (outs Weft_Tensor:$result);
  let skipDefaultBuilders = 1;
  // `axis`: that of positions, of cache and tokens; `along`: that of sequences, of a cache of pages
  // that of these.
  let builders = [OpBuilder<(ins "::mlir::Value":$cache, "::mlir::Value":$tokens,
                                 "::mlir::Value":$starts, "int64_t":$axis, "int64_t":$along,
                                 CArg<"::mlir::Value", "{}">:$table)>];
}

def Weft_GatherPagesOp : Weft_SpaceOp<"gather_pages", "movement"> {
  let summary = "The positions of each sequence from the pages that a table lists for it; zero "
      "where an entry is none of the pages";
  let arguments = (ins Weft_Tensor:$pages, Weft_Tensor:$table, I64Attr:$axis,
                       DenseI64ArrayAttr:$along);
  let results = (outs Weft_Tensor:$result);
  let skipDefaultBuilders = 1;
  // `axis`: that of positions in a page; `along`: that of pages. `name`: of the result's positions.
  let builders = [OpBuilder<(ins "::mlir::Value":$pages, "::mlir::Value":$table, "int64_t":$axis,
                                 "int64_t":$along, "::llvm::StringRef":$name)>];
}

include "ir/GradientOps.td"

//===-- Structure -----------------------------------------------------------------------------===//

def Weft_GraphOp : Op<Weft_Dialect, "graph", [
    IsolatedFromAbove, FunctionOpInterface, OpAsmOpInterface,
    SingleBlockImplicitTerminator<"::weft::ReturnOp">]> {
  let cppNamespace = "::weft";
  let summary = "A dataflow graph; arguments marked weft.parameter are weights";
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<FunctionType>:$function_type,
                       OptionalAttr<StrAttr>:$sym_visibility,
                       OptionalAttr<DictArrayAttr>:$arg_attrs,
                           OptionalAttr<DictArrayAttr>:$res_attrs);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasRegionVerifier = 1;
  let skipDefaultBuilders = 1;
  let builders = [
    // An entry block with one argument per type; named arguments print under their names.
    OpBuilder<(ins "::llvm::StringRef":$name, "::llvm::ArrayRef<::mlir::Type>":$argumentTypes,
                   "::llvm::ArrayRef<::mlir::Type>":$resultTypes,
                   CArg<"::llvm::ArrayRef<std::string>", "{}">:$argumentNames)>];
  let extraClassDeclaration = [{
    static constexpr ::llvm::StringLiteral parameterAttribute = "weft.parameter";
    bool isParameter(unsigned argument) { return static_cast<bool>(getArgAttr(argument,
        parameterAttribute)); }
    void setParameter(unsigned argument);
    // What training starts an argument from, where the graph says so.
    static constexpr ::llvm::StringLiteral initialAttribute = "weft.initial";
    std::optional<::weft::InitialValue> initialValue(unsigned argument);
    void setInitialValue(unsigned argument, const ::weft::InitialValue &value);
    // What an argument or a result is to a training step (kernel/TrainingRole.h).
    static constexpr ::llvm::StringLiteral trainingAttribute = "weft.training";
    ::weft::TrainingRole trainingRoleOfArgument(unsigned argument);
    ::weft::TrainingRole trainingRoleOfResult(unsigned result);
    void setTrainingRoleOfArgument(unsigned argument, ::weft::TrainingRole role);
    void setTrainingRoleOfResult(unsigned result, ::weft::TrainingRole role);
    ::llvm::ArrayRef<::mlir::Type> getArgumentTypes() { return getFunctionType().getInputs(); }
    ::llvm::ArrayRef<::mlir::Type> getResultTypes() { return getFunctionType().getResults(); }
    ::mlir::Region *getCallableRegion() { return &getBody(); }
    void getAsmBlockArgumentNames(::mlir::Region &region, ::mlir::OpAsmSetValueNameFn setName);
  }];
}

def Weft_ReturnOp : Op<Weft_Dialect, "return", [Pure, Terminator, ReturnLike,
    HasParent<"::weft::GraphOp">]> {
  let summary = "The results of a graph";
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
  let builders = [OpBuilder<(ins), [{ build($_builder, $_state, ::mlir::ValueRange()); }]>];
}

def Weft_KernelOp : Op<Weft_Dialect, "kernel", [
    IsolatedFromAbove, DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames",
        "getAsmBlockArgumentNames"]>,
    SingleBlockImplicitTerminator<"::weft::YieldOp">]> {
  let summary = "A fused region: the unit of configuration, emission and report";
  let arguments = (ins Variadic<Weft_Tensor>:$inputs, StrAttr:$name,
                       OptionalAttr<Weft_LayoutsAttr>:$layouts,
                       OptionalAttr<DictionaryAttr>:$config);
  let results = (outs Variadic<Weft_Tensor>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasRegionVerifier = 1;
  let skipDefaultBuilders = 1;
  let builders = [
    // An entry block with one argument per input; the caller fills it and ends it with weft.yield.
    OpBuilder<(ins "::llvm::StringRef":$name, "::mlir::ValueRange":$inputs,
                   "::mlir::TypeRange":$outputTypes)>];
  let extraClassDeclaration = [{
    ::mlir::Block *getBlock() { return &getBody().front(); }
  }];
}

def Weft_YieldOp : Op<Weft_Dialect, "yield", [Pure, Terminator, HasParent<"::weft::KernelOp">]> {
  let summary = "The results of a kernel";
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
  let builders = [OpBuilder<(ins), [{ build($_builder, $_state, ::mlir::ValueRange()); }]>];
}

def Weft_ConstantOp : Op<Weft_Dialect, "constant", [Pure, ConstantLike, WeftOpInterface,
    AllTypesMatch<["value", "result"]>]> {
  let summary = "A small table of values";
  let arguments = (ins ElementsAttr:$value);
  let results = (outs Weft_Tensor:$result);
  let assemblyFormat = "attr-dict $value";
  let extraClassDeclaration = [{
    ::weft::OperatorClass operatorClass() { return ::weft::OperatorClass::movement; }
    ::weft::IterationSpace iterationSpace();
    ::llvm::LogicalResult verifyConstraints();
    double flop() { return 0; }
  }];
}

def Weft_ExpectCloseOp : Weft_Op<"expect_close"> {
  let summary = "Fails the interpretation unless |a - b| <= absolute + relative * |b| everywhere";
  let arguments = (ins Weft_Tensor:$a, Weft_Tensor:$b, DefaultValuedAttr<F64Attr, "1e-5">:$absolute,
                       DefaultValuedAttr<F64Attr, "1e-5">:$relative);
  let members = [{
    ::weft::OperatorClass operatorClass() { return ::weft::OperatorClass::elementwise; }
    ::weft::IterationSpace iterationSpace();
    ::llvm::LogicalResult verifyConstraints();
    double flop() { return 0; }
  }];
}

#endif  // WEFT_OPS_TD
