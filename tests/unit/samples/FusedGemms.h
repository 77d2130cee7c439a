// Contractions with what may follow them, for tests: a b -> c, plus a bias, plus a residual, times
// a factor, then a function, then a sum.
#pragma once

#include "tests/unit/samples/SampleKernels.h"

#include <algorithm>

namespace weft::samples {

struct FusedGemm {
  std::map<char, int64_t> extents;
  std::string a = "mk", b = "kn", c = "mn";
  DType type = DType::f16;
  double alpha = 1;
  std::string residual = "";  ///< the op that adds it: add, sub, residual; empty: none
  double factor = 1;          ///< of a scale behind it
  std::string bias = "";      ///< its letters; empty: none
  std::string function =
      "";  ///< relu, gelu, gelu_tanh, silu; or a derivative, whose second operand is an input
  bool keepsOperand = false;  ///< of the function
  std::string summed = "";    ///< "a", "b", or "y": what is summed
  std::string gradient = "";  ///< letters of the sum
};

inline std::string spellingOf(const std::string &op) {
  static const std::map<std::string, std::string> spellings = {
      {"add", "{0} + {1}"},
      {"sub", "{0} - {1}"},
      {"bias", "{0} + {1}"},
      {"residual", "{0} + {1}"},
      {"mul", "{0} * {1}"},
      {"scale", "{0} * {factor}"},
      {"relu", "weft::relu({0})"},
      {"gelu", "weft::gelu({0})"},
      {"silu", "weft::silu({0})"},
      {"gelu_tanh", "weft::geluTanh({0})"},
      {"gelu_tanh_dx", "{0} * weft::slope::geluTanh({1})"},
      {"gelu_dx", "{0} * weft::slope::gelu({1})"},
      {"relu_dx", "{1} <= 0.0f ? 0.0f : {0}"}};
  return spellings.at(op);
}

inline Kernel fusedGemm(const FusedGemm &gemm) {
  KernelBuilder builder("gemm", gemm.extents);
  const bool isSlope = gemm.function.ends_with("_dx");
  const int a = builder.input("a", gemm.a, gemm.type), b = builder.input("b", gemm.b, gemm.type);
  const int residual =
      gemm.residual.empty() ? ValueId() : builder.input("residual", gemm.c, gemm.type);
  const int bias = gemm.bias.empty() ? ValueId() : builder.input("bias", gemm.bias, gemm.type);
  const int operand = isSlope ? builder.input("operand", gemm.c, gemm.type) : ValueId();
  std::string reduced;
  for (char letter : gemm.a)
    if (gemm.c.find(letter) == std::string::npos) reduced += letter;
  int value =
      builder.op("contract", OperatorClass::contraction, {a, b}, "c", gemm.c, reduced, gemm.type);
  builder.last().attributes["spec"] = gemm.a + "," + gemm.b + "->" + gemm.c;
  if (gemm.alpha != 1) builder.last().attributes["scale"] = gemm.alpha;
  const auto map = [&](const std::string &op, std::vector<ValueId> operands,
                       const std::string &name) {
    value = builder.op(op, OperatorClass::elementwise, std::move(operands), name, gemm.c, "",
                       gemm.type);
    if (!spellingOf(op).empty()) builder.last().expression = Expression::parse(spellingOf(op));
  };
  if (residual >= 0) map(gemm.residual, {value, residual}, "sum");
  if (gemm.factor != 1) {
    map("scale", {value}, "scaled");
    builder.last().attributes["factor"] = gemm.factor;
  }
  if (bias >= 0) map("bias", {value, bias}, "biased");
  const int before = value;
  if (!gemm.function.empty())
    map(gemm.function, isSlope ? std::vector<ValueId>{value, operand} : std::vector<ValueId>{value},
        "y");
  std::vector<ValueId> outputs;
  if (gemm.keepsOperand) outputs.push_back(before);
  outputs.push_back(value);
  if (!gemm.summed.empty()) {
    const int summed = gemm.summed == "a" ? a : gemm.summed == "b" ? b : value;
    const std::string letters = gemm.summed == "a" ? gemm.a : gemm.summed == "b" ? gemm.b : gemm.c;
    std::string others;
    std::vector<int64_t> axes;
    for (size_t i = 0; i < letters.size(); ++i)
      if (gemm.gradient.find(letters[i]) == std::string::npos) {
        others += letters[i];
        axes.push_back(int64_t(i));
      }
    outputs.push_back(builder.op("reduce", OperatorClass::normalization, {summed}, "gradient",
                                 gemm.gradient, others, gemm.type));
    builder.last().attributes["kind"] = std::string("sum");
    builder.last().attributes["axes"] = axes;
  }
  return builder.build(outputs);
}

}  // namespace weft::samples
