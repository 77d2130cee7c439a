// From ops of a dataflow graph to the canonical kernel. The only question of substance is which
// tensor dimensions are one kernel axis: two dimensions are, exactly if some op walks both along
// one of its axes (union-find over uses). Ops without any tensor in common but offsets ("launch
// merging") correspond axis by axis, by position.
#include "kernel/Error.h"
#include "passes/fuse/Dataflow.h"
#include "passes/fuse/FusionRules.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

namespace weft {
namespace {

/// Union-find over dimension uses; copies are cheap (a kernel has a few dozen dimensions).
class Partition {
public:
  int add() {
    parent.push_back(static_cast<int>(parent.size()));
    return parent.back();
  }
  int find(int node) const {
    while (parent[node] != node) node = parent[node];
    return node;
  }
  void unite(int a, int b) {
    a = find(a), b = find(b);
    parent[std::max(a, b)] = std::min(a, b);
  }

private:
  std::vector<int> parent;
};

/// One tensor as the kernel sees it: an input under one index map, or a result.
struct Use {
  int tensor = -1;
  std::vector<int> nodes;  ///< partition node of each dimension
};

class Binder {
public:
  Binder(const Dataflow &flow, std::vector<int> chosen) : flow(flow), ops(std::move(chosen)) {
    std::sort(ops.begin(), ops.end());
    for (int op : ops)
      for (int tensor : flow.ops[op].results) defined.insert(tensor);
  }

  BoundKernel bind(const std::string &name, const KernelSignature *signature) {
    for (int op : ops) addOp(op);
    mergeComponents();
    if (signature) orderInputs(*signature);
    return build(name, signature ? signature->outputs : leavingTensors());
  }

private:
  struct BoundOp {
    std::vector<int> operands, results;  ///< use indices
    std::vector<int> axes;               ///< partition node of each local axis
  };

  int addUse(int tensor) {
    Use use{.tensor = tensor, .nodes = {}};
    for (size_t dimension = 0; dimension < flow.tensors[tensor].axes.size(); ++dimension)
      use.nodes.push_back(partition.add());
    uses.push_back(std::move(use));
    return static_cast<int>(uses.size()) - 1;
  }

  void tie(const BoundOp &bound, int use, const std::vector<int> &localAxes) {
    for (size_t dimension = 0; dimension < localAxes.size(); ++dimension)
      partition.unite(uses[use].nodes[dimension], bound.axes[localAxes[dimension]]);
  }

  /// True if no op would have two of its axes in one class.
  bool axesStayDistinct() const {
    for (const auto &[op, bound] : boundOps) {
      std::set<int> classes;
      for (int node : bound.axes)
        if (!classes.insert(partition.find(node)).second) return false;
    }
    return true;
  }

  void addOp(int op) {
    const FlowOp &flowOp = flow.ops[op];
    int localAxes = 0;
    for (const auto *maps : {&flowOp.operandAxes, &flowOp.resultAxes})
      for (const std::vector<int> &map : *maps)
        for (int axis : map) localAxes = std::max(localAxes, axis + 1);
    BoundOp &bound = boundOps[op];
    for (int axis = 0; axis < localAxes; ++axis) bound.axes.push_back(partition.add());
    for (size_t operand = 0; operand < flowOp.operands.size(); ++operand)
      bound.operands.push_back(
          isValuesOfAttention(flowOp, operand)
              ? addInput(bound, flowOp.operands[operand], flowOp.operandAxes[operand])
              : bindOperand(bound, flowOp.operands[operand], flowOp.operandAxes[operand]));
    for (size_t result = 0; result < flowOp.results.size(); ++result) {
      const int use = addUse(flowOp.results[result]);
      produced[flowOp.results[result]] = use;
      tie(bound, use, flowOp.resultAxes[result]);
      bound.results.push_back(use);
    }
  }

  /// Reads an earlier use of the tensor if the index maps agree, else adds an input.
  int bindOperand(BoundOp &bound, int tensor, const std::vector<int> &localAxes) {
    const bool internal = defined.count(tensor) != 0;
    std::vector<int> earlier = internal ? std::vector<int>{produced.at(tensor)} : inputUses[tensor];
    for (int use : earlier) {
      const Partition before = partition;
      tie(bound, use, localAxes);
      if (axesStayDistinct()) return use;
      partition = before;
    }
    if (internal)
      throw Error::unsupported("tensor '{}' is read under two index maps inside one kernel",
                               flow.tensors[tensor].name);
    return addInput(bound, tensor, localAxes);
  }

