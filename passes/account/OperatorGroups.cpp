// The rules by which ops are one operator. Each joins sets of ops; a set is named by its first op.
#include "passes/account/OperatorGroups.h"

#include "passes/fuse/Reachability.h"

#include <algorithm>
#include <optional>
#include <string>

namespace weft {
namespace {

class Grouping {
public:
  explicit Grouping(const Dataflow &flow)
      : flow(flow),
        after(flow),
        accounted{.flow = flow, .ops = std::vector<AccountedOp>(flow.ops.size())} {
    for (size_t op = 0; op < flow.ops.size(); ++op) {
      AccountedOp &entry = accounted.ops[op];
      entry.group = int(op);
      entry.operands = flow.ops[op].operands;
      entry.results = flow.ops[op].results;
      if (flow.ops[op].operatorClass == OperatorClass::contraction) contractions.push_back(int(op));
    }
    for (size_t tensor = 0; tensor < flow.tensors.size(); ++tensor)
      if (flow.tensors[tensor].leaves) accounted.returned.insert(int(tensor));
  }

  AccountedOps take() {
    joinStacked();
    joinAlike();
    joinSummed();
    joinSoftmax();
    countMasks();
    for (size_t op = 0; op < accounted.ops.size(); ++op)
      for (const int tensor : accounted.ops[op].operands)
        accounted.readers[tensor].push_back(int(op));
    return std::move(accounted);
  }

private:
  const FlowOp &op(int index) const { return flow.ops[size_t(index)]; }
  const FlowTensor &tensor(int index) const { return flow.tensors[size_t(index)]; }
  bool isKind(int index, OpKind kind) const { return index >= 0 && op(index).kind == kind; }
  bool isAdd(int index) const {
    return isKind(index, OpKind::add) || isKind(index, OpKind::residual);
  }
  bool isContraction(int index) const {
    return index >= 0 && op(index).operatorClass == OperatorClass::contraction;
  }
  bool hasOneReader(int tensorIndex) const {
    return tensor(tensorIndex).consumers.size() == 1 && !tensor(tensorIndex).leaves;
  }
  bool readsParameter(int index) const {
    return std::any_of(op(index).operands.begin(), op(index).operands.end(),
                       [&](int operand) { return tensor(operand).isParameter; });
  }

  void join(int a, int b) {
    const int from = std::max(accounted.ops[size_t(a)].group, accounted.ops[size_t(b)].group);
    const int into = std::min(accounted.ops[size_t(a)].group, accounted.ops[size_t(b)].group);
    for (AccountedOp &entry : accounted.ops)
      if (entry.group == from) entry.group = into;
  }

  std::vector<int> members(int group) const {
    std::vector<int> list;
    for (const int contraction : contractions)
      if (accounted.ops[size_t(contraction)].group == group) list.push_back(contraction);
    return list;
  }

  /// Dimensions of the operand that the contraction sums over; nothing if the op does not read the
  /// tensor.
  std::optional<std::vector<size_t>> summedDimensions(int index, int tensorIndex) const {
    const FlowOp &contraction = op(index);
    for (size_t operand = 0; operand < contraction.operands.size(); ++operand) {
      if (contraction.operands[operand] != tensorIndex) continue;
      std::vector<size_t> dimensions;
      const std::vector<int> &axes = contraction.operandAxes[operand];
      for (size_t dimension = 0; dimension < axes.size(); ++dimension)
        if (std::find(contraction.reduced.begin(), contraction.reduced.end(), axes[dimension]) !=
            contraction.reduced.end())
          dimensions.push_back(dimension);
      return dimensions;
    }
    return std::nullopt;
  }

  bool couldBeStacked(int a, int b) const {
    if (after.reaches(a, b) || readsParameter(a) != readsParameter(b)) return false;
    return std::any_of(op(a).operands.begin(), op(a).operands.end(), [&](int operand) {
      const auto first = summedDimensions(a, operand), second = summedDimensions(b, operand);
      return !tensor(operand).isParameter && second && first == second;
    });
  }

