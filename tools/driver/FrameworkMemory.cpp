// Lives of the tensors of a graph, op by op; see FrameworkMemory.h.
#include "tools/driver/FrameworkMemory.h"

#include <algorithm>
#include <optional>
#include <set>

namespace weft::driver {
namespace {

class Lives {
public:
  explicit Lives(const select::Problem &problem) : problem(problem), bodies(problem.ops.size(), nullptr), writerOf(problem.tensors.size(), -1) {
    for (const select::Candidate &candidate : problem.candidates)
      if (candidate.ops.size() == 1) bodies[size_t(candidate.ops.front())] = &candidate.kernel.body.front();
    for (size_t op = 0; op < problem.ops.size(); ++op)
      for (const int tensor : problem.opOutputs[op]) writerOf[size_t(tensor)] = int(op);
    for (size_t op = 0; op < problem.ops.size(); ++op)
      if (bodies[op] && bodies[op]->name == "softmax") findScores(int(op));
  }

  int64_t peak() const {
    std::vector<int> last(problem.tensors.size(), -1);  // op that needs it
    for (size_t op = 0; op < problem.ops.size(); ++op) {
      for (const int tensor : problem.opOutputs[op]) last[size_t(rootOf(tensor))] = int(op);
      for (const int tensor : problem.opInputs[op]) last[size_t(rootOf(tensor))] = int(op);
    }
    for (size_t tensor = 0; tensor < problem.tensors.size(); ++tensor)
      if (problem.tensors[tensor].isResult) last[size_t(rootOf(int(tensor)))] = int(problem.ops.size());
    int64_t most = 0;
    for (int op = 0; op < int(problem.ops.size()); ++op) {
      int64_t live = 0;
      for (int tensor = 0; tensor < int(problem.tensors.size()); ++tensor)
        if (isStored(tensor) && writerOf[size_t(tensor)] <= op && op <= last[size_t(tensor)]) live += problem.tensors[size_t(tensor)].bytes();
      most = std::max(most, live);
    }
    return most;
  }

private:
  bool isOfClass(int op, OperatorClass wanted) const { return op >= 0 && bodies[size_t(op)] && bodies[size_t(op)]->operatorClass == wanted; }
  bool isView(int op) const { return isOfClass(op, OperatorClass::movement) && bodies[size_t(op)]->name != "concat" && bodies[size_t(op)]->name != "gather"; }
  bool isStored(int tensor) const { return writerOf[size_t(tensor)] >= 0 && !isView(writerOf[size_t(tensor)]) && !scores.contains(tensor); }

  int rootOf(int tensor) const {
    while (isView(writerOf[size_t(tensor)])) tensor = problem.opInputs[size_t(writerOf[size_t(tensor)])].front();
    return tensor;
  }

  /// The tensors between the two contractions around a softmax; none where there are not two.
  void findScores(int softmax) {
    std::set<int> found;
    int before = problem.opInputs[size_t(softmax)].front();
    for (int op = writerOf[size_t(before)];; op = writerOf[size_t(before)]) {
      found.insert(before);
      if (isOfClass(op, OperatorClass::contraction)) break;
      if (!isOfClass(op, OperatorClass::elementwise)) return;
      before = problem.opInputs[size_t(op)].front();
    }
    int after = problem.opOutputs[size_t(softmax)].front();
    while (true) {
      found.insert(after);
      const std::optional<int> reader = readerOf(after);
      if (!reader) return;
      if (isOfClass(*reader, OperatorClass::contraction)) break;
      if (!isOfClass(*reader, OperatorClass::elementwise)) return;
      after = problem.opOutputs[size_t(*reader)].front();
    }
    scores.insert(found.begin(), found.end());
  }

  /// The only op that reads a tensor which is no result.
  std::optional<int> readerOf(int tensor) const {
    std::optional<int> reader;
    for (size_t op = 0; op < problem.ops.size(); ++op)
      if (std::ranges::count(problem.opInputs[op], tensor) > 0) {
        if (reader) return std::nullopt;
        reader = int(op);
      }
    return problem.tensors[size_t(tensor)].isResult ? std::nullopt : reader;
  }

  const select::Problem &problem;
  std::vector<const BodyOp *> bodies;  ///< of the kernel that is one op
  std::vector<int> writerOf;           ///< op, or -1
  std::set<int> scores;
};

}  // namespace

int64_t frameworkBytes(const select::Problem &problem) { return Lives(problem).peak(); }

int64_t frameworkWorkspaceBytes(const select::Problem &problem) {
  int64_t bytes = frameworkBytes(problem);
  for (const select::Tensor &tensor : problem.tensors) bytes -= tensor.isResult && !tensor.isArgument ? tensor.bytes() : 0;
  return std::max<int64_t>(bytes, 0);
}

}  // namespace weft::driver
