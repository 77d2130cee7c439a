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

/// Which inputs of the kernel are A and B: they may stand in another order than the einsum's.
struct ProductInputs {
  size_t a = 0, b = 1;
};
ProductInputs productInputs(const Kernel &kernel);

/// Throws Error(unsupported) naming the kernel and the reason when it is no single product under these layouts.
LibraryProduct libraryProduct(const Kernel &kernel, const Configuration &configuration);

}  // namespace weft
