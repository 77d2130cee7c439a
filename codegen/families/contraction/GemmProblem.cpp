// From layouts to the GEMM of tensor-core kernels; see GemmProblem.h.
#include "codegen/families/contraction/GemmProblem.h"

#include "kernel/ContractionRegion.h"
#include "kernel/Error.h"
#include "kernel/LastLayouts.h"
#include "kernel/StridedBatchedGemm.h"
#include "kernel/UnusedTokens.h"

#include <algorithm>
#include <limits>

namespace weft {
namespace {

constexpr int64_t engineBytes = 16;                 // of addresses and strides
constexpr int64_t longestPitch = int64_t(1) << 40;  // bytes, of a tensor map
/// Coordinates of a tile that begins inside reach as far as its end.
constexpr int64_t mostElements = std::numeric_limits<int32_t>::max() - 512;

int64_t roundedUp(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

bool areWholeUnits(int64_t pitch, int64_t batch, int64_t batchStride, int64_t elementBytes,
                   const Layout &layout) {
  const auto fits = [&](int64_t stride) {
    return stride * elementBytes % engineBytes == 0 && stride * elementBytes < longestPitch;
  };
  return layout.alignment % engineBytes == 0 && fits(pitch) && (batch == 1 || fits(batchStride));
}

/// Extents of 1 have any stride. A single column of neighbouring rows counts as column-major, where
/// that is taken: as rows they would start anywhere.
struct Matrix {
  int64_t rows, rowStride, columns, columnStride;
  bool mayBeColumnMajor = true;

  bool isColumn() const { return mayBeColumnMajor && columns == 1 && rowStride == 1 && rows > 1; }
  bool isRowMajor() const {
    return !isColumn() && (columns == 1 || columnStride == 1) &&
           (rows == 1 || rowStride >= columns);
  }
  bool isColumnMajor() const {
    return (rows == 1 || rowStride == 1) && (columns == 1 || columnStride >= rows);
  }
};

/// Rows along the outer axis, columns along k.
std::optional<GemmOperand> operandOf(const Matrix &matrix, int64_t elementBytes) {
  GemmOperand operand;
  const int64_t unit = engineBytes / elementBytes;
  if (matrix.isRowMajor()) {
    operand.k = 1;
    operand.outer =
        matrix.rows == 1 ? std::max(roundedUp(matrix.columns, unit), unit) : matrix.rowStride;
  } else if (matrix.mayBeColumnMajor && matrix.isColumnMajor()) {
    operand.outer = 1;
    operand.k = matrix.columns == 1 ? roundedUp(matrix.rows, unit) : matrix.columnStride;
  } else {
    return std::nullopt;
  }
  return operand;
}

Expected<GemmProblem, Reason> problemOf(const Kernel &kernel, const Configuration &configuration,
                                        bool takesEveryOrder) {
  const auto shape = stridedBatchedGemm(kernel, configuration);
  if (!shape) return rejected("the layouts map to no batched strided GEMM");
  if (std::min({shape->batch, shape->m, shape->n, shape->k}) < 1)
    return rejected("an extent is less than 1");
  if (std::max({shape->batch, shape->m, shape->n, shape->k}) > mostElements)
    return rejected(fmt::format("an extent is more than {}", mostElements));
  const GemmInputs inputs = gemmInputs(kernel);
  const GemmTypes types = gemmTypes(kernel);
  const int64_t bytes = sizeOf(types.a), bytesC = sizeOf(types.c);
  const Matrix c{shape->m, shape->strideCm, shape->n, shape->strideCn};
  GemmProblem gemm{.isSwapped = !c.isRowMajor(),
                   .batch = shape->batch,
                   .m = shape->m,
                   .n = shape->n,
                   .k = shape->k};
  gemm.operandType = types.a;
  gemm.sumsTokens = summedTokens(kernel).has_value();
  if (gemm.isSwapped && !c.isColumnMajor())
    return rejected("the result is contiguous along neither of its axes");
  const bool takesOuter = !types.areFloat8() && (!types.areTf32() || takesEveryOrder);
  const auto a =
      operandOf({shape->m, shape->strideAm, shape->k, shape->strideAk, takesOuter}, bytes);
  const auto b =
      operandOf({shape->n, shape->strideBn, shape->k, shape->strideBk, takesOuter}, bytes);
  if ((!a || !b) && !takesOuter)
    return rejected(
        fmt::format("operand {} is not contiguous along k; WGMMA takes {} in no other order",
                    a ? "B" : "A", nameOf(a ? types.b : types.a)));
  if (!a || !b)
    return rejected(
        fmt::format("operand {} is contiguous along neither of its axes", a ? "B" : "A"));
  gemm.a = *a, gemm.b = *b;
  gemm.a.input = inputs.a, gemm.b.input = inputs.b;
  gemm.a.batch = shape->batchStrideA, gemm.b.batch = shape->batchStrideB;
  if (gemm.isSwapped) std::swap(gemm.a, gemm.b), std::swap(gemm.m, gemm.n);
  gemm.strideCm = gemm.isSwapped ? shape->strideCn : shape->strideCm;
  if (gemm.m == 1) gemm.strideCm = roundedUp(gemm.n, engineBytes / bytesC);
  gemm.batchStrideC = shape->batchStrideC;
  if (gemm.batch == 1) gemm.a.batch = gemm.b.batch = gemm.batchStrideC = 0;
  else if (gemm.batchStrideC < 1) return rejected("the batch elements write one matrix");
  const std::vector<ValueId> &read = kernel.body[*contractionIndex(kernel)].operands;
  for (GemmOperand *operand : {&gemm.a, &gemm.b}) {
    const ValueId value = kernel.inputs[operand->input];
    operand->isTransformed = read[operand->input == inputs.a ? 0 : 1] != value;
    operand->usesTma = sizeOf(kernel.values[size_t(value)].dtype) == bytes &&
                       areWholeUnits(operand->pitch(), gemm.batch, operand->batch, bytes,
                                     configuration.inputs[operand->input]);
  }
  gemm.usesTma = bytesC == 2 && areWholeUnits(gemm.strideCm, gemm.batch, gemm.batchStrideC, bytesC,
                                              configuration.outputs[0]);
  return gemm;
}

}  // namespace

Expected<GemmProblem, Reason> gemmProblem(const Kernel &kernel, const Configuration &configuration,
                                          bool takesEveryOrder) {
  thread_local LastLayouts<Expected<GemmProblem, Reason>, bool> last;
  return last.of([&] { return problemOf(kernel, configuration, takesEveryOrder); }, kernel,
                 configuration, takesEveryOrder);
}

}  // namespace weft
