#include "tests/golden/ExampleKernels.h"

#include "kernel/CoordinateExpressions.h"
#include "kernel/Error.h"

namespace weft::examples {

AxisId KernelBuilder::axis(const std::string &name, int64_t extent) {
  kernel.axes.push_back({name, extent});
  return static_cast<int>(kernel.axes.size()) - 1;
}

ValueId KernelBuilder::input(const std::string &name, DType dtype, std::vector<AxisId> axes) {
  kernel.values.push_back({.name = name, .dtype = dtype, .axes = std::move(axes)});
  kernel.inputs.push_back(static_cast<int>(kernel.values.size()) - 1);
  return kernel.inputs.back();
}

ValueId KernelBuilder::op(BodyOp op, const std::string &name, DType dtype,
                          std::vector<AxisId> axes) {
  kernel.values.push_back({.name = name, .dtype = dtype, .axes = std::move(axes)});
  const ValueId value = static_cast<int>(kernel.values.size()) - 1;
  op.results.insert(op.results.begin(), value);
  op.number = static_cast<int>(kernel.body.size()) + 20;
  op.flop = static_cast<double>(kernel.elements(value));
  kernel.body.push_back(std::move(op));
  return value;
}

ValueId KernelBuilder::elementwise(const std::string &name, const std::string &spelling,
                                   std::vector<ValueId> operands, const std::string &result,
                                   std::map<std::string, Attribute> attributes) {
  const Value first = kernel.values[operands[0]];
  return op({.kind = opKindNamed(name).value(),
             .operands = operands,
             .attributes = std::move(attributes),
             .expression = spelling.empty() ? Expression{} : Expression::parse(spelling)},
            result, first.dtype, first.axes);
}

void KernelBuilder::compute(const Expression &expression) {
  BodyOp &last = kernel.body.back();
  last.expression = expression.withAxes(kernel.values[last.operands[0]].axes);
}

Kernel KernelBuilder::finish(std::vector<ValueId> outputs) {
  kernel.outputs = std::move(outputs);
  verify(kernel);
  return kernel;
}

namespace {

constexpr OperatorClass normalization = OperatorClass::normalization,
                        movement = OperatorClass::movement;

Extents extentsOf(int scale) {
  return scale == 0 ? Extents{.b = 2, .j = 5, .k = 19, .h = 3, .p = 8, .i = 24, .u = 21}
                    : Extents{.b = 8, .j = 512, .k = 512, .h = 16, .p = 64, .i = 1024, .u = 4096};
}

Example biasDropoutResidualLayerNorm(DType dtype, const Extents &e) {
  KernelBuilder builder("bias_dropout_residual_layernorm");
  const int b = builder.axis("b", e.b), j = builder.axis("j", e.j), i = builder.axis("i", e.i);
  const int product = builder.input("product", dtype, {b, j, i}),
            x = builder.input("x", dtype, {b, j, i});
  const int bias = builder.input("bias", dtype, {i}), gamma = builder.input("gamma", dtype, {i});
  const int beta = builder.input("beta", dtype, {i});
  const int biased = builder.elementwise("bias", "{0} + {1}", {product, bias}, "biased");
  const int dropped =
      builder.elementwise("dropout", "", {biased}, "dropped", {{"p", 0.1}, {"stream", int64_t(3)}});
  const int residual = builder.elementwise("residual", "{0} + {1}", {dropped, x}, "residual");
  const int y = builder.op({.kind = OpKind::layerNorm,
                            .operatorClass = normalization,
                            .operands = {residual, gamma, beta},
                            .reducedAxes = {i},
                            .attributes = {{"axis", int64_t(2)}, {"epsilon", 1e-5}}},
                           "y", dtype, {b, j, i});
  for (const char *name : {"mean", "rstd"}) {
    builder.kernel.values.push_back({.name = name, .dtype = DType::f32, .axes = {b, j}});
    builder.kernel.body.back().results.push_back(static_cast<int>(builder.kernel.values.size()) -
                                                 1);
  }
  return {"bias_dropout_residual_layernorm", builder.finish({residual, y, y + 1, y + 2}), i};
}

Example scaleMaskSoftmaxDropout(DType dtype, const Extents &e) {
  KernelBuilder builder("scale_mask_softmax_dropout");
  const int h = builder.axis("h", e.h), b = builder.axis("b", e.b), j = builder.axis("j", e.j),
            k = builder.axis("k", e.k);
  const int score = builder.input("score", dtype, {h, b, j, k});
  const int scaled =
      builder.elementwise("scale", "{0} * {factor}", {score}, "scaled", {{"factor", 0.125}});
  const int masked = builder.elementwise(
      "mask", "", {scaled}, "masked",
      {{"kind", std::string("causal")}, {"query", int64_t(2)}, {"key", int64_t(3)}});
  builder.compute(maskExpression({.key = 3, .query = 2, .shift = e.k - e.j}));
  const int probability = builder.op({.kind = OpKind::softmax,
                                      .operatorClass = normalization,
                                      .operands = {masked},
                                      .reducedAxes = {k},
                                      .attributes = {{"axis", int64_t(3)}}},
                                     "probability", dtype, {h, b, j, k});
  const int kept = builder.elementwise("dropout", "", {probability}, "kept_probability",
                                       {{"p", 0.1}, {"stream", int64_t(1)}});
  return {"scale_mask_softmax_dropout", builder.finish({probability, kept}), k};
}

Example biasReluDropout(DType dtype, const Extents &e) {
  KernelBuilder builder("bias_relu_dropout");
  const int b = builder.axis("b", e.b), j = builder.axis("j", e.j), u = builder.axis("u", e.u);
  const int x = builder.input("x", dtype, {b, j, u}), bias = builder.input("bias", dtype, {u});
  const int biased = builder.elementwise("bias", "{0} + {1}", {x, bias}, "biased");
  const int active = builder.elementwise("relu", "weft::relu({0})", {biased}, "active");
  const int dropped =
      builder.elementwise("dropout", "", {active}, "dropped", {{"p", 0.1}, {"stream", int64_t(2)}});
  return {"bias_relu_dropout", builder.finish({active, dropped}), u};
}

Example biasGelu(DType dtype, const Extents &e) {
  KernelBuilder builder("bias_gelu");
  const int b = builder.axis("b", e.b), j = builder.axis("j", e.j), u = builder.axis("u", e.u);
  const int x = builder.input("x", dtype, {b, j, u}), bias = builder.input("bias", dtype, {u});
  const int biased = builder.elementwise("bias", "{0} + {1}", {x, bias}, "biased");
  return {"bias_gelu",
          builder.finish({builder.elementwise("gelu", "weft::gelu({0})", {biased}, "y")}), u};
}

Example rmsNorm(DType dtype, const Extents &e) {
  KernelBuilder builder("residual_rms_norm");
  const int b = builder.axis("b", e.b), j = builder.axis("j", e.j), i = builder.axis("i", e.i);
  const int x = builder.input("x", dtype, {b, j, i}), r = builder.input("r", dtype, {b, j, i});
  const int gamma = builder.input("gamma", dtype, {i});
  const int sum = builder.elementwise("residual", "{0} + {1}", {x, r}, "sum");
  const int y = builder.op({.kind = OpKind::rmsNorm,
                            .operatorClass = normalization,
                            .operands = {sum, gamma},
                            .reducedAxes = {i},
                            .attributes = {{"axis", int64_t(2)}, {"epsilon", 1e-6}}},
                           "y", dtype, {b, j, i});
  return {"residual_rms_norm", builder.finish({sum, y}), i};
}

Example biasGradient(DType dtype, const Extents &e) {
  KernelBuilder builder("bias_gradient");
  const int b = builder.axis("b", e.b), j = builder.axis("j", e.j), i = builder.axis("i", e.i);
  const int dy = builder.input("dy", dtype, {b, j, i});
  const int sum = builder.op(
      {.kind = OpKind::reduce,
       .operatorClass = normalization,
       .operands = {dy},
       .reducedAxes = {b, j},
       .attributes = {{"kind", std::string("sum")}, {"axes", std::vector<int64_t>{0, 1}}}},
      "dbias", dtype, {i});
  return {"bias_gradient", builder.finish({sum}), i};
}

BodyOp sumOf(int operand, std::vector<AxisId> reducedAxes) {
  BodyOp op{.kind = OpKind::reduce,
            .operatorClass = normalization,
            .operands = {operand},
            .results = {},
            .reducedAxes = std::move(reducedAxes),
            .attributes = {{"kind", std::string("sum")}},
            .expression = {}};
  op.attributes["axes"] = std::vector<int64_t>{0, 1};
  return op;
}

Example dropoutActivationBias(DType dtype, const Extents &e) {
  KernelBuilder builder("dropout_activation_bias");
  const int b = builder.axis("b", e.b), j = builder.axis("j", e.j), u = builder.axis("u", e.u);
  const int dy = builder.input("dy", dtype, {b, j, u}),
            slope = builder.input("slope", dtype, {b, j, u});
  const int dropped =
      builder.elementwise("dropout", "", {dy}, "dropped", {{"p", 0.1}, {"stream", int64_t(2)}});
  const int dx = builder.elementwise("mul", "{0} * {1}", {dropped, slope}, "dx");
  return {"dropout_activation_bias",
          builder.finish({dx, builder.op(sumOf(dx, {b, j}), "dbias", dtype, {u})}), u};
}

Example scaleBias(DType dtype, const Extents &e) {
  KernelBuilder builder("scale_bias");
  const int b = builder.axis("b", e.b), j = builder.axis("j", e.j), i = builder.axis("i", e.i);
  const int dy = builder.input("dy", dtype, {b, j, i}), x = builder.input("x", dtype, {b, j, i});
  const int mean = builder.input("mean", DType::f32, {b, j}),
            rstd = builder.input("rstd", DType::f32, {b, j});
  const int centred = builder.elementwise("sub", "{0} - {1}", {x, mean}, "centred");
  const int normalized = builder.elementwise("mul", "{0} * {1}", {centred, rstd}, "normalized");
  const int product = builder.elementwise("mul", "{0} * {1}", {dy, normalized}, "product");
  const int dgamma = builder.op(sumOf(product, {b, j}), "dgamma", dtype, {i});
  return {"scale_bias",
          builder.finish({dgamma, builder.op(sumOf(dy, {b, j}), "dbeta", dtype, {i})}), i};
}

Example rowMaximum(DType dtype, const Extents &e) {
  KernelBuilder builder("row_maximum");
  const int b = builder.axis("b", e.b), j = builder.axis("j", e.j), i = builder.axis("i", e.i);
  const int x = builder.input("x", dtype, {b, j, i});
  const int largest =
      builder.op({.kind = OpKind::reduce,
                  .operatorClass = normalization,
                  .operands = {x},
                  .reducedAxes = {i},
                  .attributes = {{"kind", std::string("max")}, {"axes", std::vector<int64_t>{2}}}},
                 "largest_x", dtype, {b, j});
  return {"row_maximum", builder.finish({largest}), i};
}

Example rotary(DType dtype, const Extents &e, RotaryStyle style) {
  const std::string word(nameOf(style)), name = "rotary_" + word;
  KernelBuilder builder(name);
  const int b = builder.axis("b", e.b), j = builder.axis("j", e.j), h = builder.axis("h", e.h),
            p = builder.axis("p", e.p);
  const int x = builder.input("x", dtype, {b, j, h, p});
  const int y = builder.elementwise(
      "rotary", "", {x}, "y",
      {{"position", int64_t(1)}, {"dim", int64_t(3)}, {"base", 10000.0}, {"style", word}});
  builder.compute(rotaryExpression({.style = style,
                                    .isShort = dtype == DType::f16 || dtype == DType::bf16,
                                    .dimension = 3,
                                    .position = 1,
                                    .rank = 4,
                                    .extent = e.p,
                                    .turned = e.p}));
  return {name, builder.finish({y}), p};
}

Example localSoftmax(DType dtype, const Extents &e, int64_t tile) {
  KernelBuilder builder("scale_local_softmax");
  const int h = builder.axis("h", e.h), j = builder.axis("j", e.j), k = builder.axis("k", e.k);
  const int n = builder.axis("n", (e.k + tile - 1) / tile);
  const int x = builder.input("x", dtype, {h, j, k});
  const int scaled =
      builder.elementwise("scale", "{0} * {factor}", {x}, "scaled", {{"factor", 0.5}});
  const int y = builder.op({.kind = OpKind::localSoftmax,
                            .operatorClass = normalization,
                            .operands = {scaled},
                            .reducedAxes = {k},
                            .attributes = {{"axis", int64_t(2)}, {"tile", tile}}},
                           "y", dtype, {h, j, k});
  for (const char *name : {"m", "d"}) {
    builder.kernel.values.push_back({.name = name, .dtype = DType::f32, .axes = {h, j, n}});
    builder.kernel.body.back().results.push_back(static_cast<int>(builder.kernel.values.size()) -
                                                 1);
  }
  return {"scale_local_softmax", builder.finish({y, y + 1, y + 2}), k};
}

Example reduceSubVectors(DType, const Extents &e, int64_t tile) {
  KernelBuilder builder("reduce_subvectors");
  const int h = builder.axis("h", e.h), j = builder.axis("j", e.j),
            n = builder.axis("n", (e.k + tile - 1) / tile);
  const int m = builder.input("m", DType::f32, {h, j, n}),
            d = builder.input("d", DType::f32, {h, j, n});
  const int r = builder.op({.kind = OpKind::reduceSubvectors,
                            .operatorClass = normalization,
                            .operands = {m, d},
                            .reducedAxes = {n},
                            .attributes = {{"axis", int64_t(2)}}},
                           "r", DType::f32, {h, j, n});
  return {"reduce_subvectors", builder.finish({r}), n};
}

Example globalScaling(DType dtype, const Extents &e, int64_t tile) {
  KernelBuilder builder("global_scaling");
  const int h = builder.axis("h", e.h), j = builder.axis("j", e.j), k = builder.axis("k", e.k);
  const int n = builder.axis("n", (e.k + tile - 1) / tile);
  const int x = builder.input("x", dtype, {h, j, k}), r = builder.input("r", DType::f32, {h, j, n});
  const int y = builder.op({.kind = OpKind::globalScaling,
                            .operatorClass = normalization,
                            .operands = {x, r},
                            .attributes = {{"axis", int64_t(2)}, {"tile", tile}}},
                           "y", dtype, {h, j, k});
  return {"global_scaling", builder.finish({y}), k};
}

Example slice(DType dtype, const Extents &e) {
  KernelBuilder builder("slice");
  const int b = builder.axis("b", e.b), c = builder.axis("c", 3 * e.i), i = builder.axis("i", e.i);
  const int x = builder.input("x", dtype, {b, c});
  const int y = builder.op({.kind = OpKind::slice,
                            .operatorClass = movement,
                            .operands = {x},
                            .attributes = {{"axis", int64_t(1)}, {"start", e.i}, {"size", e.i}}},
                           "y", dtype, {b, i});
  return {"slice", builder.finish({y}), i};
}

Example concat(DType dtype, const Extents &e) {
  KernelBuilder builder("concat");
  const int b = builder.axis("b", e.b), p = builder.axis("p", e.p), i = builder.axis("i", e.i),
            c = builder.axis("c", e.i + e.p);
  const int first = builder.input("first", dtype, {b, i}),
            second = builder.input("second", dtype, {b, p});
  const int y = builder.op({.kind = OpKind::concat,
                            .operatorClass = movement,
                            .operands = {first, second},
                            .attributes = {{"axis", int64_t(1)}}},
                           "y", dtype, {b, c});
  return {"concat", builder.finish({y}), c};
}

Example splitAxis(DType dtype, const Extents &e) {
  KernelBuilder builder("split_axis");
  const int b = builder.axis("b", e.b), c = builder.axis("c", e.h * e.p),
            h = builder.axis("h", e.h), p = builder.axis("p", e.p);
  const int x = builder.input("x", dtype, {b, c});
  const int y =
      builder.op({.kind = OpKind::splitAxis,
                  .operatorClass = movement,
                  .operands = {x},
                  .attributes = {{"axis", int64_t(1)}, {"sizes", std::vector<int64_t>{e.h, e.p}}}},
                 "y", dtype, {b, h, p});
  return {"split_axis", builder.finish({y}), p};
}

Example mergeAxes(DType dtype, const Extents &e) {
  KernelBuilder builder("merge_axes");
  const int b = builder.axis("b", e.b), h = builder.axis("h", e.h), p = builder.axis("p", e.p),
            c = builder.axis("c", e.h * e.p);
  const int x = builder.input("x", dtype, {b, h, p});
  const int y = builder.op({.kind = OpKind::mergeAxes,
                            .operatorClass = movement,
                            .operands = {x},
                            .attributes = {{"axis", int64_t(1)}, {"count", int64_t(2)}}},
                           "y", dtype, {b, c});
  return {"merge_axes", builder.finish({y}), c};
}

Example gather(DType dtype, const Extents &e) {
  KernelBuilder builder("gather");
  const int w = builder.axis("w", 40), b = builder.axis("b", e.b), j = builder.axis("j", e.j),
            i = builder.axis("i", e.i);
  const int table = builder.input("table", dtype, {w, i}),
            ids = builder.input("ids", DType::i32, {b, j});
  const int y =
      builder.op({.kind = OpKind::gather, .operatorClass = movement, .operands = {table, ids}}, "y",
                 dtype, {b, j, i});
  return {"gather", builder.finish({y}), i};
}

Example offsets(const Extents &e) {
  KernelBuilder builder("offsets");
  const int b = builder.axis("b", e.b), n = builder.axis("n", e.b + 1);
  const int lengths = builder.input("lengths", DType::i32, {b});
  const int y = builder.op({.kind = OpKind::offsets,
                            .operatorClass = OperatorClass::normalization,
                            .operands = {lengths},
                            .reducedAxes = {b},
                            .attributes = {{"bound", e.j}}},
                           "y", DType::i32, {n});
  return {"offsets", builder.finish({y}), n};
}

Example lengths(const Extents &e) {
  KernelBuilder builder("lengths");
  const int b = builder.axis("b", e.b), j = builder.axis("j", e.j);
  const int mask = builder.input("mask", DType::i1, {b, j});
  const int y = builder.op({.kind = OpKind::lengths,
                            .operatorClass = OperatorClass::normalization,
                            .operands = {mask},
                            .reducedAxes = {j},
                            .attributes = {}},
                           "y", DType::i32, {b});
  return {"lengths", builder.finish({y}), j};
}

Example pack(DType dtype, const Extents &e) {
  KernelBuilder builder("pack");
  const int b = builder.axis("b", e.b), j = builder.axis("j", e.j), i = builder.axis("i", e.i),
            n = builder.axis("n", e.b + 1), t = builder.axis("t", e.b * e.j);
  const int x = builder.input("x", dtype, {b, j, i}),
            offsets = builder.input("offsets", DType::i32, {n});
  const int y = builder.op({.kind = OpKind::pack,
                            .operatorClass = movement,
                            .operands = {x, offsets},
                            .attributes = {{"axes", std::vector<int64_t>{0, 1}}}},
                           "y", dtype, {t, i});
  return {"pack", builder.finish({y}), i};
}

Example unpack(DType dtype, const Extents &e) {
  KernelBuilder builder("unpack");
  const int b = builder.axis("b", e.b), j = builder.axis("j", e.j), i = builder.axis("i", e.i),
            n = builder.axis("n", e.b + 1), t = builder.axis("t", e.b * e.j);
  const int x = builder.input("x", dtype, {t, i}),
            offsets = builder.input("offsets", DType::i32, {n});
  const int y = builder.op(
      {.kind = OpKind::unpack,
       .operatorClass = movement,
       .operands = {x, offsets},
       .attributes = {{"axis", int64_t(0)}, {"into", std::vector<int64_t>{0, 1}}, {"fill", 0.0}}},
      "y", dtype, {b, j, i});
  return {"unpack", builder.finish({y}), i};
}

/// What of a value over (t, ...) are tokens, and zero elsewhere.
ValueId maskOfTokens(KernelBuilder &builder, ValueId value, ValueId offsets, const Extents &e,
                     const std::string &name) {
  const ValueId masked =
      builder.elementwise("mask", "", {value, offsets}, name,
                          {{"kind", std::string("tokens")}, {"key", int64_t(0)}, {"fill", 0.0}});
  builder.compute(
      maskExpression({.kind = MaskShape::Kind::tokens, .key = 0, .sequences = e.b, .fill = 0}));
  return masked;
}

BodyOp sumOverTokens(ValueId operand, AxisId t) {
  BodyOp op = sumOf(operand, {t});
  op.attributes["axes"] = std::vector<int64_t>{0};
  return op;
}

/// The gradient of a bias over packed tokens, beside what it is the sum of.
Example tokenBiasGradient(DType dtype, const Extents &e) {
  KernelBuilder builder("token_bias_gradient");
  const int n = builder.axis("n", e.b + 1), t = builder.axis("t", e.b * e.j),
            u = builder.axis("u", e.u);
  const int dy = builder.input("dy", dtype, {t, u}), slope = builder.input("slope", dtype, {t, u}),
            offsets = builder.input("offsets", DType::i32, {n});
  const int dropped =
      builder.elementwise("dropout", "", {dy}, "dropped", {{"p", 0.1}, {"stream", int64_t(3)}});
  const int product = builder.elementwise("mul", "{0} * {1}", {dropped, slope}, "product");
  const int dx = maskOfTokens(builder, product, offsets, e, "dx");
  return {"token_bias_gradient",
          builder.finish({dx, builder.op(sumOverTokens(dx, t), "dbias", dtype, {u})}), u};
}

/// Gradients of a norm's weights over packed tokens, and of a bias.
Example tokenNormGradients(DType dtype, const Extents &e) {
  KernelBuilder builder("token_norm_gradients");
  const int n = builder.axis("n", e.b + 1), t = builder.axis("t", e.b * e.j),
            i = builder.axis("i", e.i);
  const int dy = builder.input("dy", dtype, {t, i}), x = builder.input("x", dtype, {t, i}),
            mean = builder.input("mean", DType::f32, {t}),
            rstd = builder.input("rstd", DType::f32, {t}),
            offsets = builder.input("offsets", DType::i32, {n}),
            other = builder.input("other", dtype, {t, i});
  const int terms = maskOfTokens(builder, dy, offsets, e, "terms");
  const int dgamma = builder.op({.kind = OpKind::layerNormDw,
                                 .operatorClass = normalization,
                                 .operands = {terms, x, mean, rstd},
                                 .reducedAxes = {t},
                                 .attributes = {{"axes", std::vector<int64_t>{0}}}},
                                "dgamma", dtype, {i});
  builder.kernel.values.push_back({.name = "dbeta", .dtype = dtype, .axes = {i}});
  const ValueId dbeta = int(builder.kernel.values.size()) - 1;
  builder.kernel.body.back().results.push_back(dbeta);
  const int otherTerms = maskOfTokens(builder, other, offsets, e, "other_terms");
  const int dbias = builder.op(sumOverTokens(otherTerms, t), "dbias", dtype, {i});
  return {"token_norm_gradients", builder.finish({dgamma, dbeta, dbias}), i};
}

/// Sums of a row of each token, which is masked, too: its threads stay for the others of a warp.
Example tokenRowSums(DType dtype, const Extents &e) {
  KernelBuilder builder("token_row_sums");
  const int n = builder.axis("n", e.b + 1), t = builder.axis("t", e.b * e.j),
            h = builder.axis("h", e.h), p = builder.axis("p", e.p);
  const int x = builder.input("x", dtype, {t, h, p}), y = builder.input("y", dtype, {t, h, p}),
            offsets = builder.input("offsets", DType::i32, {n});
  const int product = builder.elementwise("mul", "{0} * {1}", {x, y}, "product");
  const int terms = maskOfTokens(builder, product, offsets, e, "terms");
  BodyOp sum = sumOf(terms, {p});
  sum.attributes["axes"] = std::vector<int64_t>{2};
  const int sums = builder.op(std::move(sum), "sums", dtype, {t, h});
  return {"token_row_sums",
          builder.finish({terms, maskOfTokens(builder, sums, offsets, e, "row_sums")}), p};
}

Example paddingMaskSoftmax(DType dtype, const Extents &e) {
  KernelBuilder builder("padding_mask_softmax");
  const int b = builder.axis("b", e.b), h = builder.axis("h", e.h), j = builder.axis("j", e.j),
            k = builder.axis("k", e.k);
  const int score = builder.input("score", dtype, {b, h, j, k}),
            lengths = builder.input("lengths", DType::i32, {b});
  const int masked = builder.elementwise("mask", "", {score, lengths}, "masked",
                                         {{"kind", std::string("padding")}, {"key", int64_t(3)}});
  builder.compute(maskExpression({.kind = MaskShape::Kind::padding, .key = 3}));
  const int y = builder.op({.kind = OpKind::softmax,
                            .operatorClass = normalization,
                            .operands = {masked},
                            .reducedAxes = {k},
                            .attributes = {{"axis", int64_t(3)}}},
                           "y", dtype, {b, h, j, k});
  return {"padding_mask_softmax", builder.finish({y}), k};
}

Example blockWindowMask(DType dtype, const Extents &e) {
  KernelBuilder builder("block_window_mask");
  const int h = builder.axis("h", e.h), j = builder.axis("j", e.j), k = builder.axis("k", e.k);
  const int q = builder.axis("q", (e.j + 3) / 4), n = builder.axis("n", (e.k + 3) / 4);
  const int score = builder.input("score", dtype, {h, j, k}),
            table = builder.input("table", DType::i1, {q, n});
  const int blocks = builder.elementwise("mask", "", {score, table}, "blocks",
                                         {{"kind", std::string("block")},
                                          {"query", int64_t(1)},
                                          {"key", int64_t(2)},
                                          {"size", int64_t(4)}});
  builder.compute(
      maskExpression({.kind = MaskShape::Kind::block, .key = 2, .query = 1, .size = 4}));
  const int y = builder.elementwise("mask", "", {blocks}, "y",
                                    {{"kind", std::string("window")},
                                     {"query", int64_t(1)},
                                     {"key", int64_t(2)},
                                     {"left", int64_t(7)},
                                     {"right", int64_t(2)}});
  builder.compute(maskExpression({.kind = MaskShape::Kind::window,
                                  .key = 2,
                                  .query = 1,
                                  .shift = e.k - e.j,
                                  .left = 7,
                                  .right = 2}));
  return {"block_window_mask", builder.finish({y}), k};
}

Example selectExample(DType dtype, const Extents &e) {
  KernelBuilder builder("select_cast");
  const int b = builder.axis("b", e.b), i = builder.axis("i", e.i);
  const int a = builder.input("a", dtype, {b, i}), other = builder.input("other", dtype, {b, i});
  const int condition = builder.input("condition", DType::i1, {b, i});
  const int chosen =
      builder.elementwise("select", "{0} != 0.0f ? {1} : {2}", {condition, a, other}, "chosen");
  builder.kernel.values[chosen].dtype = dtype;
  const int y = builder.op(
      {.kind = OpKind::cast, .operands = {chosen}, .expression = Expression::parse("{0}")}, "y",
      DType::f32, {b, i});
  return {"select_cast", builder.finish({y}), i};
}

}  // namespace

Example scatterAdd(DType dtype, const Extents &e, int64_t tableRows) {
  KernelBuilder builder("scatter_add");
  const int w = builder.axis("w", tableRows), i = builder.axis("i", e.i),
            b = builder.axis("b", e.b), j = builder.axis("j", e.j);
  const int rows = builder.input("rows", dtype, {b, j, i}),
            ids = builder.input("ids", DType::i32, {b, j});
  const int table = builder.op({.kind = OpKind::scatterAdd,
                                .operatorClass = normalization,
                                .operands = {rows, ids},
                                .reducedAxes = {b, j}},
                               "table", dtype, {w, i});
  return {"scatter_add", builder.finish({table}), i};
}

std::vector<Example> loopExamples(DType dtype, const Extents &e, int64_t tile) {
  return {biasDropoutResidualLayerNorm(dtype, e),
          scaleMaskSoftmaxDropout(dtype, e),
          biasReluDropout(dtype, e),
          biasGelu(dtype, e),
          rmsNorm(dtype, e),
          biasGradient(dtype, e),
          rowMaximum(dtype, e),
          rotary(dtype, e, RotaryStyle::halved),
          rotary(dtype, e, RotaryStyle::interleaved),
          localSoftmax(dtype, e, tile),
          reduceSubVectors(dtype, e, tile),
          globalScaling(dtype, e, tile),
          slice(dtype, e),
          concat(dtype, e),
          splitAxis(dtype, e),
          mergeAxes(dtype, e),
          gather(dtype, e),
          offsets(e),
          lengths(e),
          pack(dtype, e),
          unpack(dtype, e),
          tokenBiasGradient(dtype, e),
          tokenNormGradients(dtype, e),
          tokenRowSums(dtype, e),
          paddingMaskSoftmax(dtype, e),
          blockWindowMask(dtype, e),
          selectExample(dtype, e),
          dropoutActivationBias(dtype, e),
          scaleBias(dtype, e)};
}

std::vector<Example> loopExamples(DType dtype, int scale) {
  return loopExamples(dtype, extentsOf(scale), scale == 0 ? 8 : 64);
}

Example findLoopExample(const std::string &name, DType dtype, int scale) {
  for (const Example &example : loopExamples(dtype, scale))
    if (example.name == name) return example;
  throw Error::badInput("no example kernel '{}'", name);
}

Configuration rowMajorConfiguration(const Kernel &kernel, Knobs knobs) {
  Configuration configuration{.knobs = std::move(knobs)};
  for (ValueId value : kernel.inputs)
    configuration.inputs.push_back(rowMajor(kernel.values[value].axes.size()));
  for (ValueId value : kernel.outputs)
    configuration.outputs.push_back(rowMajor(kernel.values[value].axes.size()));
  return configuration;
}

}  // namespace weft::examples
