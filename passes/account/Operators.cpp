// Operators and what they count; see Operators.h. The rules that find them are in
// OperatorGroups.cpp.
#include "passes/account/Operators.h"

#include "kernel/Append.h"
#include "kernel/Attributes.h"
#include "passes/account/OperatorGroups.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace weft {
namespace {

int64_t elementsOf(const FlowTensor &tensor) {
  int64_t elements = 1;
  for (const Axis &axis : tensor.axes) elements *= axis.extent;
  return elements;
}

/// Of a tensor's elements, those that count; a sum goes by the name of the tensor that it becomes.
int64_t counted(const AccountedOps &accounted, const WorkShares &shares, int tensor) {
  const FlowTensor &one = accounted.tensor(tensor);
  if (shares.tensors.empty()) return elementsOf(one);
  const auto &known = accounted.flow.tensors;
  const auto at =
      size_t(tensor) < known.size()
          ? size_t(tensor)
          : size_t(std::ranges::find(known, one.name, &FlowTensor::name) - known.begin());
  return int64_t(std::llround(double(elementsOf(one)) * shares.tensors.at(at)));
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
double foldedFactor(const AccountedOps &accounted, const FlowOp &op, const WorkShares &shares) {
  if (op.kind != OpKind::softmax) return 0;
  const Dataflow &flow = accounted.flow;
  const FlowTensor &scores = flow.tensors[size_t(op.operands.at(0))];
  if (scores.producer < 0) return 0;
  const double factor = attributeOr(flow.ops[size_t(scores.producer)], attribute::scale, 1);
  return factor != 1 ? double(counted(accounted, shares, op.operands.at(0))) : 0;
}

std::string joinedKinds(const Dataflow &flow, const std::vector<int> &ops) {
  std::string text;
  std::set<OpKind> seen;
  for (const int op : ops)
    if (const OpKind kind = flow.ops[size_t(op)].kind; seen.insert(kind).second)
      text += fmt::format("{}{}", text.empty() ? "" : " + ", nameOf(kind));
  return text;
}

Operator accountFor(const AccountedOps &accounted, const std::vector<int> &ops,
                    const WorkShares &shares) {
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
      result.flop += flowOp.flop * (shares.ops.empty() ? 1 : shares.ops[size_t(op)]) +
                     foldedFactor(accounted, flowOp, shares);
      for (const int tensor : flowOp.results)
        result.results.push_back(flow.tensors[size_t(tensor)].name);
    }
    written.insert(view.results.begin(), view.results.end());
    read.insert(view.operands.begin(), view.operands.end());
    result.elementsRead += view.masksRead;
    result.elementsWritten += view.masksWritten;
  }
  for (const int tensor : read)
    if (!written.contains(tensor)) result.elementsRead += counted(accounted, shares, tensor);
  for (const int tensor : written)
    if (leaves(accounted, tensor, inside))
      result.elementsWritten += counted(accounted, shares, tensor);
  return result;
}

}  // namespace

std::vector<Operator> operatorsOf(const Dataflow &flow, const WorkShares &shares) {
  const AccountedOps accounted = groupOps(flow);
  std::map<int, std::vector<int>> groups;  // by the first op of each
  for (size_t op = 0; op < flow.ops.size(); ++op)
    if (flow.ops[op].operatorClass != OperatorClass::movement)
      groups[accounted.ops[op].group].push_back(int(op));
  std::vector<Operator> operators;
  for (const auto &[first, ops] : groups) operators.push_back(accountFor(accounted, ops, shares));
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
  int64_t bytes = 0;
  for (const int op : ops) {
    const FlowOp &own = flow.ops[size_t(op)];
    const bool appends = own.kind == OpKind::append;
    for (const int tensor : own.operands)
      if (!inside.contains(flow.tensors[size_t(tensor)].producer) &&
          !(appends && tensor == own.operands[appendedCache]))
        moved.insert(tensor);
    if (appends) {  // of the cache, what is written into it
      bytes += flow.tensors[size_t(own.operands[appendedTokens])].bytes();
      continue;
    }
    for (const int tensor : flow.ops[size_t(op)].results) {
      const FlowTensor &result = flow.tensors[size_t(tensor)];
      const bool isRead = std::any_of(result.consumers.begin(), result.consumers.end(),
                                      [&](int reader) { return !inside.contains(reader); });
      if (result.leaves || isRead || result.consumers.empty()) moved.insert(tensor);
    }
  }
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
