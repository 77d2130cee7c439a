// Layouts under which one einsum of two operands is one batched strided matrix product C[m,n] = A[m,k] B[k,n].
//
// The axes fall into four groups by where they occur: batch (A, B, C), m (A, C), n (B, C), k (A, B). A layout is legal if
// each group merges to one extent with one stride in every operand that has it, in one common order of its axes, and the
// fastest axis of each operand is not of the batch group. Everything else about the permutation is free.
#include "kernel/MatrixProduct.h"
#include "passes/configure/Family.h"

#include <algorithm>
#include <array>
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
std::vector<Layout> arrangements(const Kernel &kernel, int value, const std::array<Group, 3> &present, const Groups &groups) {
  std::vector<Group> order;
  for (Group group : present)
    if (!groups[group].empty()) order.push_back(group);
  std::sort(order.begin(), order.end());
  std::vector<Layout> layouts;
  const std::vector<int> &axes = kernel.values[value].axes;
  do {
    if (order.size() > 1 && order.back() == batchGroup) continue;
    Layout layout;
    for (size_t i = 0; i < axes.size(); ++i)
      if (kernel.axes[axes[i]].extent == 1) layout.order.push_back(static_cast<int>(i));
    for (Group group : order)
      for (int axis : groups[group])
        layout.order.push_back(static_cast<int>(std::find(axes.begin(), axes.end(), axis) - axes.begin()));
    layouts.push_back(layout);
  } while (std::next_permutation(order.begin(), order.end()));
  return layouts;
}

void addTuples(const Kernel &kernel, const std::array<int, 3> &values, const Groups &groups, std::set<LayoutTuple> &tuples) {
  std::array<std::vector<Layout>, 3> layouts;
  for (size_t operand = 0; operand < 3; ++operand)
    layouts[operand] = arrangements(kernel, values[operand], groupsOfOperand[operand], groups);
  for (const Layout &a : layouts[0])
    for (const Layout &b : layouts[1])
      for (const Layout &c : layouts[2]) tuples.insert({a, b, c});
}

/// Calls `visit` for every order of the axes inside every group.
void forEachOrder(Groups groups, size_t group, const std::function<void(const Groups &)> &visit) {
  if (group == groupCount) return visit(groups);
  std::sort(groups[group].begin(), groups[group].end());
  do forEachOrder(groups, group + 1, visit);
  while (std::next_permutation(groups[group].begin(), groups[group].end()));
}

}  // namespace

std::string contractionRefusal(const Kernel &kernel) {
  if (!contractionValues(kernel)) return "the body does not open with a contraction of two operands";
  if (kernel.body.size() != 1) return "'" + kernel.body[1].name + "' follows the contraction; no fused epilogues";
  if (kernel.inputs.size() != 2) return "both operands of the contraction are one tensor";
  return "";
}

std::vector<LayoutTuple> contractionTuples(const Kernel &kernel) {
  const std::array<int, 3> values = contractionValues(kernel).value();
  std::set<LayoutTuple> tuples;
  forEachOrder(contractionGroups(kernel, values), 0, [&](const Groups &groups) { addTuples(kernel, values, groups, tuples); });
  std::vector<LayoutTuple> result;
  // Kernel operands may stand in another order than the einsum's.
  for (const LayoutTuple &tuple : tuples)
    result.push_back(kernel.inputs[0] == values[0] ? tuple : LayoutTuple{tuple[1], tuple[0], tuple[2]});
  return result;
}

}  // namespace weft
