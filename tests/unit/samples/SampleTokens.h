// Contractions over packed tokens, all of whose results are masked from the number of tokens on.
#pragma once

#include "kernel/CoordinateExpressions.h"
#include "tests/unit/samples/SampleKernels.h"

namespace weft::samples {

struct TokenExtents {
  int64_t t = 1, i = 1, u = 1, sequences = 1;
};

/// Masks a value over (t, u), the last op's result, by offsets; or says that nothing reads what
/// lies behind tokens.
inline int maskTokens(KernelBuilder &builder, ValueId value, int offsets,
                      const TokenExtents &extents, const std::string &name, DType type,
                      const std::string &letters = "tu", bool isUnread = false) {
  const int masked =
      builder.op("mask", OperatorClass::elementwise, {value, offsets}, name, letters, "", type);
  const MaskShape::Kind kind = isUnread ? MaskShape::Kind::unread : MaskShape::Kind::tokens;
  builder.last().attributes = {{"kind", std::string(nameOf(kind))}, {"key", int64_t(0)}};
  if (!isUnread) builder.last().attributes["fill"] = 0.0;
  builder.compute(
      maskExpression({.kind = kind, .key = 0, .sequences = extents.sequences, .fill = 0}));
  return masked;
}

/// y = tokens(x w + bias [+ rest]); with `isStoredTwice` the sum before the residual, too.
inline Kernel gemmOfTokens(const TokenExtents &extents, DType type, bool addsRest,
                           bool isStoredTwice = false, bool isUnread = false) {
  KernelBuilder builder(
      "gemm_of_tokens",
      {{'i', extents.i}, {'n', extents.sequences + 1}, {'t', extents.t}, {'u', extents.u}});
  const int w = builder.input("w", "ui", type), x = builder.input("x", "ti", type),
            bias = builder.input("bias", "u", type),
            rest = addsRest ? builder.input("rest", "tu", type) : ValueId(),
            offsets = builder.input("offsets", "n", DType::i32);
  const int gemm =
      builder.op("contract", OperatorClass::contraction, {w, x}, "gemm", "tu", "i", type);
  builder.last().attributes = {{"spec", std::string("ui,ti->tu")}};
  int sum = builder.op("bias", OperatorClass::elementwise, {gemm, bias}, "sum", "tu", "", type);
  builder.last().expression = Expression::parse("{0} + {1}");
  std::vector<ValueId> outputs;
  if (isStoredTwice)
    outputs.push_back(maskTokens(builder, sum, offsets, extents, "also", type, "tu", isUnread));
  if (addsRest) {
    sum = builder.op("residual", OperatorClass::elementwise, {sum, rest}, "whole", "tu", "", type);
    builder.last().expression = Expression::parse("{0} + {1}");
  }
  outputs.insert(outputs.begin(),
                 maskTokens(builder, sum, offsets, extents, "y", type, "tu", isUnread));
  return builder.build(outputs);
}

/// dw = d_y x, a sum over packed tokens t.
inline Kernel sumOverTokens(const TokenExtents &extents, DType type) {
  KernelBuilder builder(
      "sum_over_tokens",
      {{'i', extents.i}, {'n', extents.sequences + 1}, {'t', extents.t}, {'u', extents.u}});
  const int dy = builder.input("d_y", "tu", type), x = builder.input("x", "ti", type),
            offsets = builder.input("offsets", "n", DType::i32);
  const int dw =
      builder.op("contract", OperatorClass::contraction, {dy, x, offsets}, "d_w", "ui", "t", type);
  builder.last().attributes = {{"spec", std::string("tu,ti->ui")}};
  return builder.build({dw});
}

}  // namespace weft::samples
