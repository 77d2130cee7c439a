// The rules, cheapest first. Each names what blocks.
#include "passes/fuse/FusionRules.h"

#include "kernel/Attributes.h"
#include "kernel/CoordinateExpressions.h"
#include "kernel/Error.h"

#include <algorithm>
#include <iterator>

namespace weft {
namespace {

std::string joinNames(const Kernel &kernel, const std::set<int> &axes) {
  std::string text;
  for (int axis : axes) text += (text.empty() ? "" : ",") + kernel.axes[axis].name;
  return text.empty() ? "nothing" : text;
}

}  // namespace

OpSet unite(const OpSet &a, const OpSet &b) {
  OpSet result;
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(result));
  return result;
}

bool contains(const OpSet &set, int op) { return std::binary_search(set.begin(), set.end(), op); }

bool sharesTensor(const std::vector<int> &a, const std::vector<int> &b) {
  return std::any_of(a.begin(), a.end(),
                     [&](int tensor) { return std::find(b.begin(), b.end(), tensor) != b.end(); });
}

bool masksTokens(const FlowOp &op) {
  return op.kind == OpKind::mask && op.operands.size() == 2 &&
         isTokensMask(std::string_view(attributeOf(op, attribute::kind)));
}

std::optional<ReasonCode> FusionRules::opForbids(int op) const {
  const FlowOp &flowOp = flow.ops[op];
  if (flowOp.region) return reasons::alreadyFused;
  if (flowOp.operatorClass == OperatorClass::contraction) {
    if (options.rules == FuseRules::paper) return reasons::contractionRule;
    return flowOp.kind == OpKind::onlineSoftmaxContract ? reasons::attentionRegion
                                                        : reasons::contractionEpilogueOff;
  }
  if (flowOp.operatorClass == OperatorClass::movement) return reasons::movementOp;
  return std::nullopt;
}

std::optional<Rejection> FusionRules::rejectOps(const OpSet &both) const {
  for (int op : both)
    if (std::optional<ReasonCode> code = opForbids(op))
      return Rejection{code->code == reasons::contractionEpilogueOff.code
                           ? relationToContraction(both, op)
                           : *code,
                       flow.ops[op].label, op};
  return rejectByChoice(both);
}

/// Why a contraction does not join ops that are not its epilogue: those were tried before
/// (Epilogues.h) if the target is known.
ReasonCode FusionRules::relationToContraction(const OpSet &both, int contraction) const {
  if (!options.epilogueRejection) return reasons::contractionEpilogueOff;
  const auto feeds = [&](int op) {
    return op != contraction && reachability.reaches(op, contraction);
  };
  return std::any_of(both.begin(), both.end(), feeds) ? reasons::contractionPrologue
                                                      : reasons::besideContraction;
}

std::optional<Rejection> FusionRules::rejectByChoice(const OpSet &both, int maxOps) const {
  if (options.rules == FuseRules::none && options.forced.empty())
    return Rejection{reasons::rulesNone, ""};
  if (const auto pair = holdsPair(both, options.forbidden))
    return Rejection{reasons::forbiddenByOption, fmt::format("{},{}", pair->first, pair->second)};
  if (static_cast<int>(both.size()) > maxOps)
    return Rejection{reasons::candidateBound, std::to_string(maxOps) + " ops"};
  return rejectEntryPoints(both);
}

std::optional<std::pair<int, int>> FusionRules::holdsPair(
    const OpSet &set, const std::set<std::pair<int, int>> &pairs) const {
  const auto holds = [&](int number) {
    return std::any_of(set.begin(), set.end(),
                       [&](int op) { return flow.ops[op].number == number; });
  };
  for (const auto &pair : pairs)
    if (holds(pair.first) && holds(pair.second)) return pair;
  return std::nullopt;
}

/// Entry points of a plan are called one by one: no kernel belongs to two.
std::optional<Rejection> FusionRules::rejectEntryPoints(const OpSet &both) const {
  const auto entryOf = [&](int op) { return flow.ops[op].entry; };
  const auto [first, last] = std::ranges::minmax_element(both, {}, entryOf);
  if (entryOf(*first) == entryOf(*last)) return std::nullopt;
  return Rejection{reasons::forwardAndBackward,
                   flow.ops[*first].label + ", " + flow.ops[*last].label};
}

std::optional<Rejection> FusionRules::rejectAccess(const OpSet &both) const {
  const auto reduces = [&](int op) { return !flow.ops[op].reduced.empty(); };
  for (int op : both)
    if (flow.ops[op].reducesTiles && std::count_if(both.begin(), both.end(), reduces) > 1)
      return Rejection{reasons::subVectorAccess, flow.ops[op].label, op};
  return rejectPartnerAccess(both);
}

