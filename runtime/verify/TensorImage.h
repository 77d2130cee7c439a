// A tensor as bytes in one layout, between two margins: what is uploaded before a kernel runs and
// downloaded after it. Every byte that is not an element's is poison (0xff), so that writes beside
// elements are found; elements start as poison, too, which is NaN in every floating type.
#pragma once

#include "kernel/Configuration.h"

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace weft::runtime {

class TensorImage {
public:
  static constexpr std::byte poison{0xff};
  /// Bytes before and behind the elements; a multiple of every alignment that kernels assume.
  static constexpr int64_t margin = 256;

  /// Element zero stands `offset` elements behind the margin.
  TensorImage(DType dtype, std::vector<int64_t> extents, std::vector<int64_t> strides,
              int64_t offset = 0);
  /// A value of a kernel in a layout.
  TensorImage(const Kernel &kernel, ValueId value, const Layout &layout);

  /// Element n of the logical row-major order becomes value(n), rounded to the type. Asked from
  /// several threads where there are more than one.
  void fill(const std::function<double(int64_t n)> &value, int threads = 1);
  double at(std::span<const int64_t> coordinates) const;
  void set(std::span<const int64_t> coordinates, double value);
  /// Elements alone, to and from other memory in the same layout; `memory` starts at element zero.
  void copyTo(std::span<std::byte> memory) const;
  void copyFrom(std::span<const std::byte> memory);
  /// Whether all bytes that are no element's still hold the poison.
  bool intactAround() const;

  std::span<std::byte> bytes() { return storage; }
  std::span<const std::byte> bytes() const { return storage; }
  /// Of element zero from the start of bytes().
  int64_t elementZero() const { return zero; }
  /// Bytes from the first element to behind the last one.
  int64_t spanBytes() const { return int64_t(storage.size()) - margin - zero; }
  int64_t elements() const;
  DType type() const { return dtype; }
  const std::vector<int64_t> &shape() const { return extents; }

private:
  int64_t position(std::span<const int64_t> coordinates) const;
  /// Whether elements fill all bytes between the first and the last.
  bool isDense() const { return elements() * sizeOf(dtype) == spanBytes(); }
  /// Calls visit(byte position) for the elements from `begin` to before `end`, in logical order.
  template <typename Visit>
  void forEachElement(int64_t begin, int64_t end, Visit visit) const;

  DType dtype;
  std::vector<int64_t> extents, strides;
  int64_t zero = margin;  ///< byte of element zero
  std::vector<std::byte> storage;
};

}  // namespace weft::runtime