  int addInput(BoundOp &bound, int tensor, const std::vector<int> &localAxes) {
    const int use = addUse(tensor);
    tie(bound, use, localAxes);
    inputUses[tensor].push_back(use);
    inputOrder.push_back(use);
    return use;
  }

  /// Keys that are values, too, come to an attention as two inputs: its kernels give a tile of each
  /// its own memory, and columns of the one are no columns of the other.
  bool isValuesOfAttention(const FlowOp &op, size_t operand) const {
    return op.kind == OpKind::onlineSoftmaxContract && operand == 1 &&
           !defined.contains(op.operands[operand]);
  }

  /// The dimensions that independent ops share by position: those of the widest tensor, results
  /// first, first in order. Only a reduction has an operand that is wider than its results.
  const Use &widestTensor(const std::vector<int> &component) const {
    const Use *widest = &uses[boundOps.at(component.front()).results.front()];
    for (const auto tensors : {&BoundOp::results, &BoundOp::operands})
      for (int op : component)
        for (int use : boundOps.at(op).*tensors)
          if (uses[use].nodes.size() > widest->nodes.size()) widest = &uses[use];
    return *widest;
  }

  /// Ops that share no tensor, or nothing but the offsets of masks of tokens: these have no axis of
  /// the iteration space.
  std::vector<std::vector<int>> connectedComponents() const {
    std::map<int, int> ownerOfUse;
    Partition groups;
    for (size_t i = 0; i < ops.size(); ++i) groups.add();
    for (size_t i = 0; i < ops.size(); ++i) {
      const BoundOp &bound = boundOps.at(ops[i]);
      for (const auto *list : {&bound.operands, &bound.results})
        for (int use : *list) {
          if (list == &bound.operands && use != list->front() && masksTokens(flow.ops[ops[i]]))
            continue;
          auto [owner, isNew] = ownerOfUse.emplace(use, static_cast<int>(i));
          if (!isNew) groups.unite(owner->second, static_cast<int>(i));
        }
    }
    std::map<int, std::vector<int>> members;
    for (size_t i = 0; i < ops.size(); ++i)
      members[groups.find(static_cast<int>(i))].push_back(ops[i]);
    std::vector<std::vector<int>> result;
    for (auto &[root, component] : members) result.push_back(std::move(component));
    return result;
  }

  void mergeComponents() {
    const std::vector<std::vector<int>> components = connectedComponents();
    for (size_t i = 1; i < components.size(); ++i) {
      const Use &first = widestTensor(components.front()), &other = widestTensor(components[i]);
      if (first.nodes.size() != other.nodes.size()) continue;
      const std::vector<Axis> &a = flow.tensors[first.tensor].axes,
                              &b = flow.tensors[other.tensor].axes;
      if (!std::equal(a.begin(), a.end(), b.begin(),
                      [](const Axis &x, const Axis &y) { return x.extent == y.extent; }))
        continue;
      const Partition before = partition;
      for (size_t dimension = 0; dimension < first.nodes.size(); ++dimension)
        partition.unite(first.nodes[dimension], other.nodes[dimension]);
      if (!axesStayDistinct()) partition = before;
    }
  }

  /// Kernel axis of a partition class, numbered in order of first appearance.
  AxisId axisOf(int node, const Axis &label) {
    const int root = partition.find(node);
    auto [entry, isNew] = axisOfClass.emplace(root, static_cast<int>(kernel.axes.size()));
    if (isNew)
      kernel.axes.push_back(
          Axis{.name = uniqueName(label.name.empty() ? "n" : label.name, axisNames),
               .extent = label.extent});
    return entry->second;
  }

  static std::string uniqueName(const std::string &wanted, std::set<std::string> &taken) {
    std::string name = wanted;
    for (int suffix = 2; !taken.insert(name).second; ++suffix)
      name = wanted + std::to_string(suffix);
    return name;
  }

  ValueId addValue(int use) {
    const FlowTensor &tensor = flow.tensors[uses[use].tensor];
    Value value{.name = uniqueName(tensor.name, valueNames),
                .dtype = tensor.dtype,
                .axes = {},
                .number = -1};
    if (tensor.producer >= 0) value.number = flow.ops[tensor.producer].number;
    for (size_t dimension = 0; dimension < tensor.axes.size(); ++dimension)
      value.axes.push_back(axisOf(uses[use].nodes[dimension], tensor.axes[dimension]));
    kernel.values.push_back(std::move(value));
    valueOfUse[use] = static_cast<int>(kernel.values.size()) - 1;
    return valueOfUse[use];
  }

