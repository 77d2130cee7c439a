// Walks from every local softmax up to a contraction and down to one.
#include "passes/attention/RecomposedSites.h"

#include <algorithm>
#include <optional>

namespace weft {
namespace {

class Sites {
public:
  explicit Sites(const Dataflow &flow) : flow(flow) {}

  std::optional<RecomposedSite> siteOf(const FlowOp &local) const {
    const FlowOp *first = contractionBehind(local.operands[0]);
    const FlowOp *scaling = scalingOf(local.results[0], local.entry);
    if (!first || !scaling) return std::nullopt;
    int read = scaling->results[0];
    const FlowOp *second = readerOf(read, local.entry);
    while (second && (second->kind == OpKind::cast || second->kind == OpKind::dropout)) {
      read = second->results[0];
      second = readerOf(read, local.entry);
    }
    if (!second || second->kind != OpKind::contract) return std::nullopt;
    return RecomposedSite{.first = first->number,
                          .local = local.number,
                          .scaling = scaling->number,
                          .second = second->number,
                          .name = flow.tensors[size_t(read)].name};
  }

private:
  int64_t elementsOf(int tensor) const {
    const FlowTensor &of = flow.tensors[size_t(tensor)];
    return of.bytes() / sizeOf(of.dtype);
  }

  /// The contraction that computes a tensor, perhaps by element-wise ops over all its axes.
  const FlowOp *contractionBehind(int tensor) const {
    const int producer = flow.tensors[size_t(tensor)].producer;
    if (producer < 0) return nullptr;
    const FlowOp &op = flow.ops[size_t(producer)];
    if (op.kind == OpKind::contract) return &op;
    if (op.operatorClass != OperatorClass::elementwise) return nullptr;
    for (const int operand : op.operands)
      if (elementsOf(operand) == elementsOf(tensor))
        if (const FlowOp *found = contractionBehind(operand)) return found;
    return nullptr;
  }

  /// The scaling of the forward pass, whose contraction is there as well.
  const FlowOp *scalingOf(int exponentials, int entry) const {
    for (const int consumer : flow.tensors[size_t(exponentials)].consumers) {
      const FlowOp &op = flow.ops[size_t(consumer)];
      if (op.entry != entry) continue;
      if (op.kind == OpKind::globalScaling && op.operands[0] == exponentials) return &op;
      if (op.kind == OpKind::dropout)
        if (const FlowOp *found = scalingOf(op.results[0], entry)) return found;
    }
    return nullptr;
  }

  const FlowOp *readerOf(int tensor, int entry) const {
    for (const int consumer : flow.tensors[size_t(tensor)].consumers)
      if (flow.ops[size_t(consumer)].entry == entry) return &flow.ops[size_t(consumer)];
    return nullptr;
  }

  const Dataflow &flow;
};

}  // namespace

std::vector<std::pair<int, int>> RecomposedSite::pairs() const {
  return {std::minmax(first, local), std::minmax(scaling, second)};
}

std::vector<RecomposedSite> recomposedSites(const Dataflow &flow) {
  const Sites walk(flow);
  std::vector<RecomposedSite> sites;
  for (const FlowOp &op : flow.ops)
    if (op.kind == OpKind::localSoftmax)
      if (std::optional<RecomposedSite> site = walk.siteOf(op)) sites.push_back(std::move(*site));
  return sites;
}

}  // namespace weft
