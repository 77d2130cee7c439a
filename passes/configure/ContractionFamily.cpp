// Plain contraction family: one einsum of two operands as one batched strided matrix product C[m,n] = A[m,k] B[k,n].
//
// The axes fall into four groups by where they occur: batch (A, B, C), m (A, C), n (B, C), k (A, B). A layout is legal if
// each group merges to one extent with one stride in every operand that has it, in one common order of its axes, and the
// fastest axis of each operand is not of the batch group. Everything else about the permutation is free.
#include "passes/configure/Family.h"

#include <algorithm>
#include <array>
#include <set>

namespace weft {
namespace {

enum Group : size_t { batchGroup, mGroup, nGroup, kGroup, groupCount };
using Groups = std::array<std::vector<int>, groupCount>;  ///< kernel axes; those of extent 1 are left out

/// Blocks of plain FMA code: tile m x n x k, elements a thread.
constexpr ContractionKnobs tiles[] = {
    {.tileM = 32, .tileN = 32, .tileK = 16, .threadM = 2, .threadN = 2},
    {.tileM = 64, .tileN = 64, .tileK = 16, .threadM = 4, .threadN = 4},
    {.tileM = 128, .tileN = 64, .tileK = 16, .threadM = 8, .threadN = 4},
    {.tileM = 64, .tileN = 128, .tileK = 16, .threadM = 4, .threadN = 8},
    {.tileM = 128, .tileN = 128, .tileK = 16, .threadM = 8, .threadN = 8},
};

/// The values A, B and C of the contraction that opens the body.
std::optional<std::array<int, 3>> contractionValues(const Kernel &kernel) {
  if (kernel.body.empty() || kernel.body[0].name != "contract") return std::nullopt;
  const BodyOp &op = kernel.body[0];
  if (op.operands.size() != 2 || op.results.size() != 1) return std::nullopt;
  return std::array<int, 3>{op.operands[0], op.operands[1], op.results[0]};
}

bool runsAlong(const Kernel &kernel, int value, int axis) {
  const std::vector<int> &axes = kernel.values[value].axes;
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

Groups groupsOf(const Kernel &kernel, const std::array<int, 3> &values) {
  Groups groups;
  for (int axis = 0; axis < static_cast<int>(kernel.axes.size()); ++axis) {
    if (kernel.axes[axis].extent == 1) continue;
    const bool a = runsAlong(kernel, values[0], axis), b = runsAlong(kernel, values[1], axis), c = runsAlong(kernel, values[2], axis);
    if (a && b && c) groups[batchGroup].push_back(axis);
    else if (a && c) groups[mGroup].push_back(axis);
    else if (b && c) groups[nGroup].push_back(axis);
    else if (a && b) groups[kGroup].push_back(axis);
  }
  return groups;
}

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

/// One operand of a product: where its elements lie.
struct OperandStrides {
  const Kernel &kernel;
  int value;
  std::vector<int64_t> strides;

  int64_t along(int axis) const {
    const std::vector<int> &axes = kernel.values[value].axes;
    return strides[static_cast<size_t>(std::find(axes.begin(), axes.end(), axis) - axes.begin())];
  }
  /// The stride of the group merged in the given order (slowest first); nothing if it does not merge.
  std::optional<int64_t> merged(const std::vector<int> &group) const {
    if (group.empty()) return 0;
    for (size_t i = 0; i + 1 < group.size(); ++i)
      if (along(group[i]) != along(group[i + 1]) * kernel.axes[group[i + 1]].extent) return std::nullopt;
    return along(group.back());
  }
};

int64_t extentOf(const Kernel &kernel, const std::vector<int> &group) {
  int64_t product = 1;
  for (int axis : group) product *= kernel.axes[axis].extent;
  return product;
}

}  // namespace

FamilyAnswer contractionSpace(const Kernel &kernel, const Device &) {
  const auto values = contractionValues(kernel);
  if (!values) return {.reason = "the body does not open with a contraction of two operands"};
  if (kernel.body.size() != 1) return {.reason = "'" + kernel.body[1].name + "' follows the contraction; no fused epilogues"};
  if (kernel.inputs.size() != 2) return {.reason = "both operands of the contraction are one tensor"};
  ConfigurationSpace space{.family = "plain-contraction"};
  std::set<LayoutTuple> tuples;
  forEachOrder(groupsOf(kernel, *values), 0, [&](const Groups &groups) { addTuples(kernel, *values, groups, tuples); });
  // Kernel operands may stand in another order than the einsum's.
  for (const LayoutTuple &tuple : tuples)
    space.tuples.push_back(kernel.inputs[0] == (*values)[0] ? tuple : LayoutTuple{tuple[1], tuple[0], tuple[2]});
  space.knobs.assign(std::begin(tiles), std::end(tiles));
  return {.space = std::move(space)};
}

std::optional<MatrixProduct> matrixProduct(const Kernel &kernel, const Configuration &configuration) {
  const auto values = contractionValues(kernel);
  if (!values || kernel.inputs.size() != 2) return std::nullopt;
  const bool swapped = kernel.inputs[0] != (*values)[0];
  const Layout &layoutA = configuration.inputs[swapped ? 1 : 0], &layoutB = configuration.inputs[swapped ? 0 : 1];
  const auto operand = [&](int value, const Layout &layout) {
    return OperandStrides{kernel, value, stridesOf(layout, extentsOf(kernel, value))};
  };
  const OperandStrides a = operand((*values)[0], layoutA), b = operand((*values)[1], layoutB),
                       c = operand((*values)[2], configuration.outputs[0]);
  Groups groups = groupsOf(kernel, *values);
  // The common order is that of any operand that has the group.
  const std::array<const OperandStrides *, groupCount> owner = {&a, &a, &b, &a};
  for (size_t group = 0; group < groupCount; ++group)
    std::sort(groups[group].begin(), groups[group].end(),
              [&](int x, int y) { return owner[group]->along(x) > owner[group]->along(y); });
  const auto am = a.merged(groups[mGroup]), ak = a.merged(groups[kGroup]), ab = a.merged(groups[batchGroup]);
  const auto bk = b.merged(groups[kGroup]), bn = b.merged(groups[nGroup]), bb = b.merged(groups[batchGroup]);
  const auto cm = c.merged(groups[mGroup]), cn = c.merged(groups[nGroup]), cb = c.merged(groups[batchGroup]);
  if (!am || !ak || !ab || !bk || !bn || !bb || !cm || !cn || !cb) return std::nullopt;
  return MatrixProduct{.batch = extentOf(kernel, groups[batchGroup]), .m = extentOf(kernel, groups[mGroup]),
                       .n = extentOf(kernel, groups[nGroup]), .k = extentOf(kernel, groups[kGroup]),
                       .batchStrideA = *ab, .batchStrideB = *bb, .batchStrideC = *cb,
                       .strideAm = *am, .strideAk = *ak, .strideBk = *bk, .strideBn = *bn, .strideCm = *cm, .strideCn = *cn};
}

}  // namespace weft
