// A cut is a prefix of the ops behind which only tensors that may cross are live, and that no
// candidate crosses.
#include "passes/select/GraphParts.h"

#include "passes/select/OpSet.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

namespace weft::select {
namespace {

bool isMovement(const Candidate &candidate) {
  return candidate.ops.size() == 1 &&
         candidate.kernel.body.front().operatorClass == OperatorClass::movement;
}

/// Whether something is live behind the ops, and all of it may cross.
bool crossesOnly(const Problem &problem, const OpSet &before, const std::vector<bool> &mayCross,
                 const std::vector<int> &lastReader, int last) {
  bool isAnyLive = false;
  for (const int op : before.members())
    for (const int tensor : problem.opOutputs[static_cast<size_t>(op)]) {
      const auto t = static_cast<size_t>(tensor);
      if (lastReader[t] <= last && !problem.tensors[t].isResult) continue;
      if (!mayCross[t]) return false;
      isAnyLive = true;
    }
  return isAnyLive;
}

}  // namespace

std::string identityOf(const Tensor &tensor) {
  std::string text = fmt::format("{} {} {}{}{}", tensor.name, nameOf(tensor.dtype),
                                 tensor.isArgument, tensor.isParameter, tensor.isResult);
  for (const Axis &axis : tensor.axes) text += fmt::format(" {}{}", axis.name, axis.extent);
  if (tensor.pinned) text += fmt::format(" pinned {}", fmt::join(tensor.pinned->order, ","));
  return text;
}

std::vector<bool> mayBeShared(const Problem &problem, const std::set<std::string> &mayCross) {
  std::map<std::string, int> named;
  for (const Tensor &tensor : problem.tensors) ++named[tensor.name];
  std::vector<bool> result;
  for (const Tensor &tensor : problem.tensors)
    result.push_back(tensor.isArgument ||
                     (mayCross.contains(tensor.name) && named[tensor.name] == 1));
  for (const Candidate &candidate : problem.candidates)
    if (isMovement(candidate))
      for (const std::vector<int> *operands : {&candidate.inputs, &candidate.outputs})
        for (const int tensor : *operands)
          if (!problem.tensors[static_cast<size_t>(tensor)].isArgument)
            result[static_cast<size_t>(tensor)] = false;
  return result;
}

bool movesArguments(const Problem &problem) {
  return std::ranges::any_of(problem.candidates, [&](const Candidate &candidate) {
    return isMovement(candidate) && std::ranges::any_of(candidate.inputs, [&](int tensor) {
             const Tensor &facts = problem.tensors[static_cast<size_t>(tensor)];
             return facts.isArgument && !facts.isParameter;
           });
  });
}

std::vector<int> partsOf(const Problem &problem, const std::set<std::string> &mayCross) {
  std::vector<int> parts(problem.ops.size(), 0);
  if (movesArguments(problem)) return parts;
  const std::vector<bool> crosses = mayBeShared(problem, mayCross);
  std::vector<int> lastReader(problem.tensors.size(), -1);
  for (size_t op = 0; op < problem.ops.size(); ++op)
    for (const int tensor : problem.opInputs[op])
      lastReader[static_cast<size_t>(tensor)] = static_cast<int>(op);
  std::vector<bool> isInside(problem.ops.size(), false);  // behind the op a candidate goes on
  for (const Candidate &candidate : problem.candidates)
    for (int op = candidate.ops.front(); op < candidate.ops.back(); ++op)
      isInside[static_cast<size_t>(op)] = true;
  OpSet before;
  int part = 0;
  for (size_t op = 0; op < problem.ops.size(); ++op) {
    parts[op] = part;
    before.insert(static_cast<int>(op));
    if (!isInside[op] && crossesOnly(problem, before, crosses, lastReader, static_cast<int>(op)))
      ++part;
  }
  return parts;
}

}  // namespace weft::select
