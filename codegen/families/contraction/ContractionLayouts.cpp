// Layouts under which one einsum of two operands is one batched strided GEMM C[m,n] =
// A[m,k] B[k,n].
//
// The axes fall into four groups by where they occur: batch (A, B, C), m (A, C), n (B, C), k (A,
// B). A layout is legal if each group merges to one extent with one stride in every operand that
// has it, in one common order of its axes, and the fastest axis of each operand is not of the batch
// group. Everything else about the permutation is free. What an epilogue reads and stores has the
// order of C's axes, statistics of sub-vectors a separate one; what a prologue reads, that of the
// operand's. Layouts in which an operand's groups do not merge are a separate list. Rows that start
// at no multiple of 16 bytes may be padded.
#include "kernel/ContractionPrologue.h"
#include "kernel/ContractionRegion.h"
#include "kernel/RecentAnswers.h"
#include "passes/configure/Family.h"

#include <algorithm>
#include <array>
#include <functional>
#include <set>

namespace weft {
namespace {

using Group = ContractionGroup;
using Groups = ContractionGroups;
constexpr size_t groupCount = contractionGroupCount;

/// The groups that each of A, B and C runs along.
constexpr std::array<std::array<Group, 3>, 3> groupsOfOperand = {
    {{batchGroup, mGroup, kGroup}, {batchGroup, kGroup, nGroup}, {batchGroup, mGroup, nGroup}}};

/// All layouts of one operand under fixed orders inside the groups.
std::vector<Layout> arrangements(const Kernel &kernel, ValueId value,
                                 const std::array<Group, 3> &present, const Groups &groups) {
  std::vector<Group> order;
  for (Group group : present)
    if (!groups[group].empty()) order.push_back(group);
  std::sort(order.begin(), order.end());
  std::vector<Layout> layouts;
  const std::vector<AxisId> &axes = kernel.values[value].axes;
  do {
    if (order.size() > 1 && order.back() == batchGroup) continue;
    Layout layout;
    for (size_t i = 0; i < axes.size(); ++i)
      if (kernel.axes[axes[i]].extent == 1) layout.order.push_back(static_cast<int>(i));
    for (Group group : order)
      for (AxisId axis : groups[group])
        layout.order.push_back(
            static_cast<int>(std::find(axes.begin(), axes.end(), axis) - axes.begin()));
    layouts.push_back(layout);
  } while (std::next_permutation(order.begin(), order.end()));
  return layouts;
}

/// The axes of a value from slowest to fastest.
std::vector<AxisId> axesInOrder(const Kernel &kernel, ValueId value, const Layout &layout) {
  std::vector<AxisId> axes;
  for (int dimension : layout.order)
    axes.push_back(kernel.values[value].axes[static_cast<size_t>(dimension)]);
  return axes;
}

/// Those longer than 1.
std::vector<AxisId> longAxesInOrder(const Kernel &kernel, ValueId value, const Layout &layout) {
  std::vector<AxisId> axes = axesInOrder(kernel, value, layout);
  std::erase_if(axes,
                [&](AxisId axis) { return kernel.axes[static_cast<size_t>(axis)].extent == 1; });
  return axes;
}

/// Every dense layout of an operand whose fastest axis is not of the batch group, and in which some
/// group does not merge in the given order.
std::vector<Layout> scattered(const Kernel &kernel, ValueId value,
                              const std::array<Group, 3> &present, const Groups &groups) {
  const std::vector<Layout> merged = arrangements(kernel, value, present, groups);
  std::vector<Layout> layouts = distinctLayouts(extentsOf(kernel, value));
  std::erase_if(layouts, [&](const Layout &layout) {
    const std::vector<AxisId> axes = longAxesInOrder(kernel, value, layout);
    return axes.empty() ||
           std::ranges::find(groups[batchGroup], axes.back()) != groups[batchGroup].end() ||
           std::ranges::find(merged, layout) != merged.end();
  });
  return layouts;
}

/// The long axes of an operand from slowest to fastest; those of its outer group are one.
std::vector<AxisId> pattern(const Kernel &kernel, ValueId value, const Layout &layout,
                            const std::vector<AxisId> &outer) {
  std::vector<AxisId> axes = longAxesInOrder(kernel, value, layout);
  for (AxisId &axis : axes)
    if (std::ranges::find(outer, axis) != outer.end()) axis = -1;
  return axes;
}

void addSeveralStrides(const Kernel &kernel, const std::array<ValueId, 3> &values,
                       const Groups &groups, std::set<LayoutTuple> &tuples) {
  std::array<std::vector<Layout>, 3> plain;
  for (size_t operand = 0; operand < 3; ++operand) {
    plain[operand] = arrangements(kernel, values[operand], groupsOfOperand[operand], groups);
    if (groups[batchGroup].empty()) continue;
    std::erase_if(plain[operand], [&](const Layout &layout) {
      return longAxesInOrder(kernel, values[operand], layout).front() != groups[batchGroup].front();
    });
  }
  const std::vector<Layout> a = scattered(kernel, values[0], groupsOfOperand[0], groups),
                            b = scattered(kernel, values[1], groupsOfOperand[1], groups);
  for (const Layout &c : plain[2]) {
    for (const Layout &ofA : a)
      for (const Layout &ofB : plain[1]) tuples.insert({ofA, ofB, c});
    for (const Layout &ofA : plain[0])
      for (const Layout &ofB : b) tuples.insert({ofA, ofB, c});
    for (const Layout &ofA : a)
      for (const Layout &ofB : b)
        if (pattern(kernel, values[0], ofA, groups[mGroup]) ==
            pattern(kernel, values[1], ofB, groups[nGroup]))
          tuples.insert({ofA, ofB, c});
  }
}

/// Of a result that is fixed; operands as they are fixed, or as they are for one stride.
void addOfStridedResult(const Kernel &kernel, const std::array<ValueId, 3> &values,
                        const Groups &groups, const FixedLayouts &fixed,
                        std::set<LayoutTuple> &tuples) {
  const std::vector<ValueId> operands = operandValues(kernel);
  const auto fixedOf = [&](size_t which) {
    return fixed[size_t(std::ranges::find(operands, values[which]) - operands.begin())];
  };
  if (!fixedOf(2) || std::ranges::count(scattered(kernel, values[2], groupsOfOperand[2], groups),
                                        *fixedOf(2)) == 0)
    return;
  std::array<std::vector<Layout>, 2> layouts;
  for (size_t operand = 0; operand < 2; ++operand)
    layouts[operand] =
        fixedOf(operand) ? std::vector{*fixedOf(operand)}
                         : arrangements(kernel, values[operand], groupsOfOperand[operand], groups);
  for (const Layout &a : layouts[0])
    for (const Layout &b : layouts[1]) tuples.insert({a, b, *fixedOf(2)});
}

void addTuples(const Kernel &kernel, const std::array<ValueId, 3> &values, const Groups &groups,
               std::set<LayoutTuple> &tuples) {
  std::array<std::vector<Layout>, 3> layouts;
  for (size_t operand = 0; operand < 3; ++operand)
    layouts[operand] = arrangements(kernel, values[operand], groupsOfOperand[operand], groups);
  for (const Layout &a : layouts[0])
    for (const Layout &b : layouts[1])
      for (const Layout &c : layouts[2]) tuples.insert({a, b, c});
}

/// Orders of the axes inside all groups, beyond which only the order of the kernel's axes is
/// considered.
constexpr double mostOrders = 120;

double countOrders(const Groups &groups) {
  double count = 1;
  for (const std::vector<AxisId> &axes : groups)
    for (size_t n = 2; n <= axes.size(); ++n) count *= static_cast<double>(n);
  return count;
}

/// Calls `visit` for every order of the axes inside every group.
void forEachOrder(Groups groups, size_t group, const std::function<void(const Groups &)> &visit) {
  if (group == 0 && countOrders(groups) > mostOrders) {
    for (std::vector<AxisId> &axes : groups) std::sort(axes.begin(), axes.end());
    return visit(groups);
  }
  if (group == groupCount) return visit(groups);
  std::sort(groups[group].begin(), groups[group].end());
  do forEachOrder(groups, group + 1, visit);
  while (std::next_permutation(groups[group].begin(), groups[group].end()));
}

/// A value that runs along some of the ordered axes, in their order; dimensions of extent 1 come
/// first.
Layout layoutAlong(const Kernel &kernel, ValueId value, const std::vector<AxisId> &order) {
  const std::vector<AxisId> &axes = kernel.values[value].axes;
  const auto placeOf = [&](int dimension) {
    const AxisId axis = axes[static_cast<size_t>(dimension)];
    return kernel.axes[axis].extent == 1
               ? -1
               : std::find(order.begin(), order.end(), axis) - order.begin();
  };
  Layout layout = rowMajor(axes.size());
  std::stable_sort(layout.order.begin(), layout.order.end(),
                   [&](int a, int b) { return placeOf(a) < placeOf(b); });
  return layout;
}

}  // namespace

std::string contractionRejection(const Kernel &kernel) {
  if (!contractionValues(kernel))
    return "the body does not open with a contraction of two operands";
  if (*contractionIndex(kernel) > 0)
    return "'" + std::string(nameOf(kernel.body[0].kind)) +
           "' stands before the contraction, whose operands are read as they are in memory";
  if (kernel.body.size() != 1)
    return "'" + std::string(nameOf(kernel.body[1].kind)) +
           "' follows the contraction; no fused epilogues";
  const std::array<ValueId, 3> values = contractionValues(kernel).value();
  if (values[0] == values[1]) return "both operands of the contraction are one tensor";
  return "";
}

namespace {

using AddTuples = std::function<void(const Kernel &, const std::array<ValueId, 3> &, const Groups &,
                                     std::set<LayoutTuple> &)>;

/// The axes of what there is of sub-vectors along one group: as those of the tensor that they
/// divide, sub-vector after sub-vector, so that neighbouring rows are neighbours.
std::vector<AxisId> subVectorOrder(const Kernel &kernel, AxisId subVectorAxis,
                                   const std::vector<AxisId> &divided,
                                   const std::vector<AxisId> &rows, std::vector<AxisId> order) {
  std::erase_if(order,
                [&](AxisId axis) { return std::ranges::find(divided, axis) != divided.end(); });
  const auto isOfRows = [&](AxisId axis) {
    return kernel.axes[size_t(axis)].extent > 1 && std::ranges::find(rows, axis) != rows.end();
  };
  order.insert(std::ranges::find_if(order, isOfRows), subVectorAxis);
  return order;
}

/// With the operands of an epilogue and further outputs.
std::vector<LayoutTuple> allTuples(const Kernel &kernel, const AddTuples &add) {
  const std::array<ValueId, 3> values = contractionValues(kernel).value();
  const GemmInputs inputs = gemmInputs(kernel);
  const std::optional<ContractionPrologue> prologue =
      contractionPrologue(kernel).value_or(std::nullopt);
  const Expected<ContractionRegion, Reason> &recognised = contractionRegion(kernel);
  const Groups groups = contractionGroups(kernel, values);
  std::set<LayoutTuple> tuples;
  forEachOrder(groups, 0, [&](const Groups &ordered) { add(kernel, values, ordered, tuples); });
  std::vector<LayoutTuple> result;
  for (const LayoutTuple &tuple : tuples) {
    const std::vector<AxisId> order = axesInOrder(kernel, values[2], tuple[2]);
    LayoutTuple operands;
    for (ValueId value : operandValues(kernel))
      operands.push_back(value == values[2] ? tuple[2] : layoutAlong(kernel, value, order));
    if (prologue) {
      const std::vector<AxisId> orderOfRead =
          axesInOrder(kernel, prologue->read, tuple[prologue->isOfA ? 0 : 1]);
      for (const PrologueInput &input : prologue->inputs)
        operands[input.input] = layoutAlong(kernel, input.value, orderOfRead);
    }
    if (recognised && recognised->softmax) {
      const EpilogueSoftmax &softmax = *recognised->softmax;
      const bool isOfN = softmax.role == EpilogueRole::n;
      const std::vector<AxisId> &divided = groups[isOfN ? nGroup : mGroup],
                                &rows = groups[isOfN ? mGroup : nGroup];
      const std::vector<AxisId> orderOfSubVectors =
          subVectorOrder(kernel, softmax.subVectorAxis, divided, rows, order);
      for (const size_t output : {softmax.maxima, softmax.sums})
        operands[kernel.inputs.size() + output] =
            layoutAlong(kernel, kernel.outputs[output], orderOfSubVectors);
    }
    // Kernel operands may stand in another order than the einsum's.
    operands[inputs.a] = tuple[0];
    operands[inputs.b] = tuple[1];
    result.push_back(operands);
    if (!prologue) continue;
    // Factors of sub-vectors also with neighbouring rows as neighbours.
    for (const PrologueInput &input : prologue->inputs) {
      if (input.subVector == 0) continue;
      const std::vector<AxisId> orderOfRead =
          axesInOrder(kernel, prologue->read, tuple[prologue->isOfA ? 0 : 1]);
      const std::vector<AxisId> &rows = groups[prologue->isOfA ? mGroup : nGroup];
      const std::vector<AxisId> ordered =
          subVectorOrder(kernel, input.subVectorAxis, groups[kGroup], rows, orderOfRead);
      operands[input.input] = layoutAlong(kernel, input.value, ordered);
    }
    if (operands != result.back()) result.push_back(std::move(operands));
  }
  return result;
}

/// The padded form of an operand, where its group of axes still merges: the row is one axis.
std::optional<Layout> paddedOperand(const Kernel &kernel, const Groups &groups, ValueId value,
                                    const Layout &layout) {
  const std::vector<AxisId> axes = longAxesInOrder(kernel, value, layout);
  if (axes.size() < 2) return std::nullopt;
  const auto ofRow = std::ranges::find_if(groups, [&](const std::vector<AxisId> &group) {
    return std::ranges::find(group, axes.back()) != group.end();
  });
  if (ofRow != groups.end() && std::ranges::find(*ofRow, axes[axes.size() - 2]) != ofRow->end())
    return std::nullopt;
  return paddedLayout(kernel, value, layout);
}

/// Every tuple, and those with padded rows in each subset of the operands that can have them; of
/// many such operands, in all of them together. Results are padded alike.
std::vector<LayoutTuple> withPaddedRows(const Kernel &kernel, std::vector<LayoutTuple> tuples) {
  constexpr size_t mostApart = 4;
  const Groups groups = contractionGroups(kernel, contractionValues(kernel).value());
  const std::vector<ValueId> values = operandValues(kernel);
  // Results of the shape of C lie alike; sums and statistics of it are not padded.
  const Expected<ContractionRegion, Reason> &recognised = contractionRegion(kernel);
  std::vector<size_t> results;
  for (size_t output = 0; output < kernel.outputs.size(); ++output)
    if (!recognised || recognised->isWhole(output))
      results.push_back(kernel.inputs.size() + output);
  const size_t dense = tuples.size();
  for (size_t t = 0; t < dense; ++t) {
    const LayoutTuple own = tuples[t];
    std::vector<LayoutTuple> choices;  // operands that are padded; no order where they are not
    const auto offer = [&](const std::vector<size_t> &operands) {
      LayoutTuple choice(own.size());
      for (const size_t operand : operands) {
        auto layout = paddedOperand(kernel, groups, values[operand], own[operand]);
        const int64_t firstUnit = choice[operands.front()].pitchUnit;
        if (!layout || (operand != operands.front() && layout->pitchUnit != firstUnit)) return;
        choice[operand] = *std::move(layout);
      }
      choices.push_back(std::move(choice));
    };
    for (size_t input = 0; input < kernel.inputs.size(); ++input) offer({input});
    if (!results.empty()) offer(results);
    if (choices.empty()) continue;
    const size_t all = (size_t(1) << choices.size()) - 1;
    for (size_t subset = choices.size() > mostApart ? all : 1; subset <= all; ++subset) {
      LayoutTuple tuple = own;
      for (size_t i = 0; i < choices.size(); ++i)
        for (size_t operand = 0; (subset >> i & 1) && operand < own.size(); ++operand)
          if (choices[i][operand].isPadded()) tuple[operand] = choices[i][operand];
      tuples.push_back(std::move(tuple));
    }
  }
  return tuples;
}

}  // namespace

std::vector<LayoutTuple> contractionTuples(const Kernel &kernel) {
  thread_local RecentAnswers<std::vector<LayoutTuple>> recent;  // every family of GEMMs asks
  return recent.of([&] { return withPaddedRows(kernel, allTuples(kernel, addTuples)); }, kernel);
}

std::vector<LayoutTuple> severalStridesTuples(const Kernel &kernel) {
  return allTuples(kernel, addSeveralStrides);
}

std::vector<LayoutTuple> stridedResultTuples(const Kernel &kernel, const FixedLayouts &fixed) {
  if (kernel.body.size() > 1) return {};  // an epilogue takes a result of one stride
  const size_t result = kernel.inputs.size();
  const auto isResultAsFixed = [&](const LayoutTuple &tuple) {
    return *fixed[result] == tuple[result];
  };
  if (!fixed[result] || std::ranges::any_of(contractionTuples(kernel), isResultAsFixed)) return {};
  return allTuples(kernel, [&](const Kernel &one, const std::array<ValueId, 3> &values,
                               const Groups &groups, std::set<LayoutTuple> &tuples) {
    addOfStridedResult(one, values, groups, fixed, tuples);
  });
}

}  // namespace weft
