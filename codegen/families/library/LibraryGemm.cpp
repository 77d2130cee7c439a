// From kernel and layouts to the GEMM that a library is asked for.
#include "codegen/families/library/LibraryGemm.h"

#include "kernel/Error.h"

#include <algorithm>
#include <limits>

namespace weft {
namespace {

/// Unit stride along the first axis, and vectors that do not overlap along the second.
bool hasLeadingDimension(int64_t extent, int64_t stride, int64_t otherExtent, int64_t otherStride) {
  return (extent == 1 || stride == 1) && (otherExtent == 1 || otherStride >= extent);
}

bool isMatrix(int64_t rows, int64_t rowStride, int64_t columns, int64_t columnStride) {
  return hasLeadingDimension(rows, rowStride, columns, columnStride) ||
         hasLeadingDimension(columns, columnStride, rows, rowStride);
}

constexpr int64_t auxiliaryAlignment =
    8;  ///< elements between the rows, and between batch elements (cublasLt.h)

struct Strided {
  int64_t rows, rowStride, columns, columnStride, batchStride;

  Strided transposed() const { return {columns, columnStride, rows, rowStride, batchStride}; }
  bool isColumnMajor() const { return hasLeadingDimension(rows, rowStride, columns, columnStride); }
  /// A single column has no stride between columns: the smallest legal one is taken.
  ColumnMajorMatrix stored() const {
    return {.rows = rows,
            .columns = columns,
            .leadingDimension = columns == 1 ? rows : columnStride,
            .batchStride = batchStride};
  }
};

ColumnMajorMatrix columnMajorOf(const Strided &matrix) {
  if (matrix.isColumnMajor()) return matrix.stored();
  ColumnMajorMatrix stored = matrix.transposed().stored();
  stored.isTransposed = true;
  return stored;
}

}  // namespace

ColumnMajorGemm columnMajor(const StridedBatchedGemm &shape) {
  const bool batched = shape.batch > 1;
  const Strided a{shape.m, shape.strideAm, shape.k, shape.strideAk,
                  batched ? shape.batchStrideA : 0};
  const Strided b{shape.k, shape.strideBk, shape.n, shape.strideBn,
                  batched ? shape.batchStrideB : 0};
  const Strided c{shape.m, shape.strideCm, shape.n, shape.strideCn,
                  batched ? shape.batchStrideC : 0};
  if (c.isColumnMajor())
    return {.left = columnMajorOf(a),
            .right = columnMajorOf(b),
            .result = c.stored(),
            .isSwapped = false};
  return {.left = columnMajorOf(b.transposed()),
          .right = columnMajorOf(a.transposed()),
          .result = c.transposed().stored(),
          .isSwapped = true};
}

namespace {

/// Of a matrix of the result's shape: unit stride where the result has it.
std::string placeRejection(const StridedBatchedGemm &shape, const GroupStrides &strides,
                           std::string_view name) {
  const Strided matrix{shape.m, strides.m, shape.n, strides.n, strides.batch};
  const bool liesAsResult =
      columnMajor(shape).isSwapped ? matrix.transposed().isColumnMajor() : matrix.isColumnMajor();
  return liesAsResult ? ""
                      : fmt::format("the {} is not contiguous along the rows of the result", name);
}

std::string epilogueRejection(const LibraryGemm &gemm) {
  const LibraryEpilogueTraits &traits = traitsOf(gemm.epilogue);
  if (gemm.beta != 0)
    if (std::string reason = placeRejection(gemm.shape, gemm.residual, "residual"); !reason.empty())
      return reason;
  if (traits.writesGradient && gemm.shape.batch > 1) return "a sum over a batch of GEMMs";
  const bool isAlongK = gemm.epilogue == LibraryEpilogue::bgradA
                            ? gemm.shape.strideAm != 1
                            : gemm.epilogue == LibraryEpilogue::bgradB && gemm.shape.strideBn != 1;
  if (isAlongK)
    return "an operand that is summed over k is contiguous along it; the library sums those that "
           "are contiguous along the other axis";
  if (!traits.readsAuxiliary && !traits.writesAuxiliary) return "";
  if (std::string reason = placeRejection(gemm.shape, gemm.auxiliary, "operand of GELU");
      !reason.empty())
    return reason;
  const ColumnMajorMatrix auxiliary = columnMajorBeside(gemm.shape, gemm.auxiliary);
  if (auxiliary.leadingDimension % auxiliaryAlignment != 0 ||
      auxiliary.batchStride % auxiliaryAlignment != 0)
    return fmt::format(
        "the operand of GELU has rows of {} elements; the library takes multiples of {}",
        auxiliary.leadingDimension, auxiliaryAlignment);
  return "";
}

}  // namespace

ColumnMajorMatrix columnMajorBeside(const StridedBatchedGemm &shape, const GroupStrides &strides) {
  const Strided matrix{shape.m, strides.m, shape.n, strides.n, shape.batch > 1 ? strides.batch : 0};
  return columnMajor(shape).isSwapped ? matrix.transposed().stored() : matrix.stored();
}

int64_t vectorExtent(const LibraryGemm &gemm) {
  if (gemm.epilogue == LibraryEpilogue::bgradA) return gemm.shape.m;
  if (gemm.epilogue == LibraryEpilogue::bgradB) return gemm.shape.n;
  return columnMajor(gemm.shape).isSwapped ? gemm.shape.n : gemm.shape.m;
}

namespace {

/// Of 8-bit floats the library takes rows of whole 16 bytes along k, and not every pair of formats.
std::string float8Rejection(const LibraryGemm &gemm) {
  constexpr int64_t unit = 16;
  const StridedBatchedGemm &shape = gemm.shape;
  const auto [a, b, c] = gemm.types();
  if (!isFloat8(a) || !isFloat8(b))
    return fmt::format(
        "operands of {} and {}; a result of {} takes two of its type, or two of 8 bits", nameOf(a),
        nameOf(b), nameOf(c));
  if (a == DType::f8e5m2 && b == DType::f8e5m2)
    return "both operands are f8e5m2; the library takes one";
  if (shape.k > 1 && (shape.strideAk != 1 || shape.strideBk != 1))
    return fmt::format(
        "operand {} is not contiguous along k; the library takes 8-bit floats in no other order",
        shape.strideAk == 1 ? "B" : "A");
  const auto areWhole = [](std::initializer_list<int64_t> bytes) {
    return std::ranges::all_of(bytes, [](int64_t one) { return one % unit == 0; });
  };
  const int64_t bytesC = sizeOf(c), pitchC = columnMajor(shape).result.leadingDimension;
  if (!areWhole({shape.k, shape.strideAm, shape.strideBn, shape.batchStrideA, shape.batchStrideB,
                 pitchC * bytesC, shape.batchStrideC * bytesC}))
    return "8-bit floats: k, or rows of an operand or of the result, are no multiple of 16 bytes";
  if (!gemm.isPlain()) return "8-bit floats with an epilogue";
  return "";
}

}  // namespace

std::string libraryRejection(const LibraryGemm &gemm) {
  const StridedBatchedGemm &shape = gemm.shape;
  if (gemm.dtype != DType::f16 && gemm.dtype != DType::bf16 && gemm.dtype != DType::f32)
    return fmt::format("element type {}; f16, bf16 and f32 are taken", nameOf(gemm.dtype));
  if (std::min({shape.batch, shape.m, shape.n, shape.k}) < 1) return "an extent is less than 1";
  if (std::max({shape.batch, shape.m, shape.n, shape.k}) > std::numeric_limits<int32_t>::max())
    return fmt::format("an extent is more than {}", std::numeric_limits<int32_t>::max());
  const auto rejected = [](const char *operand) {
    return fmt::format("operand {} has no unit stride along either axis, or its rows overlap",
                       operand);
  };
  if (!isMatrix(shape.m, shape.strideAm, shape.k, shape.strideAk)) return rejected("A");
  if (!isMatrix(shape.k, shape.strideBk, shape.n, shape.strideBn)) return rejected("B");
  if (!isMatrix(shape.m, shape.strideCm, shape.n, shape.strideCn)) return rejected("C");
  if (shape.batch > 1 && shape.batchStrideC < 1) return "the batch elements write one matrix";
  if (gemm.types().areTf32() && gemm.dtype != DType::f32)
    return fmt::format("a result of {} of tf32 operands; the library stores f32 alone",
                       nameOf(gemm.dtype));
  if (gemm.operands && !gemm.types().areTf32()) return float8Rejection(gemm);
  return epilogueRejection(gemm);
}

namespace {

/// Whether rows start at multiples of what the library's better kernels need; the unit stride
/// itself is no pitch.
bool hasAlignedRows(const LibraryGemm &gemm) {
  constexpr int64_t bytes = 16;
  const StridedBatchedGemm &shape = gemm.shape;
  const auto isAligned = [&](int64_t stride) {
    return stride <= 1 || stride * sizeOf(gemm.dtype) % bytes == 0;
  };
  return std::ranges::all_of(
      std::initializer_list<int64_t>{shape.strideAm, shape.strideAk, shape.batchStrideA,
                                     shape.strideBk, shape.strideBn, shape.batchStrideB,
                                     shape.strideCm, shape.strideCn, shape.batchStrideC,
                                     gemm.residual.m, gemm.residual.n, gemm.residual.batch},
      isAligned);
}

}  // namespace

std::string precisionRejection(const LibraryGemm &gemm) {
  const LibraryEpilogueTraits &traits = traitsOf(gemm.epilogue);
  if (traits.readsAuxiliary)
    return "the library rounds the GEMM before it applies the derivative of GELU";
  if (traits.writesAuxiliary || gemm.epilogue == LibraryEpilogue::gelu ||
      gemm.epilogue == LibraryEpilogue::geluBias)
    return "the library's GELU takes the hardware's tanh: its tails are off by up to 2^-12 of the "
           "operand";
  const bool addsTwice =
      traits.readsBias || (gemm.beta != 0 && gemm.epilogue != LibraryEpilogue::none);
  if (addsTwice && !hasAlignedRows(gemm))
    return "the library rounds the GEMM before its epilogue where rows do not start at "
           "multiples of 16 bytes";
  return "";
}

namespace {

/// Why the values of a kernel are not of one element type, but for operands of 8-bit floats; empty
/// if they are.
std::string typeRejection(const Kernel &kernel) {
  const DType type = kernel.values[size_t(kernel.outputs.at(0))].dtype;
  const bool areFloat8 = gemmTypes(kernel).areFloat8();
  const auto rejectionOf = [&](ValueId value) {
    const Value &other = kernel.values[size_t(value)];
    const bool isOperand =
        std::ranges::find(kernel.body[0].operands, value) != kernel.body[0].operands.end();
    if (other.dtype == type || (areFloat8 && isOperand)) return std::string();
    return fmt::format("'{}' is {}, the result {}; a library GEMM has one element type", other.name,
                       nameOf(other.dtype), nameOf(type));
  };
  for (const std::vector<ValueId> *values : {&kernel.inputs, &kernel.outputs})
    for (const ValueId value : *values)
      if (std::string rejection = rejectionOf(value); !rejection.empty()) return rejection;
  return "";
}

/// Derives the epilogue's tensors from their layouts.
class Placement {
public:
  Placement(const Kernel &kernel, const LibraryForm &form, const Configuration &configuration)
      : kernel(kernel), form(form), configuration(configuration) {}

