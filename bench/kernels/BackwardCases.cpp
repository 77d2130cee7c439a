// The backward loop kernels of "Data Movement Is All You Need" (Table A.1), each of the ops that
// its bracket joins, as differentiation and fusion make them of paper-encoder: BERT-large, batch
// 96, sequences of 128.
#include "bench/kernels/Cases.h"

#include "tests/golden/ExampleKernels.h"

namespace weft::bench {
namespace {

using examples::KernelBuilder;

constexpr auto normalization = OperatorClass::normalization;
constexpr DType f16 = DType::f16;
constexpr int64_t batch = 96, length = 128, hidden = 1024, inner = 4096, heads = 16, headWidth = 64;
constexpr int64_t rows = batch * length;

Case backwardCase(const std::string &name, Kernel kernel) {
  return rowMajorCase(name, "backward", std::move(kernel));
}

/// b, j, i, and the tensors that gradients of layer norm read.
struct NormGradient {
  explicit NormGradient(const std::string &name) : builder(name) {
    b = builder.axis("b", batch), j = builder.axis("j", length), i = builder.axis("i", hidden);
  }
  int tensor(const std::string &name) { return builder.input(name, f16, {b, j, i}); }
  int statistic(const std::string &name) { return builder.input(name, DType::f32, {b, j}); }
  int dropout(ValueId value, const std::string &name) {
    return builder.elementwise("dropout", "", {value}, name, {{"p", 0.1}, {"stream", int64_t(3)}});
  }
  /// The gradients of gamma and beta: returns that of gamma, beta's is the value after it.
  int scaleAndBias(int dy, int x, int mean, int rstd) {
    const int dgamma = builder.op({.kind = OpKind::layerNormDw,
                                   .operatorClass = normalization,
                                   .operands = {dy, x, mean, rstd},
                                   .results = {},
                                   .reducedAxes = {b, j},
                                   .attributes = {{"axes", std::vector<int64_t>{0, 1}}},
                                   .expression = {}},
                                  "dgamma", f16, {i});
    builder.kernel.values.push_back({.name = "dbeta", .dtype = f16, .axes = {i}});
    builder.kernel.body.back().results.push_back(dgamma + 1);
    builder.kernel.body.back().flop = 4.0 * static_cast<double>(builder.kernel.elements(dy));
    return dgamma;
  }

