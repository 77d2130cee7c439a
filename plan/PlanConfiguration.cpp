// Knobs and layouts between plan.json and configurations; see PlanConfiguration.h.
#include "plan/PlanConfiguration.h"

#include "kernel/Error.h"
#include "kernel/Schedule.h"

#include <algorithm>
#include <bit>
#include <set>

namespace weft {
namespace {

/// Whether the strides are those of some dense order of the axes.
bool isDense(const PlanTensor &tensor) {
  std::vector<std::pair<int64_t, int64_t>>
      dimensions;  // stride, extent; an extent of 1 may have any stride
  for (size_t index = 0; index < tensor.extents.size(); ++index)
    if (tensor.extents[index] != 1)
      dimensions.emplace_back(tensor.strides.at(index), tensor.extents[index]);
  std::sort(dimensions.begin(), dimensions.end());
  int64_t expected = 1;
  for (const auto &[stride, extent] : dimensions) {
    if (stride != expected) return false;
    expected *= extent;
  }
  return true;
}

/// Whether the strides are those of padded rows in some order of the axes.
bool hasPaddedRows(const PlanTensor &tensor) {
  Layout own = rowMajor(tensor.extents.size());
  std::ranges::stable_sort(own.order, std::ranges::greater{},
                           [&](int dimension) { return tensor.strides.at(size_t(dimension)); });
  const auto rows = padded(own, tensor.extents, sizeOf(tensor.dtype));
  if (!rows) return false;
  const std::vector<int64_t> strides = stridesOf(*rows, tensor.extents);
  for (size_t dimension = 0; dimension < strides.size(); ++dimension)
    if (tensor.extents[dimension] > 1 && tensor.strides[dimension] != strides[dimension])
      return false;
  return true;
}

}  // namespace

Layout layoutOf(const PlanTensor &tensor) {
  Layout layout{.order = tensor.order, .strides = {}, .offset = tensor.offset};
  // Strides follow the order, so that editing the order alone is enough; a view's strides are its
  // own.
  if (isDense(tensor)) return layout;
  if (hasPaddedRows(tensor))
    return padded(layout, tensor.extents, sizeOf(tensor.dtype)).value_or(layout);
  layout.strides = tensor.strides;
  return layout;
}

namespace {

/// Plans count offsets from the start of the buffer, configurations of views from the tensor that
/// holds the others.
void countFromWhole(Configuration &configuration) {
  const Layout &whole = configuration.inputs.size() == 1 ? configuration.inputs.front()
                                                         : configuration.outputs.front();
  const int64_t start = whole.offset;
  for (std::vector<Layout> *layouts : {&configuration.inputs, &configuration.outputs})
    for (Layout &layout : *layouts) layout.offset -= start;
}

}  // namespace

Configuration configurationOf(const Plan &plan, const PlanKernel &planKernel,
                              const Kernel &kernel) {
  Configuration configuration{
      .inputs = {},
      .outputs = {},
      .knobs = knobsOf(planKernel.knobs, kernel, "kernel '" + planKernel.name + "'")};
  // Only views are about offsets; every other kernel is given the address of element zero.
  const bool isView = configuration.knobs.isView();
  const auto layout = [&](int tensor) {
    Layout result = layoutOf(plan.tensors.at(size_t(tensor)));
    if (!isView) result.offset = 0;
    return result;
  };
  for (const int tensor : planKernel.inputs) configuration.inputs.push_back(layout(tensor));
  for (const int tensor : planKernel.outputs) configuration.outputs.push_back(layout(tensor));
  if (isView) countFromWhole(configuration);
  return configuration;
}

}  // namespace weft