  BodyOp bodyOf(int op) {
    const FlowOp &flowOp = flow.ops[op];
    const BoundOp &bound = boundOps.at(op);
    BodyOp body{.kind = flowOp.kind,
                .operatorClass = flowOp.operatorClass,
                .operands = {},
                .results = {},
                .reducedAxes = {},
                .attributes = flowOp.attributes,
                .expression = {},
                .flop = flowOp.flop,
                .number = flowOp.number};
    for (int use : bound.operands) body.operands.push_back(valueOfUse.at(use));
    for (int use : bound.results) body.results.push_back(addValue(use));
    for (int axis : flowOp.reduced)
      body.reducedAxes.push_back(axisOfClass.at(partition.find(bound.axes[axis])));
    std::sort(body.reducedAxes.begin(), body.reducedAxes.end());
    if (!flowOp.expression.empty())
      body.expression = flowOp.expression.withAxes(kernel.values[body.results[0]].axes);
    return body;
  }

  AxisSets spaceOf(int op) const {
    const auto kernelAxes = [&](const std::vector<int> &local) {
      std::set<int> axes;
      for (int axis : local)
        axes.insert(axisOfClass.at(partition.find(boundOps.at(op).axes[axis])));
      return axes;
    };
    return {.independent = kernelAxes(flow.ops[op].independent),
            .reduced = kernelAxes(flow.ops[op].reduced)};
  }

  bool leavesKernel(int tensor) const {
    const FlowTensor &flowTensor = flow.tensors[tensor];
    const auto inside = [&](int consumer) {
      return std::binary_search(ops.begin(), ops.end(), consumer);
    };
    return flowTensor.leaves || flowTensor.consumers.empty() ||
           !std::all_of(flowTensor.consumers.begin(), flowTensor.consumers.end(), inside);
  }

  /// The graph's order, but a contraction that needs no other op goes first: families know its
  /// kernels by that.
  std::vector<int> bodyOrder() const {
    std::vector<int> order = ops;
    const auto isDefined = [&](int tensor) { return defined.contains(tensor); };
    std::ranges::stable_partition(order, [&](int op) {
      return flow.ops[op].operatorClass == OperatorClass::contraction &&
             std::ranges::none_of(flow.ops[op].operands, isDefined);
    });
    return order;
  }

  /// In the order of the body, but behind a contraction sums come last: families know its result by
  /// the first.
  std::vector<int> leavingTensors() const {
    std::vector<int> tensors;
    for (int op : bodyOrder())
      for (int tensor : flow.ops[op].results)
        if (leavesKernel(tensor)) tensors.push_back(tensor);
    const bool isContraction =
        flow.ops[bodyOrder().front()].operatorClass == OperatorClass::contraction;
    const auto hasAxesOfResult = [&](int tensor) {
      const FlowOp &op = flow.ops[flow.tensors[tensor].producer];
      return op.kind != OpKind::reduce &&
             (op.kind != OpKind::localSoftmax || leavesKernel(op.results[0]));
    };
    if (isContraction) std::ranges::stable_partition(tensors, hasAxesOfResult);
    return tensors;
  }

  /// A region fixes its inputs, whether it reads them or not.
  void orderInputs(const KernelSignature &signature) {
    inputOrder.clear();
    for (int tensor : signature.inputs) {
      std::vector<int> &readers = inputUses[tensor];
      if (readers.empty()) readers.push_back(addUse(tensor));
      if (readers.size() > 1)
        throw Error::unsupported(
            "kernel region reads its argument '{}' under two index maps; pass the tensor twice",
            flow.tensors[tensor].name);
      inputOrder.push_back(readers.front());
    }
  }

  BoundKernel build(const std::string &name, const std::vector<int> &outputs) {
    kernel.name = name;
    BoundKernel result;
    for (int use : inputOrder) {
      kernel.inputs.push_back(addValue(use));
      result.inputs.push_back(uses[use].tensor);
    }
    for (int op : bodyOrder()) {
      kernel.body.push_back(bodyOf(op));
      result.spaces.push_back(spaceOf(op));
    }
    for (int tensor : outputs) {
      const auto use = produced.find(tensor);
      if (use == produced.end())
        throw Error::unsupported("kernel '{}' returns its input '{}'", name,
                                 flow.tensors[tensor].name);
      kernel.outputs.push_back(valueOfUse.at(use->second));
      result.outputs.push_back(tensor);
    }
    verify(kernel);
    result.kernel = std::move(kernel);
    return result;
  }