  KernelBuilder builder;
  int b, j, i;
};

/// Of the sum of magnitudes: dy up to 4, x - mean up to 8, rstd up to 4.
void allowForSums(Case &one) { one.sumTolerance = 1e-6 * rows * 32; }

/// BSB: the gradients of gamma and beta.
Case scaleBias() {
  NormGradient norm("scale_bias");
  const int dy = norm.tensor("dy"), x = norm.tensor("x"), mean = norm.statistic("mean"),
            rstd = norm.statistic("rstd");
  const int dgamma = norm.scaleAndBias(dy, x, mean, rstd);
  Case result = backwardCase("BSB_12288x1024", norm.builder.finish({dgamma, dgamma + 1}));
  allowForSums(result);
  return result;
}

/// EBSB: the same of a sum that is also written, where the residual connection joins.
Case residualScaleBias() {
  NormGradient norm("residual_scale_bias");
  const int one = norm.tensor("upstream"), other = norm.tensor("more"), x = norm.tensor("x");
  const int mean = norm.statistic("mean"), rstd = norm.statistic("rstd");
  const int dy = norm.builder.elementwise("add", "{0} + {1}", {one, other}, "dy");
  const int dgamma = norm.scaleAndBias(dy, x, mean, rstd);
  Case result = backwardCase("EBSB_12288x1024", norm.builder.finish({dy, dgamma, dgamma + 1}));
  allowForSums(result);
  return result;
}

/// BLNRD: the gradient of layer norm's operand, and dropout of it; both are written, the first for
/// the residual connection.
Case normDropout() {
  NormGradient norm("norm_dropout");
  const int dy = norm.tensor("dy"), x = norm.tensor("x"),
            gamma = norm.builder.input("gamma", f16, {norm.i});
  const int mean = norm.statistic("mean"), rstd = norm.statistic("rstd");
  const int dx = norm.builder.op({.kind = OpKind::layerNormDx,
                                  .operatorClass = normalization,
                                  .operands = {dy, x, gamma, mean, rstd},
                                  .results = {},
                                  .reducedAxes = {norm.i},
                                  .attributes = {{"axis", int64_t(2)}},
                                  .expression = {}},
                                 "dx", f16, {norm.b, norm.j, norm.i});
  Case result =
      backwardCase("BLNRD_12288x1024", norm.builder.finish({dx, norm.dropout(dx, "dropped")}));
  result.rowTolerance = 1e-3;  // terms up to 2000 cancel
  return result;
}

/// BDRB: dropout, the activation's gradient, and its sum over all rows, the gradient of the bias.
Case dropoutActivationBias() {
  KernelBuilder builder("dropout_activation_bias");
  const int b = builder.axis("b", batch), j = builder.axis("j", length),
            u = builder.axis("u", inner);
  const int dy = builder.input("dy", f16, {b, j, u}),
            active = builder.input("active", f16, {b, j, u});
  const int dropped =
      builder.elementwise("dropout", "", {dy}, "dropped", {{"p", 0.1}, {"stream", int64_t(2)}});
  const int dx =
      builder.elementwise("relu_dx", "{1} <= 0.0f ? 0.0f : {0}", {dropped, active}, "dx");
  const int dbias = builder.op(sumOver(dx, {b, j}, {0, 1}), "dbias", f16, {u});
  Case result = backwardCase("BDRB_12288x4096", builder.finish({dx, dbias}));
  result.sumTolerance = 1e-6 * rows * 4;
  return result;
}

/// BS: dropout of the gradient of the probabilities, and that of the scores.
Case dropoutSoftmax() {
  KernelBuilder builder("dropout_softmax");
  const int h = builder.axis("h", heads), b = builder.axis("b", batch),
            j = builder.axis("j", length), k = builder.axis("k", length);
  const int dy = builder.input("dy", f16, {h, b, j, k}),
            y = builder.input("probability", f16, {h, b, j, k});
  const int dropped =
      builder.elementwise("dropout", "", {dy}, "dropped", {{"p", 0.1}, {"stream", int64_t(0)}});
  const int dx = builder.op({.kind = OpKind::softmaxDx,
                             .operatorClass = normalization,
                             .operands = {dropped, y},
                             .results = {},
                             .reducedAxes = {k},
                             .attributes = {{"axis", int64_t(3)}},
                             .expression = {}},
                            "dx", f16, {h, b, j, k});
  Case result = backwardCase("BS_16x96x128x128", builder.finish({dx}));
  result.rowTolerance = 1e-3;
  return result;
}

/// BAIB: the gradients of the biases of Q, K and V, which lie as [p,h,b,j] (rows of 12288) or as
/// [b,j,h,p] (columns).
Case inputBiases(const std::string &name, bool columns) {
  KernelBuilder builder("input_biases");
  const int p = builder.axis("p", headWidth), h = builder.axis("h", heads),
            b = builder.axis("b", batch), j = builder.axis("j", length);
  std::vector<ValueId> gradients, sums;
  for (const char *projection : {"dq", "dk", "dv"})
    gradients.push_back(builder.input(projection, f16, {p, h, b, j}));
  for (int gradient : gradients)
    sums.push_back(builder.op(sumOver(gradient, {b, j}, {2, 3}),
                              builder.kernel.values[gradient].name + "_bias", f16, {p, h}));
  Case result = backwardCase(name, builder.finish(sums));
  result.sumTolerance = 1e-6 * rows * 4;
  if (!columns) return result;
  for (std::optional<Layout> &layout : result.layouts.inputs) layout = {.order = {2, 3, 1, 0}};
  for (std::optional<Layout> &layout : result.layouts.outputs) layout = {.order = {1, 0}};
  return result;
}

/// BEI: where the residual connection of the encoder's input joins.
Case residual() {
  KernelBuilder builder("residual");
  const int b = builder.axis("b", batch), j = builder.axis("j", length),
            i = builder.axis("i", hidden);
  const int x = builder.input("dresidual", f16, {b, j, i}),
            y = builder.input("dprojections", f16, {b, j, i});
  return backwardCase("BEI_12288x1024",
                      builder.finish({builder.elementwise("add", "{0} + {1}", {x, y}, "dx")}));
}

}  // namespace

std::vector<Case> backwardCases() {
  return {scaleBias(),
          normDropout(),
          dropoutActivationBias(),
          residualScaleBias(),
          dropoutSoftmax(),
          inputBiases("BAIB_1024x12288", false),
          inputBiases("BAIB_12288x1024", true),
          residual()};
}

}  // namespace weft::bench
