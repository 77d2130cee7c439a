// Ops that only derivatives need, beside the element-wise ones (ElementwiseOps.td). Names follow
// Table A.1 of "Data Movement Is All You Need": dX is the gradient of an input, dW that of
// parameters. Meaning and constraints: SPEC.md.
#ifndef WEFT_GRADIENT_OPS_TD
#define WEFT_GRADIENT_OPS_TD

//===-- Normalization -------------------------------------------------------------------------===//

def Weft_SoftmaxDxOp : Weft_SpaceOp<"softmax_dx", "normalization"> {
  let summary = "y * (dy - sum(dy * y)) along one axis, from the softmax's own result";
  let arguments = (ins Weft_Tensor:$dy, Weft_Tensor:$y, I64Attr:$axis);
  let results = (outs Weft_Tensor:$result);
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$dy, "::mlir::Value":$y, "int64_t":$axis)>];
}

def Weft_CrossEntropyDxOp : Weft_SpaceOp<"cross_entropy_dx", "elementwise"> {
  let summary = "dy * (exp(x - log_sum) - (1 at the label)), 0 in rows whose label lies outside "
      "the axis";
  let arguments = (ins Weft_Tensor:$x, Weft_Tensor:$labels, Weft_Tensor:$log_sums, Weft_Tensor:$dy,
                       I64Attr:$axis);
  let results = (outs Weft_Tensor:$result);
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$x, "::mlir::Value":$labels,
                                 "::mlir::Value":$log_sums,
                                 "::mlir::Value":$dy, "int64_t":$axis)>];
}

def Weft_LayerNormDxOp : Weft_SpaceOp<"layer_norm_dx", "normalization"> {
  let summary = "rstd * (g - mean(g) - n * mean(g * n)) along one axis, g = dy * gamma, n = (x - "
      "mean) * rstd";
  let arguments = (ins Weft_Tensor:$dy, Weft_Tensor:$x, Weft_Tensor:$gamma, Weft_Tensor:$mean,
                       Weft_Tensor:$rstd,
                       I64Attr:$axis);
  let results = (outs Weft_Tensor:$result);
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$dy, "::mlir::Value":$x, "::mlir::Value":$gamma,
                                 "::mlir::Value":$mean,
                                 "::mlir::Value":$rstd, "int64_t":$axis)>];
}

def Weft_LayerNormDwOp : Weft_SpaceOp<"layer_norm_dw", "normalization"> {
  let summary = "Gradients of gamma, sum(dy * n), and of a beta, sum(dy), over all axes but the "
      "normalized one";
  let arguments = (ins Weft_Tensor:$dy, Weft_Tensor:$x, Weft_Tensor:$mean, Weft_Tensor:$rstd,
                       DenseI64ArrayAttr:$axes);
  let results = (outs Weft_Tensor:$dgamma, Optional<Weft_Tensor>:$dbeta);
  let skipDefaultBuilders = 1;
  // `beta`: null of a norm without.
  let builders = [OpBuilder<(ins "::mlir::Value":$dy, "::mlir::Value":$x, "::mlir::Value":$mean,
                                 "::mlir::Value":$rstd,
                                 "int64_t":$normalized, "::mlir::Type":$gamma,
                                     "::mlir::Type":$beta)>];
}

def Weft_RmsNormDxOp : Weft_SpaceOp<"rms_norm_dx", "normalization"> {
  let summary = "rstd * (g - n * mean(g * n)) along one axis, g = dy * gamma, n = x * rstd";
  let arguments = (ins Weft_Tensor:$dy, Weft_Tensor:$x, Weft_Tensor:$gamma, Weft_Tensor:$rstd,
                       I64Attr:$axis);
  let results = (outs Weft_Tensor:$result);
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$dy, "::mlir::Value":$x, "::mlir::Value":$gamma,
                                 "::mlir::Value":$rstd,
                                 "int64_t":$axis)>];
}

def Weft_RmsNormDwOp : Weft_SpaceOp<"rms_norm_dw", "normalization"> {
  let summary = "Gradient of gamma, sum(dy * n), over all axes but the normalized one";
  let arguments = (ins Weft_Tensor:$dy, Weft_Tensor:$x, Weft_Tensor:$rstd, DenseI64ArrayAttr:$axes);
  let results = (outs Weft_Tensor:$dgamma);
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$dy, "::mlir::Value":$x, "::mlir::Value":$rstd,
                                 "int64_t":$normalized,
                                 "::mlir::Type":$gamma)>];
}

def Weft_ScatterAddOp : Weft_SpaceOp<"scatter_add", "normalization"> {
  let summary = "Row r of the result is the sum of the rows whose index is r, in ascending order "
      "of position";
  let arguments = (ins Weft_Tensor:$rows, Weft_Tensor:$indices);
  let results = (outs Weft_Tensor:$result);
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$rows, "::mlir::Value":$indices,
                                 "::mlir::Type":$table)>];
}

//===-- Movement ------------------------------------------------------------------------------===//

def Weft_PadOp : Weft_SpaceOp<"pad", "movement"> {
  let summary = "The operand from `start` on along one axis of extent `size`, zero elsewhere";
  let isDifferentiable = 1;
  let arguments = (ins Weft_Tensor:$x, I64Attr:$axis, I64Attr:$start, I64Attr:$size);
  let results = (outs Weft_Tensor:$result);
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$x, "int64_t":$axis, "int64_t":$start,
                                 "int64_t":$size)>];
}

def Weft_BroadcastOp : Weft_SpaceOp<"broadcast", "movement"> {
  let summary = "Dimension d of the operand is dimension into[d] of the result; the operand "
      "repeats along all others";
  let isDifferentiable = 1;
  let arguments = (ins Weft_Tensor:$x, DenseI64ArrayAttr:$into);
  let results = (outs Weft_Tensor:$result);
  let skipDefaultBuilders = 1;
  // The result has the extents and names of `like`, and the operand's element type.
  let builders = [OpBuilder<(ins "::mlir::Value":$x, "::llvm::ArrayRef<int64_t>":$into,
                                 "::mlir::Type":$like)>];
}

#endif  // WEFT_GRADIENT_OPS_TD
