// Results in place of operands; see InPlace.h.
#include "kernel/InPlace.h"

#include <algorithm>

namespace weft {
namespace {

/// Whether every op takes the elements of its own coordinates, or whole rows of them. Rotary takes the partner of its
/// element, movement takes elements from elsewhere.
bool staysAtItsCoordinates(const Kernel &kernel) {
  return std::ranges::all_of(kernel.body, [](const BodyOp &op) {
    if (op.name == "rotary") return false;
    return op.operatorClass == OperatorClass::elementwise || op.operatorClass == OperatorClass::normalization;
  });
}

bool sameElements(const Kernel &kernel, int input, const Layout &inputLayout, int output, const Layout &outputLayout) {
  const Value &from = kernel.values[size_t(input)], &to = kernel.values[size_t(output)];
  std::vector<int64_t> extents;
  for (const int axis : to.axes) extents.push_back(kernel.axes[size_t(axis)].extent);
  return from.dtype == to.dtype && from.axes == to.axes && stridesOf(inputLayout, extents) == stridesOf(outputLayout, extents);
}

/// Where several threads share a row and several rows a block, threads beyond the last row take the last one again, after others
/// may have written it. A warp a row leaves instead; columns skip.
bool repeatsLastRow(const Kernel &kernel, const LoopKnobs &knobs) {
  if (!isRowMapping(knobs.reduction) || knobs.threadsPerRow <= 1 || knobs.threadsPerRow == 32 || knobs.threadsPerRow == knobs.threads)
    return false;
  const bool hasTiles = std::ranges::any_of(kernel.body, [](const BodyOp &op) { return op.name == "local_softmax"; });
  const std::vector<int> reduced = kernel.reducedAxes();
  int64_t rows = 1;
  for (int axis = 0; axis < std::ssize(kernel.axes); ++axis)
    if (std::ranges::find(reduced, axis) == reduced.end()) rows *= kernel.axes[size_t(axis)].extent;
  return hasTiles || rows % (knobs.threads / knobs.threadsPerRow) != 0;
}

}  // namespace

std::vector<size_t> overwritableInputs(const Kernel &kernel, const Configuration &configuration) {
  const auto *knobs = std::get_if<LoopKnobs>(&configuration.knobs);
  if (!knobs || !staysAtItsCoordinates(kernel) || repeatsLastRow(kernel, *knobs)) return {};
  const int output = kernel.outputs.front();
  // A second result of the shape might be stored in an earlier pass, and the input be read again in a later one.
  for (size_t other = 1; other < kernel.outputs.size(); ++other)
    if (kernel.values[size_t(kernel.outputs[other])].axes.size() >= kernel.values[size_t(output)].axes.size()) return {};
  std::vector<size_t> positions;
  for (size_t position = 0; position < kernel.inputs.size(); ++position)
    if (std::ranges::count(kernel.inputs, kernel.inputs[position]) == 1 &&
        sameElements(kernel, kernel.inputs[position], configuration.inputs[position], output, configuration.outputs.front()))
      positions.push_back(position);
  return positions;
}

}  // namespace weft
