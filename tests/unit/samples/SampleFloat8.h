// Products of 8-bit floats, alone and with the scales of both operands: for tests of families that
// take them.
#pragma once

#include "kernel/StridedBatchedGemm.h"
#include "tests/unit/samples/SampleKernels.h"

namespace weft::samples {

struct Float8Extents {
  int64_t b = 1, m = 64, n = 64, k = 64;
};

inline const GemmTypes float8Types[] = {{DType::f8e4m3, DType::f8e4m3, DType::f16},
                                        {DType::f8e4m3, DType::f8e5m2, DType::bf16},
                                        {DType::f8e5m2, DType::f8e4m3, DType::f32},
                                        {DType::f8e5m2, DType::f8e5m2, DType::f16},
                                        {DType::f8e4m3, DType::f8e4m3, DType::f32}};

/// c = a b^T over the batch elements; row-major operands are contiguous along k.
inline Kernel float8Gemm(const Float8Extents &extents, const GemmTypes &types) {
  Kernel kernel =
      contractKernel({{'b', extents.b}, {'m', extents.m}, {'n', extents.n}, {'k', extents.k}},
                     "bmk", "bnk", "bmn");
  const int values[] = {kernel.inputs[0], kernel.inputs[1], kernel.outputs[0]};
  kernel.values[size_t(values[0])].dtype = types.a;
  kernel.values[size_t(values[1])].dtype = types.b;
  kernel.values[size_t(values[2])].dtype = types.c;
  return kernel;
}

/// The same, times the scales of both tensors, plus a bias; sums are f32 until they are stored.
inline Kernel scaledFloat8Gemm(const Float8Extents &extents, const GemmTypes &types) {
  KernelBuilder builder("scaled_product",
                        {{'b', extents.b}, {'k', extents.k}, {'m', extents.m}, {'n', extents.n}});
  const int a = builder.input("a", "bmk", types.a), b = builder.input("b", "bnk", types.b),
            scaleA = builder.input("scale_a", "", DType::f32),
            scaleB = builder.input("scale_b", "", DType::f32),
            bias = builder.input("bias", "n", types.c);
  const int gemm =
      builder.op("contract", OperatorClass::contraction, {a, b}, "gemm", "bmn", "k", DType::f32);
  builder.last().attributes = {{"spec", std::string("bmk,bnk->bmn")}};
  const auto map = [&](const std::string &name, const std::string &spelling,
                       std::vector<ValueId> operands, const std::string &result, DType type) {
    const ValueId value =
        builder.op(name, OperatorClass::elementwise, std::move(operands), result, "bmn", "", type);
    if (!spelling.empty()) builder.last().expression = Expression::parse(spelling);
    return value;
  };
  const int half = map("mul", "{0} * {1}", {gemm, scaleA}, "half", DType::f32);
  const int whole = map("mul", "{0} * {1}", {half, scaleB}, "whole", DType::f32);
  return builder.build(
      {map("cast", "{0}", {map("bias", "{0} + {1}", {whole, bias}, "biased", DType::f32)}, "c",
           types.c)});
}

/// y = x in another type.
inline Kernel castKernel(const std::map<char, int64_t> &extents, const std::string &letters,
                         DType from, DType to) {
  KernelBuilder builder("cast", extents);
  const int x = builder.input("x", letters, from);
  const int y = builder.op("cast", OperatorClass::elementwise, {x}, "y", letters, "", to);
  builder.last().expression = Expression::parse("{0}");
  return builder.build({y});
}

}  // namespace weft::samples
