// Contractions with what follows them, as transformer layers have them: for tests of families that take epilogues.
#pragma once

#include "tests/unit/SampleKernels.h"

namespace weft::samples {

struct ContractionExtents {
  int64_t b = 2, j = 72, i = 136, u = 264;
};

class FusedContraction {
public:
  FusedContraction(std::string name, const ContractionExtents &extents, DType type)
      : builder(std::move(name), {{'b', extents.b}, {'i', extents.i}, {'j', extents.j}, {'u', extents.u}}), type(type) {
    w = builder.input("w", "iu", type), x = builder.input("x", "bji", type);
  }
  int input(const std::string &name, const std::string &letters) { return builder.input(name, letters, type); }
  /// After all inputs.
  int product(double scale = 1) {
    const int value = builder.op("contract", OperatorClass::contraction, {x, w}, "product", "bju", "i", type);
    builder.last().attributes = {{"spec", std::string("bji,iu->bju")}};
    if (scale != 1) builder.last().attributes["scale"] = scale;
    return value;
  }
  int map(const std::string &name, const std::string &spelling, std::vector<int> operands, const std::string &result) {
    const int value = builder.op(name, OperatorClass::elementwise, std::move(operands), result, "bju", "", type);
    builder.last().spelling = spelling;
    return value;
  }
  int dropout(int operand, const std::string &result) {
    const int value = map("dropout", "", {operand}, result);
    builder.last().attributes = {{"p", 0.1}, {"stream", int64_t(3)}};
    return value;
  }
  Kernel build(std::vector<int> outputs) { return builder.build(std::move(outputs)); }

private:
  KernelBuilder builder;
  DType type;
  int w, x;
};

/// bias; bias, gelu; bias, relu, dropout; bias, dropout, residual; scale, one factor a row, and a second output.
inline std::vector<Kernel> fusedContractions(const ContractionExtents &extents, DType type) {
  std::vector<Kernel> kernels;
  {
    FusedContraction fused("product_bias", extents, type);
    const int bias = fused.input("bias", "u");
    kernels.push_back(fused.build({fused.map("bias", "{0} + {1}", {fused.product(), bias}, "y")}));
  }
  {
    FusedContraction fused("product_bias_gelu", extents, type);
    const int bias = fused.input("bias", "u");
    const int biased = fused.map("bias", "{0} + {1}", {fused.product(), bias}, "biased");
    kernels.push_back(fused.build({fused.map("gelu", "weft::gelu({0})", {biased}, "y")}));
  }
  {
    FusedContraction fused("product_bias_relu_dropout", extents, type);
    const int bias = fused.input("bias", "u");
    const int biased = fused.map("bias", "{0} + {1}", {fused.product(), bias}, "biased");
    kernels.push_back(fused.build({fused.dropout(fused.map("relu", "weft::relu({0})", {biased}, "rectified"), "y")}));
  }
  {
    FusedContraction fused("product_bias_dropout_residual", extents, type);
    const int bias = fused.input("bias", "u"), rest = fused.input("rest", "bju");
    const int biased = fused.map("bias", "{0} + {1}", {fused.product(), bias}, "biased");
    kernels.push_back(fused.build({fused.map("residual", "{0} + {1}", {fused.dropout(biased, "kept"), rest}, "y")}));
  }
  {
    FusedContraction fused("product_scale_rows", extents, type);
    const int rows = fused.input("rows", "bj");
    const int product = fused.product(0.125);
    const int scaled = fused.map("mul", "{0} * {1}", {product, rows}, "scaled");
    kernels.push_back(fused.build({fused.map("relu", "weft::relu({0})", {scaled}, "y"), scaled}));
  }
  return kernels;
}

}  // namespace weft::samples
