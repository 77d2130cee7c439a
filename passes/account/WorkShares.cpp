// What counts of an op's work: by masks, and by the labels of axes of tokens; see Operators.h.
#include "kernel/Attributes.h"
#include "kernel/CoordinateExpressions.h"
#include "kernel/Error.h"
#include "kernel/VisibleWork.h"
#include "passes/account/Operators.h"

#include <algorithm>
#include <optional>
#include <set>

namespace weft {
namespace {

/// Each op as a kernel alone; nothing of one that is none by itself.
std::vector<std::optional<Kernel>> kernelsOf(const Dataflow &flow) {
  std::vector<std::optional<Kernel>> kernels(flow.ops.size());
  for (size_t op = 0; op < flow.ops.size(); ++op) try {
      if (!flow.ops[op].region) kernels[op] = bindKernel(flow, {int(op)}).kernel;
    } catch (const Error &) {  // several axes of one operand are one
    }
  return kernels;
}

VisibleShares maskedShares(const Dataflow &flow) {
  const std::vector<std::optional<Kernel>> kernels = kernelsOf(flow);
  std::vector<PlacedTensor> tensors;
  for (const FlowTensor &tensor : flow.tensors) {
    PlacedTensor placed{.extents = {}, .isResult = tensor.leaves};
    for (const Axis &axis : tensor.axes) placed.extents.push_back(axis.extent);
    tensors.push_back(std::move(placed));
  }
  std::vector<PlacedOp> ops;
  for (size_t op = 0; op < flow.ops.size(); ++op) {
    const bool isOne = kernels[op] && kernels[op]->body.size() == 1;
    ops.push_back({.kernel = isOne ? &*kernels[op] : nullptr,
                   .body = isOne ? &kernels[op]->body.front() : nullptr,
                   .inputs = flow.ops[op].operands,
                   .outputs = flow.ops[op].results});
  }
  return visibleShares(ops, tensors);
}

/// Labels of axes along which there are less tokens than the extent says.
struct TokenAxes {
  std::set<std::string> tokens, positions;

  explicit TokenAxes(const Dataflow &flow) {
    for (const FlowOp &op : flow.ops) {
      if (op.kind == OpKind::pack) {
        const auto &axes = attributeOf(op, attribute::axes);
        add(positions, flow.tensors[size_t(op.operands.front())], axes[1]);
        add(tokens, flow.tensors[size_t(op.results.front())],
            axes[0] - (axes[0] > axes[1] ? 1 : 0));
      } else if (op.kind == OpKind::unpack) {
        add(positions, flow.tensors[size_t(op.results.front())],
            attributeOf(op, attribute::into)[1]);
        add(tokens, flow.tensors[size_t(op.operands.front())], attributeOf(op, attribute::axis));
      }
      if (op.kind != OpKind::mask) continue;
      using Kind = MaskShape::Kind;
      const std::optional<Kind> kind = maskKindNamed(attributeOf(op, attribute::kind));
      const FlowTensor &masked = flow.tensors[size_t(op.operands.front())];
      const bool isCached = kind == Kind::causal && op.operands.size() > 1;
      if (kind == Kind::padding || isCached)
        add(positions, masked, attributeOf(op, attribute::key));
      if (kind == Kind::tokens || kind == Kind::unread)
        add(tokens, masked, attributeOf(op, attribute::key));
    }
  }

  double share(const std::set<std::string> &labels, double ofTokens, double ofPairs) const {
    const auto isIn = [&](const std::set<std::string> &axes) {
      return std::ranges::count_if(labels, [&](const auto &label) { return axes.contains(label); });
    };
    const auto padded = isIn(positions);
    return padded > 1 ? ofPairs : padded == 1 || isIn(tokens) > 0 ? ofTokens : 1;
  }

private:
  static void add(std::set<std::string> &axes, const FlowTensor &tensor, int64_t dimension) {
    if (const std::string &label = tensor.axes[size_t(dimension)].name; !label.empty())
      axes.insert(label);
  }
};

void addLabels(std::set<std::string> &labels, const FlowTensor &tensor) {
  for (const Axis &axis : tensor.axes) labels.insert(axis.name);
}

}  // namespace

WorkShares workShares(const Dataflow &flow, double tokens, double pairs) {
  VisibleShares visible = maskedShares(flow);
  const TokenAxes axes(flow);
  for (size_t op = 0; op < flow.ops.size(); ++op) {
    std::set<std::string> labels;
    for (const int tensor : flow.ops[op].operands) addLabels(labels, flow.tensors[size_t(tensor)]);
    for (const int tensor : flow.ops[op].results) addLabels(labels, flow.tensors[size_t(tensor)]);
    visible.ops[op] *= axes.share(labels, tokens, pairs);
  }
  for (size_t tensor = 0; tensor < flow.tensors.size(); ++tensor) {
    std::set<std::string> labels;
    addLabels(labels, flow.tensors[tensor]);
    visible.tensors[tensor] *= axes.share(labels, tokens, pairs);
  }
  return {.ops = std::move(visible.ops), .tensors = std::move(visible.tensors)};
}

}  // namespace weft