std::optional<Rejection> FusionRules::rejectPartnerAccess(const OpSet &both) const {
  for (int op : both)
    for (size_t n = 0; n < flow.ops[op].operands.size(); ++n) {
      const FlowTensor &tensor = flow.tensors[flow.ops[op].operands[n]];
      if (flow.ops[op].expression.readsElsewhere(static_cast<int>(n)) && tensor.producer >= 0 &&
          contains(both, tensor.producer))
        return Rejection{reasons::partnerAccess, tensor.name};
    }
  return std::nullopt;
}

std::optional<Rejection> FusionRules::rejectSpaces(const OpSet &a, const OpSet &b,
                                                   const OpSet &both) const {
  if (std::optional<Rejection> access = rejectAccess(both)) return access;
  BoundKernel bound;
  try {
    bound = bindKernel(flow, both);
  } catch (const Error &error) {
    return Rejection{reasons::accessTwice, error.what()};
  }
  const auto spaceOf = [&](const OpSet &side) {
    std::optional<AxisSets> space;
    for (size_t i = 0; i < both.size(); ++i)
      if (contains(side, both[i])) space = space ? unite(*space, bound.spaces[i]) : bound.spaces[i];
    return *space;
  };
  const AxisSets left = spaceOf(a), right = spaceOf(b);
  const FusionVerdict verdict = canFuse(left, right);
  if (verdict.fusability == Fusability::equal || verdict.fusability == Fusability::oneReduction)
    return std::nullopt;
  return explainSpaces(a, b, bound.kernel, left, right);
}

Rejection FusionRules::explainSpaces(const OpSet &a, const OpSet &b, const Kernel &kernel,
                                     const AxisSets &left, const AxisSets &right) const {
  if (!left.reduced.empty() && !right.reduced.empty() && left.reduced != right.reduced)
    return {reasons::reductionAxisMismatch,
            joinNames(kernel, left.reduced) + " against " + joinNames(kernel, right.reduced)};
  if (areIndependent(a, b))
    if (std::optional<std::string> extents = differingExtents(a, b))
      return {reasons::extentMismatch, *extents};
  return {reasons::spaceMismatch,
          joinNames(kernel, left.domain()) + " against " + joinNames(kernel, right.domain())};
}

/// Independent ops of equal rank: the first axis, by position, whose extents differ.
std::optional<std::string> FusionRules::differingExtents(const OpSet &a, const OpSet &b) const {
  const auto axesOf = [&](const OpSet &set) {
    return flow.tensors[flow.ops[set.front()].results.front()].axes;
  };
  const std::vector<Axis> left = axesOf(a), right = axesOf(b);
  if (left.size() != right.size()) return std::nullopt;
  for (size_t i = 0; i < left.size(); ++i)
    if (left[i].extent != right[i].extent)
      return fmt::format("{}={} against {}={}", left[i].name, left[i].extent, right[i].name,
                         right[i].extent);
  return std::nullopt;
}

bool FusionRules::areOffsets(int tensor) const {
  return std::ranges::any_of(flow.tensors[size_t(tensor)].consumers, [&](int consumer) {
    const FlowOp &op = flow.ops[size_t(consumer)];
    return masksTokens(op) && op.operands[1] == tensor;
  });
}

bool FusionRules::areIndependent(const OpSet &a, const OpSet &b) const {
  for (int x : a)
    for (int y : b)
      if (x == y || reachability.reaches(x, y) || reachability.reaches(y, x) ||
          std::ranges::any_of(flow.ops[x].operands, [&](int tensor) {
            return std::ranges::count(flow.ops[y].operands, tensor) > 0 && !areOffsets(tensor);
          }))
        return false;
  return true;
}

bool FusionRules::areSiblings(const OpSet &a, const OpSet &b) const {
  const std::set<int> left = readByContractionsBeside(a), right = readByContractionsBeside(b);
  return std::any_of(left.begin(), left.end(), [&](int tensor) { return right.contains(tensor); });
}

std::set<int> FusionRules::readByContractionsBeside(const OpSet &set) const {
  std::set<int> read;
  const auto add = [&](int op) {
    if (op >= 0 && flow.ops[op].operatorClass == OperatorClass::contraction)
      read.insert(flow.ops[op].operands.begin(), flow.ops[op].operands.end());
  };
  for (int op : set) {
    for (int tensor : flow.ops[op].operands) add(flow.tensors[tensor].producer);
    for (const std::vector<int> *tensors : {&flow.ops[op].operands, &flow.ops[op].results})
      for (int tensor : *tensors)
        for (int consumer : flow.tensors[tensor].consumers) add(consumer);
  }
  return read;
}

}  // namespace weft
