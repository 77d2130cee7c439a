// From kernel and layouts to the product that a library is asked for.
#include "kernel/LibraryProduct.h"

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

struct Strided {
  int64_t rows, rowStride, columns, columnStride, batchStride;

  Strided transposed() const { return {columns, columnStride, rows, rowStride, batchStride}; }
  bool isColumnMajor() const { return hasLeadingDimension(rows, rowStride, columns, columnStride); }
  /// A single column has no stride between columns: the smallest legal one is taken.
  ColumnMajorMatrix stored() const {
    return {.rows = rows, .columns = columns, .leadingDimension = columns == 1 ? rows : columnStride, .batchStride = batchStride};
  }
};

ColumnMajorMatrix columnMajorOf(const Strided &matrix) {
  if (matrix.isColumnMajor()) return matrix.stored();
  ColumnMajorMatrix stored = matrix.transposed().stored();
  stored.isTransposed = true;
  return stored;
}

}  // namespace

ColumnMajorProduct columnMajor(const MatrixProduct &shape) {
  const bool batched = shape.batch > 1;
  const Strided a{shape.m, shape.strideAm, shape.k, shape.strideAk, batched ? shape.batchStrideA : 0};
  const Strided b{shape.k, shape.strideBk, shape.n, shape.strideBn, batched ? shape.batchStrideB : 0};
  const Strided c{shape.m, shape.strideCm, shape.n, shape.strideCn, batched ? shape.batchStrideC : 0};
  if (c.isColumnMajor())
    return {.left = columnMajorOf(a), .right = columnMajorOf(b), .result = c.stored(), .isSwapped = false};
  return {.left = columnMajorOf(b.transposed()), .right = columnMajorOf(a.transposed()), .result = c.transposed().stored(),
          .isSwapped = true};
}

std::string libraryRefusal(const LibraryProduct &product) {
  const MatrixProduct &shape = product.shape;
  if (product.dtype != DType::f16 && product.dtype != DType::bf16 && product.dtype != DType::f32)
    return fmt::format("element type {}; f16, bf16 and f32 are taken", nameOf(product.dtype));
  if (std::min({shape.batch, shape.m, shape.n, shape.k}) < 1) return "an extent is less than 1";
  if (std::max({shape.batch, shape.m, shape.n, shape.k}) > std::numeric_limits<int32_t>::max())
    return fmt::format("an extent is more than {}", std::numeric_limits<int32_t>::max());
  const auto refused = [](const char *operand) { return fmt::format("operand {} has no unit stride along either axis, or its rows overlap", operand); };
  if (!isMatrix(shape.m, shape.strideAm, shape.k, shape.strideAk)) return refused("A");
  if (!isMatrix(shape.k, shape.strideBk, shape.n, shape.strideBn)) return refused("B");
  if (!isMatrix(shape.m, shape.strideCm, shape.n, shape.strideCn)) return refused("C");
  if (shape.batch > 1 && shape.batchStrideC < 1) return "the members of the batch write one matrix";
  return "";
}

LibraryProduct libraryProduct(const Kernel &kernel, const Configuration &configuration) {
  const auto values = contractionValues(kernel);
  if (!values || kernel.body.size() != 1)
    throw Error::unsupported("kernel '{}': a library product takes one contraction of two operands and nothing else", kernel.name);
  const auto shape = matrixProduct(kernel, configuration);
  if (!shape) throw Error::unsupported("kernel '{}': its layouts map to no batched strided matrix product", kernel.name);
  const auto scale = kernel.body[0].attributes.find("scale");
  const LibraryProduct product{.shape = *shape,
                               .dtype = kernel.values[(*values)[2]].dtype,
                               .alpha = scale == kernel.body[0].attributes.end() ? 1.0 : std::get<double>(scale->second)};
  for (const int value : *values)
    if (kernel.values[value].dtype != product.dtype)
      throw Error::unsupported("kernel '{}': '{}' is {}, the result {}; a library product has one element type", kernel.name,
                               kernel.values[value].name, nameOf(kernel.values[value].dtype), nameOf(product.dtype));
  if (const std::string reason = libraryRefusal(product); !reason.empty())
    throw Error::unsupported("kernel '{}': no library product: {}", kernel.name, reason);
  return product;
}

}  // namespace weft
