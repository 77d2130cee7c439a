// Choices by operand, of which some follow others; see AttentionBackwardLayouts.h.
#include "codegen/families/attention_backward/AttentionBackwardLayouts.h"

#include "codegen/families/attention/AttentionLayouts.h"
#include "codegen/families/attention_backward/AttentionBackwardProblem.h"
#include "kernel/RecentAnswers.h"
#include "passes/configure/Family.h"

#include <algorithm>
#include <map>
#include <set>

namespace weft {
namespace {

/// Whether axes that both have stand in one order, and, where each has one more, in its place.
bool areInStep(std::vector<AxisId> axes, const std::vector<AxisId> &leader) {
  const auto lacking = [](const std::vector<AxisId> &from, const std::vector<AxisId> &in) {
    std::vector<AxisId> only;
    std::ranges::copy_if(from, std::back_inserter(only),
                         [&](AxisId axis) { return std::ranges::find(in, axis) == in.end(); });
    return only;
  };
  const std::vector<AxisId> own = lacking(axes, leader), other = lacking(leader, axes);
  if (own.size() != 1 || other.size() != 1) return lieAlike(axes, leader);
  std::ranges::replace(axes, own.front(), other.front());
  return axes == leader;
}

std::vector<LayoutTuple> tuplesOf(const Kernel &kernel, const AttentionBackwardRegion &region) {
  const std::vector<ValueId> operands = operandValues(kernel);
  const auto placeOf = [&](ValueId value) {
    return size_t(std::ranges::find(operands, value) - operands.begin());
  };
  std::map<ValueId, const std::vector<AxisId> *> columnsOf;
  for (const ValueId value : {region.q, region.k, region.dQ, region.dK})
    columnsOf[value] = &region.headDim;
  for (const ValueId value : {region.v, region.dOutput, region.dV})
    columnsOf[value] = &region.valueDim;
  LayoutChoices choices;
  for (const ValueId value : operands)
    choices.push_back(withFastest(
        kernel, value, columnsOf.contains(value) ? *columnsOf.at(value) : std::vector<AxisId>{}));

  std::map<size_t, size_t> leaderOf;  // operands that lie as another one does
  const auto isTooLarge = [&] {
    double count = combinations(choices);
    for (const auto &[follower, leader] : leaderOf)
      count /= double(std::min(choices[follower].size(), choices[leader].size()));
    return count > double(mostAttentionTuples);
  };
  for (size_t i = operands.size(); i-- > 0 && isTooLarge();)
    if (!columnsOf.contains(operands[i]))
      choices[i] = {plainLayout(kernel, attentionOf(kernel, region), operands[i])};
  const bool areQueriesAsKeys =  // no heads of a group
      choices[placeOf(region.dQ)].size() == choices[placeOf(region.dK)].size();
  for (const auto &[follower, leader] : {std::pair(region.v, region.k),
                                         {region.dV, region.dK},
                                         {region.dQ, areQueriesAsKeys ? region.dK : region.dOutput},
                                         {region.dOutput, region.q},
                                         {region.dK, region.k}}) {
    if (!isTooLarge()) break;
    leaderOf[placeOf(follower)] = placeOf(leader);
  }

  std::vector<size_t> order;  // leaders come first
  const auto add = [&](const auto &self, size_t operand) -> void {
    if (std::ranges::find(order, operand) != order.end()) return;
    if (const auto leader = leaderOf.find(operand); leader != leaderOf.end())
      self(self, leader->second);
    order.push_back(operand);
  };
  for (size_t operand = 0; operand < operands.size(); ++operand) add(add, operand);

  std::set<LayoutTuple> tuples;
  LayoutTuple tuple(operands.size());
  const auto axesOf = [&](size_t operand) {
    return longAxes(kernel, operands[operand], tuple[operand]);
  };
  const auto visit = [&](const auto &self, size_t step) -> void {
    if (step == order.size()) {
      tuples.insert(tuple);
      return;
    }
    const size_t operand = order[step];
    const auto leader = leaderOf.find(operand);
    for (const Layout &layout : choices[operand]) {
      tuple[operand] = layout;
      if (leader != leaderOf.end() && !areInStep(axesOf(operand), axesOf(leader->second))) continue;
      self(self, step + 1);
    }
  };
  visit(visit, 0);
  return {tuples.begin(), tuples.end()};
}

}  // namespace

std::vector<LayoutTuple> attentionBackwardTuples(const Kernel &kernel,
                                                 const AttentionBackwardRegion &region) {
  thread_local RecentAnswers<std::vector<LayoutTuple>, AttentionBackwardRegion> recent;
  return recent.of([&] { return tuplesOf(kernel, region); }, kernel, region);
}

}  // namespace weft
