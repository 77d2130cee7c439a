// Contractions whose f32 operands are read as tf32, alone and with what follows them: for tests of
// families that take them.
#pragma once

#include "kernel/StridedBatchedGemm.h"
#include "tests/unit/samples/SampleContractions.h"
#include "tests/unit/samples/SampleFloat8.h"

namespace weft::samples {

inline const GemmTypes tf32Types{DType::tf32, DType::tf32, DType::f32};

/// The same with precision "tf32" for its contractions.
inline Kernel inTf32(Kernel kernel) {
  for (BodyOp &op : kernel.body)
    if (op.operatorClass == OperatorClass::contraction)
      op.attributes["precision"] = std::string(nameOf(DType::tf32));
  return kernel;
}

using Tf32Extents = Float8Extents;

/// c = a b^T over the batch elements, in f32; row-major operands are contiguous along k.
inline Kernel fullGemm(const Tf32Extents &extents) {
  return float8Gemm(extents, {DType::f32, DType::f32, DType::f32});
}
/// The same of operands that are read as tf32; `result` may be narrower.
inline Kernel tf32Gemm(const Tf32Extents &extents, DType result = DType::f32) {
  return inTf32(float8Gemm(extents, {DType::f32, DType::f32, result}));
}

}  // namespace weft::samples