  void joinStacked() {
    for (size_t a = 0; a < contractions.size(); ++a)
      for (size_t b = a + 1; b < contractions.size(); ++b)
        if (couldBeStacked(contractions[a], contractions[b]))
          join(contractions[a], contractions[b]);
  }

  /// Ops of one kind, each of which stands alone at another member of a group of contractions.
  void joinAlike() {
    std::set<int> groups;
    for (const int contraction : contractions)
      groups.insert(accounted.ops[size_t(contraction)].group);
    for (const int group : groups) {
      std::map<OpKind, std::map<int, std::set<int>>> kinds;  // kind -> member -> ops
      const std::vector<int> list = members(group);
      if (list.size() < 2) continue;
      for (const int member : list)
        for (const int neighbour : neighbours(member, list))
          kinds[op(neighbour).kind][member].insert(neighbour);
      for (const auto &[kind, byMember] : kinds)
        if (byMember.size() == list.size())
          for (const auto &[member, ops] : byMember)
            join(*byMember.begin()->second.begin(), *ops.begin());
    }
    for (const int contraction : contractions)
      for (const int operand : op(contraction).operands)
        if (isKind(tensor(operand).producer, OpKind::concat))
          joinAlikeParts(op(tensor(operand).producer).operands);
  }

  /// The same, where the group is one contraction already: each stands alone at another part of its
  /// stacked operand.
  void joinAlikeParts(const std::vector<int> &parts) {
    std::map<OpKind, std::map<int, int>> kinds;  // kind -> part -> op
    for (const int part : parts) {
      if (tensor(part).isParameter) continue;
      for (const int reader : readersFirst(part)) kinds[op(reader).kind].emplace(part, reader);
    }
    for (const auto &[kind, byPart] : kinds)
      if (byPart.size() == parts.size())
        for (const auto &[part, reader] : byPart) join(byPart.begin()->second, reader);
  }

  /// What reads a tensor as its first operand and is neither a contraction, an add nor movement.
  std::vector<int> readersFirst(int tensorIndex) const {
    std::vector<int> found;
    for (const int reader : tensor(tensorIndex).consumers)
      if (!isContraction(reader) && !isAdd(reader) &&
          op(reader).operatorClass != OperatorClass::movement &&
          op(reader).operands[0] == tensorIndex)
        found.push_back(reader);
    return found;
  }

  /// What reads the parts of a stacked tensor so, of kinds that every part has.
  std::vector<int> readersOfAll(const std::vector<int> &parts) const {
    std::vector<int> found;
    for (const int reader : readersFirst(parts[0])) {
      const auto hasAlike = [&](int part) {
        const std::vector<int> readers = readersFirst(part);
        return std::any_of(readers.begin(), readers.end(),
                           [&](int other) { return op(other).kind == op(reader).kind; });
      };
      if (std::all_of(parts.begin(), parts.end(), hasAlike)) found.push_back(reader);
    }
    return found;
  }

  /// What else reads a member's result, or, as its first operand, that operand of it which the
  /// other members do not share.
  std::vector<int> neighbours(int member, const std::vector<int> &list) const {
    std::vector<int> found;
    const auto add = [&](int tensorIndex) {
      const int producer = tensor(tensorIndex).producer;
      const std::vector<int> readers = isKind(producer, OpKind::concat)
                                           ? readersOfAll(op(producer).operands)
                                           : readersFirst(tensorIndex);
      found.insert(found.end(), readers.begin(), readers.end());
    };
    for (const int result : op(member).results) add(result);
    for (const int operand : op(member).operands) {
      const auto reads = [&](int other) {
        return std::count(op(other).operands.begin(), op(other).operands.end(), operand) > 0;
      };
      if (!tensor(operand).isParameter && std::count_if(list.begin(), list.end(), reads) == 1)
        add(operand);
    }
    return found;
  }

