// Contractions with what follows them, as transformer layers have them: for tests of families that
// take epilogues.
#pragma once

#include "kernel/CoordinateExpressions.h"
#include "tests/unit/samples/SampleKernels.h"

namespace weft::samples {

struct ContractionExtents {
  int64_t b = 2, j = 72, i = 136, u = 264;
};

/// GEMM = x w over b, j, u; inputs are named before the GEMM, maps after it.
class FusedContraction {
public:
  FusedContraction(std::string name, const ContractionExtents &extents, DType type)
      : builder(std::move(name),
                {{'b', extents.b}, {'i', extents.i}, {'j', extents.j}, {'u', extents.u}}),
        type(type) {
    w = builder.input("w", "iu", type), x = builder.input("x", "bji", type);
  }
  ValueId input(const std::string &name, const std::string &letters) {
    return builder.input(name, letters, type);
  }
  ValueId input(const std::string &name, const std::string &letters, DType own) {
    return builder.input(name, letters, own);
  }
  int gemm(double scale = 1) {
    const int value =
        builder.op("contract", OperatorClass::contraction, {x, w}, "gemm", "bju", "i", type);
    builder.last().attributes = {{"spec", std::string("bji,iu->bju")}};
    if (scale != 1) builder.last().attributes["scale"] = scale;
    return value;
  }
  int map(const std::string &name, const std::string &spelling, std::vector<ValueId> operands,
          const std::string &result) {
    return map(name, spelling, std::move(operands), result, type);
  }
  int map(const std::string &name, const std::string &spelling, std::vector<ValueId> operands,
          const std::string &result, DType own) {
    const ValueId value =
        builder.op(name, OperatorClass::elementwise, std::move(operands), result, "bju", "", own);
    if (!spelling.empty()) builder.last().expression = Expression::parse(spelling);
    return value;
  }
  int bias(int of, int with) { return map("bias", "{0} + {1}", {of, with}, "biased"); }
  int gelu(int of) { return map("gelu", "weft::gelu({0})", {of}, "active"); }
  int relu(int of) { return map("relu", "weft::relu({0})", {of}, "rectified"); }
  int dropout(int of) {
    const int value = map("dropout", "", {of}, "kept");
    builder.last().attributes = {{"p", 0.1}, {"stream", int64_t(3)}};
    return value;
  }
  /// Of b, j, u: queries are along j, keys along u.
  int mask(std::vector<ValueId> operands, const MaskShape &shape, const std::string &result,
           std::map<std::string, Attribute> attributes) {
    const ValueId value = map("mask", "", std::move(operands), result);
    attributes["key"] = int64_t(shape.key);
    builder.last().attributes = std::move(attributes);
    builder.compute(maskExpression(shape));
    return value;
  }
  /// Down to the axes that `letters` name.
  int sum(int of, const std::string &result, const std::string &letters, DType sumType) {
    std::string others;
    std::vector<int64_t> axes;
    const std::string_view all = "bju";
    for (size_t axis = 0; axis < all.size(); ++axis)
      if (letters.find(all[axis]) == std::string::npos) {
        others += all[axis];
        axes.push_back(int64_t(axis));
      }
    const int value =
        builder.op("reduce", OperatorClass::normalization, {of}, result, letters, others, sumType);
    builder.last().attributes = {{"kind", std::string("sum")}, {"axes", axes}};
    return value;
  }
  Kernel build(std::vector<ValueId> outputs) { return builder.build(std::move(outputs)); }

private:
  KernelBuilder builder;
  DType type;
  int w = -1, x = -1;
};

inline Kernel gemmBias(const ContractionExtents &extents, DType type) {
  FusedContraction fused("product_bias", extents, type);
  const int bias = fused.input("bias", "u");
  return fused.build({fused.bias(fused.gemm(), bias)});
}
/// keepsBiased: what the backward pass reads is a second output. The scale keeps values where 1 +
/// erf has digits left in fp64.
inline Kernel gemmBiasGelu(const ContractionExtents &extents, DType type, bool keepsBiased) {
  FusedContraction fused(keepsBiased ? "product_bias_gelu_kept" : "product_bias_gelu", extents,
                         type);
  const int bias = fused.input("bias", "u"), biased = fused.bias(fused.gemm(1.0 / 16), bias),
            active = fused.gelu(biased);
  return fused.build(keepsBiased ? std::vector<ValueId>{active, biased}
                                 : std::vector<ValueId>{active});
}
inline Kernel gemmBiasReluDropout(const ContractionExtents &extents, DType type) {
  FusedContraction fused("product_bias_relu_dropout", extents, type);
  const int bias = fused.input("bias", "u");
  return fused.build({fused.dropout(fused.relu(fused.bias(fused.gemm(), bias)))});
}
inline Kernel gemmBiasDropoutResidual(const ContractionExtents &extents, DType type) {
  FusedContraction fused("product_bias_dropout_residual", extents, type);
  const int bias = fused.input("bias", "u"), rest = fused.input("rest", "bju");
  return fused.build({fused.map("residual", "{0} + {1}",
                                {fused.dropout(fused.bias(fused.gemm(), bias)), rest}, "sum")});
}
/// The gradient of what a GELU reads: the GEMM is the gradient of what it gives.
inline Kernel gemmGeluGradient(const ContractionExtents &extents, DType type) {
  FusedContraction fused("product_gelu_dx", extents, type);
  const int biased = fused.input("biased", "bju");
  return fused.build(
      {fused.map("gelu_dx", "{0} * weft::slope::gelu({1})", {fused.gemm(), biased}, "d_biased")});
}
/// A scaled GEMM with one factor a row, a gate, and three outputs.
inline Kernel gemmScaleRowsGate(const ContractionExtents &extents, DType type) {
  FusedContraction fused("product_rows_gate", extents, type);
  const int rows = fused.input("rows", "bj"), gate = fused.input("gate", "bju");
  const int scaled = fused.map("mul", "{0} * {1}", {fused.gemm(0.125), rows}, "scaled");
  const int rectified = fused.relu(scaled);
  return fused.build(
      {fused.map("mul", "{0} * {1}", {rectified, gate}, "gated"), scaled, rectified});
}

/// The gradient of a bias beside the GEMM whose columns it sums.
inline Kernel gemmColumnReduction(const ContractionExtents &extents, DType type) {
  FusedContraction fused("product_column_sum", extents, type);
  const int gemm = fused.gemm();
  return fused.build({gemm, fused.sum(gemm, "d_bias", "u", type)});
}
inline Kernel gemmGeluGradientColumnReduction(const ContractionExtents &extents, DType type) {
  FusedContraction fused("product_gelu_dx_column_sum", extents, type);
  const int biased = fused.input("biased", "bju");
  const int gradient =
      fused.map("gelu_dx", "{0} * weft::slope::gelu({1})", {fused.gemm(), biased}, "d_biased");
  return fused.build({gradient, fused.sum(gradient, "d_bias", "u", type)});
}
/// What a following norm needs of its rows: their sums and the sums of their squares, in fp32.
inline Kernel gemmResidualRowReductions(const ContractionExtents &extents, DType type) {
  FusedContraction fused("product_residual_row_sums", extents, type);
  const int bias = fused.input("bias", "u"), rest = fused.input("rest", "bju");
  const int sum = fused.map("residual", "{0} + {1}",
                            {fused.dropout(fused.bias(fused.gemm(), bias)), rest}, "sum");
  const int square = fused.map("mul", "{0} * {1}", {sum, sum}, "square");
  return fused.build({sum, fused.sum(sum, "row_sum", "bj", DType::f32),
                      fused.sum(square, "row_squares", "bj", DType::f32)});
}
/// Accumulators to both sides, of values that are stored, that are not, and of the GEMM itself; a
/// bias makes what is out of bounds no zero.
inline Kernel gemmBiasBothReductions(const ContractionExtents &extents, DType type) {
  FusedContraction fused("product_bias_both_sums", extents, type);
  const int bias = fused.input("bias", "u"), gemm = fused.gemm(0.25),
            biased = fused.bias(gemm, bias), rectified = fused.relu(biased);
  return fused.build({rectified, biased, fused.sum(rectified, "of_columns", "u", DType::f32),
                      fused.sum(biased, "of_rows", "bj", type),
                      fused.sum(gemm, "of_product", "u", type)});
}

/// What ends a layer's halves where nothing is dropped.
inline Kernel gemmBiasResidual(const ContractionExtents &extents, DType type) {
  FusedContraction fused("product_bias_residual", extents, type);
  const int bias = fused.input("bias", "u"), rest = fused.input("rest", "bju");
  return fused.build(
      {fused.map("residual", "{0} + {1}", {fused.bias(fused.gemm(), bias), rest}, "sum")});
}
/// A gated linear unit whose other half is there.
inline Kernel gemmGated(const ContractionExtents &extents, DType type) {
  FusedContraction fused("product_gated", extents, type);
  const int other = fused.input("other", "bju");
  return fused.build({fused.map(
      "mul", "{0} * {1}",
      {fused.map("silu", "weft::silu({0})", {fused.gemm(1.0 / 16)}, "gate"), other}, "gated")});
}
/// Operands of every role, in fp32 and in the GEMM's type: a scalar, one a row, one a column,
/// one for some axes, whole tensors; and what is kept in fp32 is a second output.
inline Kernel gemmOfAllRoles(const ContractionExtents &extents, DType type) {
  FusedContraction fused("product_all_roles", extents, type);
  const int factor = fused.input("factor", ""), rows = fused.input("rows", "bj", DType::f32),
            bias = fused.input("bias", "u", DType::f32);
  const int some = fused.input("some", "bu"), rest = fused.input("rest", "bju", DType::f32),
            gate = fused.input("gate", "bju");
  const int scaled =
      fused.map("mul", "{0} * {1}", {fused.gemm(0.25), factor}, "scaled", DType::f32);
  const int normal = fused.map("mul", "{0} * {1}", {scaled, rows}, "normal", DType::f32);
  const int moved =
      fused.map("sub", "{0} - {1}",
                {fused.map("bias", "{0} + {1}", {normal, bias}, "biased", DType::f32), some},
                "moved", DType::f32);
  const int sum = fused.map("residual", "{0} + {1}", {moved, rest}, "sum", DType::f32);
  return fused.build({fused.map("mul", "{0} * {1}", {sum, gate}, "gated"), sum});
}
/// Members of a batch, each with a separate vector, behind which a whole tensor is added.
inline Kernel batchedResidual(const ContractionExtents &extents, DType type) {
  KernelBuilder builder("batched_residual",
                        {{'b', extents.b}, {'i', extents.i}, {'j', extents.j}, {'u', extents.u}});
  const int w = builder.input("w", "bui", type), x = builder.input("x", "bji", type),
            bias = builder.input("bias", "bu", type);
  const int rest = builder.input("rest", "bju", type);
  const int gemm =
      builder.op("contract", OperatorClass::contraction, {x, w}, "gemm", "bju", "i", type);
  builder.last().attributes = {{"spec", std::string("bji,bui->bju")}};
  const int biased =
      builder.op("bias", OperatorClass::elementwise, {gemm, bias}, "biased", "bju", "", type);
  builder.last().expression = Expression::parse("{0} + {1}");
  const int sum =
      builder.op("residual", OperatorClass::elementwise, {biased, rest}, "sum", "bju", "", type);
  builder.last().expression = Expression::parse("{0} + {1}");
  return builder.build({sum});
}
/// A causal mask of queries j, which are one of two axes of the GEMM's rows, and of keys u.
inline Kernel gemmCausal(const ContractionExtents &extents, DType type) {
  FusedContraction fused("product_causal", extents, type);
  return fused.build(
      {fused.mask({fused.gemm(0.125)}, {.key = 2, .query = 1, .shift = extents.u - extents.j},
                  "causal", {{"kind", std::string("causal")}, {"query", int64_t(1)}})});
}
/// A window, and lengths of b, the other axis of the rows; a bias behind them. The fill is finite.
inline Kernel gemmWindowPadding(const ContractionExtents &extents, DType type) {
  FusedContraction fused("product_window_padding", extents, type);
  const int lengths = fused.input("lengths", "b", DType::i32), bias = fused.input("bias", "u");
  const int window = fused.mask({fused.gemm(0.25)},
                                {.kind = MaskShape::Kind::window,
                                 .key = 2,
                                 .query = 1,
                                 .shift = extents.u - extents.j,
                                 .left = 9,
                                 .right = 4,
                                 .fill = -2},
                                "window",
                                {{"kind", std::string("window")},
                                 {"query", int64_t(1)},
                                 {"left", int64_t(9)},
                                 {"right", int64_t(4)},
                                 {"fill", -2.0}});
  const int padding =
      fused.mask({window, lengths}, {.kind = MaskShape::Kind::padding, .key = 2}, "padding",
                 {{"kind", std::string("padding")}, {"along", std::vector<int64_t>{0}}});
  return fused.build({fused.bias(padding, bias)});
}
/// Lengths of batch elements of the GEMM.
inline Kernel batchedPadding(const ContractionExtents &extents, DType type) {
  KernelBuilder builder("batched_padding",
                        {{'b', extents.b}, {'i', extents.i}, {'j', extents.j}, {'u', extents.u}});
  const int w = builder.input("w", "bui", type), x = builder.input("x", "bji", type),
            lengths = builder.input("lengths", "b", DType::i32);
  const int gemm =
      builder.op("contract", OperatorClass::contraction, {x, w}, "gemm", "bju", "i", type);
  builder.last().attributes = {{"spec", std::string("bji,bui->bju")}};
  const int padded =
      builder.op("mask", OperatorClass::elementwise, {gemm, lengths}, "padded", "bju", "", type);
  builder.last().attributes = {
      {"kind", std::string("padding")}, {"key", int64_t(2)}, {"along", std::vector<int64_t>{0}}};
  builder.compute(maskExpression({.kind = MaskShape::Kind::padding, .key = 2}));
  return builder.build({padded});
}
inline std::vector<Kernel> maskedContractions(const ContractionExtents &extents, DType type) {
  return {gemmCausal(extents, type), gemmWindowPadding(extents, type),
          batchedPadding(extents, type)};
}
/// What scores read at other coordinates than their own: the bias of a distance by member of the
/// GEMM's batch, or alike for all of rows of two axes, and segments of positions. Keys are along u,
/// no fewer than queries along j.
inline std::vector<Kernel> gatheredContractions(const ContractionExtents &extents, DType type) {
  constexpr int64_t farthest = 5, distances = 2 * farthest + 1;
  const int64_t shift = extents.u - extents.j;
  std::vector<Kernel> kernels;
  for (const bool isBatched : {true, false}) {
    KernelBuilder builder(
        isBatched ? "batched_relative" : "product_relative",
        {{'b', extents.b}, {'i', extents.i}, {'j', extents.j}, {'u', extents.u}, {'z', distances}});
    const int w = builder.input("w", isBatched ? "bui" : "ui", type),
              x = builder.input("x", "bji", type),
              table = builder.input("table", isBatched ? "bz" : "z", type),
              segments = builder.input("segments", "bu", DType::i32);
    const int gemm =
        builder.op("contract", OperatorClass::contraction, {x, w}, "gemm", "bju", "i", type);
    builder.last().attributes = {{"spec", std::string(isBatched ? "bji,bui->bju" : "bji,ui->bju")}};
    const std::vector<int> along = isBatched ? std::vector<int>{0} : std::vector<int>{};
    const int biased = builder.op("relative_bias", OperatorClass::elementwise, {gemm, table},
                                  "biased", "bju", "", type);
    builder.last().attributes = {{"along", std::vector<int64_t>(along.begin(), along.end())},
                                 {"query", int64_t(1)},
                                 {"key", int64_t(2)},
                                 {"distance", farthest}};
    builder.compute(relativeBiasExpression({.along = along,
                                            .query = 1,
                                            .key = 2,
                                            .shift = shift,
                                            .distance = farthest,
                                            .distances = distances}));
    const int seen =
        builder.op("mask", OperatorClass::elementwise, {biased, segments}, "seen", "bju", "", type);
    builder.last().attributes = {{"kind", std::string("document")},
                                 {"query", int64_t(1)},
                                 {"key", int64_t(2)},
                                 {"along", std::vector<int64_t>{0}}};
    builder.compute(
        maskExpression({.kind = MaskShape::Kind::document, .key = 2, .query = 1, .shift = shift}));
    kernels.push_back(builder.build({seen, biased}));
  }
  return kernels;
}
/// What computes with coordinates: masks, and what is gathered. Of no fewer u than j.
inline std::vector<Kernel> coordinateContractions(const ContractionExtents &extents, DType type) {
  std::vector<Kernel> kernels = maskedContractions(extents, type);
  for (Kernel &kernel : gatheredContractions(extents, type)) kernels.push_back(std::move(kernel));
  return kernels;
}
/// What decoding has behind its products, and every role of an operand: without dropout and sums,
/// so that single-consumer tiles take all of them.
inline std::vector<Kernel> singleConsumerEpilogues(const ContractionExtents &extents, DType type) {
  return {gemmBias(extents, type),           gemmBiasGelu(extents, type, false),
          gemmBiasGelu(extents, type, true), gemmBiasResidual(extents, type),
          gemmGated(extents, type),          gemmScaleRowsGate(extents, type),
          gemmOfAllRoles(extents, type),     batchedResidual(extents, type),
          gemmCausal(extents, type),         gemmWindowPadding(extents, type),
          batchedPadding(extents, type)};
}

inline std::vector<Kernel> fusedReductions(const ContractionExtents &extents, DType type) {
  return {gemmColumnReduction(extents, type), gemmGeluGradientColumnReduction(extents, type),
          gemmResidualRowReductions(extents, type), gemmBiasBothReductions(extents, type)};
}

inline std::vector<Kernel> fusedContractions(const ContractionExtents &extents, DType type) {
  return {gemmBias(extents, type),
          gemmBiasGelu(extents, type, false),
          gemmBiasGelu(extents, type, true),
          gemmBiasReluDropout(extents, type),
          gemmBiasDropoutResidual(extents, type),
          gemmGeluGradient(extents, type),
          gemmScaleRowsGate(extents, type)};
}

}  // namespace weft::samples
