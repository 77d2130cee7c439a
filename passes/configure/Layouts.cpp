// What families share about layouts: which are distinct, and which allow vector accesses.
#include "passes/configure/Family.h"

#include <algorithm>

namespace weft {

std::vector<ValueId> operandValues(const Kernel &kernel) {
  std::vector<ValueId> values = kernel.inputs;
  values.insert(values.end(), kernel.outputs.begin(), kernel.outputs.end());
  return values;
}

Layout normalized(const Layout &layout, const std::vector<int64_t> &extents) {
  Layout result = layout;
  std::stable_partition(result.order.begin(), result.order.end(),
                        [&](int dimension) { return extents[dimension] == 1; });
  const auto large = std::find_if(result.order.begin(), result.order.end(),
                                  [&](int dimension) { return extents[dimension] > 1; });
  std::sort(result.order.begin(), large);
  return result;
}

std::vector<Layout> distinctLayouts(const std::vector<int64_t> &extents) {
  Layout layout = normalized(rowMajor(extents.size()), extents);
  const auto large = std::find_if(layout.order.begin(), layout.order.end(),
                                  [&](int dimension) { return extents[dimension] > 1; });
  std::vector<Layout> layouts;
  if (layout.order.end() - large <= mostPermuted) {
    do layouts.push_back(layout);
    while (std::next_permutation(large, layout.order.end()));
    return layouts;
  }
  // Many axes: those orders that differ from the logical one by one run of neighbours that stands
  // elsewhere.
  const Layout logical = layout;
  const auto first = large - layout.order.begin(), count = layout.order.end() - large;
  layouts.push_back(logical);
  for (std::ptrdiff_t begin = 0; begin < count; ++begin)
    for (std::ptrdiff_t middle = begin + 1; middle < count; ++middle)
      for (std::ptrdiff_t end = middle + 1; end <= count; ++end) {
        layout = logical;
        const auto at = [&](std::ptrdiff_t place) { return layout.order.begin() + first + place; };
        std::rotate(at(begin), at(middle), at(end));
        layouts.push_back(layout);
      }
  std::sort(layouts.begin(), layouts.end());
  return layouts;
}

std::optional<Layout> paddedLayout(const Kernel &kernel, ValueId value, const Layout &layout) {
  return padded(layout, extentsOf(kernel, value), sizeOf(kernel.values[size_t(value)].dtype));
}

std::vector<Layout> distinctAndPaddedLayouts(const Kernel &kernel, ValueId value) {
  const std::vector<Layout> layouts = distinctLayouts(extentsOf(kernel, value));
  std::vector<Layout> all = layouts;
  for (const Layout &layout : layouts)
    if (std::optional<Layout> own = paddedLayout(kernel, value, layout))
      all.push_back(*std::move(own));
  std::sort(all.begin(), all.end());
  return all;
}

double countLayouts(const std::vector<int64_t> &extents) {
  double count = 1;
  for (int64_t n =
           std::count_if(extents.begin(), extents.end(), [](int64_t extent) { return extent > 1; });
       n > 1; --n)
    count *= static_cast<double>(n);
  return count;
}

bool isVectorAccessed(const Kernel &kernel, ValueId value, const Layout &layout, AxisId axis,
                      int width) {
  const std::vector<AxisId> &axes = kernel.values[value].axes;
  const std::vector<int64_t> extents = extentsOf(kernel, value),
                             strides = stridesOf(layout, extents);
  const int64_t size = sizeOf(kernel.values[value].dtype),
                whole = std::min<int64_t>(width, maximumAccessBytes / size);
  if (layout.offset % whole != 0 || layout.alignment < whole * size) return false;
  bool isFastest = false;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] == axis) isFastest = strides[i] == 1;
    else if (extents[i] > 1 && strides[i] % whole != 0) return false;
  }
  return isFastest;
}

}  // namespace weft
