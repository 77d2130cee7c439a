// One contraction as a call of a library: a batched strided GEMM whose operands
// have a unit stride along one of their two axes, one element type (but for operands of 8-bit
// floats, or read as tf32), a factor, and an epilogue. Derived from kernel + configuration, stored
// in the plan, run without either.
//
// Invariant: D, the residual and what GELU is applied to are contiguous along one axis, the rows of
// D in the library's terms, and vectors run along these rows.
#pragma once

#include "codegen/families/library/LibraryEpilogue.h"
#include "kernel/Expected.h"
#include "kernel/StridedBatchedGemm.h"

#include <optional>
#include <string>

namespace weft {

/// D = epilogue(alpha A B + beta R) for every batch element; A is m x k, B k x n, D m x n,
/// accumulated in fp32. D is C of the shape; R, the residual, and the auxiliary tensor are m x n,
/// too.
struct LibraryGemm {
  StridedBatchedGemm shape;
  DType dtype =
      DType::f32;    ///< of all tensors, but for operands that are 8-bit floats or read as tf32
  double alpha = 1;  ///< `scale` of the contraction
  LibraryEpilogue epilogue = LibraryEpilogue::none;
  double beta = 0;                             ///< 0: there is no residual
  GroupStrides residual = {}, auxiliary = {};  ///< where there are such tensors
  /// Of A and B where they are 8-bit floats, or f32 that the library may read as tf32. Without, f32
  /// is multiplied as such.
  struct Operands {
    DType a = DType::f8e4m3, b = DType::f8e4m3;
    bool operator==(const Operands &) const = default;
  };
  std::optional<Operands> operands = {};
  /// Of 8-bit floats: partial sums are promoted to fp32 registers every few MMAs, which takes
  /// longer. Our kernels do not promote.
  bool promotesSums = false;
  bool operator==(const LibraryGemm &) const = default;

  bool isPlain() const { return epilogue == LibraryEpilogue::none && beta == 0; }
  GemmTypes types() const {
    return operands ? GemmTypes{operands->a, operands->b, dtype} : GemmTypes{dtype, dtype, dtype};
  }
  void setTypes(const GemmTypes &types) {
    dtype = types.c;
    operands = types.isUniform() ? std::nullopt : std::optional(Operands{types.a, types.b});
  }
};

/// Why a library that takes one leading dimension an operand cannot compute it; empty if it can.
std::string libraryRejection(const LibraryGemm &gemm);

/// Why the library's result is less precise than that of our kernels, which compute everything in
/// fp32 and round once; empty if it is not. Seen on an H200 with version 13.1
/// (tests/library_epilogues_gpu_test.cpp).
std::string precisionRejection(const LibraryGemm &gemm);

/// The GEMM that a kernel is under its layouts, whatever its precision, or why it is none.
Expected<LibraryGemm, Reason> asLibraryGemm(const Kernel &kernel, const LibraryForm &form,
                                            const Configuration &configuration);
/// Throws Error(unsupported) naming the kernel and the reason when it is no single GEMM under
/// these layouts, or a less precise one.
LibraryGemm libraryGemm(const Kernel &kernel, const Configuration &configuration);

/// A matrix as BLAS describes it: column-major `rows` x `columns`, columns `leadingDimension`
/// apart, read transposed or not.
struct ColumnMajorMatrix {
  int64_t rows = 0, columns = 0, leadingDimension = 0, batchStride = 0;
  bool isTransposed = false;
  bool operator==(const ColumnMajorMatrix &) const = default;
};
/// The same GEMM in BLAS's terms: result = left right, with a result that is never transposed.
/// Where C is row-major, C^T = B^T A^T is computed, and left is B.
struct ColumnMajorGemm {
  ColumnMajorMatrix left, right, result;
  bool isSwapped = false;  ///< left is B and right is A
};
/// Expects a GEMM that is not rejected.
ColumnMajorGemm columnMajor(const StridedBatchedGemm &shape);
/// Another matrix of the result's shape, in the orientation that the result has.
ColumnMajorMatrix columnMajorBeside(const StridedBatchedGemm &shape, const GroupStrides &strides);
/// The extent of vectors of the epilogue: rows of the result, or of what is summed.
int64_t vectorExtent(const LibraryGemm &gemm);

}  // namespace weft
