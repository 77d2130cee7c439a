// A configuration: a layout for every operand and result of a kernel, plus the knobs of one kernel
// family. Plain data, compared member by member, printed one way; the plan stores exactly this.
#pragma once

#include "kernel/Kernel.h"
#include "kernel/Knobs.h"

#include <span>
#include <string>
#include <vector>

namespace weft {

/// Where the elements of one tensor lie. `order` lists dimension positions of the value (not kernel
/// axes), slowest first. Dense unless `strides` is given (elements, one per dimension in logical
/// order; a view of a stacked tensor).
struct Layout {
  std::vector<int> order;
  std::vector<int64_t> strides = {};
  int64_t offset = 0;      ///< elements from the start of the buffer
  int64_t alignment = 16;  ///< bytes that the address of element zero is known to be a multiple of
  bool operator==(const Layout &) const = default;
  auto operator<=>(const Layout &) const = default;
};

/// Identity order, dense.
Layout rowMajor(size_t rank);
/// Element strides per dimension in logical order, given the extents per dimension in logical
/// order.
std::vector<int64_t> stridesOf(const Layout &layout, const std::vector<int64_t> &extents);
/// The axis names in layout order: "h,b,j,k" (single letters are joined without commas: "hbjk").
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
