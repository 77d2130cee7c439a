// A configuration: a layout for every operand and result of a kernel, plus the knobs of one kernel
// family. Plain data, compared member by member, printed one way; the plan stores exactly this.
#pragma once
#ifndef WEFT_KERNEL_CONFIGURATION_H  // beside a precompiled header of a compiler cache
#define WEFT_KERNEL_CONFIGURATION_H

#include "kernel/Kernel.h"
#include "kernel/Knobs.h"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace weft {

/// Where the elements of one tensor lie. `order` lists dimension positions of the value (not kernel
/// axes), slowest first. Dense unless `strides` is given (elements, one per dimension in logical
/// order; a view of a stacked tensor), or `pitchUnit`: then its rows are padded.
struct Layout {
  std::vector<int> order;
  std::vector<int64_t> strides = {};
  int64_t offset = 0;      ///< elements from the start of the buffer
  int64_t alignment = 16;  ///< bytes that the address of element zero is known to be a multiple of
  /// Rows, which run along the fastest dimension longer than 1, start at multiples of so many
  /// elements. What lies between them is never read as data. Without meaning where `strides` is
  /// given.
  int64_t pitchUnit = 1;
  bool isPadded() const { return pitchUnit > 1 && strides.empty(); }
  /// Whether its strides are the products of extents.
  bool isDense() const { return pitchUnit == 1 && strides.empty(); }
  bool operator==(const Layout &) const = default;
  auto operator<=>(const Layout &) const = default;
};

/// Identity order, dense.
Layout rowMajor(size_t rank);
/// Element strides per dimension in logical order, given the extents per dimension in logical
/// order.
std::vector<int64_t> stridesOf(const Layout &layout, const std::vector<int64_t> &extents);
/// The same layout with padded rows: they start at multiples of 128 bytes, or of 16 where the
/// padding would take more than a 32nd of the memory. Nothing where rows start at multiples of 16
/// bytes anyway, where there is one row, or where the padding would take more than an eighth.
std::optional<Layout> padded(const Layout &layout, const std::vector<int64_t> &extents,
                             int64_t elementBytes);
/// Elements from a row to the next of a layout with padded rows.
std::optional<int64_t> pitchOf(const Layout &layout, const std::vector<int64_t> &extents);
/// The axis names in layout order: "h,b,j,k" (single letters are joined without commas: "hbjk").
/// Of padded rows also the elements from one to the next: "bjf:9920".
std::string print(const Layout &layout, const Kernel &kernel, const Value &value);
/// All rank! dense layouts, in lexicographic order.
std::vector<Layout> allDenseLayouts(size_t rank);

struct Configuration {
  std::vector<Layout> inputs = {};   ///< one per Kernel::inputs
  std::vector<Layout> outputs = {};  ///< one per Kernel::outputs
  Knobs knobs;
  auto operator<=>(const Configuration &) const = default;
};

/// Readable and unambiguous: "vector 8 x f16 along i, one warp a row, 4 rows a block".
std::string describe(const Kernel &kernel, const Knobs &knobs);

/// The full key text of kernel + configuration + target: canonical body, extents, dtypes, layouts
/// after merging adjacent axes, knobs, architecture. What the cubin cache and the profile store
/// hash.
std::string canonicalText(const Kernel &kernel, const Configuration &configuration,
                          std::string_view architecture);

}  // namespace weft

#endif  // WEFT_KERNEL_CONFIGURATION_H
