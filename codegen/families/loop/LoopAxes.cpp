// The iteration space of a loop kernel: axes of its outputs and reduced axes. A local softmax
// splits its axis into sub-vectors and positions inside one; then rows are sub-vectors.
#include "codegen/families/loop/LoopGraph.h"
#include "codegen/families/loop/LoopKnobs.h"
#include "kernel/Append.h"
#include "kernel/Attributes.h"
#include "kernel/Error.h"

#include <algorithm>

namespace weft::codegen {
namespace {

bool contains(const std::vector<AxisId> &axes, AxisId axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

/// Replaces the axis of a local softmax by (sub-vector, position).
void splitSubVectors(IterationAxes &axes, const BodyOp &op) {
  const Kernel &kernel = axes.kernel;
  const int dimension = static_cast<int>(attributeOf(op, attribute::axis));
  const int64_t tile = attributeOf(op, attribute::tile);
  const AxisId axis = kernel.values[op.operands[0]].axes[dimension];
  if (axes.splitAxis >= 0 && axes.splitAxis != axis)
    throw Error::unsupported("kernel '{}': local_softmax over two axes, '{}' and '{}'", kernel.name,
                             kernel.axes[axes.splitAxis].name, kernel.axes[axis].name);
  if (axes.splitAxis == axis) return;
  axes.splitAxis = axis;
  axes.subVectorAxis = kernel.values[op.results[1]].axes[dimension];
  axes.tileAxis = static_cast<int>(kernel.axes.size());
  axes.kernel.axes.push_back({.name = axes.kernel.axes[axis].name + "_in_tile", .extent = tile});
  if (axes.knobs.vectorAxis == axis) axes.knobs.vectorAxis = axes.tileAxis;
  if (axes.knobs.laneAxis == axis) axes.knobs.laneAxis = axes.tileAxis;
}

}  // namespace

IterationAxes iterationAxes(const Kernel &kernel, const LoopKnobs &knobs) {
  IterationAxes axes{.kernel = kernel, .knobs = knobs};
  for (const BodyOp &op : kernel.body)
    if (op.kind == OpKind::localSoftmax) splitSubVectors(axes, op);
  std::set<AxisId> all, reduced;
  for (const BodyOp &op : kernel.body) {
    if (op.reducedAxes.empty()) continue;
    std::set<AxisId> own(op.reducedAxes.begin(), op.reducedAxes.end());
    if (own.erase(axes.splitAxis)) own.insert(axes.tileAxis);
    if (!reduced.empty() && reduced != own)
      throw Error::unsupported(
          "kernel '{}': op '{}' reduces over other axes than the op before it; one kernel reduces "
          "over "
          "one set of axes",
          kernel.name, nameOf(op.kind));
    reduced = own;
    for (AxisId axis : kernel.values[op.operands[0]].axes)
      all.insert(axis == axes.splitAxis ? axes.tileAxis : axis);
  }
  for (ValueId output : kernel.outputs)
    for (AxisId axis : walkedAxes(kernel, output))
      all.insert(axis == axes.splitAxis ? axes.tileAxis : axis);
  all.insert(reduced.begin(), reduced.end());
  if (axes.subVectorAxis >= 0) all.insert(axes.subVectorAxis);
  axes.reduced.assign(reduced.begin(), reduced.end());
  for (AxisId axis : all)
    if (!contains(axes.reduced, axis)) axes.outer.push_back(axis);
  for (ValueId output : kernel.outputs)
    for (AxisId axis : axes.outer) {
      const std::vector<AxisId> &own = walkedAxes(kernel, output);
      const bool present =
          contains(own, axis) || (axis == axes.subVectorAxis && contains(own, axes.splitAxis));
      if (!present && kernel.axes[axis].extent > 1)
        throw Error::unsupported(
            "kernel '{}': output '{}' lacks the axis '{}' of another output; fuse only ops of one "
            "space",
            kernel.name, kernel.values[output].name, kernel.axes[axis].name);
    }
  return axes;
}

}  // namespace weft::codegen
