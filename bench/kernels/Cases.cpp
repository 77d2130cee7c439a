#include "bench/kernels/Cases.h"

#include "tests/golden/ExampleKernels.h"

namespace weft::bench {
namespace {

using examples::KernelBuilder;

constexpr auto normalization = OperatorClass::normalization;

/// [outer, rows, columns] over the last axis.
struct Rows {
  int64_t outer, rows, columns;
};

Case softmax(const std::string &name, DType dtype, const Rows &extents) {
  KernelBuilder builder(name);
  const int h = builder.axis("h", extents.outer), j = builder.axis("j", extents.rows),
            k = builder.axis("k", extents.columns);
  const int x = builder.input("x", dtype, {h, j, k});
  const int y = builder.op({.kind = OpKind::softmax,
                            .operatorClass = normalization,
                            .operands = {x},
                            .reducedAxes = {k},
                            .attributes = {{"axis", int64_t(2)}}},
                           "y", dtype, {h, j, k});
  return rowMajorCase(name, "softmax", builder.finish({y}));
}

enum class Mask { none, causal, padding };

/// scale, mask, softmax, and dropout if `trains`, which also keeps the probabilities for the
/// backward pass.
Case attentionSoftmax(const std::string &name, Mask kind, bool trains, const Rows &extents) {
  KernelBuilder builder(name);
  const int h = builder.axis("h", extents.outer), j = builder.axis("j", extents.rows),
            k = builder.axis("k", extents.columns);
  const int x = builder.input("x", DType::f16, {h, j, k});
  const int lengths = kind == Mask::padding ? builder.input("lengths", DType::i32, {h}) : ValueId();
  int current = builder.elementwise("scale", "{0} * {factor}", {x}, "scaled", {{"factor", 0.125}});
  if (kind == Mask::causal)
    current = builder.elementwise(
        "mask", "", {current}, "masked",
        {{"kind", std::string("causal")}, {"query", int64_t(1)}, {"key", int64_t(2)}});
  if (kind == Mask::padding)
    current = builder.elementwise("mask", "", {current, lengths}, "masked",
                                  {{"kind", std::string("padding")}, {"key", int64_t(2)}});
  const int probability = builder.op({.kind = OpKind::softmax,
                                      .operatorClass = normalization,
                                      .operands = {current},
                                      .reducedAxes = {k},
                                      .attributes = {{"axis", int64_t(2)}}},
                                     "probability", DType::f16, {h, j, k});
  std::vector<ValueId> outputs = {probability};
  if (trains)
    outputs.push_back(builder.elementwise("dropout", "", {probability}, "kept",
                                          {{"p", 0.1}, {"stream", int64_t(1)}}));
  Case result = rowMajorCase(name, "softmax", builder.finish(outputs));
  if (lengths >= 0) result.limits[lengths] = extents.columns + 1;
  return result;
}

/// bias, dropout, residual, layer norm. `trains`: keeps the sum and the statistics; else three
/// tensors are moved.
Case biasDropoutResidualLayerNorm(const std::string &name, bool trains, int64_t rows,
                                  int64_t columns, double p = 0.1) {
  KernelBuilder builder(name);
  const DType dtype = DType::f16;
  const int b = builder.axis("b", 8), j = builder.axis("j", rows / 8),
            i = builder.axis("i", columns);
  const ValueId product = builder.input("product", dtype, {b, j, i}),
                x = builder.input("x", dtype, {b, j, i});
  const int bias = builder.input("bias", dtype, {i}), gamma = builder.input("gamma", dtype, {i});
  const int beta = builder.input("beta", dtype, {i});
  const ValueId biased = builder.elementwise("bias", "{0} + {1}", {product, bias}, "biased");
  const int dropped = p == 0 ? biased
                             : builder.elementwise("dropout", "", {biased}, "dropped",
                                                   {{"p", p}, {"stream", int64_t(3)}});
  const int residual = builder.elementwise("residual", "{0} + {1}", {dropped, x}, "residual");
  const int y = builder.op({.kind = OpKind::layerNorm,
                            .operatorClass = normalization,
                            .operands = {residual, gamma, beta},
                            .reducedAxes = {i},
                            .attributes = {{"axis", int64_t(2)}, {"epsilon", 1e-5}}},
                           "y", dtype, {b, j, i});
  if (!trains) return rowMajorCase(name, "layer_norm", builder.finish({y}));
  for (const char *statistic : {"mean", "rstd"}) {
    builder.kernel.values.push_back({.name = statistic, .dtype = DType::f32, .axes = {b, j}});
    builder.kernel.body.back().results.push_back(static_cast<int>(builder.kernel.values.size()) -
                                                 1);
  }
  return rowMajorCase(name, "layer_norm", builder.finish({residual, y, y + 1, y + 2}));
}

Case layerNorm(const std::string &name, DType dtype, int64_t rows, int64_t columns) {
  KernelBuilder builder(name);
  const int j = builder.axis("j", rows), i = builder.axis("i", columns);
  const int x = builder.input("x", dtype, {j, i}), gamma = builder.input("gamma", dtype, {i}),
            beta = builder.input("beta", dtype, {i});
  const int y = builder.op({.kind = OpKind::layerNorm,
                            .operatorClass = normalization,
                            .operands = {x, gamma, beta},
                            .reducedAxes = {i},
                            .attributes = {{"axis", int64_t(1)}, {"epsilon", 1e-5}}},
                           "y", dtype, {j, i});
  return rowMajorCase(name, "norms", builder.finish({y}));
}

/// `residual`: x + r is normalized and also written.
Case rmsNorm(const std::string &name, bool residual, int64_t rows, int64_t columns) {
  KernelBuilder builder(name);
  const DType dtype = DType::bf16;
  const int j = builder.axis("j", rows), i = builder.axis("i", columns);
  const ValueId x = builder.input("x", dtype, {j, i}),
                r = residual ? builder.input("r", dtype, {j, i}) : ValueId();
  const int gamma = builder.input("gamma", dtype, {i});
  const int sum = residual ? builder.elementwise("residual", "{0} + {1}", {x, r}, "sum") : x;
  const int y = builder.op({.kind = OpKind::rmsNorm,
                            .operatorClass = normalization,
                            .operands = {sum, gamma},
                            .reducedAxes = {i},
                            .attributes = {{"axis", int64_t(1)}, {"epsilon", 1e-6}}},
                           "y", dtype, {j, i});
  return rowMajorCase(
      name, "norms",
      builder.finish(residual ? std::vector<ValueId>{sum, y} : std::vector<ValueId>{y}));
}

/// `trains`: the activation is kept for the backward pass.
Case biasActivationDropout(const std::string &name, const std::string &activation,
                           const std::string &function, bool trains, int64_t rows,
                           int64_t columns) {
  KernelBuilder builder(name);
  const int b = builder.axis("b", 8), j = builder.axis("j", rows / 8),
            u = builder.axis("u", columns);
  const int x = builder.input("x", DType::f16, {b, j, u}),
            bias = builder.input("bias", DType::f16, {u});
  const ValueId biased = builder.elementwise("bias", "{0} + {1}", {x, bias}, "biased");
  const int active =
      builder.elementwise(activation, "weft::" + function + "({0})", {biased}, "active");
  const int dropped =
      builder.elementwise("dropout", "", {active}, "dropped", {{"p", 0.1}, {"stream", int64_t(2)}});
  return rowMajorCase(name, "activations",
                      builder.finish(trains ? std::vector<ValueId>{active, dropped}
                                            : std::vector<ValueId>{dropped}));
}

/// The same three tensors without arithmetic to speak of: the floor of a kernel of this size.
Case residualMap(const std::string &name, int64_t rows, int64_t columns) {
  KernelBuilder builder(name);
  const int j = builder.axis("j", rows), i = builder.axis("i", columns);
  const int x = builder.input("x", DType::f16, {j, i}), r = builder.input("r", DType::f16, {j, i});
  return rowMajorCase(name, "maps",
                      builder.finish({builder.elementwise("residual", "{0} + {1}", {x, r}, "y")}));
}

/// Sum over all rows: the gradient of a bias.
Case columnSum(const std::string &name, int64_t rows, int64_t columns) {
  KernelBuilder builder(name);
  const int j = builder.axis("j", rows), i = builder.axis("i", columns);
  const int x = builder.input("x", DType::f16, {j, i});
  return rowMajorCase(name, "columns",
                      builder.finish({builder.op(sumOver(x, {j}, {0}), "y", DType::f32, {i})}));
}

Case gather(const std::string &name, int64_t tableRows, int64_t rows, int64_t columns) {
  KernelBuilder builder(name);
  const int w = builder.axis("w", tableRows), j = builder.axis("j", rows),
            i = builder.axis("i", columns);
  const int table = builder.input("table", DType::f16, {w, i}),
            ids = builder.input("ids", DType::i32, {j});
  const int y = builder.op(
      {.kind = OpKind::gather, .operatorClass = OperatorClass::movement, .operands = {table, ids}},
      "y", DType::f16, {j, i});
  Case result = rowMajorCase(name, "gathers", builder.finish({y}));
  result.limits[ids] = tableRows;
  return result;
}

/// The gradient of an embedding: every position's row into the table's.
Case scatterAdd(const std::string &name, int64_t tableRows, int64_t rows, int64_t columns) {
  const examples::Example example =
      examples::scatterAdd(DType::f16, {.b = 1, .j = rows, .i = columns}, tableRows);
  Case result = rowMajorCase(name, "scatters", example.kernel);
  result.limits[example.kernel.inputs[1]] = tableRows;
  result.sumTolerance = 1e-4;
  return result;
}

}  // namespace

Case rowMajorCase(const std::string &name, const std::string &group, Kernel kernel) {
  LayoutConstraints layouts;
  for (ValueId value : kernel.inputs)
    layouts.inputs.push_back(rowMajor(kernel.values[value].axes.size()));
  for (ValueId value : kernel.outputs)
    layouts.outputs.push_back(rowMajor(kernel.values[value].axes.size()));
  return {.name = name, .group = group, .kernel = std::move(kernel), .layouts = layouts};
}

BodyOp sumOver(int operand, std::vector<AxisId> reducedAxes, std::vector<int64_t> dimensions) {
  return {.kind = OpKind::reduce,
          .operatorClass = normalization,
          .operands = {operand},
          .results = {},
          .reducedAxes = std::move(reducedAxes),
          .attributes = {{"kind", std::string("sum")}, {"axes", std::move(dimensions)}},
          .expression = {}};
}

std::vector<Case> loopCases() {
  const Rows large{16, 4096, 4096}, bert{128, 512, 512}, middle{32, 1024, 1024};
  std::vector<Case> cases = {
      softmax("softmax_16x4096x4096", DType::f16, large),
      softmax("softmax_128x512x512", DType::f16, bert),
      softmax("softmax_32x1024x1024", DType::f16, middle),
      softmax("softmax_32x2048x2048_bf16", DType::bf16, {32, 2048, 2048}),
      softmax("softmax_128x512x512_f32", DType::f32, bert),
      softmax("softmax_8x2048x8192", DType::f16, {8, 2048, 8192}),
      softmax("softmax_64x1000x1000", DType::f16, {64, 1000, 1000}),
      attentionSoftmax("scale_softmax_128x512x512", Mask::none, false, bert),
      attentionSoftmax("scale_softmax_dropout_128x512x512", Mask::none, true, bert),
      attentionSoftmax("scale_causal_softmax_dropout_128x512x512", Mask::causal, true, bert),
      attentionSoftmax("scale_padding_softmax_32x1024x1024", Mask::padding, false, middle),
      biasDropoutResidualLayerNorm("bias_dropout_residual_layernorm_65536x1024", false, 65536,
                                   1024),
      biasDropoutResidualLayerNorm("bias_dropout_residual_layernorm_4096x1024", false, 4096, 1024),
      biasDropoutResidualLayerNorm("bias_residual_layernorm_4096x1024", false, 4096, 1024, 0),
      biasDropoutResidualLayerNorm("bias_dropout_residual_layernorm_kept_65536x1024", true, 65536,
                                   1024),
      biasDropoutResidualLayerNorm("bias_dropout_residual_layernorm_65536x768", false, 65536, 768),
      layerNorm("layer_norm_65536x1024", DType::f16, 65536, 1024),
      layerNorm("layer_norm_32768x768_f32", DType::f32, 32768, 768),
      layerNorm("layer_norm_16384x4096", DType::f16, 16384, 4096),
      rmsNorm("rms_norm_65536x1024", false, 65536, 1024),
      rmsNorm("rms_norm_16384x4096", false, 16384, 4096),
      rmsNorm("residual_rms_norm_16384x4096", true, 16384, 4096),
      rmsNorm("rms_norm_8192x8192", false, 8192, 8192),
      biasActivationDropout("bias_relu_dropout_16384x4096", "relu", "relu", true, 16384, 4096),
      biasActivationDropout("bias_gelu_dropout_16384x4096", "gelu", "gelu", false, 16384, 4096),
      biasActivationDropout("bias_gelu_tanh_dropout_16384x4096", "gelu_tanh", "geluTanh", false,
                            16384, 4096),
      biasActivationDropout("bias_silu_dropout_16384x4096", "silu", "silu", true, 16384, 4096),
      residualMap("residual_4096x1024", 4096, 1024),
      residualMap("residual_65536x1024", 65536, 1024),
      columnSum("column_sum_65536x1024", 65536, 1024),
      columnSum("column_sum_12288x1024", 12288, 1024),
      columnSum("column_sum_12288x4096", 12288, 4096),
      columnSum("column_sum_4096x1024", 4096, 1024),
      gather("gather_32768x1024", 30522, 32768, 1024),
      scatterAdd("scatter_add_30522x1024_12288", 30522, 12288, 1024),
      scatterAdd("scatter_add_512x1024_12288", 512, 12288, 1024),
  };
  for (Case &one : backwardCases()) cases.push_back(std::move(one));
  return cases;
}

std::vector<Case> transposeCases(const std::vector<int64_t> &extents, size_t step) {
  KernelBuilder builder("transpose");
  std::vector<AxisId> axes;
  for (size_t i = 0; i < extents.size(); ++i)
    axes.push_back(builder.axis(std::string(1, static_cast<char>('a' + i)), extents[i]));
  const int x = builder.input("x", DType::f16, axes);
  const int y = builder.op(
      {.kind = OpKind::identity, .operatorClass = OperatorClass::movement, .operands = {x}}, "y",
      DType::f16, axes);
  Kernel kernel = builder.finish({y});
  std::vector<Case> cases;
  size_t pair = 0;
  for (const Layout &from : allDenseLayouts(extents.size()))
    for (const Layout &to : allDenseLayouts(extents.size())) {
      if (from == to || pair++ % step != 0) continue;
      const std::string name = fmt::format("transpose_{}_{}", print(from, kernel, kernel.values[x]),
                                           print(to, kernel, kernel.values[y]));
      cases.push_back({.name = name,
                       .group = "transpose",
                       .kernel = kernel,
                       .layouts = {.inputs = {from}, .outputs = {to}}});
    }
  return cases;
}

}  // namespace weft::bench
