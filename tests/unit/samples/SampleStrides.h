// Products whose operands or results, row-major, have several strides along a group of axes: for
// tests of them.
#pragma once

#include "kernel/Configuration.h"
#include "tests/unit/samples/SampleKernels.h"

namespace weft::samples {

struct StridedGemmCase {
  const char *a, *b, *c;
  const char *what;
};
/// b, w: batch or rows; h: heads; j, k: positions; p: of a head; i: hidden.
inline constexpr StridedGemmCase stridedGemmCases[] = {
    {"bhjp", "hpi", "bji", "rows (b,j) and k (h,p) of A along k"},
    {"hpi", "bhjp", "ibj", "the same of B"},
    {"bhjp", "hpi", "ibj", "the same of A, and C contiguous along m"},
    {"bjhp", "bkhp", "bhjk", "members (b,h) of both, along k"},
    {"bhjk", "bkhp", "bhjp", "members (b,h) of B, along its outer axis"},
    {"bhjp", "bji", "hpi", "columns (h,p) and k (b,j) of A along its outer axis"},
    {"bji", "bhjp", "ihp", "the same of B"},
    {"wbhjp", "whpi", "wbji", "five strides"},
    {"wjbp", "ip", "bjwi", "rows (b,j,w) of A, three strides"},
    {"bji", "hpi", "bhjp", "rows (b,j) and columns (h,p) of C"},
    {"bhjk", "bhkp", "bjhp", "members (b,h) of C"},
    {"bjhp", "bkhp", "bjhk", "members (b,h) of all"},
};

inline Kernel stridedKernel(const StridedGemmCase &gemm, const std::map<char, int64_t> &extents,
                            DType type = DType::f16) {
  std::map<char, int64_t> used;
  for (const std::string_view letters : {gemm.a, gemm.b, gemm.c})
    for (const char letter : letters) used[letter] = extents.at(letter);
  Kernel kernel = contractKernel(used, gemm.a, gemm.b, gemm.c);
  for (Value &value : kernel.values) value.dtype = type;
  return kernel;
}

/// [b,h,j,p] w [h,p,i] with a bias along i and a residual: what follows attention, with rows (b,j)
/// and k (h,p).
inline Kernel stridedProjection(const std::map<char, int64_t> &extents, DType type = DType::f16) {
  std::map<char, int64_t> used;
  for (const char letter : std::string_view("bhjpi")) used[letter] = extents.at(letter);
  KernelBuilder builder("projection_bias_residual", used);
  const int x = builder.input("x", "bhjp", type), w = builder.input("w", "hpi", type),
            bias = builder.input("bias", "i", type),
            residual = builder.input("residual", "bji", type);
  const int gemm =
      builder.op("contract", OperatorClass::contraction, {x, w}, "gemm", "bji", "hp", type);
  builder.last().attributes = {{"spec", std::string("bhjp,hpi->bji")}};
  const int biased =
      builder.op("add", OperatorClass::elementwise, {gemm, bias}, "biased", "bji", "", type);
  builder.last().expression = Expression::parse("{0} + {1}");
  const int sum =
      builder.op("add", OperatorClass::elementwise, {biased, residual}, "y", "bji", "", type);
  builder.last().expression = Expression::parse("{0} + {1}");
  return builder.build({sum});
}

/// Row-major everywhere.
inline Configuration stridedConfiguration(const Kernel &kernel, const Knobs &knobs) {
  Configuration configuration{.knobs = knobs};
  for (const ValueId value : kernel.inputs)
    configuration.inputs.push_back(rowMajor(kernel.values[size_t(value)].axes.size()));
  for (const ValueId value : kernel.outputs)
    configuration.outputs.push_back(rowMajor(kernel.values[size_t(value)].axes.size()));
  return configuration;
}

}  // namespace weft::samples
