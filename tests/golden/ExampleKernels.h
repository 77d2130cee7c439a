// Kernels that tests emit: a small builder, and the fused kernels that transformer layers need, at
// given extents.
#pragma once

#include "kernel/Configuration.h"

#include <functional>
#include <initializer_list>

namespace weft::examples {

class KernelBuilder {
public:
  explicit KernelBuilder(std::string name) { kernel.name = std::move(name); }
  AxisId axis(const std::string &name, int64_t extent);
  ValueId input(const std::string &name, DType dtype, std::vector<AxisId> axes);
  ValueId op(BodyOp op, const std::string &name, DType dtype, std::vector<AxisId> axes);
  /// An element-wise op on values of equal axes (operands after the first may lack some).
  ValueId elementwise(const std::string &op, const std::string &spelling,
                      std::vector<ValueId> operands, const std::string &name,
                      std::map<std::string, Attribute> attributes = {});
  /// What the last op computes of the coordinates of its first operand's dimensions.
  void compute(const Expression &expression);
  /// Numbers ops and values as a graph would, and checks the kernel.
  Kernel finish(std::vector<ValueId> outputs);

  Kernel kernel;
};

struct Example {
  std::string name;
  Kernel kernel;
  AxisId vectorAxis = -1;  ///< the natural one
};

/// Extents by the letters of transformer layers; p is even.
struct Extents {
  int64_t b, j, k, h, p, i, u;
};

/// Every loop kernel kind at given extents; `tile` is the sub-vector of a decomposed softmax.
std::vector<Example> loopExamples(DType dtype, const Extents &extents, int64_t tile);
/// The same; `scale` 0: tiny odd extents, 1: those of a BERT-large layer.
std::vector<Example> loopExamples(DType dtype, int scale);
Example findLoopExample(const std::string &name, DType dtype, int scale);

/// The gradient of a gather from a table of so many rows: [b,j,i] by [b,j] into [w,i].
Example scatterAdd(DType dtype, const Extents &extents, int64_t tableRows);

/// Row-major everywhere.
Configuration rowMajorConfiguration(const Kernel &kernel, Knobs knobs);

}  // namespace weft::examples
