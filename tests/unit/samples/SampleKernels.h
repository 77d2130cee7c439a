// Small canonical kernels for tests, built by axis letters: one character an axis.
#pragma once

#include "kernel/Kernel.h"

#include <map>
#include <string>
#include <vector>

namespace weft::samples {

/// Collects values and ops; values are named as given, axes by their letters.
class KernelBuilder {
public:
  KernelBuilder(std::string name, const std::map<char, int64_t> &extents) {
    kernel.name = std::move(name);
    for (const auto &[letter, extent] : extents) {
      axisOf[letter] = static_cast<int>(kernel.axes.size());
      kernel.axes.push_back({std::string(1, letter), extent});
    }
  }

  ValueId input(const std::string &name, const std::string &letters, DType type = DType::f16) {
    kernel.inputs.push_back(static_cast<int>(kernel.values.size()));
    return value(name, letters, type);
  }

  /// One op with one result.
  ValueId op(const std::string &name, OperatorClass operatorClass, std::vector<ValueId> operands,
             const std::string &result, const std::string &letters, const std::string &reduced = "",
             DType type = DType::f16) {
    BodyOp body;
    body.kind = opKindNamed(name).value();
    body.operatorClass = operatorClass;
    body.operands = std::move(operands);
    for (char letter : reduced) body.reducedAxes.push_back(axisOf.at(letter));
    body.results = {value(result, letters, type)};
    kernel.body.push_back(body);
    return body.results[0];
  }

  /// A further result of the last op.
  ValueId also(const std::string &result, const std::string &letters, DType type) {
    kernel.body.back().results.push_back(value(result, letters, type));
    return kernel.body.back().results.back();
  }

  BodyOp &last() { return kernel.body.back(); }
  /// What the last op computes of the coordinates of its result's dimensions.
  void compute(const Expression &expression) {
    last().expression = expression.withAxes(kernel.values[size_t(last().results[0])].axes);
  }

  Kernel build(std::vector<ValueId> outputs) {
    kernel.outputs = std::move(outputs);
    verify(kernel);
    return kernel;
  }

private:
  ValueId value(const std::string &name, const std::string &letters, DType type) {
    Value result;
    result.name = name;
    result.dtype = type;
    for (char letter : letters) result.axes.push_back(axisOf.at(letter));
    kernel.values.push_back(result);
    return static_cast<int>(kernel.values.size()) - 1;
  }

  Kernel kernel;
  std::map<char, AxisId> axisOf;
};

/// r = relu(x) over the given axes.
inline Kernel reluKernel(const std::map<char, int64_t> &extents, const std::string &letters,
                         DType type = DType::f16) {
  KernelBuilder builder("relu", extents);
  const int x = builder.input("x", letters, type);
  const int y = builder.op("relu", OperatorClass::elementwise, {x}, "y", letters, "", type);
  builder.last().expression = Expression::parse("weft::relu({0})");
  return builder.build({y});
}

/// p = softmax(x) over the last letter.
inline Kernel softmaxKernel(const std::map<char, int64_t> &extents, const std::string &letters) {
  KernelBuilder builder("softmax", extents);
  const int x = builder.input("x", letters);
  const int y = builder.op("softmax", OperatorClass::normalization, {x}, "y", letters,
                           letters.substr(letters.size() - 1));
  builder.last().attributes["axis"] = static_cast<int64_t>(letters.size() - 1);
  return builder.build({y});
}

/// c = contract "a,b->c" with the letters as einsum letters.
inline Kernel contractKernel(const std::map<char, int64_t> &extents, const std::string &a,
                             const std::string &b, const std::string &c) {
  KernelBuilder builder("contract", extents);
  const int left = builder.input("a", a), right = builder.input("b", b);
  std::string reduced;
  for (char letter : a)
    if (c.find(letter) == std::string::npos) reduced += letter;
  const int result =
      builder.op("contract", OperatorClass::contraction, {left, right}, "c", c, reduced);
  double points = 2;
  for (const auto &[letter, extent] : extents) points *= static_cast<double>(extent);
  builder.last().flop = points;
  builder.last().attributes["spec"] = a + "," + b + "->" + c;
  return builder.build({result});
}

/// y = identity(x): the body of a transpose.
inline Kernel identityKernel(const std::map<char, int64_t> &extents, const std::string &letters) {
  KernelBuilder builder("identity", extents);
  const int x = builder.input("x", letters);
  return builder.build({builder.op("identity", OperatorClass::movement, {x}, "y", letters)});
}

}  // namespace weft::samples
