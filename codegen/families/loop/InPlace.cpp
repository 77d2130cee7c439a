// Results in place of operands; see InPlace.h.
#include "codegen/families/loop/InPlace.h"

#include "codegen/families/loop/LoopKnobs.h"
#include "codegen/families/loop/RowPasses.h"

#include <algorithm>

namespace weft {
namespace {

/// Whether every op takes the elements of its coordinates, or whole rows of them. A rotation takes
/// the partner of its element, movement takes elements from elsewhere. Tables have other axes, and
/// may be read anywhere.
bool staysAtItsCoordinates(const Kernel &kernel) {
  const auto axesOf = [&](ValueId value) { return kernel.values[size_t(value)].axes; };
  return std::ranges::all_of(kernel.body, [&](const BodyOp &op) {
    for (size_t n = 0; n < op.operands.size(); ++n)
      if (op.expression.readsElsewhere(int(n)) &&
          axesOf(op.operands[n]) == axesOf(op.results.front()))
        return false;
    return op.operatorClass == OperatorClass::elementwise ||
           op.operatorClass == OperatorClass::normalization;
  });
}

bool sameElements(const Kernel &kernel, ValueId input, const Layout &inputLayout, ValueId output,
                  const Layout &outputLayout) {
  const Value &from = kernel.values[size_t(input)], &to = kernel.values[size_t(output)];
  std::vector<int64_t> extents;
  for (const AxisId axis : to.axes) extents.push_back(kernel.axes[size_t(axis)].extent);
  return from.dtype == to.dtype && from.axes == to.axes &&
         stridesOf(inputLayout, extents) == stridesOf(outputLayout, extents);
}

/// Where several threads share a row and several rows a block, threads beyond the last row take the
/// last one again, after others may have written it. A warp a row leaves instead; columns skip.
bool repeatsLastRow(const Kernel &kernel, const LoopKnobs &knobs) {
  if (!isRowMapping(knobs.reduction) || knobs.threadsPerRow <= 1 || knobs.threadsPerRow == 32 ||
      knobs.threadsPerRow == knobs.threads)
    return false;
  const bool hasTiles = std::ranges::any_of(
      kernel.body, [](const BodyOp &op) { return op.kind == OpKind::localSoftmax; });
  const std::vector<AxisId> reduced = kernel.reducedAxes();
  int64_t rows = 1;
  for (int axis = 0; axis < std::ssize(kernel.axes); ++axis)
    if (std::ranges::find(reduced, axis) == reduced.end()) rows *= kernel.axes[size_t(axis)].extent;
  return hasTiles || rows % (knobs.threads / knobs.threadsPerRow) != 0;
}

/// Whether a pass after the one that stores output 0 accumulates anything: it reads the row again,
/// unless that is in registers.
bool isStoredBeforeLastPass(const Kernel &kernel) {
  std::vector<int> readyIn(kernel.values.size(),
                           0);  // the first pass in which a value can be computed
  int lastAccumulation = 0;
  for (const BodyOp &op : kernel.body) {
    int first = 0;
    for (const ValueId operand : op.operands) first = std::max(first, readyIn[size_t(operand)]);
    const int passes = reductionsOf(op);
    lastAccumulation = std::max(lastAccumulation, first + passes - 1);
    for (const ValueId result : op.results) readyIn[size_t(result)] = first + passes;
    // x' = exp(x - m') waits for the maximum alone; the mean does not wait for the variance.
    if (op.kind == OpKind::localSoftmax)
      readyIn[size_t(op.results[0])] = readyIn[size_t(op.results[1])] = first + 1;
    if (op.kind == OpKind::layerNorm && op.results.size() > 1)
      readyIn[size_t(op.results[1])] = first + 1;
  }
  return readyIn[size_t(kernel.outputs.front())] < lastAccumulation;
}

}  // namespace

std::vector<size_t> loopOverwritableInputs(const Kernel &kernel,
                                           const Configuration &configuration) {
  const auto &knobs = configuration.knobs.get<LoopKnobs>();
  if (!staysAtItsCoordinates(kernel) || repeatsLastRow(kernel, knobs) ||
      isStoredBeforeLastPass(kernel))
    return {};
  const ValueId output = kernel.outputs.front();
  // A second result of the shape might be stored in an earlier pass, and the input be read again in
  // a later one.
  for (size_t other = 1; other < kernel.outputs.size(); ++other)
    if (kernel.values[size_t(kernel.outputs[other])].axes.size() >=
        kernel.values[size_t(output)].axes.size())
      return {};
  std::vector<size_t> positions;
  for (size_t position = 0; position < kernel.inputs.size(); ++position)
    if (std::ranges::count(kernel.inputs, kernel.inputs[position]) == 1 &&
        sameElements(kernel, kernel.inputs[position], configuration.inputs[position], output,
                     configuration.outputs.front()))
      positions.push_back(position);
  return positions;
}

}  // namespace weft
