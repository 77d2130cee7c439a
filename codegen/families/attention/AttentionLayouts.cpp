// Lists of layouts, shortened where their product is too large; see AttentionLayouts.h.
#include "codegen/families/attention/AttentionLayouts.h"

#include "codegen/families/attention/AttentionProblem.h"
#include "kernel/RecentAnswers.h"
#include "passes/configure/Family.h"

#include <algorithm>
#include <set>

namespace weft {

std::vector<AxisId> longAxes(const Kernel &kernel, ValueId value, const Layout &layout) {
  std::vector<AxisId> axes;
  for (const int dimension : layout.order) {
    const AxisId axis = kernel.values[size_t(value)].axes[size_t(dimension)];
    if (kernel.axes[size_t(axis)].extent > 1) axes.push_back(axis);
  }
  return axes;
}

std::vector<Layout> withFastest(const Kernel &kernel, ValueId value,
                                const std::vector<AxisId> &columns) {
  std::vector<Layout> layouts = distinctLayouts(extentsOf(kernel, value));
  const bool hasLongColumn = std::ranges::any_of(
      columns, [&](AxisId axis) { return kernel.axes[size_t(axis)].extent > 1; });
  if (hasLongColumn)
    std::erase_if(layouts, [&](const Layout &layout) {
      return std::ranges::find(columns, longAxes(kernel, value, layout).back()) == columns.end();
    });
  return layouts;
}

Layout logicalLayout(const Kernel &kernel, ValueId value) {
  const std::vector<int64_t> extents = extentsOf(kernel, value);
  return normalized(rowMajor(extents.size()), extents);
}

Layout plainLayout(const Kernel &kernel, const AttentionRegion &region, ValueId value) {
  const std::vector<AxisId> rows = attentionRowAxes(kernel, region),
                            &axes = kernel.values[size_t(value)].axes;
  Layout layout{.order = {}};
  for (size_t dimension = 0; dimension < axes.size(); ++dimension)
    if (kernel.axes[size_t(axes[dimension])].extent == 1) layout.order.push_back(int(dimension));
  for (const AxisId axis : rows)
    if (const auto found = std::ranges::find(axes, axis); found != axes.end())
      layout.order.push_back(int(found - axes.begin()));
  const bool isOfRows =
      layout.order.size() == axes.size() && longAxes(kernel, value, layout) == rows;
  return isOfRows ? normalized(layout, extentsOf(kernel, value)) : logicalLayout(kernel, value);
}

namespace {

/// Those that are the first one but for one run of axes that is moved.
std::vector<Layout> nearFirst(const Kernel &kernel, ValueId value, const std::vector<Layout> &all) {
  const std::vector<AxisId> logical = longAxes(kernel, value, all.front());
  const std::ptrdiff_t count = std::ptrdiff_t(logical.size());
  std::set<std::vector<AxisId>> near = {logical};
  for (std::ptrdiff_t begin = 0; begin < count; ++begin)
    for (std::ptrdiff_t middle = begin + 1; middle < count; ++middle)
      for (std::ptrdiff_t end = middle + 1; end <= count; ++end) {
        std::vector<AxisId> moved = logical;
        std::rotate(moved.begin() + begin, moved.begin() + middle, moved.begin() + end);
        near.insert(moved);
      }
  std::vector<Layout> layouts = all;
  std::erase_if(layouts, [&](const Layout &layout) {
    return !near.contains(longAxes(kernel, value, layout));
  });
  return layouts;
}

}  // namespace

double combinations(const LayoutChoices &choices) {
  double product = 1;
  for (const std::vector<Layout> &layouts : choices) product *= double(layouts.size());
  return product;
}

bool lieAlike(const std::vector<AxisId> &a, const std::vector<AxisId> &b) {
  const auto shared = [](std::vector<AxisId> axes, const std::vector<AxisId> &with) {
    std::erase_if(axes, [&](AxisId axis) { return std::ranges::find(with, axis) == with.end(); });
    return axes;
  };
  return shared(a, b) == shared(b, a);
}

namespace {

std::vector<LayoutTuple> tuplesOf(const Kernel &kernel, const AttentionRegion &region) {
  const std::vector<ValueId> operands = operandValues(kernel);
  const size_t output =
      kernel.inputs.size() +
      size_t(std::ranges::find(kernel.outputs, region.output) - kernel.outputs.begin());
  LayoutChoices choices;
  for (const ValueId value : operands) {
    const bool isOfValues = value == region.v || value == region.output;
    choices.push_back(withFastest(kernel, value,
                                  isOfValues ? region.valueDim
                                  : value == region.q || value == region.k
                                      ? region.headDim
                                      : std::vector<AxisId>{}));
  }
  const auto isTooLarge = [&] { return combinations(choices) > double(mostAttentionTuples); };
  for (size_t i = operands.size(); i-- > 0 && isTooLarge();)
    if (operands[i] != region.q && operands[i] != region.k && operands[i] != region.v &&
        i != output)
      choices[i] = {plainLayout(kernel, region, operands[i])};
  if (isTooLarge())
    for (const size_t i : {region.qInput, output})
      choices[i] = nearFirst(kernel, operands[i], choices[i]);
  const bool areAlike = isTooLarge();

  std::set<LayoutTuple> tuples;
  LayoutTuple tuple(operands.size());
  const auto visit = [&](const auto &self, size_t operand) -> void {
    if (operand == operands.size()) {
      if (!areAlike || lieAlike(longAxes(kernel, region.k, tuple[region.kInput]),
                                longAxes(kernel, region.v, tuple[region.vInput])))
        tuples.insert(tuple);
      return;
    }
    for (const Layout &layout : choices[operand]) {
      tuple[operand] = layout;
      self(self, operand + 1);
    }
  };
  visit(visit, 0);
  return {tuples.begin(), tuples.end()};
}

}  // namespace

std::vector<LayoutTuple> attentionTuples(const Kernel &kernel, const AttentionRegion &region) {
  thread_local RecentAnswers<std::vector<LayoutTuple>, AttentionRegion> recent;
  return recent.of([&] { return tuplesOf(kernel, region); }, kernel, region);
}

}  // namespace weft
