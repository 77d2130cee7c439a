// Live ranges of the tensors of a graph, op by op; see FrameworkMemory.h.
#include "passes/decide/FrameworkMemory.h"

#include <algorithm>
#include <set>
#include <string>

namespace weft::decision {
namespace {

class LiveRanges {
public:
  explicit LiveRanges(const select::Problem &problem)
      : problem(problem),
        bodies(problem.ops.size(), nullptr),
        writerOf(problem.tensors.size(), -1) {
    for (const select::Candidate &candidate : problem.candidates)
      if (candidate.ops.size() == 1)
        bodies[size_t(candidate.ops.front())] = &candidate.kernel.body.front();
    for (size_t op = 0; op < problem.ops.size(); ++op)
      for (const int tensor : problem.opOutputs[op]) writerOf[size_t(tensor)] = int(op);
    for (size_t op = 0; op < problem.ops.size(); ++op)
      if (bodies[op] &&
          (bodies[op]->kind == OpKind::softmax || bodies[op]->kind == OpKind::localSoftmax ||
           bodies[op]->kind == OpKind::softmaxFromLogSums))
        findScores(int(op));
    for (size_t op = 0; op < problem.ops.size(); ++op)
      if (bodies[op] && bodies[op]->kind == OpKind::onlineSoftmaxContract)
        comesFromContraction(problem.opInputs[op].front(), scores);
    for (size_t op = 0; op < problem.ops.size(); ++op)
      if (bodies[op] &&
          (bodies[op]->kind == OpKind::normalize || bodies[op]->kind == OpKind::rmsNormalize))
        findSteps(int(op));
  }

  int64_t peak() const {
    std::vector<int> last(problem.tensors.size(), -1);  // op that needs it
    for (size_t op = 0; op < problem.ops.size(); ++op) {
      for (const int tensor : problem.opOutputs[op]) last[size_t(rootOf(tensor))] = int(op);
      for (const int tensor : problem.opInputs[op]) last[size_t(rootOf(tensor))] = int(op);
    }
    for (size_t tensor = 0; tensor < problem.tensors.size(); ++tensor)
      if (problem.tensors[tensor].isResult)
        last[size_t(rootOf(int(tensor)))] = int(problem.ops.size());
    int64_t most = 0;
    for (int op = 0; op < int(problem.ops.size()); ++op) {
      int64_t live = 0;
      for (int tensor = 0; tensor < int(problem.tensors.size()); ++tensor)
        if (isStored(tensor) && writerOf[size_t(tensor)] <= op && op <= last[size_t(tensor)])
          live += problem.tensors[size_t(tensor)].bytes();
      most = std::max(most, live);
    }
    return most;
  }

private:
  bool isOfClass(int op, OperatorClass wanted) const {
    return op >= 0 && bodies[size_t(op)] && bodies[size_t(op)]->operatorClass == wanted;
  }
  bool isView(int op) const {
    static const std::set<OpKind> views = {OpKind::slice, OpKind::splitAxis, OpKind::mergeAxes,
                                           OpKind::transpose, OpKind::identity};
    return isOfClass(op, OperatorClass::movement) && views.contains(bodies[size_t(op)]->kind);
  }
  bool isStored(int tensor) const {
    return writerOf[size_t(tensor)] >= 0 && !isView(writerOf[size_t(tensor)]) &&
           !scores.contains(tensor) && !steps.contains(tensor);
  }

  int rootOf(int tensor) const {
    while (isView(writerOf[size_t(tensor)]))
      tensor = problem.opInputs[size_t(writerOf[size_t(tensor)])].front();
    return tensor;
  }

  /// What a fused attention does between its products: a softmax, in one piece or decomposed, and
  /// element-wise ops around it.
  bool isWithinAttention(int op) const {
    static const std::set<OpKind> pieces = {OpKind::softmax, OpKind::softmaxDx,
                                            OpKind::localSoftmax, OpKind::reduceSubvectors,
                                            OpKind::globalScaling};
    return isOfClass(op, OperatorClass::elementwise) ||
           (bodies[size_t(op)] && pieces.contains(bodies[size_t(op)]->kind));
  }

