// Legal layouts of a tensor over all kernels that touch it; see PinAdvice.h.
#include "passes/decide/PinAdvice.h"

#include "passes/configure/Family.h"

#include <algorithm>
#include <set>

namespace weft::decision {
namespace {

constexpr size_t suggestions = 3;

using Orders = std::set<std::vector<int>>;

void addOrders(const std::vector<Layout> &layouts, Orders &orders) {
  for (const Layout &layout : layouts)
    if (layout.strides.empty()) orders.insert(layout.order);
}

/// The orders that a candidate takes its operand (inputs first, then outputs) in.
void addOrders(const select::Candidate &candidate, size_t operand, const Device &device,
               Orders &orders) {
  for (const ConfigurationSpace &space : everySpace(candidate.kernel, device)) {
    if (!space.choices.empty()) addOrders(space.choices[operand], orders);
    for (const LayoutTuple &tuple : space.tuples) addOrders({tuple[operand]}, orders);
  }
}

/// The orders in which some kernel with the op writes or reads the tensor.
Orders ordersOf(const select::Problem &problem, int op, int tensor, const Device &device) {
  Orders orders;
  for (const select::Candidate &candidate : problem.candidates) {
    if (std::find(candidate.ops.begin(), candidate.ops.end(), op) == candidate.ops.end()) continue;
    for (size_t i = 0; i < candidate.inputs.size(); ++i)
      if (candidate.inputs[i] == tensor) addOrders(candidate, i, device, orders);
    for (size_t i = 0; i < candidate.outputs.size(); ++i)
      if (candidate.outputs[i] == tensor)
        addOrders(candidate, candidate.inputs.size() + i, device, orders);
  }
  return orders;
}

/// Pairs of dimensions that the two orders put the other way round.
int inversions(const std::vector<int> &a, const std::vector<int> &b) {
  const auto place = [&](int dimension) { return std::find(b.begin(), b.end(), dimension); };
  int count = 0;
  for (size_t i = 0; i < a.size(); ++i)
    for (size_t j = i + 1; j < a.size(); ++j) count += place(a[i]) > place(a[j]);
  return count;
}

std::string print(const select::Tensor &tensor, const std::vector<int> &order) {
  std::string text;
  const bool letters = std::all_of(tensor.axes.begin(), tensor.axes.end(),
                                   [](const Axis &axis) { return axis.name.size() == 1; });
  for (int dimension : order)
    text += (text.empty() || letters ? "" : ",") + tensor.axes[size_t(dimension)].name;
  return text;
}

}  // namespace

std::vector<Layout> legalLayouts(const select::Problem &problem, int tensor, const Device &device) {
  const auto touches = [&](const std::vector<int> &tensors) {
    return std::find(tensors.begin(), tensors.end(), tensor) != tensors.end();
  };
  std::vector<int64_t> extents;
  for (const Axis &axis : problem.tensors[size_t(tensor)].axes) extents.push_back(axis.extent);
  std::vector<Layout> legal = distinctLayouts(extents);
  for (size_t op = 0; op < problem.ops.size(); ++op) {
    if (!touches(problem.opInputs[op]) && !touches(problem.opOutputs[op])) continue;
    const Orders orders = ordersOf(problem, int(op), tensor, device);
    std::erase_if(legal, [&](const Layout &layout) { return !orders.contains(layout.order); });
  }
  return legal;
}

std::string pinAdvice(const select::Problem &problem, const std::vector<int> &pinned,
                      const Device &device) {
  std::string advice;
  for (const int index : pinned) {
    const select::Tensor &tensor = problem.tensors[size_t(index)];
    std::vector<int64_t> extents;
    for (const Axis &axis : tensor.axes) extents.push_back(axis.extent);
    const std::vector<int> wanted = normalized(*tensor.pinned, extents).order;
    std::vector<Layout> legal = legalLayouts(problem, index, device);
    if (std::any_of(legal.begin(), legal.end(),
                    [&](const Layout &layout) { return layout.order == wanted; }))
      continue;
    std::stable_sort(legal.begin(), legal.end(), [&](const Layout &a, const Layout &b) {
      return inversions(a.order, wanted) < inversions(b.order, wanted);
    });
    std::vector<std::string> names;
    for (size_t i = 0; i < std::min(legal.size(), suggestions); ++i)
      names.push_back(print(tensor, legal[i].order));
    advice += fmt::format(
        "\n  --pin {}={}: not every kernel that writes or reads '{}' takes this order; {}",
        tensor.name, print(tensor, tensor.pinned->order), tensor.name,
        names.empty() ? "no order can be pinned"
                      : fmt::format("legal and nearest: {}", fmt::join(names, ", ")));
  }
  return advice;
}

}  // namespace weft::decision
