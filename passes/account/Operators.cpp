// Operators and what they count; see Operators.h. The rules that find them are in
// OperatorGroups.cpp.
#include "passes/account/Operators.h"

#include "passes/account/OperatorGroups.h"

#include <algorithm>
#include <map>
#include <set>

namespace weft {
namespace {

int64_t elementsOf(const FlowTensor &tensor) {
  int64_t elements = 1;
  for (const Axis &axis : tensor.axes) elements *= axis.extent;
  return elements;
}

/// Whether the tensor is known outside of the ops that are marked as inside.
bool leaves(const AccountedOps &accounted, int tensor, const std::set<int> &inside) {
  if (accounted.returned.contains(tensor)) return true;
  const auto readers = accounted.readers.find(tensor);
  return readers == accounted.readers.end() ||
         std::any_of(readers->second.begin(), readers->second.end(),
                     [&](int op) { return !inside.contains(op); });
}

OperatorClass heavier(OperatorClass a, OperatorClass b) {
  return std::min(a, b);
}  // in order of the enumeration

/// The factor of the contraction that feeds a softmax: 1 flop an element, counted with the softmax.
double foldedFactor(const Dataflow &flow, const FlowOp &op) {
  if (op.kind != OpKind::softmax) return 0;
  const FlowTensor &scores = flow.tensors[size_t(op.operands.at(0))];
  if (scores.producer < 0) return 0;
  const auto &attributes = flow.ops[size_t(scores.producer)].attributes;
  const auto scale = attributes.find("scale");
  const double *factor = scale == attributes.end() ? nullptr : std::get_if<double>(&scale->second);
  return factor && *factor != 1 ? double(elementsOf(scores)) : 0;
}

std::string joinedKinds(const Dataflow &flow, const std::vector<int> &ops) {
  std::string text;
  std::set<OpKind> seen;
  for (const int op : ops)
    if (const OpKind kind = flow.ops[size_t(op)].kind; seen.insert(kind).second)
      text += fmt::format("{}{}", text.empty() ? "" : " + ", nameOf(kind));
  return text;
}

Operator accountFor(const AccountedOps &accounted, const std::vector<int> &ops) {
  const Dataflow &flow = accounted.flow;
  Operator result{.kind = joinedKinds(flow, ops),
                  .results = {},
                  .operatorClass = OperatorClass::elementwise,
                  .ops = ops};
  const std::set<int> inside(ops.begin(), ops.end());
  std::set<int> written, read;
  for (const int op : ops) {
    const AccountedOp &view = accounted.ops[size_t(op)];
    const FlowOp &flowOp = flow.ops[size_t(op)];
    result.operatorClass = heavier(result.operatorClass, flowOp.operatorClass);
    if (!view.isInsideSum) {
      result.flop += flowOp.flop + foldedFactor(flow, flowOp);
      for (const int tensor : flowOp.results)
        result.results.push_back(flow.tensors[size_t(tensor)].name);
    }
    written.insert(view.results.begin(), view.results.end());
    read.insert(view.operands.begin(), view.operands.end());
    result.elementsRead += view.masksRead;
    result.elementsWritten += view.masksWritten;
  }
  for (const int tensor : read)
    if (!written.contains(tensor)) result.elementsRead += elementsOf(accounted.tensor(tensor));
  for (const int tensor : written)
    if (leaves(accounted, tensor, inside))
      result.elementsWritten += elementsOf(accounted.tensor(tensor));
  return result;
}

}  // namespace

std::vector<Operator> operatorsOf(const Dataflow &flow) {
  const AccountedOps accounted = groupOps(flow);
  std::map<int, std::vector<int>> groups;  // by the first op of each
  for (size_t op = 0; op < flow.ops.size(); ++op)
    if (flow.ops[op].operatorClass != OperatorClass::movement)
      groups[accounted.ops[op].group].push_back(int(op));
  std::vector<Operator> operators;
  for (const auto &[first, ops] : groups) operators.push_back(accountFor(accounted, ops));
  return operators;
}

std::vector<ClassShare> classShares(const std::vector<Operator> &operators) {
  std::map<OperatorClass, ClassShare> shares;
  for (const Operator &one : operators) {
    ClassShare &share = shares[one.operatorClass];
    share.operatorClass = one.operatorClass;
    share.flop += one.flop;
    ++share.operators;
  }
  std::vector<ClassShare> list;
  for (const auto &[operatorClass, share] : shares) list.push_back(share);
  return list;
}

int64_t bytesOfKernel(const Dataflow &flow, const std::vector<int> &ops) {
  const std::set<int> inside(ops.begin(), ops.end());
  std::set<int> moved;
  const auto gathered = [&](int tensor) {  // of a pool of pages, what is read of it
    for (const int op : ops)
      if (flow.ops[size_t(op)].kind == OpKind::gatherPages &&
          flow.ops[size_t(op)].operands.front() == tensor)
        return flow.ops[size_t(op)].results.front();
    return tensor;
  };
  for (const int op : ops) {
    for (const int tensor : flow.ops[size_t(op)].operands)
      if (!inside.contains(flow.tensors[size_t(tensor)].producer)) moved.insert(tensor);
    for (const int tensor : flow.ops[size_t(op)].results) {
      const FlowTensor &result = flow.tensors[size_t(tensor)];
      const bool isRead = std::any_of(result.consumers.begin(), result.consumers.end(),
                                      [&](int reader) { return !inside.contains(reader); });
      if (result.leaves || isRead || result.consumers.empty()) moved.insert(tensor);
    }
  }
  int64_t bytes = 0;
  for (const int tensor : moved) bytes += flow.tensors[size_t(gathered(tensor))].bytes();
  return bytes;
}

int64_t separateBytes(const Dataflow &flow, const MovedShare &share) {
  int64_t bytes = 0;
  for (size_t op = 0; op < flow.ops.size(); ++op)
    if (flow.ops[op].operatorClass != OperatorClass::movement)
      bytes += int64_t(double(bytesOfKernel(flow, {int(op)})) * share(flow, {int(op)}));
  return bytes;
}

}  // namespace weft
