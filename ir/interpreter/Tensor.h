// A dense tensor of the reference interpreter and the index arithmetic that every routine shares.
// No MLIR here: the numeric routines, their tests and the kernel emulation use it alone. Invariant:
// elements.size() is the product of shape.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace weft {

/// A dense tensor in logical row-major order. Values are kept as double (exact for every element
/// type we store).
struct TensorValue {
  std::vector<int64_t> shape;
  std::vector<double> elements;
};

/// Largest |a - b| / (absolute + relative * |b|) over all elements; equal infinities agree.
/// Infinity where a NaN meets anything (also another NaN: it never passes), where an infinity meets
/// a finite value, and where shapes differ.
double distance(const TensorValue &a, const TensorValue &b, double absolute, double relative);

}  // namespace weft

namespace weft::reference {

using Shape = std::vector<int64_t>;

/// The product of the extents; 1 for rank 0.
int64_t elementCount(std::span<const int64_t> shape);
/// Row-major strides in elements.
Shape stridesOf(std::span<const int64_t> shape);
/// A tensor of zeros.
TensorValue zeros(Shape shape);
/// Coordinates of a row-major position.
Shape coordinatesOf(int64_t position, std::span<const int64_t> shape);

/// A tensor seen as [outer][extent][inner] around one axis, which is how everything that works
/// along an axis walks it.
struct AxisView {
  int64_t outer = 1, extent = 1, inner = 1;
  AxisView(std::span<const int64_t> shape, int64_t axis);
  /// Row-major position of (o, e, i).
  int64_t at(int64_t o, int64_t e, int64_t i) const { return (o * extent + e) * inner + i; }
};

/// Visits every row: visit(o, i).
template <typename Visit>
void forEachRow(const AxisView &view, Visit visit) {
  for (int64_t o = 0; o < view.outer; ++o)
    for (int64_t i = 0; i < view.inner; ++i) visit(o, i);
}

/// The shape without the given axes.
Shape withoutAxes(std::span<const int64_t> shape, std::span<const int64_t> axes);

/// One element of a pair in the error measure of distance().
double elementDistance(double a, double b, double absolute, double relative);

}  // namespace weft::reference
