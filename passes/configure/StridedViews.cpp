// Which kernels accept strided views, and at what price; see StridedViews.h.
#include "passes/configure/StridedViews.h"

#include "kernel/StridedBatchedGemm.h"
#include "passes/configure/Family.h"

#include <fmt/format.h>

#include <algorithm>

namespace weft {
namespace {

/// Dimensions of extent above 1, slowest first.
std::vector<int> dimensionsInOrder(const Layout &layout, const std::vector<int64_t> &extents) {
  std::vector<int> order = layout.order;
  std::erase_if(order, [&](int dimension) { return extents[static_cast<size_t>(dimension)] == 1; });
  return order;
}

/// Calls `visit` for neighbours in memory that do not merge into one axis: (slower, faster)
/// dimension.
/// False if it returned false.
template <typename Visit>
bool forEachStridedAxis(const Layout &layout, const std::vector<int64_t> &extents, Visit &&visit) {
  if (layout.strides.empty()) return true;
  const std::vector<int> order = dimensionsInOrder(layout, extents);
  for (size_t i = 0; i + 1 < order.size(); ++i) {
    const auto slower = static_cast<size_t>(order[i]), faster = static_cast<size_t>(order[i + 1]);
    if (layout.strides[slower] != layout.strides[faster] * extents[faster] &&
        !visit(order[i], order[i + 1]))
      return false;
  }
  return true;
}

/// Forward, or backward: probabilities computed again between several contractions.
bool isFusedAttention(const Kernel &kernel) {
  const auto countOf = [&](OpKind kind) {
    return std::ranges::count(kernel.body, kind, &BodyOp::kind);
  };
  return countOf(OpKind::onlineSoftmaxContract) > 0 ||
         (countOf(OpKind::softmaxFromLogSums) > 0 && countOf(OpKind::contract) > 1);
}

/// Fused attention moves rows of heads, wherever each begins: neighbouring elements, rows at
/// multiples of 16 bytes.
std::string attentionViewRejection(const Layout &layout, const std::vector<int64_t> &extents,
                                   int64_t elementBytes) {
  constexpr int64_t rowBytes = 16;
  const std::vector<int> order = dimensionsInOrder(layout, extents);
  for (size_t i = 0; i < order.size(); ++i) {
    const int64_t stride = layout.strides[static_cast<size_t>(order[i])];
    if (i + 1 == order.size() ? stride != 1 : stride * elementBytes % rowBytes != 0)
      return fmt::format(
          "a fused attention reads or writes rows that start at multiples of {} "
          "bytes",
          rowBytes);
  }
  return "";
}

template <typename Visit>
void forEachOperand(const Kernel &kernel, Configuration &configuration, Visit &&visit) {
  for (size_t i = 0; i < configuration.inputs.size(); ++i)
    visit(kernel.inputs[i], configuration.inputs[i]);
  for (size_t i = 0; i < configuration.outputs.size(); ++i)
    visit(kernel.outputs[i], configuration.outputs[i]);
}

}  // namespace

bool hasStridedView(const Layout &layout, const std::vector<int64_t> &extents) {
  return !forEachStridedAxis(layout, extents, [](int, int) { return false; });
}

bool hasStridedView(const Kernel &kernel, const Configuration &configuration) {
  bool found = false;
  Configuration copy = configuration;
  forEachOperand(kernel, copy, [&](ValueId value, const Layout &layout) {
    found = found || hasStridedView(layout, extentsOf(kernel, value));
  });
  return found;
}

int64_t spanBytes(const Kernel &kernel, ValueId value, const Layout &layout) {
  const std::vector<int64_t> extents = extentsOf(kernel, value),
                             strides = stridesOf(layout, extents);
  int64_t last = 0;
  for (size_t d = 0; d < extents.size(); ++d) last += (extents[d] - 1) * strides[d];
  return (last + 1) * sizeOf(kernel.values[static_cast<size_t>(value)].dtype);
}

bool mayBeView(OpKind kind) {
  switch (kind) {
    case OpKind::slice:
    case OpKind::concat:
    case OpKind::splitAxis:
    case OpKind::mergeAxes:
    case OpKind::transpose:
    case OpKind::identity: return true;
    default: return false;
  }
}

std::string stridedViewRejection(const Kernel &kernel, size_t operand, const Layout &layout) {
  const ValueId value = operandValues(kernel)[operand];
  const std::vector<int64_t> extents = extentsOf(kernel, value);
  if (!hasStridedView(layout, extents)) return "";
  const BodyOp &first = kernel.body.front();
  if (kernel.body.size() == 1 && mayBeView(first.kind))
    return fmt::format("'{}' may be a view itself", nameOf(first.kind));
  if (isFusedAttention(kernel))
    return attentionViewRejection(layout, extents,
                                  sizeOf(kernel.values[static_cast<size_t>(value)].dtype));
  const auto values = contractionValues(kernel);
  if (!values) return "";
  const auto isOf = [&](const std::vector<ValueId> &some) {
    return std::find(some.begin(), some.end(), value) != some.end();
  };
  const bool isFactor = value == (*values)[0] || value == (*values)[1];
  const OpId contraction = *contractionIndex(kernel);
  for (int op = 0; op < contraction; ++op)
    if (!isFactor && isOf(kernel.body[op].operands)) return "ops before the contraction read it";
  for (int op = contraction + 1; op < std::ssize(kernel.body); ++op)
    if (!isFactor || isOf(kernel.body[op].operands)) return "an epilogue reads or writes it";
  const ContractionGroups groups = contractionGroups(kernel, *values);
  const std::vector<AxisId> &axes = kernel.values[static_cast<size_t>(value)].axes;
  std::string reason;
  forEachStridedAxis(layout, extents, [&](int slower, int faster) {
    const AxisId a = axes[static_cast<size_t>(slower)], b = axes[static_cast<size_t>(faster)];
    const auto holds = [](const std::vector<AxisId> &group, AxisId axis) {
      return std::find(group.begin(), group.end(), axis) != group.end();
    };
    for (const std::vector<AxisId> &group : groups)
      if (holds(group, a) && holds(group, b))
        reason = fmt::format("{} and {} are one axis of the GEMM",
                             kernel.axes[static_cast<size_t>(a)].name,
                             kernel.axes[static_cast<size_t>(b)].name);
    return reason.empty();
  });
  return reason;
}

Configuration asContiguous(const Kernel &kernel, Configuration configuration) {
  forEachOperand(kernel, configuration, [&](ValueId value, Layout &layout) {
    if (hasStridedView(layout, extentsOf(kernel, value))) layout.strides.clear();
  });
  return configuration;
}

Cost costWithStridedViews(const CostModel &model, const Kernel &kernel,
                          const Configuration &configuration) {
  if (!hasStridedView(kernel, configuration)) return model.cost(kernel, configuration);
  for (const PricedConfiguration &row : model.measuredAs(kernel, configuration))
    if (row.configuration.knobs == configuration.knobs) return row.cost;
  Cost cost = model.cost(kernel, asContiguous(kernel, configuration));
  cost.source = Cost().source;  // of another text
  return cost;
}

}  // namespace weft