  Expected<LibraryGemm, Reason> answer() {
    if (std::string rejection = typeRejection(kernel); !rejection.empty())
      return rejected(std::move(rejection));
    const auto shape = stridedBatchedGemm(kernel, configuration);
    if (!shape) return rejected("its layouts map to no batched strided GEMM");
    gemm = {.shape = *shape,
            .dtype = kernel.values[size_t(form.result)].dtype,
            .alpha = form.alpha,
            .epilogue = form.epilogue,
            .beta = form.beta};
    if (const GemmTypes types = gemmTypes(kernel); types.areFloat8() || types.areTf32())
      gemm.setTypes({types.a, types.b, gemm.dtype});
    for (const auto place :
         {&Placement::placeResult, &Placement::placeResidual, &Placement::placeAuxiliary})
      if (!(this->*place)())
        return rejected("a tensor of the epilogue does not lie as the GEMM's axes do");
    if (std::string rejection = libraryRejection(gemm); !rejection.empty())
      return rejected(std::move(rejection));
    for (const ValueId vector : {form.bias, form.gradient})
      if (std::string rejection = vectorRejection(vector); !rejection.empty())
        return rejected(std::move(rejection));
    return gemm;
  }

private:
  const Layout &layoutOf(ValueId value) const {
    const auto input = std::ranges::find(kernel.inputs, value);
    if (input != kernel.inputs.end())
      return configuration.inputs.at(size_t(input - kernel.inputs.begin()));
    return configuration.outputs.at(
        size_t(std::ranges::find(kernel.outputs, value) - kernel.outputs.begin()));
  }
  std::optional<GroupStrides> stridesOfValue(ValueId value) const {
    return groupStrides(kernel, configuration, value, layoutOf(value));
  }