  /// Adds of one sum in order, and what they add.
  struct Sum {
    std::vector<int> adds, leaves;
  };
  void collect(int add, Sum &sum) const {
    for (const int operand : op(add).operands) {
      const int producer = tensor(operand).producer;
      if (isAdd(producer) && hasOneReader(operand)) collect(producer, sum);
      else sum.leaves.push_back(operand);
    }
    sum.adds.push_back(add);
  }

  void joinSummed() {
    for (int add = 0; add < int(flow.ops.size()); ++add) {
      if (!isAdd(add)) continue;
      const int result = op(add).results[0];
      if (hasOneReader(result) && isAdd(tensor(result).consumers[0]))
        continue;  // not the end of its sum
      Sum sum;
      collect(add, sum);
      std::vector<int> products, others;
      for (const int leaf : sum.leaves) {
        const int producer = tensor(leaf).producer;
        const bool isGemm =
            isContraction(producer) && hasOneReader(leaf) && readsParameter(producer);
        if (isGemm) products.push_back(producer);
        else others.push_back(leaf);
      }
      if (products.size() > 1) accountSum(sum, products, others, result);
    }
  }

  /// The products write their sum; what is left of the adds reads it.
  void accountSum(const Sum &sum, const std::vector<int> &products, std::vector<int> others,
                  int result) {
    int total = result;
    const size_t inside = products.size() - 1;
    if (!others.empty()) {
      total = int(flow.tensors.size() + accounted.sums.size());
      accounted.sums.push_back(tensor(result));
      others.push_back(total);
    }
    for (const int gemm : products) {
      join(products[0], gemm);
      accounted.ops[size_t(gemm)].results = {total};
    }
    for (size_t index = 0; index < sum.adds.size(); ++index) {
      AccountedOp &entry = accounted.ops[size_t(sum.adds[index])];
      entry.operands.clear();
      entry.results.clear();
      entry.isInsideSum = index < inside;
      join(sum.adds[index], index < inside ? products[0] : sum.adds.back());
    }
    if (others.empty()) return;
    accounted.ops[size_t(sum.adds.back())].operands = others;
    accounted.ops[size_t(sum.adds.back())].results = {result};
  }

  void joinSoftmax() {
    for (int index = 0; index < int(flow.ops.size()); ++index) {
      if (isKind(index, OpKind::softmax)) {
        for (const int reader : tensor(op(index).results[0]).consumers)
          if (isKind(reader, OpKind::dropout)) join(index, reader);
        joinBefore(index, {OpKind::scale, OpKind::mask});
      }
      if (isKind(index, OpKind::softmaxDx)) joinBefore(index, {OpKind::dropout});
    }
  }

  void joinBefore(int index, const std::set<OpKind> &kinds) {
    const int operand = op(index).operands[0], producer = tensor(operand).producer;
    if (producer < 0 || !kinds.contains(op(producer).kind) || !hasOneReader(operand)) return;
    join(producer, index);
    joinBefore(producer, kinds);
  }

  std::optional<int64_t> streamOf(int index) const {
    const std::optional<Dropout> dropout = dropoutOf(op(index).attributes);
    return dropout ? std::optional(dropout->stream) : std::nullopt;
  }

  void countMasks() {
    std::map<int64_t, std::vector<int>> streams;
    for (int index = 0; index < int(flow.ops.size()); ++index)
      if (const auto stream = streamOf(index)) streams[*stream].push_back(index);
    for (const auto &[stream, uses] : streams) {
      if (uses.size() < 2) continue;
      for (const int use : uses) {
        AccountedOp &entry = accounted.ops[size_t(use)];
        (use == uses.front() ? entry.masksWritten : entry.masksRead) +=
            elements(op(use).operands[0]);
      }
    }
  }

  int64_t elements(int tensorIndex) const {
    int64_t count = 1;
    for (const Axis &axis : tensor(tensorIndex).axes) count *= axis.extent;
    return count;
  }

  const Dataflow &flow;
  Reachability after;
  AccountedOps accounted;
  std::vector<int> contractions;
};

}  // namespace

AccountedOps groupOps(const Dataflow &flow) { return Grouping(flow).take(); }

}  // namespace weft
