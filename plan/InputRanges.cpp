// Scales and ranges of a plan's arguments; see InputRanges.h.
#include "plan/InputRanges.h"

#include "kernel/Append.h"
#include "kernel/Attributes.h"
#include "kernel/CoordinateExpressions.h"
#include "kernel/MaskKind.h"
#include "kernel/PositiveValues.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace weft {
namespace {

struct Sensible {
  double scale = 1;
  bool isPositive = false, countsTokens = false, isIndex = false;
  int64_t pagePositions = 0;
  std::array<int64_t, 2> range{0, std::numeric_limits<int32_t>::max()};
};

/// Tokens that fit, of pack and unpack.
int64_t mostTokens(const Kernel &kernel, const BodyOp &op) {
  const bool packs = op.kind == OpKind::pack;
  const auto &pair = attributeOf(op, packs ? attribute::axes : attribute::into);
  const Value &padded = kernel.values[size_t(packs ? op.operands[0] : op.results[0])];
  int64_t tokens = 1;
  for (const int64_t dimension : pair)
    tokens *= kernel.axes[size_t(padded.axes[size_t(dimension)])].extent;
  return tokens;
}

/// What one body op asks of its operand number `operand`.
void restrict(const Kernel &kernel, const BodyOp &op, size_t operand, Sensible &sensible) {
  const auto extentOf = [&](ValueId value, size_t dimension) {
    return kernel.axes[size_t(kernel.values[size_t(value)].axes[dimension])].extent;
  };
  // 8-bit floats come with separate scales, and use the range that they have.
  if (op.kind == OpKind::contract && sensible.scale == 1 &&
      !isFloat8(kernel.values[size_t(op.operands[operand])].dtype)) {
    double summed = 1;
    for (const AxisId axis : op.reducedAxes) summed *= double(kernel.axes[size_t(axis)].extent);
    sensible.scale = 1 / std::sqrt(summed);
  }
  if (op.kind == OpKind::gather && operand == 1) {
    sensible.isIndex = true;
    sensible.range[1] = std::min(sensible.range[1], extentOf(op.operands[0], 0) - 1);
  }
  if ((op.kind == OpKind::pack || op.kind == OpKind::unpack) && operand == 1)
    sensible.range[1] = std::min(sensible.range[1], mostTokens(kernel, op));
  if (op.kind == OpKind::offsets) {
    sensible.countsTokens = true;
    sensible.range[1] = std::min(sensible.range[1], attributeOf(op, attribute::bound));
  }
  if (op.kind == OpKind::lengths) sensible.countsTokens = true;
  if ((op.kind == OpKind::crossEntropy || op.kind == OpKind::crossEntropyDx) && operand == 1)
    sensible.range[1] = std::min(
        sensible.range[1], extentOf(op.operands[0], size_t(attributeOf(op, attribute::axis))) - 1);
  if (op.kind == OpKind::append && operand == appendStarts) {
    sensible.countsTokens = true;
    sensible.range[1] = std::min(sensible.range[1], mostCached(kernel, op));
  }
  if ((op.kind == OpKind::append && operand == appendTable) ||
      (op.kind == OpKind::gatherPages && operand == 1)) {
    const int pages = op.operands.front();
    sensible.pagePositions = extentOf(pages, appendAxis(op));
    sensible.range[1] = std::min(sensible.range[1], extentOf(pages, appendAlong(op)) - 1);
  }
  if (operand == 1 && maskKind(op) == MaskShape::Kind::padding) sensible.countsTokens = true;
  if (op.kind == OpKind::mask && operand == 1 && hasAttribute(op, attribute::key))
    sensible.range[1] = std::min(
        sensible.range[1], isDocumentMask(op)
                               ? mostRandomSegment
                               : extentOf(op.operands[0], size_t(attributeOf(op, attribute::key))));
}

/// Each op stands alone in some candidate; a concatenation hands on the scale that is asked of its
/// result, and a packing the range: indices that are packed before they address a table.
class Ranges {
public:
  explicit Ranges(const select::Problem &problem)
      : problem(problem), found(problem.tensors.size()) {
    for (const select::Candidate &candidate : problem.candidates)
      if (candidate.ops.size() == 1) visit(candidate);
    for (auto candidate = problem.candidates.rbegin(); candidate != problem.candidates.rend();
         ++candidate)
      if (candidate->ops.size() == 1) handOn(*candidate);
    requirePositive();
  }

  const Sensible &of(size_t tensor) const { return found[tensor]; }

private:
  void visit(const select::Candidate &candidate) {
    const Kernel &kernel = candidate.kernel;
    for (const BodyOp &op : kernel.body)
      for (size_t operand = 0; operand < op.operands.size(); ++operand)
        for (size_t input = 0; input < kernel.inputs.size(); ++input)
          if (kernel.inputs[input] == op.operands[operand])
            restrict(kernel, op, operand, found[size_t(candidate.inputs[input])]);
  }

  void handOn(const select::Candidate &candidate) {
    const OpKind kind = candidate.kernel.body.front().kind;
    const Sensible &result = found[size_t(candidate.outputs.front())];
    if (kind == OpKind::concat)
      for (const int input : candidate.inputs) found[size_t(input)].scale = result.scale;
    if (kind != OpKind::pack) return;
    int64_t &highest = found[size_t(candidate.inputs.front())].range[1];
    highest = std::min(highest, result.range[1]);
  }

  /// Backward over the graph: readers of a tensor come before its writer.
  void requirePositive() {
    std::vector<const select::Candidate *> kernelOf(problem.ops.size());
    for (const select::Candidate &candidate : problem.candidates)
      if (candidate.ops.size() == 1) kernelOf[size_t(candidate.ops.front())] = &candidate;
    for (auto op = kernelOf.rbegin(); op != kernelOf.rend(); ++op) {
      if (*op == nullptr) continue;
      const Kernel &kernel = (*op)->kernel;
      std::vector<bool> required(kernel.values.size(), false);
      for (size_t output = 0; output < kernel.outputs.size(); ++output)
        required[size_t(kernel.outputs[output])] = found[size_t((*op)->outputs[output])].isPositive;
      const std::vector<bool> values = positiveValues(kernel, std::move(required));
      for (size_t input = 0; input < kernel.inputs.size(); ++input)
        if (values[size_t(kernel.inputs[input])])
          found[size_t((*op)->inputs[input])].isPositive = true;
    }
  }

  const select::Problem &problem;
  std::vector<Sensible> found;
};

}  // namespace

void setInputRanges(Plan &plan, const select::Problem &problem) {
  const Ranges ranges(problem);
  for (PlanTensor &tensor : plan.tensors) {
    const auto source = std::ranges::find(problem.tensors, tensor.logical, &select::Tensor::name);
    if (source == problem.tensors.end()) continue;
    const Sensible &sensible = ranges.of(size_t(source - problem.tensors.begin()));
    // Kernels report indices that they read, also those that were packed before.
    if (sensible.isIndex) tensor.range = sensible.range;
    if (!source->isArgument) continue;
    if (tensor.dtype == DType::i1) {
      tensor.range = {0, 1};
      tensor.countsTokens = sensible.countsTokens;
    } else if (tensor.dtype == DType::i32) {
      tensor.range = sensible.range;
      tensor.countsTokens = sensible.countsTokens;
      tensor.pagePositions = sensible.pagePositions;
    } else {
      tensor.positive = sensible.isPositive;
      if (source->isParameter) tensor.scale = sensible.scale;
    }
  }
}

}  // namespace weft