  /// stridedBatchedGemm() takes the first output for the result.
  bool placeResult() {
    if (form.result == kernel.outputs[0]) return true;
    const auto strides = stridesOfValue(form.result);
    if (!strides) return false;
    gemm.shape.batchStrideC = strides->batch;
    gemm.shape.strideCm = strides->m;
    gemm.shape.strideCn = strides->n;
    return true;
  }
  bool placeResidual() { return form.residual < 0 || place(form.residual, gemm.residual); }
  bool placeAuxiliary() { return form.auxiliary < 0 || place(form.auxiliary, gemm.auxiliary); }
  bool place(ValueId value, GroupStrides &strides) {
    const auto found = stridesOfValue(value);
    if (found) strides = *found;
    return found.has_value();
  }

  /// Vectors are packed; but for sums of an operand they run along the rows of the result.
  std::string vectorRejection(ValueId value) const {
    if (value < 0) return "";
    const auto strides = stridesOfValue(value);
    if (!strides)
      return fmt::format("'{}' does not lie as the GEMM's axes do",
                         kernel.values[size_t(value)].name);
    const bool isOfOperand =
        form.epilogue == LibraryEpilogue::bgradA || form.epilogue == LibraryEpilogue::bgradB;
    const bool isAlongN =
        isOfOperand ? form.epilogue == LibraryEpilogue::bgradB : columnMajor(gemm.shape).isSwapped;
    const int64_t stride = isAlongN ? strides->n : strides->m;
    if (stride == 1 && strides->batch == 0 && (isAlongN ? strides->m : strides->n) == 0) return "";
    return fmt::format("'{}' does not run along the axis in which the result is contiguous",
                       kernel.values[size_t(value)].name);
  }

  const Kernel &kernel;
  const LibraryForm &form;
  const Configuration &configuration;
  LibraryGemm gemm;
};

}  // namespace

Expected<LibraryGemm, Reason> asLibraryGemm(const Kernel &kernel, const LibraryForm &form,
                                            const Configuration &configuration) {
  return Placement(kernel, form, configuration).answer();
}

LibraryGemm libraryGemm(const Kernel &kernel, const Configuration &configuration) {
  const Expected<LibraryForm, Reason> form = libraryForm(kernel);
  if (!form)
    throw Error::unsupported("kernel '{}': no library GEMM: {}", kernel.name, form.error().text);
  const Expected<LibraryGemm, Reason> answer = asLibraryGemm(kernel, *form, configuration);
  const std::string rejection = answer ? precisionRejection(*answer) : answer.error().text;
  if (!rejection.empty())
    throw Error::unsupported("kernel '{}': no library GEMM: {}", kernel.name, rejection);
  return *answer;
}

}  // namespace weft