  /// The tensors between the two contractions around a softmax; none where there are not two.
  void findScores(int softmax) {
    std::set<int> found;
    bool isBehind = false, isBefore = false;
    for (const int tensor : problem.opInputs[size_t(softmax)])
      isBehind |= comesFromContraction(tensor, found);
    for (const int tensor : problem.opOutputs[size_t(softmax)])
      isBefore |= goesToContractions(tensor, found);
    if (isBehind && isBefore) scores.insert(found.begin(), found.end());
  }

  bool comesFromContraction(int tensor, std::set<int> &found) const {
    const int writer = writerOf[size_t(tensor)];
    if (writer < 0) return false;
    bool comes = isOfClass(writer, OperatorClass::contraction);
    if (!comes && isWithinAttention(writer))
      for (const int operand : problem.opInputs[size_t(writer)])
        comes |= comesFromContraction(operand, found);
    if (comes) found.insert(tensor);
    return comes;
  }

  /// And nowhere else.
  bool goesToContractions(int tensor, std::set<int> &found) const {
    if (problem.tensors[size_t(tensor)].isResult) return false;
    bool goes = false;
    for (const int reader : readersOf(tensor)) {
      bool leads = isOfClass(reader, OperatorClass::contraction);
      if (!leads && isWithinAttention(reader))
        for (const int result : problem.opOutputs[size_t(reader)])
          leads |= goesToContractions(result, found);
      if (!leads) return false;
      goes = true;
    }
    if (goes) found.insert(tensor);
    return goes;
  }

  /// What a decomposed norm makes between x and y, which a framework's norm, one op, does not
  /// store: the squares on the way to their sum, and y before gamma and beta.
  void findSteps(int normalize) {
    for (size_t operand = 1; operand < problem.opInputs[size_t(normalize)].size(); ++operand) {
      steps.insert(problem.opInputs[size_t(normalize)][operand]);
      for (int op = writerOf[size_t(problem.opInputs[size_t(normalize)][operand])]; op >= 0;) {
        const int read = problem.opInputs[size_t(op)].front();
        op = writerOf[size_t(read)];
        if (readersOf(read).size() != 1 || !isOfClass(op, OperatorClass::elementwise))
          break;  // x, which the norm reads, too
        steps.insert(read);
      }
    }
    if (isOfClass(writerOf[size_t(problem.opInputs[size_t(normalize)].front())],
                  OperatorClass::contraction)) {
      steps.insert(problem.opInputs[size_t(normalize)]
                       .front());  // what follows a GEMM stands for its result
      return;
    }
    const bool hasBeta = bodies[size_t(normalize)]->kind == OpKind::normalize;
    int tensor = problem.opOutputs[size_t(normalize)].front();
    for (int step = 0; step < (hasBeta ? 2 : 1) && readersOf(tensor).size() == 1; ++step) {
      steps.insert(tensor);
      tensor = problem.opOutputs[size_t(readersOf(tensor).front())].front();
    }
  }

  std::vector<int> readersOf(int tensor) const {
    std::vector<int> readers;
    for (size_t op = 0; op < problem.ops.size(); ++op)
      if (std::ranges::count(problem.opInputs[op], tensor) > 0) readers.push_back(int(op));
    return readers;
  }

  const select::Problem &problem;
  std::vector<const BodyOp *> bodies;  ///< of the kernel that is one op
  std::vector<int> writerOf;           ///< op, or -1
  std::set<int> scores, steps;
};

}  // namespace

int64_t frameworkBytes(const select::Problem &problem) { return LiveRanges(problem).peak(); }

int64_t frameworkWorkspaceBytes(const select::Problem &problem) {
  int64_t bytes = frameworkBytes(problem);
  for (const select::Tensor &tensor : problem.tensors)
    bytes -= tensor.isResult && !tensor.isArgument ? tensor.bytes() : 0;
  return std::max<int64_t>(bytes, 0);
}

}  // namespace weft::decision