  const Dataflow &flow;
  std::vector<int> ops;
  std::set<int> defined;  ///< tensors produced inside
  Partition partition;
  std::vector<Use> uses;
  std::map<int, BoundOp> boundOps;            ///< by op index
  std::map<int, int> produced;                ///< tensor -> use, for results
  std::map<int, std::vector<int>> inputUses;  ///< tensor -> uses, for inputs
  std::vector<int> inputOrder;                ///< uses, in order of first read

  Kernel kernel;
  std::map<int, AxisId> axisOfClass;
  std::map<int, ValueId> valueOfUse;
  std::set<std::string> axisNames, valueNames;
};

std::string countedName(const std::string &name, int count) {
  return count == 1 ? name : name + "_x" + std::to_string(count);
}

/// "q_projection" with a weight, "score_contraction" without, "contract_phbj" where the graph gives
/// no name.
std::string contractionName(const Dataflow &flow, const FlowOp &op) {
  if (!op.label.starts_with(nameOf(op.kind))) {
    const bool hasWeight = std::any_of(op.operands.begin(), op.operands.end(), [&](int operand) {
      return flow.tensors[operand].isParameter;
    });
    std::string what = op.label;
    for (const std::string_view end : {"_unmasked", "_product"})  // a mask has the name beside it
      if (what.size() > end.size() && what.ends_with(end)) what.resize(what.size() - end.size());
    return what + (hasWeight ? "_projection" : "_contraction");
  }
  std::string name = std::string(nameOf(op.kind)) + "_";
  for (const Axis &axis : flow.tensors[op.results.front()].axes) name += axis.name;
  return name;
}

/// Probabilities computed again, and all contractions around them.
bool isAttentionBackward(const Dataflow &flow, const std::vector<int> &ops) {
  const auto isProbability = [&](int op) {
    return flow.ops[op].kind == OpKind::softmaxFromLogSums;
  };
  const auto isContraction = [&](int op) {
    return flow.ops[op].operatorClass == OperatorClass::contraction;
  };
  return std::ranges::any_of(ops, isProbability) && std::ranges::count_if(ops, isContraction) > 1;
}

/// With the ops on its scores behind it.
std::string attentionBackwardName(const Dataflow &flow, const std::vector<int> &ops) {
  std::string name = "attention_backward";
  for (const int op : ops) {
    if (flow.ops[op].kind == OpKind::softmaxFromLogSums) break;
    if (flow.ops[op].operatorClass == OperatorClass::contraction) continue;
    name += "_" + std::string(nameOf(flow.ops[op].kind));
  }
  return name;
}

}  // namespace

int64_t FlowTensor::bytes() const {
  int64_t elements = 1;
  for (const Axis &axis : axes) elements *= axis.extent;
  return elements * sizeOf(dtype);
}

std::string kernelName(const Dataflow &flow, const std::vector<int> &ops) {
  std::vector<int> sorted = ops;
  std::sort(sorted.begin(), sorted.end());
  if (isAttentionBackward(flow, sorted)) return attentionBackwardName(flow, sorted);
  const bool isAttention = sorted.size() > 1 && std::ranges::any_of(sorted, [&](int op) {
                             return flow.ops[op].kind == OpKind::onlineSoftmaxContract;
                           });
  std::vector<std::pair<std::string, int>> runs;
  if (isAttention) runs.emplace_back("attention", 1);
  for (int op : sorted) {
    const FlowOp &flowOp = flow.ops[op];
    if (isAttention && flowOp.operatorClass == OperatorClass::contraction) continue;
    const std::string part = flowOp.operatorClass == OperatorClass::contraction
                                 ? contractionName(flow, flowOp)
                                 : std::string(nameOf(flowOp.kind));
    if (!runs.empty() && runs.back().first == part) ++runs.back().second;
    else runs.emplace_back(part, 1);
  }
  std::string name;
  for (const auto &[part, count] : runs)
    name += (name.empty() ? "" : "_") + countedName(part, count);
  return name;
}

BoundKernel bindKernel(const Dataflow &flow, const std::vector<int> &ops, const std::string &name,
                       const KernelSignature *signature) {
  if (ops.size() == 1 && flow.ops[ops.front()].region) {
    const FlowOp &op = flow.ops[ops.front()];
    return BoundKernel{
        .kernel = *op.region, .inputs = op.operands, .outputs = op.results, .spaces = {}};
  }
  return Binder(flow, ops).bind(name.empty() ? kernelName(flow, ops) : name, signature);
}

}  // namespace weft
