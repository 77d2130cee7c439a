// Strides and offsets from one set of extents to another; see ScaledTensors.h.
#include "tools/driver/ScaledTensors.h"

#include "kernel/Configuration.h"
#include "kernel/Error.h"
#include "plan/PlanConfiguration.h"
#include "plan/PlanMemory.h"
#include "plan/TensorLayout.h"

#include <algorithm>
#include <numeric>
#include <optional>

namespace weft::driver {
namespace {

/// Along an axis of one element no stride is ever taken.
bool isDense(const PlanTensor &tensor) {
  const std::vector<int64_t> dense = stridesOf(Layout{.order = tensor.order}, tensor.extents);
  for (size_t dimension = 0; dimension < dense.size(); ++dimension)
    if (tensor.extents[dimension] > 1 && tensor.strides[dimension] != dense[dimension])
      return false;
  return true;
}

/// Whether the tensor's elements lie in its order from the beginning of its buffer, dense or with
/// padded rows.
bool isWhole(const PlanTensor &tensor) {
  return tensor.offset == 0 && (isDense(tensor) || layoutOf(tensor).isPadded());
}

/// Of a whole tensor with other extents. Rows that were padded are padded where they still can be.
std::vector<int64_t> wholeStrides(const PlanTensor &old, const std::vector<int64_t> &extents) {
  const Layout dense{.order = old.order};
  if (isDense(old)) return stridesOf(dense, extents);
  return stridesOf(padded(dense, extents, sizeOf(old.dtype)).value_or(dense), extents);
}

/// A whole tensor before and after, by which the views in its buffer are scaled.
class Whole {
public:
  Whole(const PlanTensor &before, std::vector<int64_t> extents)
      : before(before),
        extents(std::move(extents)),
        strides(wholeStrides(before, this->extents)),
        dimensions(before.extents.size()) {
    std::iota(dimensions.begin(), dimensions.end(), size_t(0));
    std::erase_if(dimensions, [&](size_t d) { return before.extents[d] == 1; });
    std::ranges::sort(dimensions,
                      [&](size_t a, size_t b) { return before.strides[a] > before.strides[b]; });
  }

  /// A stride of a view is that of one of the whole's axes, or, of an axis that the view has in
  /// pieces, so many of it as a piece has.
  /// `after`: the view's extents.
  int64_t stride(size_t dimension, const PlanTensor &view,
                 const std::vector<int64_t> &after) const {
    for (const size_t d : dimensions) {
      const int64_t piece = view.strides[dimension] / before.strides[d];
      if (piece < 1) continue;
      if (piece == 1 || view.extents[dimension] == 1) return piece * strides[d];
      for (size_t inner = 0; inner < view.extents.size(); ++inner)
        if (view.strides[inner] == before.strides[d] && view.extents[inner] == piece)
          return after[inner] * strides[d];
      return scaled(piece, d, view) * strides[d];
    }
    return view.strides[dimension];
  }
  /// `after`: the view's extents. The last part of an axis stays last, as of slices.
  int64_t offset(const PlanTensor &view, const std::vector<int64_t> &after) const {
    int64_t result = 0, offset = view.offset;
    for (const size_t d : dimensions) {
      const int64_t index = offset / before.strides[d];
      offset %= before.strides[d];
      const std::optional<size_t> own = index == 0 ? std::nullopt : lastPartOf(view, d, index);
      result += (own ? extents[d] - after[*own] : scaled(index, d, view)) * strides[d];
    }
    return result;
  }

private:
  /// The view's dimension that is the last part of the whole's, from `index` on.
  std::optional<size_t> lastPartOf(const PlanTensor &view, size_t dimension, int64_t index) const {
    for (size_t own = 0; own < view.extents.size(); ++own)
      if (view.strides[own] == before.strides[dimension] && view.extents[own] > 1 &&
          index + view.extents[own] == before.extents[dimension])
        return own;
    return std::nullopt;
  }
  int64_t scaled(int64_t index, size_t dimension, const PlanTensor &view) const {
    const int64_t from = before.extents[dimension], to = extents[dimension];
    if (index * to % from != 0)
      throw Error::unsupported(
          "view '{}' begins or steps by {} of the {} along axis {} of '{}', which is no whole part "
          "of {}",
          view.name, index, from, before.axes[dimension], before.name, to);
    return index * to / from;
  }

  const PlanTensor &before;
  std::vector<int64_t> extents, strides;
  std::vector<size_t> dimensions;  ///< of more than one element, slowest first
};

/// The tensor that the view is part of: the largest of its buffer.
const PlanTensor &wholeOf(const PlanTensor &view, const std::vector<PlanTensor> &tensors) {
  const PlanTensor *whole = nullptr;
  for (const PlanTensor &one : tensors)
    if (one.buffer == view.buffer && one.dtype == view.dtype && isWhole(one) &&
        (!whole || one.bytes > whole->bytes))
      whole = &one;
  if (!whole || spanBytes(*whole) < view.offset * elementBytes(view) + spanBytes(view))
    throw Error::unsupported("view '{}' is part of no tensor that the plan names", view.name);
  return *whole;
}

/// Offsets stay, so that what shared memory does where it can; a smaller result may be too small
/// for what lay in it.
void keepMemoryPlan(Plan &plan) {
  const std::vector<BufferAllocation> memoryPlan = std::exchange(plan.memoryPlan, {});
  const PlanMemory sizes(plan);
  for (const BufferAllocation &placement : memoryPlan) {
    const int64_t end = placement.offset + sizes.buffers()[size_t(placement.buffer)].bytes;
    const bool fits = placement.in.isWorkspace() ||
                      end <= spanBytes(plan.tensors.at(size_t(placement.in.result)));
    if (fits) plan.memoryPlan.push_back(placement);
  }
}

}  // namespace

void scaleTensors(Plan &plan, const TensorExtents &extents) {
  const std::vector<PlanTensor> before = plan.tensors;
  for (size_t index = 0; index < before.size(); ++index) {
    const PlanTensor &old = before[index];
    PlanTensor &tensor = plan.tensors[index];
    tensor.extents = extents[index];
    tensor.bytes = logicalBytes(tensor);
    if (isWhole(old)) {
      tensor.strides = wholeStrides(old, tensor.extents);
      continue;
    }
    const PlanTensor &all = wholeOf(old, before);
    const Whole whole(all, extents[size_t(&all - before.data())]);
    for (size_t d = 0; d < tensor.strides.size(); ++d)
      tensor.strides[d] = whole.stride(d, old, tensor.extents);
    tensor.offset = whole.offset(old, tensor.extents);
  }
  keepMemoryPlan(plan);
}

}  // namespace weft::driver
