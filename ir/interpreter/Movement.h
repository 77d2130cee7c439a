// Ops that move elements and compute nothing, and the broadcast that element-wise ops read their
// smaller operands by.
#pragma once

#include "ir/interpreter/Tensor.h"

#include <span>

namespace weft::reference {

/// Dimension d of the result is dimension permutation[d] of x.
TensorValue transpose(const TensorValue &x, std::span<const int64_t> permutation);
TensorValue slice(const TensorValue &x, int64_t axis, int64_t start, int64_t size);
TensorValue concat(std::span<const TensorValue *const> parts, int64_t axis);
/// The same elements in row-major order under another shape: splitting and merging of axes.
TensorValue reshape(const TensorValue &x, Shape shape);
/// Rows of axis 0 of the table: shape of indices, then the rest of the table's. An index out of
/// range gives a row of `outside`.
TensorValue gather(const TensorValue &table, const TensorValue &indices, double outside);
/// Zeros of extent `size` along the axis, with x from `start` on.
TensorValue pad(const TensorValue &x, int64_t axis, int64_t start, int64_t size);
/// Zeros of `shape`, plus every row at its index; rows add in ascending order of position, in the
/// arithmetic type. Indices out of range are left out.
template <typename Real>
TensorValue scatterAdd(const TensorValue &rows, const TensorValue &indices, Shape shape);
/// b spread over `shape`: dimension n of b runs along dimension along[n], every other dimension
/// repeats it.
TensorValue broadcast(const TensorValue &b, std::span<const int64_t> shape,
                      std::span<const int64_t> along);

}  // namespace weft::reference
