// One contraction as a library is asked for it: a batched strided matrix product whose operands have a unit stride along one
// of their two axes, one element type, and a factor. Derived from kernel + configuration, stored in the plan, run without
// either.
#pragma once

#include "kernel/MatrixProduct.h"

#include <optional>
#include <string>

namespace weft {

/// C = alpha A B for every member of the batch; A is m x k, B k x n, C m x n, accumulated in fp32.
struct LibraryProduct {
  MatrixProduct shape;
  DType dtype = DType::f32;  ///< of A, B and C
  double alpha = 1;          ///< `scale` of the contraction
  bool operator==(const LibraryProduct &) const = default;
};

/// Why a library that takes one leading dimension an operand cannot compute it; empty if it can.
std::string libraryRefusal(const LibraryProduct &product);

/// Throws Error(unsupported) naming the kernel and the reason when it is no single product under these layouts.
LibraryProduct libraryProduct(const Kernel &kernel, const Configuration &configuration);

/// A matrix as BLAS describes it: column-major `rows` x `columns`, columns `leadingDimension` apart, read transposed or not.
struct ColumnMajorMatrix {
  int64_t rows = 0, columns = 0, leadingDimension = 0, batchStride = 0;
  bool isTransposed = false;
  bool operator==(const ColumnMajorMatrix &) const = default;
};
/// The same product in BLAS's terms: result = left right, with a result that is never transposed. Where C is row-major,
/// C^T = B^T A^T is computed, and left is B.
struct ColumnMajorProduct {
  ColumnMajorMatrix left, right, result;
  bool isSwapped = false;  ///< left is B and right is A
};
/// Expects a product that is not refused.
ColumnMajorProduct columnMajor(const MatrixProduct &shape);

}  // namespace weft
